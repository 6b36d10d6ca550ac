//! A record in memory: its head, and its versions, the newest first.
//!
//! ```text
//! HEAD | GENERATION | KEY | LABEL, LENGTH·SUM for each slot | OLDER | SUM | value of each slot
//! ```
//!
//! Words of eight bytes, little-endian; the key is its length and as much room as the table's
//! longest takes, or nothing in a table without keys; OLDER is where the version lies that has left
//! the record last ([`crate::overflow`]), in a table that keeps such versions. Who writes holds the lock, writes everything behind HEAD,
//! and sets HEAD after it, which unlocks. Who reads copies the whole block, and the copy may be of
//! different times (reference: READ and WRITE of a fabric meet word by word). So each slot has the
//! sum of its value, and the labels together have a sum as well: a copy whose labels and sum fit
//! together is one that somebody wrote, and its chosen value is whole. A sum for each slot alone
//! would not do: the newest label of after a write beside the second of before it would hide a
//! version.

mod layout;

use std::hash::{Hash, Hasher};
use std::iter;

use manxdb_fabric::{Address, Operation, WORD, WORD_LENGTH};
use twox_hash::XxHash3_64;

pub use self::layout::{Layout, LayoutError};
use crate::record_address::RecordAddress;
use crate::version::{Head, Label, Stamp};

/// A copy that is not of one time, or not of a block: it must be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn;

/// What a block holds, apart from its head, as it is in memory.
#[derive(Debug, Clone)]
pub struct Block {
    layout: Layout,
    /// As long as the layout says, or as its front: [`Block::parse`] takes no others. Or empty, before
    /// anybody has written.
    body: Vec<u8>,
    /// Where in it that begins: in a copy behind the head, which it would cost to move away.
    start: usize,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        (self.layout, self.held()) == (other.layout, other.held())
    }
}

impl Eq for Block {}

impl Hash for Block {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.layout, self.held()).hash(state);
    }
}

/// One version, as it lies in a block or is to be put into one.
#[derive(Debug, Clone, Copy)]
struct Slot<'a> {
    label: Label,
    length: u32,
    sum: u32,
    /// At most as long as the layout's slot.
    bytes: &'a [u8],
}

/// A version that leaves its record for [`crate::overflow`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving<'a> {
    pub label: Label,
    pub length: u32,
    pub sum: u32,
    pub value: &'a [u8],
    /// Where the one is that left before it.
    pub before: Option<RecordAddress>,
}

/// A version as a reader gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<'a> {
    /// Which.
    pub stamp: Stamp,
    /// None: the record was deleted, or never was.
    pub value: Option<&'a [u8]>,
}

impl Block {
    /// A record without a key that nobody has written yet.
    #[must_use]
    pub fn empty(layout: Layout, generation: u64) -> Self {
        Self::keyed(layout, generation, &[])
    }

    /// The same, of which nothing is held: whoever has the place to themselves needs no more to write it.
    pub(crate) fn unwritten(layout: Layout) -> Self {
        Self {
            layout,
            body: Vec::new(),
            start: 0,
        }
    }

    /// The same under a key, which is not longer than the layout's: [`crate::find`] sees to it.
    #[must_use]
    pub fn keyed(layout: Layout, generation: u64, key: &[u8]) -> Self {
        let none = iter::empty();
        assemble(layout, (generation, key), none, Stamp::NOTHING, None)
    }

    /// A record whose versions are lost: no snapshot admits any, so that whoever looks for one
    /// hears that it is too old. For a place whose writer died while it wrote; its newest version
    /// comes on top.
    #[must_use]
    pub fn lost(layout: Layout, generation: u64, key: &[u8]) -> Self {
        let none = iter::empty();
        assemble(layout, (generation, key), none, Stamp::NEVER, None)
    }

    /// Whether its oldest value is missing: only the front of it was copied.
    #[must_use]
    pub fn is_front(&self) -> bool {
        self.held().len() < self.layout.bytes() - WORD_LENGTH
    }

    /// What is left of the versions before one whose writer died while it wrote, whether or not it
    /// got as far as the labels: those of which nothing was overwritten. Values lie elsewhere than
    /// their labels, so that labels which fit together say nothing about them. Behind one that is
    /// lost all are given up: a snapshot that is to see that one would get an older one for it.
    #[must_use]
    pub fn before(&self, stamp: Stamp) -> Self {
        let former = self.slots().filter(|slot| slot.label.stamp != stamp);
        let whole = former.map_while(|slot| slot.whole().is_ok().then_some(slot));
        let whole: Vec<Slot<'_>> = whole.collect();
        assemble(
            self.layout,
            self.about(),
            whole.iter().copied(),
            Stamp::NEVER,
            None,
        )
    }

