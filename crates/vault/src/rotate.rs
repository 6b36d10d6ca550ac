//! Another master key for all slots, while they are in use.
//!
//! | step | on disk |
//! |---|---|
//! | 1 | a header that names the next master key; new slots are wrapped by it |
//! | 2 | every slot of the first place, wrapped by it; then a sync |
//! | 3 | every slot of the mirror, the same; then a sync |
//! | 4 | a header that has it as the current one: the old key opens nothing any more |
//!
//! At every moment each slot is whole in one of the places, under a master key that the header names. A
//! rotation that a crash cuts short is ended when the vault is opened with both keys. A copy of the vault
//! from before opens under the old master key: who wants keys that were erased since to be gone
//! from copies too destroys that one.

use crate::disk::Place;
use crate::error::VaultError;
use crate::header::MasterMark;
use crate::mutants::{VaultMutant, is_planted};
use crate::slot::{Slot, WrappedKey};
use crate::vault::{Opened, Vault, wrapping_key};

/// Slots rewritten while others wait to make or to erase keys.
const SLOTS_AT_ONCE: u64 = 64;

impl Vault {
    /// Wraps all keys by the newest master key that the source gives; the generation it is.
    ///
    /// # Errors
    /// [`VaultError::SameMasterKey`]; no master key, or not the current one; the disk's, after which it
    /// goes on at the next call or the next start.
    pub fn rotate(&self) -> Result<u32, VaultError> {
        let opened = self.opened()?;
        let _one = opened.rotating.lock();
        let keys = opened.read_source()?;
        let vault = opened.vault;
        {
            let mut writer = opened.writer.lock();
            let header = writer.header;
            let generation = header.current.generation;
            let mut masters = opened.masters.write();
            if !masters.wrapping.contains_key(&generation) {
                return Err(masters.missing(generation));
            }
            let next = MasterMark::of(keys.newest(), &vault, generation + 1);
            if next.check == header.current.check {
                return Err(VaultError::SameMasterKey);
            }
            if let Some(begun) = header.next.filter(|begun| begun.check != next.check) {
                // Slots may be wrapped by it already: that one is ended first.
                return Err(masters.missing(begun.generation));
            }
            if header.next.is_none() {
                let header = header.followed_by(header.current, Some(next));
                opened.slots.write_header(&header)?;
                writer.header = header;
            }
            assert!(
                writer
                    .header
                    .next
                    .is_some_and(|named| named.check == next.check),
                "a master key wraps slots only when the header names it"
            );
            masters
                .wrapping
                .insert(next.generation, wrapping_key(keys.newest()));
        }
        opened.end_rotation()
    }
}

impl Opened {
    /// Steps 2 to 4; both master keys are known.
    pub(crate) fn end_rotation(&self) -> Result<u32, VaultError> {
        let (old, next, end) = {
            let writer = self.writer.lock();
            let Some(next) = writer.header.next else {
                return Ok(writer.header.current.generation);
            };
            (writer.header.current, next, writer.next)
        };
        assert_eq!(
            next.generation,
            old.generation + 1,
            "generations follow each other"
        );
        self.for_each_chunk(end, &|first, last| {
            self.rewrap(first..last, next.generation)
        })?;
        self.slots.sync(Place::First)?;
        self.for_each_chunk(end, &|first, last| self.mirror(first..last))?;
        self.slots.sync(Place::Mirror)?;
        let mut writer = self.writer.lock();
        let header = writer.header.followed_by(next, None);
        self.slots.write_header(&header)?;
        assert!(header.next.is_none(), "the rotation is over");
        writer.header = header;
        let mut masters = self.masters.write();
        masters.wrapping.remove(&old.generation);
        assert!(
            masters.wrapping.contains_key(&next.generation),
            "the master key that slots are wrapped by is known"
        );
        Ok(next.generation)
    }

    fn for_each_chunk(
        &self,
        end: u64,
        each: &dyn Fn(u64, u64) -> Result<(), VaultError>,
    ) -> Result<(), VaultError> {
        let mut first = 0;
        while first < end {
            let last = end.min(first + SLOTS_AT_ONCE);
            let _writer = self.writer.lock();
            each(first, last)?;
            first = last;
        }
        Ok(())
    }

    /// Wraps slots of the first place anew. One that is damaged there is made whole from the mirror; one
    /// that cannot be unwrapped stays as it is.
    fn rewrap(&self, numbers: std::ops::Range<u64>, generation: u32) -> Result<(), VaultError> {
        let masters = self.masters.read().wrapping.get(&generation).cloned();
        let Some(master) = masters else {
            return Err(self.masters.read().missing(generation));
        };
        for number in numbers {
            let Slot::Live(wrapped) = self.slots.read_slot(number)? else {
                continue;
            };
            if wrapped.generation == generation {
                continue;
            }
            let Ok(key) = self.unwrap_slot(&wrapped) else {
                continue;
            };
            let nonce = self.nonces.next(self.random.as_ref())?;
            let under = (generation, &master);
            let slot = WrappedKey::wrap(&key, wrapped.id, &self.vault, under, nonce);
            assert_eq!(slot.id, wrapped.id, "a key keeps its id");
            assert!(
                slot.unwrap(&self.vault, &master)
                    .is_some_and(|again| again.bytes() == key.bytes()),
                "what is wrapped anew is the same key"
            );
            let slot = [Slot::Live(slot)];
            self.slots.write_slots(Place::First, number, &slot)?;
            if is_planted(VaultMutant::BothPlacesAtOnce) {
                self.slots.write_slots(Place::Mirror, number, &slot)?;
            }
        }
        Ok(())
    }

    /// Makes the mirror's slots what those of the first place are.
    fn mirror(&self, numbers: std::ops::Range<u64>) -> Result<(), VaultError> {
        for number in numbers {
            let slot = self.slots.read_in(Place::First, number)?;
            if slot != Slot::Damaged && slot != self.slots.read_in(Place::Mirror, number)? {
                self.slots.write_slots(Place::Mirror, number, &[slot])?;
            }
        }
        Ok(())
    }
}
