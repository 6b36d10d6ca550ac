//! Snapshots by numbers of this process, which stand for them as versions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_rsi::Snapshot as Vector;
use manxdb_storage::Version;
use manxdb_txn::{Snapshot, TxnError};
use parking_lot::Mutex;

/// Snapshots that stay known though nobody looks at them, at least.
const KEPT: u64 = 1 << 14;

/// Snapshots by the versions that stand for them. A version outlives its pin: a transaction that
/// has read at it relies on it until it commits.
#[derive(Default)]
pub(super) struct Snapshots(Mutex<Numbered>);

#[derive(Default)]
struct Numbered {
    last: u64,
    known: BTreeMap<u64, Known>,
}

struct Known {
    vector: Arc<Vector>,
    pins: u32,
    /// When it was taken first.
    since: Instant,
}

/// Keeps a snapshot known.
struct Pin {
    number: u64,
    snapshots: Arc<Snapshots>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut numbered = self.snapshots.0.lock();
        let known = numbered.known.get_mut(&self.number);
        assert!(
            known.is_some(),
            "a pinned snapshot is known: {}",
            self.number
        );
        if let Some(known) = known {
            assert!(
                known.pins > 0,
                "a pin is let go of once: snapshot {}",
                self.number
            );
            known.pins -= 1;
        }
    }
}

impl Numbered {
    fn next(&mut self) -> u64 {
        let newest = self.known.last_key_value().map(|(newest, _)| *newest);
        assert!(
            newest <= Some(self.last),
            "snapshots have numbers that were given: {newest:?}, and {} were",
            self.last
        );
        self.last += 1;
        if self.last.is_multiple_of(KEPT) {
            let oldest = self.last - KEPT;
            self.known
                .retain(|number, known| *number > oldest || known.pins > 0);
        }
        self.last
    }
}

impl Snapshots {
    /// The version of a commit: behind all snapshots that were taken before.
    pub(super) fn next(&self) -> Version {
        Version(self.0.lock().next())
    }

    /// A snapshot that is kept known while somebody has it.
    pub(super) fn pin(self: &Arc<Self>, vector: &Vector) -> Snapshot {
        let mut numbered = self.0.lock();
        let newest = numbered.known.last_entry();
        let same = newest.filter(|newest| *newest.get().vector == *vector);
        let number = match same.map(|same| *same.key()) {
            Some(number) => number,
            None => numbered.next(),
        };
        assert!(
            number <= numbered.last,
            "a snapshot has a number that was given: {number}"
        );
        let known = numbered.known.entry(number).or_insert_with(|| Known {
            vector: Arc::new(vector.clone()),
            pins: 0,
            since: Instant::now(),
        });
        known.pins += 1;
        drop(numbered);
        let pin = Pin {
            number,
            snapshots: Arc::clone(self),
        };
        Snapshot {
            version: Version(number),
            pin: Some(Arc::new(pin)),
        }
    }

    /// Whether all that are in use, and are younger than so long, include another one.
    pub(super) fn include(&self, bound: &Vector, age: Duration) -> bool {
        let numbered = self.0.lock();
        let mut in_use = numbered.known.values().filter(|known| known.pins > 0);
        in_use.all(|known| known.vector.includes(bound) || known.since.elapsed() >= age)
    }

    /// What a version stands for.
    pub(super) fn find(&self, version: Version) -> Result<Arc<Vector>, TxnError> {
        let numbered = self.0.lock();
        let found = numbered.known.get(&version.0);
        let found = found.map(|known| Arc::clone(&known.vector));
        found.ok_or_else(|| TxnError::Conflict {
            what: format!("snapshot {} is known no more", version.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_known_while_it_is_pinned_and_for_a_while_behind_it() {
        let snapshots: Arc<Snapshots> = Arc::default();
        let pinned = snapshots.pin(&Vector::empty(1));
        let version = pinned.version;
        let give = |count: u64| {
            for _ in 0..count {
                snapshots.next();
            }
        };
        give(2 * KEPT);
        assert!(snapshots.find(version).is_ok());
        drop(pinned);
        assert!(snapshots.find(version).is_ok());
        give(KEPT);
        assert!(snapshots.find(version).is_err());
    }
}
