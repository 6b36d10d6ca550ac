//! Commits of one reign of a primary: handed over to the client that replicates them, and waited for.
//!
//! Threads of sessions hand over ([`Confirm::begin`]) and wait; the loop of the process takes what was
//! handed over ([`Commits::take`]) and says what was confirmed. Confirmations come in any order. They
//! are believed in the order of versions: a commit is over when it and all before it are confirmed,
//! because a snapshot of its version shows all of those.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use manxdb_storage::{StorageError, Version, WriteBatch};
use manxdb_txn::{Confirm, TxnError};
use parking_lot::{Condvar, Mutex};

use crate::effects::{Effects, Owner};

/// All rows in memory together take at most so much.
pub const ROWS_BYTES_MAX: usize = 160 << 20;
/// One transaction writes at most so much: it is one message, and one entry of a log.
pub const COMMIT_BYTES_MAX: usize = 32 << 20;
/// How long a read waits for a lease before it fails.
const LEASE_PATIENCE: Duration = Duration::from_secs(20);
/// How often it looks.
const LEASE_LOOK: Duration = Duration::from_millis(5);

/// Something that other threads call.
pub type Call<T> = Box<dyn Fn() -> T + Send + Sync>;
/// Says why so many bytes more find no room; nothing when they do.
pub type LacksRoom = Box<dyn Fn(usize) -> Option<String> + Send + Sync>;

/// Defects for the tests to catch.
#[cfg(feature = "mutants")]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// None.
    #[default]
    None,
    /// A commit is over when it is confirmed, whatever was before it.
    OutOfOrder,
}

/// Commits under way in one reign.
pub struct Commits {
    owner: Owner,
    state: Mutex<State>,
    changed: Condvar,
    /// Tells the loop that something was handed over.
    ring: Call<()>,
    /// Whether nobody else can be primary.
    lease: Call<bool>,
    /// Bytes of all rows, as the loop has last seen them.
    rows_bytes: AtomicUsize,
    /// Of the disk that rows are on, where they are.
    lacks_room: Option<LacksRoom>,
    #[cfg(feature = "mutants")]
    mutant: Mutant,
}

#[derive(Default)]
struct State {
    handed_over: Vec<Effects>,
    /// Begun and not confirmed.
    pending: BTreeSet<u64>,
    /// The last that was begun.
    begun: u64,
    /// Why nothing is confirmed any more.
    lost: Option<String>,
}

impl Commits {
    /// Of a reign that begins. `ring` is called when something is handed over, `lease` whenever a
    /// snapshot was taken.
    #[must_use]
    pub fn new(owner: Owner, ring: Call<()>, lease: Call<bool>) -> Self {
        Self {
            owner,
            state: Mutex::default(),
            changed: Condvar::new(),
            ring,
            lease,
            rows_bytes: AtomicUsize::new(0),
            lacks_room: None,
            #[cfg(feature = "mutants")]
            mutant: Mutant::None,
        }
    }

    /// Of rows on a disk, which takes no more when `lacks_room` says so.
    #[must_use]
    pub fn within(mut self, lacks_room: LacksRoom) -> Self {
        self.lacks_room = Some(lacks_room);
        self
    }

    /// With a planted defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = mutant;
        self
    }

    /// Whose reign it is.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// What was handed over since it was last asked, in the order of versions.
    #[must_use]
    pub fn take(&self) -> Vec<Effects> {
        let taken = std::mem::take(&mut self.state.lock().handed_over);
        assert!(
            taken.is_sorted_by(|one, next| one.version < next.version),
            "transactions are handed over in their order"
        );
        taken
    }

    /// A commit is at all witnesses, or on all backups.
    pub fn confirmed(&self, version: Version) {
        let mut state = self.state.lock();
        let was_pending = state.pending.remove(&version.0);
        assert!(
            was_pending,
            "a commit is confirmed once, after it was begun"
        );
        drop(state);
        self.changed.notify_all();
    }

    /// The reign is over: nothing more is confirmed, and what is under way has an unknown end.
    pub fn lose(&self, why: &str) {
        self.state.lock().lost.get_or_insert_with(|| why.to_owned());
        self.changed.notify_all();
    }

    /// Whether the reign is over.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.lock().lost.is_some()
    }

    /// Whether [`Confirm::wait`] would not block.
    #[must_use]
    pub fn is_over(&self, upto: Version) -> bool {
        let state = self.state.lock();
        state.lost.is_some() || self.is_confirmed(&state, upto)
    }

    /// Commits that are not confirmed.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// Says how large the rows are now.
    pub fn note_rows(&self, bytes: usize) {
        self.rows_bytes.store(bytes, Ordering::Relaxed);
    }

    fn is_confirmed(&self, state: &State, upto: Version) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == Mutant::OutOfOrder {
            return !state.pending.contains(&upto.0);
        }
        state.pending.range(..=upto.0).next().is_none()
    }
}

fn lost(why: &str) -> TxnError {
    TxnError::Unknown(why.to_owned())
}