    /// The block with one more version, and without its oldest. None deletes the record. Values
    /// longer than the layout's are refused where they come in.
    #[must_use]
    pub fn with(&self, stamp: Stamp, value: Option<&[u8]>) -> Self {
        self.with_older(stamp, value, None)
    }

    /// The same where its oldest version is kept elsewhere, at this place. If it is not, nor are
    /// those that have left the record before it: nobody is to take one of them for it.
    pub(crate) fn with_older(
        &self,
        stamp: Stamp,
        value: Option<&[u8]>,
        older: Option<RecordAddress>,
    ) -> Self {
        let bytes = value.unwrap_or_default();
        assert!(
            bytes.len() <= self.layout.value,
            "a value fits into its slot: {} bytes of {}",
            bytes.len(),
            self.layout.value
        );
        assert!(
            self.held().is_empty() || self.held().len() + WORD_LENGTH >= self.layout.front(),
            "a version is put on a block, on a front, or on nothing"
        );
        let is_deleted = value.is_none();
        let newest = Slot {
            label: Label { stamp, is_deleted },
            length: u32::try_from(bytes.len()).unwrap_or(0),
            sum: sum_of(bytes),
            bytes,
        };
        let layout = self.layout;
        let (labels, others) = (layout.labels(), layout.versions - 1);
        let mut body = Vec::with_capacity(layout.bytes());
        body.extend_from_slice(self.part(0, labels));
        body.resize(labels, 0);
        body.extend_from_slice(&newest.words());
        body.extend_from_slice(self.part(labels, others * LABEL));
        while body.len() < labels + layout.versions * LABEL {
            body.extend_from_slice(&Slot::empty(Stamp::NOTHING).words());
        }
        if layout.has_overflow {
            body.extend_from_slice(&older.map_or(0, RecordAddress::word).to_le_bytes());
        }
        body.extend_from_slice(&u64::from(sum_of(&body)).to_le_bytes());
        body.extend_from_slice(bytes);
        body.resize(layout.values() + layout.slot(), 0);
        body.extend_from_slice(self.part(layout.values(), others * layout.slot()));
        body.resize(layout.bytes() - WORD_LENGTH, 0);
        assert_eq!(
            body.len() % WORD_LENGTH,
            0,
            "a block is made of words: {} bytes",
            body.len()
        );
        let start = 0;
        Self {
            layout,
            body,
            start,
        }
    }

    /// Where the version is that has left the record last.
    pub(crate) fn older(&self) -> Option<RecordAddress> {
        let is_there = self.layout.has_overflow;
        let word = is_there.then(|| self.word(self.layout.words() - 3))?;
        RecordAddress::parse(word)
    }

    /// Of the version that the next one will push out; none: nobody can want it.
    pub(crate) fn oldest_label(&self) -> Option<Label> {
        let label = self.slots().last()?.label;
        let is_written = label.stamp != Stamp::NOTHING && label.stamp != Stamp::NEVER;
        is_written.then_some(label)
    }

    /// The version that the next one pushes out, whose value is in this block or in a copy of what a
    /// front lacks; none: it is not there. Whether it is whole its sum says to whoever reads it.
    pub(crate) fn leaving<'a>(&'a self, beyond: &'a [u8]) -> Option<Leaving<'a>> {
        let slot = self.slots().last()?;
        let bytes = if self.is_front() { beyond } else { slot.bytes };
        Some(Leaving {
            label: slot.label,
            length: slot.length,
            sum: slot.sum,
            value: bytes.get(..usize::try_from(slot.length).ok()?)?,
            before: self.older(),
        })
    }

