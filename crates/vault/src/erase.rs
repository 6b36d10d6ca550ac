//! Keys erased: their slots overwritten in both places, and on disk.

use parking_lot::MutexGuard;

use crate::disk::Place;
use crate::error::VaultError;
use crate::mutants::{VaultMutant, is_planted};
use crate::secret::KeyId;
use crate::slot::Slot;
use crate::vault::{Opened, Vault, Writer};

impl Vault {
    /// Destroys keys: their slots are overwritten in both places, and on disk, when this returns. Keys
    /// that are gone already, or that this vault never made, are passed over, so it may be called again.
    ///
    /// # Errors
    /// The disk's: some may be erased and some not.
    pub fn erase(&self, ids: &[KeyId]) -> Result<(), VaultError> {
        let opened = self.opened()?;
        let writer = opened.writer.lock();
        let mut own = Vec::with_capacity(ids.len());
        for id in ids {
            if opened.is_in(*id, writer.next)? {
                own.push(*id);
            }
        }
        if !is_planted(VaultMutant::KeptSlot) {
            opened.overwrite(&writer, &own)?;
        }
        opened.cache.forget(&own);
        assert!(
            own.len() <= ids.len(),
            "no key is erased that was not named"
        );
        Ok(())
    }
}

impl Opened {
    /// Whether the slot of a key is that key's: alive, erased, or damaged.
    fn is_in(&self, id: KeyId, next: u64) -> Result<bool, VaultError> {
        if id.slot() >= next {
            return Ok(false);
        }
        Ok(match self.slots.read_slot(id.slot())? {
            Slot::Live(wrapped) => wrapped.id == id,
            Slot::Erased(erased) => erased == id,
            Slot::Damaged => true,
        })
    }

    /// Overwrites slots, in one place and then in the other.
    fn overwrite(&self, _writer: &MutexGuard<'_, Writer>, ids: &[KeyId]) -> Result<(), VaultError> {
        for place in Place::BOTH {
            if place == Place::Mirror && is_planted(VaultMutant::KeptMirror) {
                continue;
            }
            for id in ids {
                self.slots
                    .write_slots(place, id.slot(), &[Slot::Erased(*id)])?;
            }
            self.slots.sync(place)?;
            for id in ids {
                let slot = self.slots.read_in(place, id.slot())?;
                assert_eq!(slot, Slot::Erased(*id), "an overwritten slot holds no key");
            }
        }
        Ok(())
    }
}
