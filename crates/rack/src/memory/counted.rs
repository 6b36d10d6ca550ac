//! What a server's memory says when its own processor looks at it, for metrics.

use manxdb_fabric::{Operation, WORD};
use manxdb_rsi::{Region, Seat, Stamp, ThreadId};

use super::plan::{NEXT, Plan};
use super::rooms::Rooms;

/// Numbers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Bytes that are given away or taken by tables and logs; of replicated memory those of regions.
    pub given: u64,
    /// Transactions that the logs here are about: of each place the number of the last one.
    pub logged: u64,
    /// Places that are somebody's; of servers with the table, as what follows.
    pub taken: u64,
    /// Places whose owners are to be recovered.
    pub over: u64,
    /// Wardens that have led; none: the table is elsewhere.
    pub term: Option<u64>,
    /// Lots of replicated memory, given away and in all; of servers with their words.
    pub lots: Option<(u64, u64)>,
    /// Transactions that are published and not on disk for good; of servers with what the keeper says.
    pub behind: Option<u64>,
}

impl Counted {
    /// Looks at a server's memory, word by word. Of replicated memory it finds what was the server's
    /// at first.
    #[must_use]
    pub fn of(plan: &Plan, server: u16, word: &dyn Fn(u64) -> u64) -> Self {
        let mut counted = Self {
            given: plan.given(server, word),
            ..Self::default()
        };
        let seats = plan.seats();
        let threads = (0..plan.geometry().places).filter_map(ThreadId::new);
        for thread in threads {
            if let Some(log) = plan.log_here(server, thread) {
                // Of each slot a length, then the entry's version: its thread, and its number.
                let geometry = plan.geometry();
                let slots = 0..u64::from(geometry.log_slots);
                let number = |slot| word(log + slot * geometry.log_bytes + WORD);
                let numbers = slots.map(|slot| number(slot) & Stamp::SEQUENCE_MAX);
                counted.logged += numbers.max().unwrap_or(0);
            }
            if let Some(seat) = plan.here(server, seats.seat(thread)) {
                match Seat::of_word(word(seat)) {
                    Seat::Taken(_) | Seat::Kept(_) => counted.taken += 1,
                    Seat::Over(_) => counted.over += 1,
                    Seat::Free(_) => {}
                }
            }
        }
        counted.term = plan.here(server, plan.table).map(word);
        counted.lots = plan.lots(server, word);
        counted.behind = behind(plan, server, word);
        counted
    }
}

/// How many transactions are published and not on disk for good.
fn behind(plan: &Plan, server: u16, word: &dyn Fn(u64) -> u64) -> Option<u64> {
    let copy = |read: Operation| {
        let Operation::Read { at, bytes } = read else {
            return None;
        };
        let first = plan.here(server, at)?;
        let words = (0..bytes / WORD).map(|number| word(first + number * WORD));
        Some(words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
    };
    let kept = plan.kept?;
    let (_, synced) = kept.parse(&copy(kept.read())?);
    let (published, _) = plan.vector.parse(&copy(plan.vector.read())?);
    let pairs = published.numbers().iter().zip(synced.numbers());
    Some(
        pairs
            .map(|(last, synced)| last.saturating_sub(*synced))
            .sum(),
    )
}

impl Plan {
    /// Lots that are given away, and all of them; none: their words are elsewhere, or there are none.
    fn lots(&self, server: u16, word: &dyn Fn(u64) -> u64) -> Option<(u64, u64)> {
        let Rooms::Shelves(shelves) = &self.rooms else {
            return None;
        };
        let first = self.here(server, shelves.words)?;
        let all = shelves.records.len() as u64 * shelves.lots;
        let is_given = |lot: &u64| word(first + lot * WORD) != 0;
        Some(((0..all).filter(is_given).count() as u64, all))
    }

    /// Bytes of a server that are given away or taken by tables and logs.
    fn given(&self, server: u16, word: &dyn Fn(u64) -> u64) -> u64 {
        match (&self.rooms, &self.first) {
            (Rooms::Servers(begin), _) => word(NEXT).max(*begin),
            (Rooms::Shelves(_), Some((_, map))) => {
                let regions = map.regions().iter();
                let is_here = |region: &&Region| {
                    let mut replicas = region.replicas().iter();
                    replicas.any(|replica| replica.at.server.0 == server)
                };
                regions.filter(is_here).map(Region::bytes).sum()
            }
            (Rooms::Shelves(_), None) => 0, // not reached: shelves are of regions
        }
    }
}
