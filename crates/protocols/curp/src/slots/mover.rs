//! Who drives a migration: it asks one group or the other for the next step, and keeps nothing that a
//! restart could miss. Another process goes on with what the groups say.

use super::migration::{Group, Has, Migration, SlotRefusal};
use super::operation::{PieceLimits, SlotAnswer, SlotOperation};
use super::ownership::Ownership;
use super::slot::SlotRange;

/// How often a move begins again because another driver was ahead of it.
pub(super) const RESTARTS_MAX: u32 = 16;

/// The groups of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that owns the slots before.
    Source,
    /// The one that owns them afterwards.
    Target,
}

/// What a move is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    AskSource,
    /// What the source has said.
    AskTarget(Box<Ownership>),
    Check(Migration),
    Take(Migration),
    Give(Migration),
    /// The source's piece behind what the target has.
    Read(Migration, Option<Vec<u8>>),
    Put(SlotOperation, Migration),
    Release(Migration),
    Own(Migration),
    Remove(Migration),
    End(Result<(), SlotRefusal>),
}

/// The move of a run of slots from one group to another one.
#[derive(Debug, Clone)]
pub struct Mover {
    slots: SlotRange,
    from: Group,
    to: Group,
    limits: PieceLimits,
    next: Next,
    restarts: u32,
    pieces: u64,
}

impl Mover {
    /// A move that begins, or goes on with what another one of the same began.
    #[must_use]
    pub fn new(slots: SlotRange, from: Group, to: Group, limits: PieceLimits) -> Self {
        assert!(from != to, "slots move to another group");
        Self {
            slots,
            from,
            to,
            limits,
            next: Next::AskSource,
            restarts: 0,
            pieces: 0,
        }
    }