    /// How often the place was given to another record.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.word(0)
    }

    /// Under which the record is found; empty in a table without keys.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.layout.key == 0 {
            return &[];
        }
        // Both numbers are checked by `parse`.
        let length = usize::try_from(self.word(1)).unwrap_or(0);
        self.part(2 * WORD_LENGTH, length)
    }

    /// Generation and key.
    fn about(&self) -> (u64, &[u8]) {
        (self.generation(), self.key())
    }

    /// The version that a snapshot admits first; none if all that are left are too new.
    ///
    /// # Errors
    /// [`Torn`]: its value is not whole, or not in a front.
    pub fn visible(&self, admits: impl Fn(Stamp) -> bool) -> Result<Option<Version<'_>>, Torn> {
        let mut slots = self.slots();
        let slot = slots.find(|slot| admits(slot.label.stamp));
        slot.map(Slot::version).transpose()
    }

    /// The oldest version that is left of those that somebody wrote.
    ///
    /// # Errors
    /// [`Torn`]: its value is not whole, or not in a front.
    pub fn oldest(&self) -> Result<Option<Version<'_>>, Torn> {
        let is_written = |slot: &Slot<'_>| {
            let stamp = slot.label.stamp;
            stamp != Stamp::NOTHING && stamp != Stamp::NEVER
        };
        let slot = self.slots().filter(is_written).last();
        slot.map(Slot::version).transpose()
    }

    /// The first version since the record was deleted last, or that deletion if there is none.
    ///
    /// # Errors
    /// [`Torn`]: its value is not whole, or not in a front.
    pub(crate) fn reborn(&self) -> Result<Option<Version<'_>>, Torn> {
        let since = self.slots().take_while(|slot| !slot.label.is_deleted);
        let slot = since.last().or_else(|| self.slots().next());
        slot.map(Slot::version).transpose()
    }

    /// The value of a version that was seen to be whole; none: there is no record.
    pub(crate) fn value(&self, stamp: Stamp) -> Option<&[u8]> {
        let slot = self.slots().find(|slot| slot.label.stamp == stamp)?;
        let length = usize::try_from(slot.length).ok()?;
        let value = slot.bytes.get(..length)?;
        (!slot.label.is_deleted).then_some(value)
    }

    /// Of the newest version.
    #[must_use]
    pub fn newest(&self) -> Stamp {
        // A layout has versions.
        self.slots()
            .next()
            .map_or(Stamp::NOTHING, |slot| slot.label.stamp)
    }

    /// Writes all that it holds, and then the head that says so, which unlocks the record.
    #[must_use]
    pub fn install(self, at: Address) -> Operation {
        assert_eq!(
            self.held().len() + WORD_LENGTH,
            self.layout.bytes(),
            "a record is installed whole, not by its front"
        );
        let word = Head::Free(self.newest()).word();
        Operation::WriteThenSet {
            at: at.plus(WORD),
            bytes: self.into_body(),
            word_at: at.offset,
            word,
        }
    }

    /// The same where memory is all zero, which it stays behind the last value.
    pub(crate) fn install_fresh(self, at: Address) -> Operation {
        let slots = (0..).zip(self.slots()).filter(|(_, slot)| slot.length > 0);
        let end = |(place, slot): (usize, Slot<'_>)| {
            // No longer than a slot, or it would not be there.
            let length = usize::try_from(slot.length).unwrap_or(0);
            place * self.layout.slot() + length.next_multiple_of(WORD_LENGTH)
        };
        let used = self.layout.values() + slots.last().map_or(0, end);
        let mut operation = self.install(at);
        if let Operation::WriteThenSet { bytes, .. } = &mut operation {
            bytes.truncate(used);
        }
        operation
    }

    /// All that is behind the head, as it is in memory.
    #[must_use]
    pub fn into_body(mut self) -> Vec<u8> {
        self.body.drain(..self.start);
        self.body
    }

    /// What a copy of a whole block says, or of its front. Memory that is all zero is a record
    /// nobody has written.
    ///
    /// # Errors
    /// [`Torn`]. Values are looked at when they are chosen.
    pub fn parse(layout: Layout, copy: impl Into<Vec<u8>>) -> Result<(Head, Self), Torn> {
        let body = copy.into();
        if body.len() != layout.bytes() && body.len() != layout.front() {
            return Err(Torn);
        }
        let head = *body.first_chunk().ok_or(Torn)?;
        let head = Head::of_word(u64::from_le_bytes(head));
        let start = WORD_LENGTH;
        let block = Self {
            layout,
            body,
            start,
        };
        // Whoever has a lock on it may have died before it wrote anything.
        let may_be_new = matches!(head, Head::Locked(_) | Head::Free(Stamp::NOTHING));
        if may_be_new && block.held().iter().all(|byte| *byte == 0) {
            return Ok((head, Self::empty(layout, 0)));
        }
        let sum = block.word(layout.words() - 2);
        let said = block.part(0, (layout.words() - 2) * WORD_LENGTH);
        let is_whole = u64::from(sum_of(said)) == sum;
        let has_key = layout.key == 0 || block.word(1) <= layout.key as u64;
        let newest = block.newest();
        let fits = match head {
            Head::Free(stamp) => stamp == newest,
            // Its holder may have written its version already, and not unlocked yet.
            Head::Locked(_) => true,
        };
        if is_whole && has_key && fits {
            Ok((head, block))
        } else {
            Err(Torn)
        }
    }

    /// The newest first.
    fn slots(&self) -> impl Iterator<Item = Slot<'_>> + Clone {
        let (values, size) = (self.layout.values(), self.layout.slot());
        let labels = self.part(self.layout.labels(), self.layout.versions * LABEL);
        let (labels, _) = labels.as_chunks();
        (0..).zip(labels).map(move |(slot, label)| {
            let words = u128::from_le_bytes(*label);
            #[allow(clippy::cast_possible_truncation)] // each part is cut out
            Slot {
                label: Label::of_word(words as u64),
                length: (words >> 64) as u32,
                sum: (words >> 96) as u32,
                bytes: self.part(values + slot * size, size),
            }
        })
    }

    /// A word by its place behind the head.
    fn word(&self, place: usize) -> u64 {
        let bytes = self.part(place * WORD_LENGTH, WORD_LENGTH);
        bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word))
    }

    fn part(&self, from: usize, bytes: usize) -> &[u8] {
        self.held().get(from..from + bytes).unwrap_or_default()
    }

    fn held(&self) -> &[u8] {
        self.body.get(self.start..).unwrap_or_default()
    }
}

