//! Groups whose durability is another's word ([`Confirm`]): held back until it is given.
//!
//! | | disk | [`Confirm`] |
//! |---|---|---|
//! | a group is shown | when the engine has synced it, which syncs all before it | when it and all before it are confirmed |
//! | row locks are given back | when the group is written | when it is shown |
//! | reads under row locks see | all that is written | all that is shown |
//! | a snapshot | is always right | is right while nobody else may commit |
//!
//! A disk keeps the order of batches: what survives of a log is its beginning. Replicas that confirm
//! transactions one by one do not: after a failure one may be there and an earlier one not. Therefore
//! no transaction may have read what is not confirmed, and early release of row locks, which lets the
//! next owner do just that, is off.

use std::sync::Arc;

use manxdb_storage::{Engine, StorageError, Version};

use super::staged::Staged;
use super::{LocalOptions, LocalPath, Verdict};
use crate::confirm::Confirm;
use crate::error::TxnError;
use crate::model::{Intent, Snapshot};

/// A group that is ordered and written, and not confirmed.
pub struct StagedGroup(Staged);

impl StagedGroup {
    /// The last version of it; [`LocalPath::finish`] waits until all up to here is confirmed.
    #[must_use]
    pub fn last(&self) -> Version {
        self.0.last
    }
}

impl LocalPath {
    /// As [`LocalPath::open`], but `confirm` says what is durable, whatever durability an intent asks
    /// for. The engine's disk is not waited for.
    ///
    /// # Errors
    /// As [`LocalPath::open`].
    pub fn open_confirmed(
        engine: Arc<dyn Engine>,
        options: LocalOptions,
        confirm: Arc<dyn Confirm>,
    ) -> Result<Self, TxnError> {
        let mut path = Self::open(engine, options)?;
        path.confirm = Some(confirm);
        assert_eq!(
            path.pins.ordered_snapshot().version,
            path.pins.visible(),
            "a path begins with nothing that waits"
        );
        Ok(path)
    }

    /// Orders and writes a group, for those who may not block: the first half of
    /// [`CommitPath::submit`](crate::CommitPath::submit).
    #[must_use]
    pub fn stage_intents(&self, intents: Vec<Intent>) -> StagedGroup {
        StagedGroup(self.stage_group(intents))
    }

    /// The second half: blocks unless everything up to [`StagedGroup::last`] is confirmed. A verdict
    /// for each intent.
    #[must_use]
    pub fn finish(&self, group: StagedGroup) -> Vec<Verdict> {
        self.finish_group(group.0)
    }

    /// Why an intent cannot be replicated.
    pub(super) fn not_admitted(&self, intent: &Intent) -> Option<TxnError> {
        let confirm = self.confirm.as_ref()?;
        assert!(!intent.writes.is_empty(), "what is replicated writes");
        let bytes = intent.writes.iter().map(|(key, value)| {
            let value = value.as_ref().map_or(0, Vec::len);
            key.len() + value
        });
        confirm.admit(bytes.sum()).err()
    }

    /// Waits for a group's confirmation; in vain when the right to commit is lost.
    pub(super) fn await_group(&self, confirm: &dyn Confirm, staged: &mut Staged) {
        #[cfg(feature = "mutants")]
        if self.mutants.lock().publish_unconfirmed {
            self.publish_written(staged.last);
            return;
        }
        let wrote = staged.appended.is_some();
        // Who was refused because of a group that is not shown tries again: what it lost to is to be
        // there then.
        if !wrote && staged.conflicts == 0 {
            return;
        }
        match confirm.wait(staged.last) {
            Ok(()) => {
                self.publish_written(staged.last);
                assert!(
                    !wrote || self.pins.visible() >= staged.last,
                    "what is acknowledged is seen by every new snapshot"
                );
                self.collect();
            }
            Err(failure) => {
                let failure = StorageError::Engine(failure.to_string());
                self.order.lock().break_off(&failure);
                staged.fail(&failure);
            }
        }
    }

    /// Waits until all that is written is confirmed, and shows it.
    pub(super) fn confirm_all(&self, confirm: &dyn Confirm) -> Result<(), TxnError> {
        let written = self.pins.ordered_snapshot().version;
        confirm.wait(written)?;
        self.publish_written(written);
        Ok(())
    }

    /// Shows what is confirmed, as far as it was written: a version may be given and its write fail.
    fn publish_written(&self, version: Version) {
        let written = self.pins.ordered_snapshot().version;
        self.publish(version.min(written));
        assert!(
            self.pins.visible() <= self.pins.ordered_snapshot().version,
            "what is shown was written"
        );
    }

    /// The snapshot, if nobody else could have committed before it was taken.
    pub(super) fn under_lease(&self, snapshot: Snapshot) -> Result<Snapshot, TxnError> {
        if let Some(confirm) = &self.confirm {
            confirm.may_read()?;
            assert!(
                snapshot.version <= self.pins.visible(),
                "a snapshot shows nothing that is not confirmed"
            );
        }
        Ok(snapshot)
    }
}