impl Confirm for Commits {
    fn admit(&self, bytes: usize) -> Result<(), TxnError> {
        if bytes > COMMIT_BYTES_MAX {
            return Err(TxnError::TooLarge {
                size_bytes: bytes,
                limit_bytes: COMMIT_BYTES_MAX,
            });
        }
        if let Some(why) = self.lacks_room.as_ref().and_then(|lacks| lacks(bytes)) {
            return Err(TxnError::Storage(StorageError::Full(why)));
        }
        let rows = self.rows_bytes.load(Ordering::Relaxed);
        if rows.saturating_add(bytes) > ROWS_BYTES_MAX {
            return Err(TxnError::Storage(StorageError::Full(format!(
                "the replicated rows take {rows} bytes of {ROWS_BYTES_MAX}: delete some"
            ))));
        }
        Ok(())
    }

    fn begin(&self, batch: &WriteBatch, shown: Version) {
        let mut state = self.state.lock();
        if state.lost.is_some() {
            return; // who waits is told
        }
        let was_empty = state.handed_over.is_empty();
        for group in batch.writes.chunk_by(|one, next| one.0 == next.0) {
            let Some((version, _, _)) = group.first() else {
                continue;
            };
            assert!(version.0 > state.begun, "versions are begun in their order");
            assert!(*version > shown, "what is begun is not shown");
            state.begun = version.0;
            state.pending.insert(version.0);
            let writes = group
                .iter()
                .map(|(_, key, value)| (key.clone(), value.clone()));
            state.handed_over.push(Effects {
                owner: self.owner,
                version: version.0,
                shown: shown.0,
                writes: writes.collect(),
            });
        }
        drop(state);
        if was_empty {
            (self.ring)();
        }
    }

    fn wait(&self, upto: Version) -> Result<(), TxnError> {
        let mut state = self.state.lock();
        loop {
            // First: what is confirmed stays so, whatever comes after.
            if self.is_confirmed(&state, upto) && (upto.0 <= state.begun || state.lost.is_none()) {
                return Ok(());
            }
            if let Some(why) = &state.lost {
                return Err(lost(why));
            }
            self.changed.wait(&mut state);
        }
    }

    fn may_read(&self) -> Result<(), TxnError> {
        let mut looks = LEASE_PATIENCE.as_millis() / LEASE_LOOK.as_millis();
        loop {
            if let Some(why) = &self.state.lock().lost {
                return Err(lost(why));
            }
            if (self.lease)() {
                return Ok(());
            }
            if looks == 0 {
                return Err(TxnError::Storage(StorageError::Behind(
                    "this server has no lease to read: the coordinator does not answer, and another \
                     server may be master"
                        .to_owned(),
                )));
            }
            looks -= 1;
            let mut state = self.state.lock();
            let _ = self.changed.wait_for(&mut state, LEASE_LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn commits() -> (Commits, Arc<AtomicU64>) {
        let rung = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&rung);
        let ring = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        (Commits::new(Owner(1), ring, Box::new(|| true)), rung)
    }

    fn batch(versions: &[u64]) -> WriteBatch {
        let writes = versions.iter().map(|version| {
            let key = format!("key {version}").into_bytes();
            (Version(*version), key, Some(b"value".to_vec()))
        });
        WriteBatch {
            writes: writes.collect(),
        }
    }

    #[test]
    fn a_commit_is_over_when_all_before_it_are() {
        let (commits, rung) = commits();
        commits.begin(&batch(&[3, 4]), Version(2));
        commits.begin(&batch(&[6]), Version(2));
        assert_eq!(rung.load(Ordering::Relaxed), 1, "once for what waits");
        let taken = commits.take();
        let versions: Vec<u64> = taken.iter().map(|effects| effects.version).collect();
        assert_eq!(versions, [3, 4, 6]);
        commits.confirmed(Version(6));
        assert!(!commits.is_over(Version(6)));
        commits.confirmed(Version(3));
        assert!(commits.is_over(Version(3)) && !commits.is_over(Version(6)));
        commits.confirmed(Version(4));
        assert!(commits.wait(Version(6)).is_ok());
        assert_eq!(commits.waiting(), 0);
    }

    #[test]
    fn a_reign_that_is_over_confirms_nothing_more_and_forgets_nothing() {
        let (commits, _) = commits();
        commits.begin(&batch(&[1, 2]), Version(0));
        commits.confirmed(Version(1));
        commits.lose("another server is master");
        assert!(commits.wait(Version(1)).is_ok(), "it was confirmed");
        let unknown = |version| matches!(commits.wait(version), Err(TxnError::Unknown(_)));
        assert!(unknown(Version(2)));
        commits.begin(&batch(&[3]), Version(1));
        assert!(unknown(Version(3)), "never begun");
        assert!(matches!(commits.may_read(), Err(TxnError::Unknown(_))));
    }

    #[test]
    fn what_cannot_be_replicated_is_refused_before_it_is_written() {
        let (commits, _) = commits();
        assert!(commits.admit(COMMIT_BYTES_MAX).is_ok());
        let too_large = commits.admit(COMMIT_BYTES_MAX + 1);
        assert!(matches!(too_large, Err(TxnError::TooLarge { .. })));
        commits.note_rows(ROWS_BYTES_MAX - 10);
        assert!(commits.admit(10).is_ok());
        let full = commits.admit(11).unwrap_err().to_string();
        assert!(full.contains("delete some"), "{full}");
    }

    #[test]
    #[should_panic(expected = "versions are begun in their order")]
    fn versions_out_of_order_are_a_defect() {
        let (commits, _) = commits();
        commits.begin(&batch(&[5]), Version(0));
        commits.begin(&batch(&[4]), Version(0));
    }
}
