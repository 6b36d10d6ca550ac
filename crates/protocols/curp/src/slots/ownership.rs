//! Which slots a group owns, and the migrations that it takes part in.
//!
//! ```text
//! source   owned ──Give──▶ leaving ──Release──▶ released ──Remove, until nothing is left──▶ away
//! target   away  ──Take──▶ arriving ──Put, until the last piece ──Own, once it is released──▶ owned
//! ```
//!
//! Until it has released them, the source can have the slots back; see [`super::cancelling`].
//!
//! A group is the source of one migration at a time, and the target of one. A target takes before its source
//! gives: so a migration that waits for its source waits for one that has both of its groups, and none waits
//! for ever. Numbers grow from one to the next that a group is the source of, or the target of, so that a step
//! of an earlier one, sent late, is refused. A step that was done before has the same answer and no effect.

use serde::{Deserialize, Serialize};

use super::migration::{Arriving, Ended, Group, Has, Leaving, Migration, SlotRefusal};
use super::slot::{SLOTS, Slot, SlotRange};

/// Slots that another group owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Away {
    slots: SlotRange,
    group: Group,
}

/// Who owns a slot, as a group sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder<'a> {
    /// This group.
    Here,
    /// Another one: this group gave it away, now or earlier.
    Elsewhere(&'a Group),
    /// Nobody yet: it is on its way to this group.
    Arriving,
}

/// Whether a step was done now, or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The state has changed.
    Now,
    /// It was as asked already.
    Before,
}

/// What a group owns. The default is a group that owns all slots and never took part in a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// In order, none of them twice.
    away: Vec<Away>,
    pub(super) leaving: Option<Leaving>,
    pub(super) arriving: Option<Arriving>,
    /// The last migration that it was the source of, and that is over here.
    pub(super) left: Option<Ended>,
    /// The last one that it was the target of.
    pub(super) arrived: Option<Ended>,
}

/// The number of the last migration of a kind.
pub(super) fn number(last: Option<&Ended>) -> u64 {
    last.map_or(0, |ended| ended.migration.number)
}

