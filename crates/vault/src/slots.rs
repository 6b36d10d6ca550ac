//! Slots and headers in both places: what is written, in which order, and what is read when one is
//! damaged.

use crate::disk::{Disk, Place};
use crate::error::VaultError;
use crate::header::{HEADER_BYTES, HEADER_STRIDE, Header, ReadHeader};
use crate::mutants::{VaultMutant, is_planted};
use crate::slot::{SLOT_BYTES, Slot};

/// Where slots begin: behind both headers.
pub(crate) const SLOTS_AT: u64 = 2 * HEADER_STRIDE;

/// The two files.
pub(crate) struct Slots {
    disk: Box<dyn Disk>,
}

fn offset(number: u64) -> u64 {
    assert!(number < 1 << 40, "a slot number has 40 bits");
    SLOTS_AT + number * SLOT_BYTES as u64
}

impl Slots {
    pub(crate) fn new(disk: Box<dyn Disk>) -> Self {
        Self { disk }
    }

    /// The newest header, brought into the place that lacks it; `None` where no vault was made.
    pub(crate) fn open(&self) -> Result<Option<Header>, VaultError> {
        let found = [
            self.header_of(Place::First)?,
            self.header_of(Place::Mirror)?,
        ];
        let [first, mirror] = found;
        let newest = match (first, mirror) {
            (None, None) => {
                let has_slots =
                    self.length(Place::First)? > SLOTS_AT || self.length(Place::Mirror)? > SLOTS_AT;
                if has_slots {
                    return Err(VaultError::Damaged("the vault's header".into()));
                }
                return Ok(None);
            }
            (Some(first), Some(mirror)) if first.vault != mirror.vault => {
                return Err(VaultError::NotOfOneVault);
            }
            (Some(first), Some(mirror)) if mirror.sequence > first.sequence => mirror,
            (Some(header), _) | (None, Some(header)) => header,
        };
        for (place, header) in Place::BOTH.into_iter().zip(found) {
            if header.is_none() && self.length(place)? <= SLOTS_AT {
                self.copy_to(place)?;
            }
            if header != Some(newest) {
                self.write_header_to(place, &newest)?;
            }
        }
        Ok(Some(newest))
    }

    fn length(&self, place: Place) -> Result<u64, VaultError> {
        let length = self.disk.length(place);
        length.map_err(VaultError::io(format!("{}: length", place.name())))
    }

    fn header_of(&self, place: Place) -> Result<Option<Header>, VaultError> {
        let mut newest: Option<Header> = None;
        for offset in [0, HEADER_STRIDE] {
            let mut bytes = [0; HEADER_BYTES];
            self.read(place, offset, &mut bytes)?;
            match Header::decode(&bytes) {
                ReadHeader::Valid(header) if header.offset() == offset => {
                    if newest.is_none_or(|newest| newest.sequence < header.sequence) {
                        newest = Some(header);
                    }
                }
                ReadHeader::Other(format) => return Err(VaultError::Format(format)),
                ReadHeader::Valid(_) | ReadHeader::Nothing => {}
            }
        }
        Ok(newest)
    }

    /// Fills a place that is empty with the slots of the other.
    fn copy_to(&self, place: Place) -> Result<(), VaultError> {
        let from = match place {
            Place::First => Place::Mirror,
            Place::Mirror => Place::First,
        };
        assert_ne!(place, from, "a place is filled from the other one");
        let end = self.length(from)?;
        let mut at = SLOTS_AT;
        let mut bytes = vec![0; 1 << 16];
        while at < end {
            let count = self.read(from, at, &mut bytes)?;
            assert!(count > 0, "there are bytes before the end of a file");
            self.write(place, at, &bytes[..count])?;
            at += count as u64;
        }
        assert!(
            end <= SLOTS_AT || self.length(place)? >= end,
            "all slots are copied"
        );
        self.sync(place)
    }

    /// Writes a header into both places, one after the other.
    pub(crate) fn write_header(&self, header: &Header) -> Result<(), VaultError> {
        Place::BOTH
            .into_iter()
            .try_for_each(|place| self.write_header_to(place, header))
    }

    fn write_header_to(&self, place: Place, header: &Header) -> Result<(), VaultError> {
        self.write(place, header.offset(), &header.encode())?;
        self.sync(place)
    }

    /// Slots that there are, or were about to be.
    pub(crate) fn count(&self) -> Result<u64, VaultError> {
        let longest = self.length(Place::First)?.max(self.length(Place::Mirror)?);
        let bytes = longest.saturating_sub(SLOTS_AT);
        Ok(bytes.div_ceil(SLOT_BYTES as u64))
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> Result<usize, VaultError> {
        let read = self.disk.read(place, offset, bytes);
        read.map_err(VaultError::io(format!("{}: read", place.name())))
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> Result<(), VaultError> {
        let written = self.disk.write(place, offset, bytes);
        written.map_err(VaultError::io(format!("{}: write", place.name())))
    }

    /// Waits until what was written to a place is on disk.
    pub(crate) fn sync(&self, place: Place) -> Result<(), VaultError> {
        if is_planted(VaultMutant::SkippedSync) {
            return Ok(());
        }
        let synced = self.disk.sync(place);
        synced.map_err(VaultError::io(format!("{}: sync", place.name())))
    }

    /// What a slot says in one place.
    pub(crate) fn read_in(&self, place: Place, number: u64) -> Result<Slot, VaultError> {
        let mut bytes = [0; SLOT_BYTES];
        let count = self.read(place, offset(number), &mut bytes)?;
        if count < SLOT_BYTES {
            return Ok(Slot::Damaged);
        }
        Ok(Slot::decode(&bytes, number))
    }

    /// What a slot says: in the first place, or where that is damaged, in the mirror. What the operating
    /// system cannot read of the first place counts as damaged.
    pub(crate) fn read_slot(&self, number: u64) -> Result<Slot, VaultError> {
        match self.read_in(Place::First, number) {
            Ok(Slot::Damaged) | Err(_) => self.read_in(Place::Mirror, number),
            whole => whole,
        }
    }

    /// Overwrites slots that follow each other, from `first` on. Not on disk yet.
    pub(crate) fn write_slots(
        &self,
        place: Place,
        first: u64,
        slots: &[Slot],
    ) -> Result<(), VaultError> {
        assert!(!slots.is_empty(), "there is something to write");
        let mut bytes = Vec::with_capacity(slots.len() * SLOT_BYTES);
        for (number, slot) in (first..).zip(slots) {
            let encoded = slot.encode();
            assert_eq!(
                &Slot::decode(&encoded, number),
                slot,
                "a slot that is written can be read, at its own place"
            );
            bytes.extend_from_slice(&encoded);
        }
        assert_eq!(bytes.len() % SLOT_BYTES, 0, "slots are written whole");
        self.write(place, offset(first), &bytes)
    }
}
