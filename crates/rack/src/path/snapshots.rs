//! Snapshots by numbers of this process, which stand for them as versions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_core::check::ensure;
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
        if let Some(known) = self.snapshots.0.lock().known.get_mut(&self.number) {
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
    /// What holds between any two calls.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        let newest = self.known.last_key_value().map(|(newest, _)| *newest);
        ensure(newest <= Some(self.last), || {
            format!(
                "snapshot {newest:?} is known, and {} numbers were given",
                self.last
            )
        })?;
        // Looked through once for each so many numbers.
        let oldest = self.last.saturating_sub(2 * KEPT);
        let old = self.known.range(..oldest);
        ensure(old.clone().all(|(_, known)| known.pins > 0), || {
            let old: Vec<u64> = old.map(|(number, _)| *number).collect();
            format!("snapshots that nobody looks at stay known: {old:?}")
        })
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        if self.last.is_multiple_of(KEPT) {
            let oldest = self.last - KEPT;
            self.known
                .retain(|number, known| *number > oldest || known.pins > 0);
            assert_eq!(self.check(), Ok(()));
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
    fn a_snapshot_without_a_number_and_one_that_nobody_forgets_are_found_out() {
        let known = || Known {
            vector: Arc::new(Vector::empty(1)),
            pins: 0,
            since: Instant::now(),
        };
        let mut numbered = Numbered {
            last: 3 * KEPT,
            ..Numbered::default()
        };
        numbered.known.insert(3 * KEPT, known());
        assert_eq!(numbered.check(), Ok(()));
        numbered.known.insert(3, known());
        assert!(numbered.check().unwrap_err().contains("stay known: [3]"));
        numbered.known.clear();
        numbered.known.insert(3 * KEPT + 1, known());
        assert!(numbered.check().unwrap_err().contains("numbers were given"));
    }
}
