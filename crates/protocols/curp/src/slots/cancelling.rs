//! Until when a migration can be cancelled, and what its groups own then.
//!
//! ```text
//! source   leaving ──Release──▶ released: the target may own them, and nothing goes back
//!                  ──Cancel───▶ owned, with all its keys
//! target   arriving ──Forget, piece by piece──▶ away
//! ```
//!
//! The source decides, in one place of its log, whether a migration ends at the target or at itself: a target
//! owns slots only once their source has released them, and forgets their keys only once it has cancelled.
//! So a source goes back without its target, which may be gone. Of a move that it has not given yet, it
//! keeps that it was cancelled, and refuses to give it: a step that was sent before may come late.

use super::migration::{Arriving, Ended, Has, Migration, SlotRefusal};
use super::ownership::{Done, Ownership, number, was_done};

impl Ownership {
    /// The source lets the target own the slots, of which that has all keys.
    ///
    /// # Errors
    /// [`SlotRefusal`].
    pub(super) fn release(&mut self, migration: &Migration) -> Result<Done, SlotRefusal> {
        if was_done(migration, self.left.as_ref())? {
            return Ok(Done::Before);
        }
        let leaving = self.leaving.as_mut();
        let Some(leaving) = leaving.filter(|leaving| leaving.migration == *migration) else {
            return Err(SlotRefusal::NotAtStep);
        };
        if leaving.is_released {
            return Ok(Done::Before);
        }
        assert!(
            leaving.removed.is_none(),
            "keys are removed once the target owns them"
        );
        leaving.is_released = true;
        self.assert_consistent();
        Ok(Done::Now)
    }

    /// The source owns the slots, and will never give them by this migration.
    ///
    /// # Errors
    /// [`SlotRefusal::Released`]: the target may own them. [`SlotRefusal::Busy`]: other slots leave.
    pub(super) fn cancel(&mut self, migration: &Migration) -> Result<Done, SlotRefusal> {
        if !migration.is_valid() {
            return Err(SlotRefusal::Unreadable);
        }
        match was_done(migration, self.left.as_ref()) {
            Err(_) => return Ok(Done::Before),
            Ok(true) => return Err(SlotRefusal::Released),
            Ok(false) => {}
        }
        if migration.number <= number(self.left.as_ref()) {
            return Err(SlotRefusal::Old);
        }
        match &self.leaving {
            Some(leaving) if leaving.migration != *migration => {
                return Err(SlotRefusal::Busy(leaving.migration.clone()));
            }
            Some(leaving) if leaving.is_released => return Err(SlotRefusal::Released),
            Some(leaving) => {
                assert!(leaving.removed.is_none(), "what comes back is all there");
                self.leaving = None;
                assert!(self.owns(migration.slots), "what comes back is owned");
            }
            None => {}
        }
        self.left = Some(Ended {
            migration: migration.clone(),
            is_cancelled: true,
        });
        self.assert_consistent();
        Ok(Done::Now)
    }

    /// Up to which key the target has removed what it has of a migration that its source has cancelled; nothing
    /// when it has nothing of it.
    ///
    /// # Errors
    /// [`SlotRefusal::Released`]: it owns the slots. [`SlotRefusal::Old`], [`SlotRefusal::Busy`].
    pub(super) fn to_forget(
        &self,
        migration: &Migration,
    ) -> Result<Option<&Arriving>, SlotRefusal> {
        if !migration.is_valid() {
            return Err(SlotRefusal::Unreadable);
        }
        match was_done(migration, self.arrived.as_ref()) {
            Err(_) => return Ok(None),
            Ok(true) => return Err(SlotRefusal::Released),
            Ok(false) => {}
        }
        match &self.arriving {
            Some(arriving) if arriving.migration == *migration => Ok(Some(arriving)),
            _ if migration.number <= number(self.arrived.as_ref()) => Err(SlotRefusal::Old),
            Some(other) => Err(SlotRefusal::Busy(other.migration.clone())),
            None => Err(SlotRefusal::NotAtStep),
        }
    }

    /// The target has removed keys up to this one, or all that it had.
    pub(super) fn forget(&mut self, migration: &Migration, next: Option<Vec<u8>>) {
        let arriving = self.arriving.as_mut();
        let arriving = arriving.filter(|arriving| arriving.migration == *migration);
        assert!(
            arriving.is_some(),
            "slots are forgotten that arrive by the migration"
        );
        let Some(arriving) = arriving else {
            return;
        };
        if let Some(next) = next {
            let goes_on = match &arriving.has {
                Has::Behind(before) => next > *before,
                Has::UpTo(_) | Has::All => true,
            };
            assert!(goes_on, "keys are forgotten in order");
            arriving.has = Has::Behind(next);
        } else {
            self.arriving = None;
            assert!(
                !self.owns(migration.slots),
                "who has forgotten slots does not own them"
            );
            self.arrived = Some(Ended {
                migration: migration.clone(),
                is_cancelled: true,
            });
        }
        self.assert_consistent();
    }
}
