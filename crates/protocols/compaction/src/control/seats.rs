//! Which worker each database has, where each has one for ever (Disaggre-RocksDB).
//!
//! There a database is given an address when it starts, and asks nobody else. So a seat here stands
//! for an address: a worker that comes takes a free one, and a database stays with its seat,
//! whether somebody sits there or not.

use std::collections::BTreeMap;

use super::workers::Worker;
use crate::job::{DatabaseId, WorkerId, Zone};

/// Seats, who sits there, and whose they are.
#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: Vec<Seat>,
    databases: BTreeMap<DatabaseId, usize>,
}

#[derive(Debug)]
struct Seat {
    worker: Option<WorkerId>,
    zone: Zone,
    databases: usize,
}

/// What a database finds where its worker should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It has no seat: no worker ever came.
    NoSeat,
    /// Its worker is gone.
    Nobody,
    /// Its worker.
    Worker(WorkerId),
}

impl Seats {
    /// Notes who came and who is gone.
    pub fn update(&mut self, workers: &BTreeMap<WorkerId, Worker>) {
        for seat in &mut self.seats {
            seat.worker = seat.worker.filter(|worker| workers.contains_key(worker));
        }
        for (id, worker) in workers {
            if self.seats.iter().any(|seat| seat.worker == Some(*id)) {
                continue;
            }
            let zone = worker.ability.zone;
            let free = |seat: &&mut Seat| seat.worker.is_none() && seat.zone == zone;
            match self.seats.iter_mut().find(free) {
                Some(seat) => seat.worker = Some(*id),
                None => self.seats.push(Seat {
                    worker: Some(*id),
                    zone,
                    databases: 0,
                }),
            }
        }
    }

    /// Gives a database its seat when it asks for the first time: the one that the fewest have,
    /// rather in its own zone, as an operator would spread them.
    pub fn give(&mut self, database: DatabaseId, zone: Zone) {
        if self.databases.contains_key(&database) {
            return;
        }
        let seats = self.seats.iter_mut().enumerate();
        let best = seats.min_by_key(|(place, seat)| (seat.databases, seat.zone != zone, *place));
        if let Some((place, seat)) = best {
            seat.databases += 1;
            self.databases.insert(database, place);
        }
    }

    /// The worker of a database.
    pub fn worker_of(&self, database: DatabaseId) -> Found {
        let place = self.databases.get(&database);
        match place.and_then(|place| self.seats.get(*place)) {
            None => Found::NoSeat,
            Some(seat) => seat.worker.map_or(Found::Nobody, Found::Worker),
        }
    }
}
