//! A group between validation and its verdicts, and what groups hand on to each other.

use manxdb_storage::{Appended, Durability, StorageError, Version, WriteBatch};

use super::group::Verdict;
use super::recent::Undo;
use crate::error::TxnError;
use crate::model::LockKey;
use crate::model::TxnId;

/// What only the leader of a group that is being staged touches.
pub(super) struct Order {
    /// Last version given to an intent, also to one whose write failed: numbers are not reused.
    pub(super) assigned: Version,
    /// The last batch that was written.
    pub(super) last_appended: Appended,
    /// Why nothing can be written any more: the state of the log is unknown until a restart.
    pub(super) broken: Option<String>,
}

/// The part of a group that passed validation.
pub(super) struct Staged {
    pub(super) batch: WriteBatch,
    pub(super) durability: Durability,
    /// What to wait for; `None` when nothing was written.
    pub(super) appended: Option<Appended>,
    /// Row locks of those that passed, which are given back when the batch is written.
    pub(super) locks: Vec<(TxnId, Vec<LockKey>)>,
    pub(super) undo: Undo,
    /// Per intent of the group: its version, or why it may not commit.
    pub(super) verdicts: Vec<Verdict>,
    /// Intents refused.
    pub(super) conflicts: usize,
    pub(super) last: Version,
}

impl Staged {
    /// Nobody of the group committed.
    pub(super) fn fail(&mut self, failure: &StorageError) {
        for verdict in &mut self.verdicts {
            if verdict.is_ok() {
                *verdict = Err(again(failure));
            }
        }
        assert!(
            self.verdicts.iter().all(Result::is_err),
            "nobody of a group that has failed has committed"
        );
    }
}

impl Order {
    /// Nothing more is written: what the log holds is not known.
    pub(super) fn break_off(&mut self, failure: &StorageError) {
        tracing::error!(%failure, "commit failed half way; writes stop until a restart");
        let reason = format!("an earlier write failed: {failure}");
        self.broken.get_or_insert(reason);
    }
}

/// Whether the engine promises that nothing of the batch was applied.
pub(super) fn left_untouched(failure: &StorageError) -> bool {
    matches!(
        failure,
        StorageError::Full(_) | StorageError::ReadOnly(_) | StorageError::Behind(_)
    )
}

/// The failure of a group, told to each of its members.
fn again(failure: &StorageError) -> TxnError {
    match failure {
        StorageError::Full(what) => StorageError::Full(what.clone()).into(),
        StorageError::ReadOnly(what) => StorageError::ReadOnly(what.clone()).into(),
        StorageError::Behind(what) => StorageError::Behind(what.clone()).into(),
        other => TxnError::Unknown(other.to_string()),
    }
}
