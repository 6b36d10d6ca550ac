//! A log: its entries, and the newest of those that all backups have.
//!
//! What is applied needs no log. But a spare that follows the log, or a new backup whose copy was made
//! a while ago, lacks some of the entries behind it, and gets those from a `KeptLog`. The oldest go first
//! when there are more bytes than wanted; who lacks one of those gets a copy of everything
//! ([`copying`](crate::copying)).

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

use serde::{Deserialize, Serialize};

use crate::ids::{ClientId, Epoch, LogId, Position, RpcId};

/// What an entry of a log is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A client may ask from now on.
    Opened(ClientId),
    /// A client is forgotten; what it asks later is refused.
    Expired(ClientId),
    /// A command ran. Its completion record is part of it: both are kept, or neither (RIFL).
    Executed {
        /// Which.
        rpc: RpcId,
        /// The client asks again for nothing before this.
        ack: u64,
        /// What it was told.
        #[serde(with = "crate::bytes")]
        answer: Vec<u8>,
        /// What changed.
        #[serde(with = "crate::bytes")]
        effects: Vec<u8>,
        /// The hashes of the keys that it touched.
        touched: Vec<u64>,
        /// Whether it may have touched all others as well.
        touches_all: bool,
    },
}

/// An entry of a master's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The master's life when it made it: entries of equal place and epoch are equal.
    pub epoch: Epoch,
    /// What happened.
    pub change: Change,
}

impl Entry {
    /// Bytes that it takes in a message, roughly.
    pub(crate) fn bytes(&self) -> usize {
        match &self.change {
            Change::Opened(_) | Change::Expired(_) => size_of::<Self>(),
            Change::Executed {
                answer,
                effects,
                touched,
                ..
            } => size_of::<Self>() + answer.len() + effects.len() + size_of_val(&touched[..]),
        }
    }
}

/// The newest entries of what all backups have, without a gap.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptLog {
    /// The entry before the first one that is kept.
    start: LogId,
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl KeptLog {
    /// Nothing, behind an entry.
    pub(crate) fn behind(start: LogId) -> Self {
        Self {
            start,
            entries: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The entry before the first one that is kept.
    pub(crate) fn start(&self) -> LogId {
        self.start
    }

    /// The last entry.
    pub(crate) fn end(&self) -> LogId {
        let at = self.start.at + self.entries.len() as Position;
        let last = self.entries.back();
        let epoch = last.map_or(self.start.epoch, |entry| entry.epoch);
        assert!(
            epoch >= self.start.epoch,
            "a log's later entries are of later masters, or the same"
        );
        LogId { at, epoch }
    }

    /// The entry at a place, if it is kept or the one before the first.
    pub(crate) fn id_at(&self, at: Position) -> Option<LogId> {
        id_behind(self.start, &self.entries, at)
    }

    /// Bytes of all that is kept, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn iter(&self) -> Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The last entries.
    pub(crate) fn newest(&self, count: u64) -> impl Iterator<Item = &Entry> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        assert!(count <= self.entries.len(), "they are kept");
        self.entries.iter().skip(self.entries.len() - count)
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        assert!(
            entry.epoch >= self.end().epoch,
            "a log's later entries are of later masters, or the same"
        );
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    /// Forgets the oldest entries while there are more bytes than this.
    pub(crate) fn trim(&mut self, bytes_max: usize) {
        let end = self.end();
        while self.bytes > bytes_max {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= entry.bytes();
            self.start = LogId {
                at: self.start.at + 1,
                epoch: entry.epoch,
            };
        }
        assert_eq!(self.end(), end, "what is forgotten is at the beginning");
        assert!(
            self.bytes > 0 || self.entries.is_empty(),
            "what an entry takes is counted"
        );
    }
}

/// The entry at a place, if it is `start` or one of `entries`, which follow that.
pub(crate) fn id_behind(start: LogId, entries: &VecDeque<Entry>, at: Position) -> Option<LogId> {
    if at == start.at {
        return Some(start);
    }
    let index = at.checked_sub(start.at + 1)?;
    let entry = entries.get(usize::try_from(index).ok()?)?;
    Some(LogId {
        at,
        epoch: entry.epoch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_tests::{entry, log_id};

    #[test]
    fn the_oldest_entries_go_first_and_places_stay() {
        let mut kept = KeptLog::behind(log_id(4, 1));
        assert_eq!((kept.start(), kept.end()), (log_id(4, 1), log_id(4, 1)));
        for (epoch, client) in [(1, 5), (2, 6), (2, 7)] {
            kept.push(entry(epoch, client));
        }
        assert_eq!(kept.end(), log_id(7, 2));
        assert_eq!(kept.id_at(5), Some(log_id(5, 1)));
        let one = kept.bytes() / 3;
        kept.trim(2 * one);
        assert_eq!((kept.start(), kept.end()), (log_id(5, 1), log_id(7, 2)));
        assert_eq!(kept.id_at(4), None, "forgotten");
        assert_eq!(
            kept.id_at(5),
            Some(log_id(5, 1)),
            "the one before the first"
        );
        assert_eq!(kept.id_at(8), None, "to come");
        assert_eq!(kept.iter().count(), 2);
        kept.trim(0);
        assert_eq!((kept.start(), kept.end()), (log_id(7, 2), log_id(7, 2)));
        assert_eq!(kept.bytes(), 0);
    }
}
