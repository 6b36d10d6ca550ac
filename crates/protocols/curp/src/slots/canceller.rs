//! Who cancels a migration: it asks one group or the other for the next step, and keeps nothing that a restart
//! could miss, as a [`super::Mover`] does.

use super::migration::{Group, Migration, SlotRefusal};
use super::mover::{RESTARTS_MAX, Side};
use super::operation::{PieceLimits, SlotAnswer, SlotOperation};
use super::ownership::Ownership;
use super::slot::SlotRange;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    AskSource,
    /// What the source has said.
    AskTarget(Box<Ownership>),
    Cancel(Migration),
    Forget(Migration),
    End(Result<(), SlotRefusal>),
}

/// The end of a move of a run of slots at its source.
#[derive(Debug, Clone)]
pub struct Canceller {
    slots: SlotRange,
    from: Group,
    /// Nothing when the target is not asked: it may be gone.
    to: Option<Group>,
    limits: PieceLimits,
    next: Next,
    restarts: u32,
    has_cancelled: bool,
}

impl Canceller {
    /// Cancels the move of these slots, or goes on with cancelling it. Without a target the source has its
    /// slots back, and the target keeps what it has of them until it is told.
    #[must_use]
    pub fn new(slots: SlotRange, from: Group, to: Option<Group>, limits: PieceLimits) -> Self {
        assert!(
            to.as_ref() != Some(&from),
            "slots were to move to another group"
        );
        Self {
            slots,
            from,
            to,
            limits,
            next: Next::AskSource,
            restarts: 0,
            has_cancelled: false,
        }
    }

    /// What to ask which group; nothing when it is over.
    #[must_use]
    pub fn question(&self) -> Option<(Side, SlotOperation)> {
        Some(match &self.next {
            Next::AskSource => (Side::Source, SlotOperation::Show),
            Next::AskTarget(_) => (Side::Target, SlotOperation::Show),
            Next::Cancel(migration) => (Side::Source, SlotOperation::Cancel(migration.clone())),
            Next::Forget(migration) => {
                let (migration, limits) = (migration.clone(), self.limits);
                (Side::Target, SlotOperation::Forget { migration, limits })
            }
            Next::End(_) => return None,
        })
    }

    /// How it ended, once it has: the source owns the slots, and the target has nothing of them.
    #[must_use]
    pub fn outcome(&self) -> Option<&Result<(), SlotRefusal>> {
        match &self.next {
            Next::End(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What does not move.
    #[must_use]
    pub fn slots(&self) -> SlotRange {
        self.slots
    }

    /// Whether there was a move to cancel.
    #[must_use]
    pub fn has_cancelled(&self) -> bool {
        self.has_cancelled
    }

    /// Begins again, with what the groups say: after an answer that did not come.
    pub fn again(&mut self) {
        assert!(
            self.outcome().is_none(),
            "what is cancelled is not cancelled again"
        );
        self.next = Next::AskSource;
    }

    /// The answer to the question.
    pub fn answered(&mut self, answer: SlotAnswer) {
        let next = std::mem::replace(&mut self.next, Next::AskSource);
        self.next = match (next, answer) {
            (Next::AskSource, SlotAnswer::Owns(source)) if self.to.is_none() => {
                self.plan(&source, None)
            }
            (Next::AskSource, SlotAnswer::Owns(source)) => Next::AskTarget(source),
            (Next::AskTarget(source), SlotAnswer::Owns(target)) => {
                self.plan(&source, Some(&target))
            }
            // When a later one is over at the source, this one is never given.
            (Next::Cancel(migration), SlotAnswer::Done | SlotAnswer::Refused(SlotRefusal::Old)) => {
                self.cancelled(migration)
            }
            (Next::Forget(migration), SlotAnswer::More) => Next::Forget(migration),
            (Next::Forget(_), SlotAnswer::Done | SlotAnswer::Refused(SlotRefusal::Old)) => {
                Next::End(Ok(()))
            }
            (Next::Forget(_), SlotAnswer::Refused(SlotRefusal::NotAtStep)) => self.restart(),
            (_, SlotAnswer::Refused(why)) => Next::End(Err(why)),
            _ => Next::End(Err(SlotRefusal::Unreadable)),
        };
    }

    /// The source has decided: its target, if it is asked, forgets.
    fn cancelled(&mut self, migration: Migration) -> Next {
        self.has_cancelled = true;
        if self.to.is_some() {
            Next::Forget(migration)
        } else {
            Next::End(Ok(()))
        }
    }

    fn restart(&mut self) -> Next {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            return Next::End(Err(SlotRefusal::NotAtStep));
        }
        Next::AskSource
    }

    /// What is to be done where the groups are. The source was asked first, so that a target which takes the
    /// slots still has not had them from a move that is over at the source.
    fn plan(&mut self, source: &Ownership, target: Option<&Ownership>) -> Next {
        let leaving = source.leaving();
        if let Some(leaving) = leaving.filter(|leaving| self.is_of(&leaving.migration)) {
            return if leaving.is_released {
                Next::End(Err(SlotRefusal::Released))
            } else {
                Next::Cancel(leaving.migration.clone())
            };
        }
        let arriving = target.and_then(Ownership::arriving);
        let arriving = arriving.map(|arriving| &arriving.migration);
        if let Some(migration) = arriving.filter(|migration| self.is_of(migration)) {
            return if source.has_left(migration) {
                self.cancelled(migration.clone())
            } else {
                Next::Cancel(migration.clone())
            };
        }
        if source.owns(self.slots) {
            return Next::End(Ok(())); // nothing of it is left
        }
        match leaving {
            Some(leaving) => Next::End(Err(SlotRefusal::Busy(leaving.migration.clone()))),
            None if target.is_some_and(|target| target.owns(self.slots)) => {
                Next::End(Err(SlotRefusal::Released))
            }
            None => Next::End(Err(SlotRefusal::NotOwned)),
        }
    }

    fn is_of(&self, migration: &Migration) -> bool {
        let is_to = self.to.as_ref().is_none_or(|to| migration.to == *to);
        migration.slots == self.slots && migration.from == self.from && is_to
    }
}