impl Ownership {
    /// Whether all slots are owned and stay so: no command has to be looked at.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.away.is_empty() && !self.is_moving()
    }

    /// Whether keys are on their way from or to the group.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.leaving.is_some() || self.arriving.is_some()
    }

    /// The slots that it gives away.
    #[must_use]
    pub fn leaving(&self) -> Option<&Leaving> {
        self.leaving.as_ref()
    }

    /// The slots on their way to it.
    #[must_use]
    pub fn arriving(&self) -> Option<&Arriving> {
        self.arriving.as_ref()
    }

    /// Whether a migration from here is over, or can never begin: a later one is over.
    #[must_use]
    pub fn has_left(&self, migration: &Migration) -> bool {
        let leaving = self.leaving.as_ref();
        let leaves = leaving.is_some_and(|leaving| leaving.migration == *migration);
        !leaves && number(self.left.as_ref()) >= migration.number
    }

    /// The largest number of a migration that it has taken part in.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        let moving = [
            self.leaving.as_ref().map(|leaving| &leaving.migration),
            self.arriving.as_ref().map(|arriving| &arriving.migration),
        ];
        let moving = moving.into_iter().flatten();
        let moving = moving.map(|migration| migration.number);
        let ended = [number(self.left.as_ref()), number(self.arrived.as_ref())];
        moving.chain(ended).max().unwrap_or(0)
    }

    /// Whether it owns all of these slots, and gives none of them away.
    #[must_use]
    pub fn owns(&self, slots: SlotRange) -> bool {
        let leaving = self.leaving.as_ref();
        let leaves = leaving.is_some_and(|leaving| leaving.migration.slots.meets(slots));
        !leaves && !self.away.iter().any(|away| away.slots.meets(slots))
    }

    /// Who owns a slot.
    #[must_use]
    pub fn holder(&self, slot: Slot) -> Holder<'_> {
        if let Some(leaving) = &self.leaving
            && leaving.migration.slots.has(slot)
        {
            return Holder::Elsewhere(&leaving.migration.to);
        }
        if let Some(arriving) = &self.arriving
            && arriving.migration.slots.has(slot)
        {
            return Holder::Arriving;
        }
        let place = self
            .away
            .partition_point(|away| away.slots.last() < slot.number());
        match self.away.get(place) {
            Some(away) if away.slots.has(slot) => Holder::Elsewhere(&away.group),
            _ => Holder::Here,
        }
    }

    /// Runs of slots that other groups own, with the group, in order.
    pub fn away(&self) -> impl Iterator<Item = (SlotRange, &Group)> {
        self.away.iter().map(|away| (away.slots, &away.group))
    }

    /// The group, which has no keys in them, gives up slots that another one has owned all the time.
    ///
    /// # Errors
    /// [`SlotRefusal`].
    pub(super) fn disown(&mut self, slots: SlotRange, to: &Group) -> Result<Done, SlotRefusal> {
        if !slots.is_valid() || !to.is_valid() {
            return Err(SlotRefusal::Unreadable);
        }
        let leaving = self.leaving.as_ref().map(|leaving| &leaving.migration);
        let arriving = self.arriving.as_ref().map(|arriving| &arriving.migration);
        if let Some(busy) = leaving.or(arriving) {
            return Err(SlotRefusal::Busy(busy.clone()));
        }
        let mut given = self
            .away
            .iter()
            .filter(|away| away.slots.meets(slots))
            .peekable();
        if given.peek().is_none() {
            self.set_holder(slots, Some(to));
            assert!(self.is_away(slots), "what is given up is another group's");
            return Ok(Done::Now);
        }
        let is_done = given.all(|away| away.group == *to) && self.is_away(slots);
        is_done.then_some(Done::Before).ok_or(SlotRefusal::NotOwned)
    }

    /// The target begins to take the slots.
    ///
    /// # Errors
    /// [`SlotRefusal`].
    pub(super) fn take(&mut self, migration: &Migration) -> Result<Done, SlotRefusal> {
        let under_way = self.arriving.as_ref().map(|arriving| &arriving.migration);
        if !is_new(migration, under_way, self.arrived.as_ref())? {
            return Ok(Done::Before);
        }
        if !self.is_away(migration.slots) {
            return Err(SlotRefusal::NotAway);
        }
        assert!(
            self.arriving.is_none(),
            "a group is the target of one migration"
        );
        self.arriving = Some(Arriving {
            migration: migration.clone(),
            has: Has::UpTo(None),
        });
        self.assert_consistent();
        Ok(Done::Now)
    }

    /// The source gives the slots.
    ///
    /// # Errors
    /// [`SlotRefusal`].
    pub(super) fn give(&mut self, migration: &Migration) -> Result<Done, SlotRefusal> {
        let under_way = self.leaving.as_ref().map(|leaving| &leaving.migration);
        if !is_new(migration, under_way, self.left.as_ref())? {
            return Ok(Done::Before);
        }
        if !self.owns(migration.slots) {
            return Err(SlotRefusal::NotOwned);
        }
        assert!(
            self.leaving.is_none(),
            "a group is the source of one migration"
        );
        self.leaving = Some(Leaving {
            migration: migration.clone(),
            removed: None,
            is_released: false,
        });
        assert!(
            !self.owns(migration.slots),
            "nothing is executed on what leaves"
        );
        self.assert_consistent();
        Ok(Done::Now)
    }

    /// Whether pieces may be read: the source has given the slots, and removed nothing.
    #[must_use]
    pub(super) fn is_readable(&self, migration: &Migration) -> bool {
        let leaving = self.leaving.as_ref();
        leaving.is_some_and(|leaving| leaving.migration == *migration && leaving.removed.is_none())
    }

    /// Which keys the target has.
    ///
    /// # Errors
    /// [`SlotRefusal::NotAtStep`].
    pub(super) fn has(&self, migration: &Migration) -> Result<Has, SlotRefusal> {
        if was_done(migration, self.arrived.as_ref())? {
            return Ok(Has::All);
        }
        let arriving = self.arriving.as_ref();
        let arriving = arriving.filter(|arriving| arriving.migration == *migration);
        arriving
            .map(|arriving| arriving.has.clone())
            .ok_or(SlotRefusal::NotAtStep)
    }

    /// The target has another piece. The caller has seen that it follows what is there.
    pub(super) fn put(&mut self, next: Has) {
        let before = self.arriving.as_ref().map(|arriving| &arriving.has);
        let goes_on = match (before, &next) {
            (Some(Has::UpTo(before)), Has::UpTo(next)) => next > before,
            (Some(Has::UpTo(_)), Has::All) => true,
            _ => false,
        };
        assert!(goes_on, "a piece ends behind the one before");
        if let Some(arriving) = &mut self.arriving {
            arriving.has = next;
        }
    }

    /// The target owns the slots.
    ///
    /// # Errors
    /// [`SlotRefusal`].
    pub(super) fn own(&mut self, migration: &Migration) -> Result<Done, SlotRefusal> {
        if was_done(migration, self.arrived.as_ref())? {
            return Ok(Done::Before);
        }
        match self.has(migration)? {
            Has::All => {}
            Has::UpTo(_) => return Err(SlotRefusal::Incomplete),
            Has::Behind(_) => return Err(SlotRefusal::Cancelled),
        }
        assert!(
            migration.number > number(self.arrived.as_ref()),
            "migrations to a group end in their order"
        );
        self.arriving = None;
        self.set_holder(migration.slots, None);
        assert!(self.owns(migration.slots), "what has arrived is owned");
        self.arrived = Some(Ended {
            migration: migration.clone(),
            is_cancelled: false,
        });
        self.assert_consistent();
        Ok(Done::Now)
    }

    /// Up to which key the source has removed all, if it is to remove more; nothing when it has removed all
    /// there are.
    ///
    /// # Errors
    /// [`SlotRefusal::NotAtStep`]: also when the target may not own them yet; [`SlotRefusal::Cancelled`].
    pub(super) fn to_remove(&self, migration: &Migration) -> Result<Option<&Leaving>, SlotRefusal> {
        if was_done(migration, self.left.as_ref())? {
            return Ok(None);
        }
        let leaving = self.leaving.as_ref();
        let leaving = leaving
            .filter(|leaving| leaving.migration == *migration)
            .filter(|leaving| leaving.is_released);
        leaving.map(Some).ok_or(SlotRefusal::NotAtStep)
    }

    /// The source has removed keys up to this one, or all there are.
    pub(super) fn remove(&mut self, migration: &Migration, next: Option<Vec<u8>>) {
        let leaving = self.leaving.as_mut();
        let is_here = leaving.as_ref().is_some_and(|leaving| {
            let goes_on = next.is_none() || next > leaving.removed;
            leaving.migration == *migration && leaving.is_released && goes_on
        });
        assert!(
            is_here,
            "keys are removed at the source of the migration, in order"
        );
        match (leaving, next) {
            (Some(leaving), Some(next)) => leaving.removed = Some(next),
            _ => {
                assert!(
                    migration.number > number(self.left.as_ref()),
                    "migrations from a group end in their order"
                );
                self.leaving = None;
                self.set_holder(migration.slots, Some(&migration.to));
                self.left = Some(Ended {
                    migration: migration.clone(),
                    is_cancelled: false,
                });
            }
        }
        self.assert_consistent();
    }

    /// Whether other groups own all of these slots.
    fn is_away(&self, slots: SlotRange) -> bool {
        let mut next = slots.first();
        for away in self.away.iter().filter(|away| away.slots.meets(slots)) {
            if away.slots.first() > next {
                return false;
            }
            next = away.slots.last().saturating_add(1);
        }
        next > slots.last()
    }

    /// Slots have another holder: a group, or this one.
    fn set_holder(&mut self, slots: SlotRange, holder: Option<&Group>) {
        let mut away: Vec<Away> = Vec::with_capacity(self.away.len() + 2);
        for run in std::mem::take(&mut self.away) {
            let rest = run.slots.without(slots).into_iter().flatten();
            away.extend(rest.map(|slots| Away {
                slots,
                group: run.group.clone(),
            }));
        }
        if let Some(group) = holder {
            let group = group.clone();
            away.push(Away { slots, group });
        }
        away.sort_unstable_by_key(|away| away.slots);
        for run in away {
            match self.away.last_mut() {
                Some(last)
                    if last.group == run.group && last.slots.last() + 1 == run.slots.first() =>
                {
                    let joined = SlotRange::new(last.slots.first(), run.slots.last());
                    assert!(joined.is_some(), "two runs that follow each other are one");
                    last.slots = joined.unwrap_or(last.slots);
                }
                _ => self.away.push(run),
            }
        }
        self.assert_consistent();
    }

    pub(super) fn assert_consistent(&self) {
        let checked = self.check();
        assert!(checked.is_ok(), "what a group owns: {checked:?}");
    }

    /// Checks what a transition leaves behind, and what came from a disk.
    ///
    /// # Errors
    /// What is broken.
    pub(super) fn check(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| holds.then_some(()).ok_or_else(|| what.to_owned());
        let pairs = self.away.iter().zip(self.away.iter().skip(1));
        let in_order = pairs
            .clone()
            .all(|(one, next)| one.slots.last() < next.slots.first());
        ensure(in_order, "runs of slots are in order and apart")?;
        let runs = self
            .away
            .iter()
            .all(|away| away.slots.is_valid() && away.group.is_valid());
        ensure(runs, "runs and groups are what they can be")?;
        ensure(
            self.away.len() <= usize::from(SLOTS),
            "a slot is in one run",
        )?;
        let is_next = |migration: &Migration, last: Option<&Ended>| {
            migration.is_valid() && migration.number > number(last)
        };
        if let Some(leaving) = &self.leaving {
            let migration = &leaving.migration;
            ensure(
                leaving.is_released || leaving.removed.is_none(),
                "what may come back is all there",
            )?;
            ensure(
                is_next(migration, self.left.as_ref()),
                "what leaves is newer than what left",
            )?;
            let is_free = !self
                .away
                .iter()
                .any(|away| away.slots.meets(migration.slots));
            ensure(is_free, "what leaves was owned")?;
        }
        if let Some(Arriving { migration, .. }) = &self.arriving {
            ensure(
                is_next(migration, self.arrived.as_ref()),
                "what arrives is newer than what did",
            )?;
            ensure(self.is_away(migration.slots), "what arrives was away")?;
        }
        Ok(())
    }
}

/// Whether a step that begins a migration is to be done, at a group that may be in one of this kind and has
/// ended others: or it was done before.
fn is_new(
    migration: &Migration,
    under_way: Option<&Migration>,
    last: Option<&Ended>,
) -> Result<bool, SlotRefusal> {
    if !migration.is_valid() {
        return Err(SlotRefusal::Unreadable);
    }
    if was_done(migration, last)? || under_way == Some(migration) {
        return Ok(false);
    }
    match under_way {
        _ if migration.number <= number(last) => Err(SlotRefusal::Old),
        Some(other) => Err(SlotRefusal::Busy(other.clone())),
        None => Ok(true),
    }
}

/// Whether a migration is the last one that is over, by all of its steps.
pub(super) fn was_done(migration: &Migration, last: Option<&Ended>) -> Result<bool, SlotRefusal> {
    match last.filter(|last| last.migration == *migration) {
        Some(last) if last.is_cancelled => Err(SlotRefusal::Cancelled),
        last => Ok(last.is_some()),
    }
}