    /// What to ask which group; nothing when it is over.
    #[must_use]
    pub fn question(&self) -> Option<(Side, SlotOperation)> {
        Some(match &self.next {
            Next::AskSource => (Side::Source, SlotOperation::Show),
            Next::AskTarget(_) => (Side::Target, SlotOperation::Show),
            Next::Check(migration) => (Side::Source, SlotOperation::Check(migration.clone())),
            Next::Take(migration) => (Side::Target, SlotOperation::Take(migration.clone())),
            Next::Give(migration) => (Side::Source, SlotOperation::Give(migration.clone())),
            Next::Read(migration, after) => {
                let (migration, after) = (migration.clone(), after.clone());
                let limits = self.limits;
                let read = SlotOperation::Read {
                    migration,
                    after,
                    limits,
                };
                (Side::Source, read)
            }
            Next::Put(put, _) => (Side::Target, put.clone()),
            Next::Release(migration) => (Side::Source, SlotOperation::Release(migration.clone())),
            Next::Own(migration) => (Side::Target, SlotOperation::Own(migration.clone())),
            Next::Remove(migration) => {
                let (migration, limits) = (migration.clone(), self.limits);
                (Side::Source, SlotOperation::Remove { migration, limits })
            }
            Next::End(_) => return None,
        })
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn outcome(&self) -> Option<&Result<(), SlotRefusal>> {
        match &self.next {
            Next::End(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What moves.
    #[must_use]
    pub fn slots(&self) -> SlotRange {
        self.slots
    }

    /// Pieces that this driver has brought to the target.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Begins again, with what the groups say: after an answer that did not come.
    pub fn again(&mut self) {
        assert!(
            self.outcome().is_none(),
            "a move that is over does not begin again"
        );
        self.next = Next::AskSource;
    }

    /// The answer to the question.
    pub fn answered(&mut self, answer: SlotAnswer) {
        let next = std::mem::replace(&mut self.next, Next::AskSource);
        self.next = match (next, answer) {
            (_, SlotAnswer::Refused(SlotRefusal::NotAtStep | SlotRefusal::Old)) => self.restart(),
            (_, SlotAnswer::Refused(why)) => Next::End(Err(why)),
            (Next::AskSource, SlotAnswer::Owns(source)) => Next::AskTarget(source),
            (Next::AskTarget(source), SlotAnswer::Owns(target)) => self.plan(&source, &target),
            (Next::Check(migration), SlotAnswer::Done) => Next::Take(migration),
            (Next::Take(migration), SlotAnswer::Done) => Next::Give(migration),
            (Next::Give(migration), SlotAnswer::Done) => Next::Read(migration, None),
            (Next::Read(migration, after), SlotAnswer::Piece(piece)) => {
                let put = SlotOperation::Put {
                    migration: migration.clone(),
                    after,
                    piece,
                };
                Next::Put(put, migration)
            }
            (Next::Put(_, migration), SlotAnswer::Has(has)) => {
                self.pieces += 1;
                match has {
                    Has::All => Next::Release(migration),
                    Has::UpTo(after) => Next::Read(migration, after),
                    Has::Behind(_) => Next::End(Err(SlotRefusal::Cancelled)),
                }
            }
            (Next::Release(migration), SlotAnswer::Done) => Next::Own(migration),
            (Next::Own(migration), SlotAnswer::Done) => Next::Remove(migration),
            (Next::Remove(migration), SlotAnswer::More) => Next::Remove(migration),
            (Next::Remove(_), SlotAnswer::Done) => Next::End(Ok(())),
            _ => Next::End(Err(SlotRefusal::Unreadable)),
        };
    }

    /// Another driver was faster: the groups say where the move is.
    fn restart(&mut self) -> Next {
        self.restarts += 1;
        assert!(
            self.restarts <= RESTARTS_MAX + 1,
            "a move that is over does not restart"
        );
        if self.restarts > RESTARTS_MAX {
            return Next::End(Err(SlotRefusal::NotAtStep));
        }
        Next::AskSource
    }

    /// What is to be done where the groups are. The source was asked first: a target takes before its source
    /// gives, and owns, or forgets, once its source has decided which of both.
    fn plan(&mut self, source: &Ownership, target: &Ownership) -> Next {
        let arriving = target.arriving();
        if let Some(leaving) = source.leaving() {
            let migration = leaving.migration.clone();
            if !self.is_of(&migration) {
                return Next::End(Err(SlotRefusal::Busy(migration)));
            }
            let arriving = arriving.filter(|arriving| arriving.migration == migration);
            return match arriving.map(|arriving| arriving.has.clone()) {
                Some(Has::All) if leaving.is_released => Next::Own(migration),
                // It has had it: what is released is not cancelled.
                None if leaving.is_released => Next::Remove(migration),
                Some(Has::UpTo(after)) if !leaving.is_released => Next::Read(migration, after),
                Some(Has::All) => Next::Release(migration),
                // Another driver has moved or cancelled it since the source was asked.
                _ => self.restart(),
            };
        }
        if let Some(arriving) = arriving {
            let migration = arriving.migration.clone();
            return match &arriving.has {
                _ if !self.is_of(&migration) => Next::End(Err(SlotRefusal::Busy(migration))),
                // Had it left by this migration, the target would have owned it before.
                _ if source.has_left(&migration) => Next::End(Err(SlotRefusal::Cancelled)),
                Has::UpTo(None) => Next::Give(migration),
                // It has been given since the source was asked.
                _ => self.restart(),
            };
        }
        match (source.owns(self.slots), target.owns(self.slots)) {
            (false, true) => Next::End(Ok(())),
            (true, true) => Next::End(Err(SlotRefusal::NotAway)),
            (false, false) => Next::End(Err(SlotRefusal::NotOwned)),
            (true, false) => {
                let last = source.last_number().max(target.last_number());
                let Some(number) = last.checked_add(1) else {
                    return Next::End(Err(SlotRefusal::Unreadable));
                };
                Next::Check(Migration {
                    number,
                    slots: self.slots,
                    from: self.from.clone(),
                    to: self.to.clone(),
                })
            }
        }
    }

    fn is_of(&self, migration: &Migration) -> bool {
        let groups = migration.from == self.from && migration.to == self.to;
        migration.slots == self.slots && groups
    }
}