/// Bytes that a block has for a slot beside its value.
const LABEL: usize = 2 * WORD_LENGTH;

/// [`sum_of`] no bytes.
const SUM_OF_NOTHING: u32 = 0x38d3_94c2;

/// Of bytes that may be of two times.
pub(crate) fn sum_of(bytes: &[u8]) -> u32 {
    let [a, b, c, d, ..] = XxHash3_64::oneshot(bytes).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A block of versions, the newest first; those that are missing are none of this stamp; `older` is
/// where the one before them is.
fn assemble<'a>(
    layout: Layout,
    (generation, key): (u64, &[u8]),
    slots: impl Iterator<Item = Slot<'a>> + Clone,
    missing: Stamp,
    older: Option<RecordAddress>,
) -> Block {
    assert!(
        key.len() <= layout.key,
        "a key fits into its layout: {} bytes of {}",
        key.len(),
        layout.key
    );
    let slots = slots.chain(iter::repeat(Slot::empty(missing)));
    let slots = || slots.clone().take(layout.versions);
    let mut body = Vec::with_capacity(layout.bytes());
    body.extend(generation.to_le_bytes());
    if layout.key > 0 {
        body.extend((key.len() as u64).to_le_bytes());
        body.extend(key);
        body.resize(layout.labels(), 0);
    }
    for slot in slots() {
        body.extend(slot.words());
    }
    if layout.has_overflow {
        body.extend(older.map_or(0, RecordAddress::word).to_le_bytes());
    }
    let sum = u64::from(sum_of(&body));
    body.extend(sum.to_le_bytes());
    for slot in slots() {
        let end = body.len() + layout.slot();
        body.extend(slot.bytes);
        assert!(
            body.len() <= end,
            "a value does not reach into the next slot"
        );
        body.resize(end, 0);
    }
    assert_eq!(
        body.len() + WORD_LENGTH,
        layout.bytes(),
        "a block is as long as its layout says"
    );
    let start = 0;
    Block {
        layout,
        body,
        start,
    }
}

impl<'a> Slot<'a> {
    /// No record, from a version on.
    fn empty(stamp: Stamp) -> Self {
        let is_deleted = true;
        Self {
            label: Label { stamp, is_deleted },
            length: 0,
            sum: SUM_OF_NOTHING,
            bytes: &[],
        }
    }

    /// What its block says of it.
    fn words(&self) -> [u8; LABEL] {
        let about = u64::from(self.length) | u64::from(self.sum) << 32;
        let words = u128::from(self.label.word()) | u128::from(about) << 64;
        words.to_le_bytes()
    }

    /// What it holds, which is nothing for a record that is not there.
    fn whole(self) -> Result<&'a [u8], Torn> {
        let length = usize::try_from(self.length).map_err(|_| Torn)?;
        let value = self.bytes.get(..length).ok_or(Torn)?;
        if sum_of(value) == self.sum {
            Ok(value)
        } else {
            Err(Torn)
        }
    }

    fn version(self) -> Result<Version<'a>, Torn> {
        let value = self.whole()?;
        Ok(Version {
            stamp: self.label.stamp,
            value: (!self.label.is_deleted).then_some(value),
        })
    }
}

#[cfg(test)]
mod tests;
