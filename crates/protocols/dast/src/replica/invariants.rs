//! What holds of a replica between any two steps.

mod kept;

use manxdb_core::check::ensure;

use super::Replica;
use crate::timestamp::Timestamp;

impl Replica {
    /// Checks the invariants of this replica, of its clock and of its execution.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_state()
            .map_err(|broken| format!("{:?}: {broken}", self.me))
    }

    fn check_state(&self) -> Result<(), String> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        self.clock.check(&self.floors)?;
        self.cuts.check()?;
        self.execution.check()?;
        self.check_locals()?;
        self.check_forgotten()?;
        self.check_members()?;
        self.check_order()?;
        let is_stamped = |(shard, number): (&u32, &u64)| self.stamped.get(shard) >= Some(number);
        ensure(self.reported.iter().all(is_stamped), || {
            format!(
                "S1: it reported {:?} and stamped {:?}",
                self.reported, self.stamped
            )
        })?;
        let mut coordinating = self.coordinating.iter();
        ensure(coordinating.all(|(id, one)| one.id() == *id), || {
            "S2: a transaction is coordinated under another's name".to_owned()
        })?;
        let has_nothing = self.locals.is_empty() && self.floors.is_empty();
        ensure(self.standing.has_state() || has_nothing, || {
            "S3: it has no state and knows of transactions".to_owned()
        })?;
        ensure(
            self.standing.has_state() || self.coordinating.is_empty(),
            || "S6: it has no state and answers clients".to_owned(),
        )?;
        let has_run = self.cuts.safe() > Timestamp::ZERO || self.execution.waiting() > 0;
        ensure(self.standing.has_state() || !has_run, || {
            "S7: it has no state and says that it has run transactions".to_owned()
        })
    }

    fn check_locals(&self) -> Result<(), String> {
        for (id, at) in &self.local_places {
            let local = self.locals.get(at);
            ensure(local.is_some_and(|local| local.planned.id() == *id), || {
                format!("S4: {id:?} is said to be at {at:?}, where it is not")
            })?;
        }
        let mut early = self.early_holders.keys();
        ensure(!early.any(|at| self.locals.contains_key(at)), || {
            "S5: holders are kept apart from a transaction that is here".to_owned()
        })
    }
}
