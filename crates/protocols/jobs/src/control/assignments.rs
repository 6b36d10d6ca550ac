//! Which worker each database has under the static baseline, where a database keeps one worker for
//! as long as it runs (Disaggre-RocksDB).
//!
//! There a database is configured with a network address when it starts. A [`WorkerAddress`] stands
//! for that address: a new worker takes a free one, and a database stays with its address while no
//! worker is there.

use manxdb_core::check::ensure;
use std::collections::BTreeMap;

use super::workers::Worker;
use crate::job::{DatabaseId, WorkerId, Zone};

/// The addresses, the worker at each, and the address of each database.
#[derive(Debug, Default)]
pub(super) struct Assignments {
    addresses: Vec<WorkerAddress>,
    databases: BTreeMap<DatabaseId, usize>,
}

#[derive(Debug)]
struct WorkerAddress {
    worker: Option<WorkerId>,
    zone: Zone,
    databases: usize,
}

/// The worker that a database finds at its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assigned {
    /// It has no address: no worker ever came.
    NoAddress,
    /// Its worker is gone.
    Nobody,
    /// Its worker.
    Worker(WorkerId),
}

impl Assignments {
    /// Frees the addresses of workers that are gone and gives one to each new worker.
    pub fn update(&mut self, workers: &BTreeMap<WorkerId, Worker>) {
        for address in &mut self.addresses {
            address.worker = address.worker.filter(|worker| workers.contains_key(worker));
        }
        for (id, worker) in workers {
            if self
                .addresses
                .iter()
                .any(|address| address.worker == Some(*id))
            {
                continue;
            }
            let zone = worker.ability.zone;
            let free =
                |address: &&mut WorkerAddress| address.worker.is_none() && address.zone == zone;
            match self.addresses.iter_mut().find(free) {
                Some(address) => address.worker = Some(*id),
                None => self.addresses.push(WorkerAddress {
                    worker: Some(*id),
                    zone,
                    databases: 0,
                }),
            }
        }
    }

    /// Gives a database its address when it asks for the first time: the one that the fewest have,
    /// rather in its own zone, as an operator would spread them.
    pub fn give(&mut self, database: DatabaseId, zone: Zone) {
        if self.databases.contains_key(&database) {
            return;
        }
        let addresses = self.addresses.iter_mut().enumerate();
        let best = addresses
            .min_by_key(|(place, address)| (address.databases, address.zone != zone, *place));
        if let Some((place, address)) = best {
            address.databases += 1;
            self.databases.insert(database, place);
        }
    }

    /// What is true of addresses: each worker has one, and each database one of them.
    pub fn check(&self) -> Result<(), String> {
        let mut workers: Vec<_> = self.addresses.iter().filter_map(|one| one.worker).collect();
        let count = workers.len();
        workers.sort_unstable();
        workers.dedup();
        ensure(workers.len() == count, || {
            "a worker has one address".to_owned()
        })?;
        for (place, address) in self.addresses.iter().enumerate() {
            let databases = self.databases.values().filter(|other| **other == place);
            ensure(databases.count() == address.databases, || {
                format!("address {place} is that of {} databases", address.databases)
            })?;
        }
        let count = self.addresses.len();
        ensure(self.databases.values().all(|place| *place < count), || {
            format!("the address of a database is one of {count}")
        })
    }

    /// Whether no database was given a worker, and no worker an address.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.databases.is_empty()
    }

    /// The worker of a database.
    pub fn worker_of(&self, database: DatabaseId) -> Assigned {
        let place = self.databases.get(&database);
        match place.and_then(|place| self.addresses.get(*place)) {
            None => Assigned::NoAddress,
            Some(address) => address.worker.map_or(Assigned::Nobody, Assigned::Worker),
        }
    }
}
