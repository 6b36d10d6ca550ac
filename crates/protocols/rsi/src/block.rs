//! A record in memory: its head, and its versions, the newest first.
//!
//! ```text
//! HEAD | GENERATION | KEY | LABEL, LENGTH·SUM for each slot | SUM | value of each slot
//! ```
//!
//! Words of eight bytes, little-endian; the key is its length and as much room as the table's
//! longest takes, or nothing in a table without keys. Who writes holds the lock, writes everything behind HEAD,
//! and sets HEAD after it, which unlocks. Who reads copies the whole block, and the copy may be of
//! different times (reference: READ and WRITE of a fabric meet word by word). So each slot has the
//! sum of its value, and the labels together have a sum as well: a copy whose labels and sum fit
//! together is one that somebody wrote, and its chosen value is whole. A sum for each slot alone
//! would not do: the newest label of after a write beside the second of before it would hide a
//! version.

use manxdb_fabric::{Address, Operation, WORD, WORD_LENGTH};

use crate::version::{Head, Label, Stamp};

/// Sizes of the records of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    versions: usize,
    value: usize,
    /// 0: records have no keys.
    key: usize,
}

/// A layout that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a block keeps {} to {} versions of 1 to {} bytes under keys of at most {} bytes, not \
     {versions} of {value} under {key}",
    Layout::VERSIONS_MIN,
    Layout::VERSIONS_MAX,
    Layout::VALUE_MAX,
    Layout::KEY_MAX
)]
pub struct LayoutError {
    versions: usize,
    value: usize,
    key: usize,
}

/// A copy that is not of one time, or not of a block: it must be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn;

impl Layout {
    /// With one version readers would have to wait for writers.
    pub const VERSIONS_MIN: usize = 2;
    /// More than the paper's tables need.
    pub const VERSIONS_MAX: usize = 16;
    /// A value of the largest layout fits into one operation of the fabric, with all its versions.
    pub const VALUE_MAX: usize = 32 << 10;
    /// Longer than the keys of MySQL's indexes.
    pub const KEY_MAX: usize = 4 << 10;

    /// Blocks without keys, of so many versions with values of at most so many bytes.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub const fn new(versions: usize, value: usize) -> Result<Self, LayoutError> {
        Self::keyed(versions, value, 0)
    }

    /// The same with keys of at most so many bytes.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub const fn keyed(versions: usize, value: usize, key: usize) -> Result<Self, LayoutError> {
        let is_fine = versions >= Self::VERSIONS_MIN
            && versions <= Self::VERSIONS_MAX
            && value >= 1
            && value <= Self::VALUE_MAX
            && key <= Self::KEY_MAX;
        if is_fine {
            Ok(Self {
                versions,
                value,
                key,
            })
        } else {
            Err(LayoutError {
                versions,
                value,
                key,
            })
        }
    }

    /// Versions, bytes of the longest value, bytes of the longest key.
    #[must_use]
    pub const fn sizes(self) -> (usize, usize, usize) {
        (self.versions, self.value, self.key)
    }

    /// Bytes of the longest key.
    #[must_use]
    pub const fn key_max(self) -> usize {
        self.key
    }

    /// Bytes of the longest value.
    #[must_use]
    pub const fn value_max(self) -> usize {
        self.value
    }

    /// Bytes of a slot's value, whole words.
    const fn slot(self) -> usize {
        self.value.next_multiple_of(WORD_LENGTH)
    }

    /// Words of the key: its length, and room for the longest.
    const fn key_words(self) -> usize {
        match self.key {
            0 => 0,
            key => 1 + key.div_ceil(WORD_LENGTH),
        }
    }

    /// Words before the labels: head, generation, key.
    const fn first_label(self) -> usize {
        2 + self.key_words()
    }

    /// Words before the values: those before the labels, two for each slot, sum.
    const fn words(self) -> usize {
        self.first_label() + 2 * self.versions + 1
    }

    /// Bytes of a block; blocks begin at multiples of 64.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.words() * WORD_LENGTH + self.versions * self.slot()
    }

    /// Bytes of its front: all but the value of its oldest version. That one falls off with the
    /// next write, so that who writes a record needs no more, and who reads it seldom does.
    #[must_use]
    pub const fn front(self) -> usize {
        self.bytes() - self.slot()
    }
}

