//! The machine around a machine of keys: it executes what is in slots that its group owns.

use crate::execute::{Declared, Execute, Executed};
use crate::ids::Stamp;
#[cfg(feature = "mutants")]
use crate::mutants::SlotMutant;

use super::migration::{Has, Migration, SlotRefusal};
use super::movable::{Movable, Named};
use super::operation::{MARK, Misplaced, Piece, PieceLimits, SlotAnswer, SlotOperation, marked};
use super::ownership::{Done, Holder, Ownership};
use super::slot::SlotRange;

/// A machine of keys, of which a group owns those in some slots: all of them, as long as nothing has moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Slotted<M> {
    inside: M,
    ownership: Ownership,
}

/// What a step answers, and what changes: the ownership afterwards, and effects of the machine inside.
struct Stepped {
    answer: SlotAnswer,
    changed: Option<(Ownership, Vec<u8>)>,
}

/// The key up to which all are removed; nothing while none is.
struct GoneUpTo(Option<Vec<u8>>);

impl Stepped {
    fn refused(why: SlotRefusal) -> Self {
        Self::answered(SlotAnswer::Refused(why))
    }

    fn answered(answer: SlotAnswer) -> Self {
        Self {
            answer,
            changed: None,
        }
    }
}

impl<M> Slotted<M> {
    /// The machine of keys.
    #[must_use]
    pub fn inside(&self) -> &M {
        &self.inside
    }

    /// What the group owns.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }
}

impl<M: Movable> Slotted<M> {
    /// Why a command with these keys is not executed here: some are of slots that the group does not own.
    fn misplaced(&self, named: &Named) -> Option<Misplaced> {
        if named.is_all && self.ownership.is_moving() {
            return Some(Misplaced::TryAgain);
        }
        if named.is_scattered {
            return Some(Misplaced::CrossSlot);
        }
        let holders = named.keys.iter().map(|key| {
            let slot = M::slot(key);
            (slot, self.holder(slot))
        });
        let mut holders = holders.peekable();
        let (slot, first) = *holders.peek()?;
        let mut arrives = first == Holder::Arriving;
        for (_, holder) in holders {
            arrives |= holder == Holder::Arriving;
            let is_here = |holder: Holder<'_>| matches!(holder, Holder::Here | Holder::Arriving);
            if holder != first && !(is_here(holder) && is_here(first)) {
                return Some(Misplaced::CrossSlot);
            }
        }
        match first {
            _ if arrives => Some(Misplaced::TryAgain),
            Holder::Here | Holder::Arriving => None,
            Holder::Elsewhere(group) => Some(Misplaced::Moved {
                slot,
                to: group.clone(),
            }),
        }
    }

