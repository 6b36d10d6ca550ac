//! Commits whose writes are so many that nobody lists them: each is a group by itself.
//!
//! They are validated and given a version like all others; the engine then reads them one by one
//! ([`manxdb_storage::Engine::append_sorted`]). Others wait in line meanwhile.

use manxdb_storage::{Appended, SortedWrites, StorageError, Version, WriteBatch, to_batch};

use super::LocalPath;
use super::group::{Grouped, Verdict};
use super::recent::Undo;
use super::staged::{Order, Staged};
use crate::error::TxnError;
use crate::model::Intent;

impl Grouped for Intent {
    fn size_bytes(&self) -> usize {
        let value_bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        let write_bytes =
            |(key, value): &(Vec<u8>, Option<Vec<u8>>)| key.len() + value_bytes(value);
        self.writes.iter().map(write_bytes).sum()
    }
}

/// What stands in line.
pub(super) enum Submission {
    /// An intent like most.
    Listed(Intent),
    /// An intent and its writes, which it does not list.
    Sorted(Intent, Box<dyn SortedWrites>),
}

impl Grouped for Submission {
    fn size_bytes(&self) -> usize {
        match self {
            Self::Listed(intent) => intent.size_bytes(),
            Self::Sorted(..) => 0,
        }
    }

    fn stands_alone(&self) -> bool {
        matches!(self, Self::Sorted(..))
    }
}

impl LocalPath {
    /// Commits in a group, alone or with others.
    pub(super) fn commit(&self, submission: Submission) -> Verdict {
        let stage = |group| self.stage_submissions(group);
        let finish = |staged| self.finish_group(staged);
        self.queue.submit(submission, stage, finish)
    }

    fn stage_submissions(&self, group: Vec<Submission>) -> Staged {
        let members = group.len();
        let mut listed = Vec::with_capacity(members);
        for submission in group {
            match submission {
                Submission::Listed(intent) => listed.push(intent),
                Submission::Sorted(intent, writes) => {
                    assert_eq!(members, 1, "who is a group by itself shares none");
                    return self.stage_sorted(intent, writes.as_ref());
                }
            }
        }
        self.stage_group(listed)
    }

    /// As [`LocalPath::stage_group`] of one intent with `writes`.
    fn stage_sorted(&self, intent: Intent, writes: &dyn SortedWrites) -> Staged {
        let mut order = self.order.lock();
        let mut staged = Staged {
            batch: WriteBatch::default(),
            durability: intent.durability,
            appended: None,
            locks: Vec::new(),
            undo: Undo::default(),
            verdicts: Vec::with_capacity(1),
            conflicts: 0,
            last: order.assigned,
        };
        {
            let mut recent = self.recent.write();
            if let Some(what) = self.first_change(&recent, &intent.reads) {
                staged.verdicts.push(Err(TxnError::Conflict { what }));
                staged.conflicts = 1;
                return staged;
            }
            order.assigned = Version(order.assigned.0 + 1);
            staged.last = order.assigned;
            recent.stage_sorted(staged.last, writes, &mut staged.undo);
        }
        staged.verdicts.push(Ok(staged.last));
        match self.append_sorted(&mut order, writes) {
            Ok(appended) => staged.appended = Some(appended),
            Err(failure) => {
                let undo = std::mem::take(&mut staged.undo);
                self.recent.write().take_back(undo);
                staged.fail(&failure);
            }
        }
        drop(order);
        // Row locks are given back by the transaction itself, when it hears of its end.
        staged
    }

    fn append_sorted(
        &self,
        order: &mut Order,
        writes: &dyn SortedWrites,
    ) -> Result<Appended, StorageError> {
        let version = order.assigned;
        self.append_by(order, |engine| {
            let appended = engine.append_sorted(version, writes)?;
            if let Some(observer) = self.active_observer() {
                observer.ordered(&to_batch(version, writes).writes);
            }
            Ok(appended)
        })
    }
}