/// What a block holds, apart from its head, as it is in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Block {
    layout: Layout,
    /// As long as the layout says, or as its front: [`assemble`] makes the first, and
    /// [`Block::parse`] takes no others.
    body: Vec<u8>,
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

    /// The same under a key, which is not longer than the layout's: [`crate::find`] sees to it.
    #[must_use]
    pub fn keyed(layout: Layout, generation: u64, key: &[u8]) -> Self {
        assemble(layout, (generation, key), &[], Stamp::NOTHING)
    }

    /// A record whose versions are lost: no snapshot admits any, so that whoever looks for one
    /// hears that it is too old. For a place whose writer died while it wrote; its newest version
    /// comes on top.
    #[must_use]
    pub fn lost(layout: Layout, generation: u64, key: &[u8]) -> Self {
        assemble(layout, (generation, key), &[], Stamp::NEVER)
    }

    /// Whether its oldest value is missing: only the front of it was copied.
    #[must_use]
    pub fn is_front(&self) -> bool {
        self.body.len() < self.layout.bytes() - WORD_LENGTH
    }

    /// What is left of the versions before one whose writer died while it wrote, whether or not it
    /// got as far as the labels: those of which nothing was overwritten. Values lie elsewhere than
    /// their labels, so that labels which fit together say nothing about them.
    #[must_use]
    pub fn before(&self, stamp: Stamp) -> Self {
        let never = Slot::empty(Stamp::NEVER);
        let former = self.slots().filter(|slot| slot.label.stamp != stamp);
        let whole = former.map(|slot| slot.version().map_or(never, |_| slot));
        let whole: Vec<Slot<'_>> = whole.collect();
        assemble(self.layout, self.about(), &whole, Stamp::NEVER)
    }

    /// The block with one more version, and without its oldest. None deletes the record. Values
    /// longer than the layout's are refused where they come in.
    #[must_use]
    pub fn with(&self, stamp: Stamp, value: Option<&[u8]>) -> Self {
        let bytes = value.unwrap_or_default();
        debug_assert!(bytes.len() <= self.layout.value, "checked by the session");
        let is_deleted = value.is_none();
        let newest = Slot {
            label: Label { stamp, is_deleted },
            length: u32::try_from(bytes.len()).unwrap_or(0),
            sum: crc32fast::hash(bytes),
            bytes,
        };
        let mut slots = Vec::with_capacity(1 + self.layout.versions);
        slots.push(newest);
        slots.extend(self.slots());
        assemble(self.layout, self.about(), &slots, Stamp::NEVER)
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

    /// Of the newest version.
    #[must_use]
    pub fn newest(&self) -> Stamp {
        // A layout has versions.
        self.slots()
            .next()
            .map_or(Stamp::NOTHING, |slot| slot.label.stamp)
    }

    /// Writes it whole, and then the head that says so, which unlocks the record.
    #[must_use]
    pub fn install(self, at: Address) -> Operation {
        let word = Head::Free(self.newest()).word();
        Operation::WriteThenSet {
            at: at.plus(WORD),
            bytes: self.body,
            word_at: at.offset,
            word,
        }
    }

    /// All that is behind the head, as it is in memory.
    #[must_use]
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// What a copy of a whole block says, or of its front. Memory that is all zero is a record
    /// nobody has written.
    ///
    /// # Errors
    /// [`Torn`]. Values are looked at when they are chosen.
    pub fn parse(layout: Layout, copy: impl Into<Vec<u8>>) -> Result<(Head, Self), Torn> {
        let mut body = copy.into();
        if body.len() != layout.bytes() && body.len() != layout.front() {
            return Err(Torn);
        }
        let head = *body.first_chunk().ok_or(Torn)?;
        let head = Head::of_word(u64::from_le_bytes(head));
        body.drain(..WORD_LENGTH);
        // Whoever has a lock on it may have died before it wrote anything.
        let may_be_new = matches!(head, Head::Locked(_) | Head::Free(Stamp::NOTHING));
        if may_be_new && body.iter().all(|byte| *byte == 0) {
            return Ok((head, Self::empty(layout, 0)));
        }
        let block = Self { layout, body };
        let sum = block.word(layout.words() - 2);
        let said = block.part(0, (layout.words() - 2) * WORD_LENGTH);
        let is_whole = u64::from(crc32fast::hash(said)) == sum;
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
    fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let labels = self.layout.first_label() - 1;
        let values = (self.layout.words() - 1) * WORD_LENGTH;
        let size = self.layout.slot();
        (0..self.layout.versions).map(move |slot| {
            let [a, b, c, d, sum @ ..] = self.word(labels + 2 * slot + 1).to_le_bytes();
            Slot {
                label: Label::of_word(self.word(labels + 2 * slot)),
                length: u32::from_le_bytes([a, b, c, d]),
                sum: u32::from_le_bytes(sum),
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
        self.body.get(from..from + bytes).unwrap_or_default()
    }
}

/// A block of versions, the newest first; those that are missing are none of this stamp.
fn assemble(
    layout: Layout,
    (generation, key): (u64, &[u8]),
    slots: &[Slot<'_>],
    missing: Stamp,
) -> Block {
    debug_assert!(key.len() <= layout.key, "checked where keys come in");
    let missing = Slot::empty(missing);
    let slots = || {
        let slots = slots.iter().chain(std::iter::repeat(&missing));
        slots.take(layout.versions)
    };
    let mut body = Vec::with_capacity(layout.bytes());
    body.extend(generation.to_le_bytes());
    if layout.key > 0 {
        body.extend((key.len() as u64).to_le_bytes());
        body.extend(key);
        body.resize((layout.first_label() - 1) * WORD_LENGTH, 0);
    }
    for slot in slots() {
        body.extend(slot.label.word().to_le_bytes());
        body.extend(slot.length.to_le_bytes());
        body.extend(slot.sum.to_le_bytes());
    }
    let sum = u64::from(crc32fast::hash(&body));
    body.extend(sum.to_le_bytes());
    for slot in slots() {
        let end = body.len() + layout.slot();
        body.extend(slot.bytes);
        body.resize(end, 0);
    }
    Block { layout, body }
}

impl<'a> Slot<'a> {
    /// No record, from a version on.
    fn empty(stamp: Stamp) -> Self {
        let is_deleted = true;
        Self {
            label: Label { stamp, is_deleted },
            length: 0,
            sum: crc32fast::hash(&[]),
            bytes: &[],
        }
    }

    fn version(self) -> Result<Version<'a>, Torn> {
        let length = usize::try_from(self.length).map_err(|_| Torn)?;
        let value = self.bytes.get(..length).ok_or(Torn)?;
        if crc32fast::hash(value) != self.sum {
            return Err(Torn);
        }
        Ok(Version {
            stamp: self.label.stamp,
            value: (!self.label.is_deleted).then_some(value),
        })
    }
}

#[cfg(test)]
mod tests;