    fn holder(&self, slot: super::slot::Slot) -> Holder<'_> {
        #[cfg(feature = "mutants")]
        if self.has(SlotMutant::GiveWithoutEffect)
            && let Some(leaving) = self.ownership.leaving()
            && leaving.removed.is_none()
            && leaving.migration.slots.has(slot)
        {
            return Holder::Here;
        }
        self.ownership.holder(slot)
    }

    #[cfg(feature = "mutants")]
    fn has(&self, mutant: SlotMutant) -> bool {
        self.inside.planted() == Some(mutant)
    }

    fn is_executed_anywhere(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.has(SlotMutant::OwnershipInRefuses) {
            return true;
        }
        self.ownership.is_whole()
    }

    /// A command on keys, which are looked at before it is executed, as far as it names them, and once more
    /// with those that it touched: nothing has happened yet.
    fn execute_in_slots(&mut self, command: &[u8], stamp: Stamp) -> Executed {
        assert!(
            self.ownership != Ownership::default(),
            "a group that never moved a slot looks at no command"
        );
        let named = M::named(command);
        let misplaced = |named: Named, why: &Misplaced| Executed {
            answer: why.encode(),
            effects: Vec::new(),
            touched: named.keys,
            touches_all: named.is_all,
        };
        if let Some(why) = self.misplaced(&named) {
            return misplaced(named, &why);
        }
        let executed = self.inside.execute(command, stamp);
        let touched = Named {
            keys: executed.touched,
            is_all: executed.touches_all,
            is_scattered: false,
        };
        if let Some(why) = self.misplaced(&touched) {
            let executed = misplaced(touched, &why);
            assert!(
                executed.effects.is_empty(),
                "what is misplaced changes nothing"
            );
            return executed;
        }
        assert!(
            !executed.answer.starts_with(&MARK),
            "what is executed is not answered as if it were not"
        );
        Executed {
            touched: touched.keys,
            ..executed
        }
    }

    /// A step of a migration.
    fn step(&mut self, operation: &SlotOperation, stamp: Stamp) -> Executed {
        let stepped = match operation {
            SlotOperation::Show => {
                Stepped::answered(SlotAnswer::Owns(Box::new(self.ownership.clone())))
            }
            SlotOperation::Disown { slots, to } => match self.keys_in(*slots) {
                0 => self.begin(|after| after.disown(*slots, to)),
                keys => Stepped::refused(SlotRefusal::HasKeys(keys)),
            },
            SlotOperation::Check(migration) => Stepped {
                changed: None,
                ..self.give(migration)
            },
            SlotOperation::Take(migration) => self.begin(|after| after.take(migration)),
            SlotOperation::Give(migration) => self.give(migration),
            SlotOperation::Read { migration, .. } if !self.ownership.is_readable(migration) => {
                Stepped::refused(SlotRefusal::NotAtStep)
            }
            SlotOperation::Read {
                migration,
                after,
                limits,
            } => {
                let (slots, limits) = (migration.slots, limits.bounded());
                let piece = self.inside.read_piece(slots, after.as_deref(), limits);
                // A driver's `after` may be no key of this machine.
                if piece.next.is_none() || piece.next > *after {
                    Stepped::answered(SlotAnswer::Piece(piece))
                } else {
                    Stepped::refused(SlotRefusal::Unreadable)
                }
            }
            SlotOperation::Put {
                migration,
                after,
                piece,
            } => self.put(migration, after.as_deref(), piece, stamp),
            SlotOperation::Release(migration) => self.begin(|after| after.release(migration)),
            SlotOperation::Own(migration) => self.begin(|after| after.own(migration)),
            SlotOperation::Remove { migration, limits } => {
                let after = self.ownership.to_remove(migration);
                let after = after.map(|leaving| Some(GoneUpTo(leaving?.removed.clone())));
                self.remove(migration, (after, *limits), stamp, Ownership::remove)
            }
            SlotOperation::Cancel(migration) => self.begin(|after| {
                #[cfg(feature = "mutants")]
                if self.has(SlotMutant::CancelReleased)
                    && let Some(leaving) = &mut after.leaving
                {
                    leaving.is_released &= leaving.removed.is_some();
                }
                after.cancel(migration)
            }),
            SlotOperation::Forget { migration, limits } => {
                let after = self.ownership.to_forget(migration);
                let after = after.map(|arriving| match &arriving?.has {
                    Has::Behind(key) => Some(GoneUpTo(Some(key.clone()))),
                    Has::UpTo(_) | Has::All => Some(GoneUpTo(None)),
                });
                self.remove(migration, (after, *limits), stamp, Ownership::forget)
            }
        };
        self.executed(operation, stepped)
    }

    /// Removes keys behind the one up to which all are gone, if any are to be.
    fn remove(
        &mut self,
        migration: &Migration,
        (after, limits): (Result<Option<GoneUpTo>, SlotRefusal>, PieceLimits),
        stamp: Stamp,
        removed: fn(&mut Ownership, &Migration, Option<Vec<u8>>),
    ) -> Stepped {
        let after = match after {
            Ok(Some(GoneUpTo(after))) => after,
            Ok(None) => return Stepped::answered(SlotAnswer::Done),
            Err(why) => return Stepped::refused(why),
        };
        let (slots, limits) = (migration.slots, limits.bounded());
        let removal = self
            .inside
            .remove_piece(slots, after.as_deref(), limits, stamp);
        assert!(
            removal.next.is_none() || removal.next > after,
            "a removal goes on behind the one before"
        );
        let answer = match &removal.next {
            Some(_) => SlotAnswer::More,
            None => SlotAnswer::Done,
        };
        let mut ownership = self.ownership.clone();
        removed(&mut ownership, migration, removal.next);
        Stepped {
            answer,
            changed: Some((ownership, removal.effects)),
        }
    }

    fn keys_in(&self, slots: SlotRange) -> u64 {
        if !slots.is_valid() {
            return 0; // refused as unreadable
        }
        self.inside.survey(slots).keys
    }

    /// A step that changes what is owned and no key.
    fn begin(
        &self,
        transition: impl FnOnce(&mut Ownership) -> Result<Done, SlotRefusal>,
    ) -> Stepped {
        let mut after = self.ownership.clone();
        #[cfg(feature = "mutants")]
        if self.has(SlotMutant::OwnBeforeLastPiece)
            && let Some(arriving) = after.arriving()
            && matches!(arriving.has, Has::UpTo(Some(_)))
        {
            after.put(Has::All);
        }
        let transition = transition(&mut after);
        assert!(
            after.last_number() >= self.ownership.last_number(),
            "numbers of migrations grow"
        );
        match transition {
            Err(why) => Stepped::refused(why),
            Ok(Done::Before) => Stepped::answered(SlotAnswer::Done),
            Ok(Done::Now) => {
                assert!(
                    after != self.ownership,
                    "a step that is done now changes the state"
                );
                Stepped {
                    answer: SlotAnswer::Done,
                    changed: Some((after, Vec::new())),
                }
            }
        }
    }

    fn give(&self, migration: &Migration) -> Stepped {
        let begun = self.begin(|after| after.give(migration));
        if begun.changed.is_some() {
            let bytes = self.inside.survey(migration.slots).largest_bytes;
            let most = M::KEY_BYTES_MAX;
            if bytes > most {
                return Stepped::refused(SlotRefusal::TooLarge { bytes, most });
            }
        }
        begun
    }

    fn put(
        &mut self,
        migration: &Migration,
        after: Option<&[u8]>,
        piece: &Piece,
        stamp: Stamp,
    ) -> Stepped {
        match self.ownership.has(migration) {
            Err(why) => return Stepped::refused(why),
            Ok(Has::UpTo(at)) if at.as_deref() == after => {}
            // It is there already, or another one comes first.
            Ok(has) => return Stepped::answered(SlotAnswer::Has(has)),
        }
        let goes_on = piece.next.as_deref().is_none_or(|next| Some(next) > after);
        let slots = migration.slots;
        let effects = goes_on.then(|| self.inside.put_piece(slots, &piece.bytes, stamp));
        let Some(effects) = effects.flatten() else {
            return Stepped::refused(SlotRefusal::Unreadable);
        };
        let has = match &piece.next {
            Some(next) => Has::UpTo(Some(next.clone())),
            None => Has::All,
        };
        let mut ownership = self.ownership.clone();
        ownership.put(has.clone());
        Stepped {
            answer: SlotAnswer::Has(has),
            changed: Some((ownership, effects)),
        }
    }

    fn executed(&self, operation: &SlotOperation, stepped: Stepped) -> Executed {
        let touches_all = operation.touches_all();
        #[cfg(feature = "mutants")]
        let touches_all = touches_all
            && !(self.has(SlotMutant::GiveTouchesNothing)
                && matches!(operation, SlotOperation::Give(_)))
            && !(self.has(SlotMutant::CancelTouchesNothing)
                && matches!(operation, SlotOperation::Cancel(_)));
        let effects = stepped
            .changed
            .map_or_else(Vec::new, |(ownership, inside)| {
                let mut effects = marked(&ownership);
                effects.extend_from_slice(&inside);
                effects
            });
        assert!(
            effects.is_empty() || !operation.reads_only(),
            "a question changes nothing"
        );
        // A key of its own, that no command on keys has: each step waits for those before it.
        Executed {
            answer: stepped.answer.encode(),
            effects,
            touched: vec![MARK.to_vec()],
            touches_all,
        }
    }
}

