//! A checkpoint: all memory that is given away, copied piece by piece between batches.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::Scope;

use manxdb_fabric::{Address, Fabric, Operation, OperationOutcome};
use manxdb_rsi::Snapshot;

use super::ArchiveError;
use crate::disk::{Directory, DiskError, Draft, FileKind, Header};
use crate::drive::Driver;
use crate::memory::{DurabilityRecord, MemoryError, Plan};

/// How far a checkpoint is.
pub(super) enum Copy {
    /// Reads this, from the end.
    Reading(Draft, Vec<(Address, u64)>),
    /// Until all that was logged when it was read is on disk.
    Waiting(Draft, Snapshot),
    /// Until it is on disk itself.
    Ending(Receiver<Result<u64, DiskError>>),
    /// It is, and has so many bytes.
    Done(u64),
}

/// What a step is taken with.
pub(super) struct Around<'a, F> {
    pub(super) driver: &'a mut Driver<F>,
    pub(super) plan: &'a Plan,
    pub(super) directory: &'a Directory,
    pub(super) durability: &'a DurabilityRecord,
    /// All of this is on disk for good.
    pub(super) synced: &'a Snapshot,
}

impl Copy {
    /// Begins one behind a cut, which nobody has gone behind since it was written.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub(super) fn begin<F: Fabric>(
        around: &mut Around<'_, F>,
        header: Header,
        cut: &[u8],
    ) -> Result<Self, ArchiveError> {
        let words = around.plan.words_of_chunks();
        let mut found = Vec::new();
        for (at, bytes) in &words {
            found.push(read(around.driver, *at, *bytes)?);
        }
        assert_eq!(
            header.kind,
            FileKind::Checkpoint,
            "a copy of memory is a checkpoint"
        );
        let mut all = around.plan.given_away(&words, &found);
        all.reverse();
        let path = around.directory.path();
        let draft = Draft::begin(around.directory, header, cut).map_err(DiskError::io(path))?;
        Ok(Self::Reading(draft, all))
    }

    /// Goes on.
    ///
    /// # Errors
    /// [`ArchiveError`]: it is given up.
    pub(super) fn step<'s, F: Fabric>(
        self,
        around: &mut Around<'_, F>,
        scope: &'s Scope<'s, '_>,
    ) -> Result<Self, ArchiveError> {
        match self {
            Self::Reading(mut draft, mut left) => {
                if let Some((at, bytes)) = left.pop() {
                    let copy = read(around.driver, at, bytes)?;
                    let path = around.directory.path();
                    draft.put(at, &copy).map_err(DiskError::io(path))?;
                    return Ok(Self::Reading(draft, left));
                }
                let logged = around.driver.run(around.durability.survey());
                let logged = logged.map_err(MemoryError::from)?;
                let logged = logged.map_err(MemoryError::from)?;
                Ok(Self::Waiting(draft, logged))
            }
            Self::Waiting(draft, logged) if around.synced.includes(&logged) => {
                assert_eq!(
                    around.synced.numbers().len(),
                    logged.numbers().len(),
                    "a copy waits for all threads"
                );
                let (sender, receiver) = mpsc::channel();
                scope.spawn(move || {
                    let _ = sender.send(draft.finish()); // or nobody waits any more
                });
                Ok(Self::Ending(receiver))
            }
            Self::Ending(receiver) => match receiver.try_recv() {
                Ok(done) => Ok(Self::Done(done?)),
                Err(TryRecvError::Empty) => Ok(Self::Ending(receiver)),
                // A checkpoint that nobody says is there must not count as one that is.
                Err(disconnected) => {
                    assert_eq!(
                        disconnected,
                        TryRecvError::Empty,
                        "who ends a checkpoint says how it ended"
                    );
                    Ok(Self::Ending(receiver))
                }
            },
            same => Ok(same),
        }
    }
}

fn read<F: Fabric>(
    driver: &mut Driver<F>,
    at: Address,
    bytes: u64,
) -> Result<Vec<u8>, ArchiveError> {
    let read = Operation::Read { at, bytes };
    let outcomes = driver.ask_regions(vec![read]).map_err(MemoryError::from)?;
    match outcomes.into_iter().next() {
        Some(OperationOutcome::Read(copy)) => {
            assert_eq!(copy.len() as u64, bytes, "memory is copied whole");
            Ok(copy)
        }
        Some(OperationOutcome::Failed(fault)) => Err(MemoryError::from(fault).into()),
        other => {
            assert!(
                other.is_none() && bytes == 0,
                "a read is answered by a copy: {other:?}"
            );
            Err(MemoryError::Geometry.into())
        }
    }
}
