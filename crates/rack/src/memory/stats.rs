//! What a server's memory says when its own processor looks at it, for metrics.

use manxdb_fabric::{Operation, WORD};
use manxdb_rsi::{ClientSlot, ReplicatedRegion, Stamp, ThreadId};

use super::chunks::UnusedMemory;
use super::plan::{NEXT, Plan};

/// Numbers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Bytes that are given away or taken by tables and logs; of replicated memory those of regions.
    pub given: u64,
    /// Transactions that the logs here are about: of each place the number of the last one.
    pub logged: u64,
    /// Places that are somebody's; of servers with the table, as what follows.
    pub taken: u64,
    /// Places whose owners are to be recovered.
    pub over: u64,
    /// Recovery coordinators that have led; none: the table is elsewhere.
    pub term: Option<u64>,
    /// Chunks of replicated memory, given away and in all; of servers with their words.
    pub chunks: Option<(u64, u64)>,
    /// Transactions that are published and not on disk for good; of servers with what the log archiver says.
    pub behind: Option<u64>,
}

impl MemoryStats {
    /// Looks at a server's memory, word by word. Of replicated memory it finds what was the server's
    /// at first.
    #[must_use]
    pub fn of(plan: &Plan, server: u16, word: &dyn Fn(u64) -> u64) -> Self {
        let mut counted = Self {
            given: plan.given(server, word),
            ..Self::default()
        };
        let client_slots = plan.client_slots();
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
            if let Some(client_slot) = plan.here(server, client_slots.client_slot(thread)) {
                match ClientSlot::of_word(word(client_slot)) {
                    ClientSlot::Taken(_) | ClientSlot::Kept(_) => counted.taken += 1,
                    ClientSlot::Over(_) => counted.over += 1,
                    ClientSlot::Free(_) => {}
                }
            }
        }
        counted.term = plan.here(server, plan.table).map(word);
        counted.chunks = plan.chunks(server, word);
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
    assert_eq!(
        published.numbers().len(),
        synced.numbers().len(),
        "there are positions of each thread of the vector"
    );
    let pairs = published.numbers().iter().zip(synced.numbers());
    Some(
        pairs
            .map(|(last, synced)| last.saturating_sub(*synced))
            .sum(),
    )
}

impl Plan {
    /// Chunks that are given away, and all of them; none: their words are elsewhere, or there are none.
    fn chunks(&self, server: u16, word: &dyn Fn(u64) -> u64) -> Option<(u64, u64)> {
        let UnusedMemory::ChunkRegions(chunk_regions) = &self.unused else {
            return None;
        };
        let first = self.here(server, chunk_regions.words)?;
        let all = chunk_regions.records.len() as u64 * chunk_regions.chunks;
        let last = all.saturating_sub(1) * WORD;
        assert_eq!(
            self.here(server, chunk_regions.words.plus(last)),
            Some(first + last),
            "the words of all {all} chunks lie behind one another"
        );
        let is_given = |chunk: &u64| word(first + chunk * WORD) != 0;
        Some(((0..all).filter(is_given).count() as u64, all))
    }

    /// Bytes of a server that are given away or taken by tables and logs.
    fn given(&self, server: u16, word: &dyn Fn(u64) -> u64) -> u64 {
        match (&self.unused, &self.first) {
            (UnusedMemory::Servers(begin), _) => word(NEXT).max(*begin),
            (UnusedMemory::ChunkRegions(_), Some((_, map))) => {
                let regions = map.regions().iter();
                let is_here = |region: &&ReplicatedRegion| {
                    let mut replicas = region.replicas().iter();
                    replicas.any(|replica| replica.at.server.0 == server)
                };
                regions.filter(is_here).map(ReplicatedRegion::bytes).sum()
            }
            (UnusedMemory::ChunkRegions(_), None) => 0, // not reached: chunk regions are of regions
        }
    }
}