/// Ownership and what is behind it, of effects or of a snapshot.
fn split(bytes: &[u8]) -> Option<(Ownership, &[u8])> {
    let (ownership, inside) =
        postcard::take_from_bytes::<Ownership>(bytes.strip_prefix(&MARK)?).ok()?;
    ownership.check().is_ok().then_some((ownership, inside))
}

impl<M: Movable> Execute for Slotted<M> {
    fn declare(command: &[u8]) -> Option<Declared> {
        if !SlotOperation::is_one(command) {
            return M::declare(command);
        }
        // No keys: it is recorded nowhere, and synced before it is answered.
        SlotOperation::decode(command).map(|operation| Declared {
            keys: Vec::new(),
            reads_only: operation.reads_only(),
        })
    }

    fn execute(&mut self, command: &[u8], stamp: Stamp) -> Executed {
        if SlotOperation::is_one(command) {
            return match SlotOperation::decode(command) {
                Some(operation) => self.step(&operation, stamp),
                None => Executed::default(),
            };
        }
        if self.is_executed_anywhere() {
            return self.inside.execute(command, stamp);
        }
        self.execute_in_slots(command, stamp)
    }

    fn refuses(&self, command: &[u8], executed: Option<&Executed>) -> Option<Vec<u8>> {
        if SlotOperation::is_one(command) {
            let takes = || {
                matches!(
                    SlotOperation::decode(command),
                    Some(SlotOperation::Take(_) | SlotOperation::Put { .. })
                )
            };
            let is_full = executed.is_none() && !self.inside.has_room() && takes();
            return is_full.then(|| SlotAnswer::Refused(SlotRefusal::Full).encode());
        }
        #[cfg(feature = "mutants")]
        if executed.is_none()
            && self.has(SlotMutant::OwnershipInRefuses)
            && let Some(why) = self.misplaced(&M::named(command))
        {
            return Some(why.encode());
        }
        self.inside.refuses(command, executed)
    }

    fn apply(&mut self, effects: &[u8]) {
        if !effects.starts_with(&MARK) {
            return self.inside.apply(effects);
        }
        // What cannot be read, or does not follow what is owned, is of no step, and changes nothing, here
        // and on every other replica.
        let follows = |ownership: &Ownership| {
            *ownership != self.ownership && ownership.last_number() >= self.ownership.last_number()
        };
        let Some((ownership, inside)) = split(effects).filter(|(after, _)| follows(after)) else {
            return self.inside.apply(&[]);
        };
        self.ownership = ownership;
        self.inside.apply(inside);
    }

    fn snapshot(&self) -> Vec<u8> {
        let inside = self.inside.snapshot();
        assert!(
            !inside.starts_with(&MARK),
            "the mark is of no machine's own"
        );
        if self.ownership == Ownership::default() {
            return inside;
        }
        let mut snapshot = marked(&self.ownership);
        snapshot.extend_from_slice(&inside);
        snapshot
    }

    fn restore(snapshot: &[u8]) -> Option<Self> {
        let (ownership, inside) = if snapshot.starts_with(&MARK) {
            split(snapshot)?
        } else {
            (Ownership::default(), snapshot)
        };
        let inside = M::restore(inside)?;
        Some(Self { inside, ownership })
    }

    fn empty() -> Self {
        let ownership = Ownership::default();
        assert!(
            ownership.is_whole(),
            "a group owns all slots unless it gives them up"
        );
        Self {
            inside: M::empty(),
            ownership,
        }
    }
}
