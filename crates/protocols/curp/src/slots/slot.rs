//! Hash slots, as Redis Cluster numbers them, and runs of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many hash slots there are.
pub const SLOTS: u16 = 16_384;

/// A hash slot: 0 to 16,383.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot(u16);

impl Slot {
    /// The slot of a key: of what is between its first `{` and the next `}`, if there is something, or else
    /// of all its bytes (Redis Cluster specification, "hash tags").
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        let slot = crc16(tag(key)) % SLOTS;
        assert!(slot < SLOTS, "a slot is one of those there are");
        Self(slot)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// Whether it is one of those there are: one that came over a network need not be.
    pub(super) fn is_valid(self) -> bool {
        self.0 < SLOTS
    }
}

/// What of a key is hashed.
fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else {
        return key;
    };
    let behind = &key[open + 1..];
    match behind.iter().position(|byte| *byte == b'}') {
        Some(length) if length > 0 => &behind[..length],
        _ => key,
    }
}

/// CRC-16/XMODEM: polynomial 0x1021, beginning with 0.
fn crc16(bytes: &[u8]) -> u16 {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc16Xmodem, bytes);
    u16::try_from(sum & 0xFFFF).unwrap_or(0)
}

/// A run of slots, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotRange {
    first: u16,
    last: u16,
}

/// Why text is no run of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run of slots is one number or FIRST-LAST, from 0 to 16383, as 0-99 is")]
pub struct NoSlotRange;

impl SlotRange {
    /// All slots.
    pub const ALL: Self = Self {
        first: 0,
        last: SLOTS - 1,
    };

    /// From `first` to `last`, both within; nothing when that is no run.
    #[must_use]
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first <= last && last < SLOTS).then_some(Self { first, last })
    }

    /// Its first slot's number.
    #[must_use]
    pub fn first(self) -> u16 {
        self.first
    }

    /// Its last slot's number.
    #[must_use]
    pub fn last(self) -> u16 {
        self.last
    }

    /// Whether a slot is in it.
    #[must_use]
    pub fn has(self, slot: Slot) -> bool {
        (self.first..=self.last).contains(&slot.0)
    }

    /// Whether some slot is in both.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether it is a run within all slots: one that came over a network or from a disk need not be.
    #[must_use]
    pub fn is_valid(self) -> bool {
        Self::new(self.first, self.last) == Some(self)
    }

    /// What of it is before and behind `cut`.
    pub(super) fn without(self, cut: Self) -> [Option<Self>; 2] {
        assert!(cut.is_valid(), "a run was looked at when it came in");
        if !self.meets(cut) {
            return [Some(self), None];
        }
        let before = cut.first.checked_sub(1);
        let before = before.and_then(|last| Self::new(self.first, last));
        let parts = [before, Self::new(cut.last + 1, self.last)];
        let is_apart = |part: &Self| part.is_valid() && !part.meets(cut);
        assert!(
            parts.iter().flatten().all(is_apart),
            "what is left is outside of the cut"
        );
        parts
    }
}

impl fmt::Display for SlotRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

impl FromStr for SlotRange {
    type Err = NoSlotRange;

    fn from_str(text: &str) -> Result<Self, NoSlotRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.parse().map_err(|_| NoSlotRange);
        Self::new(number(first)?, number(last)?).ok_or(NoSlotRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        // The specification's check value, and what CLUSTER KEYSLOT of Redis answers.
        assert_eq!(crc16(b"123456789"), 0x31C3);
        let slots = [
            (&b""[..], 0),
            (b"foo", 12_182),
            (b"somekey", 11_058),
            (b"foo{hash_tag}", 2_515),
            (b"bar{hash_tag}", 2_515),
        ];
        for (key, slot) in slots {
            assert_eq!(Slot::of(key).number(), slot, "{key:?}");
        }
    }

    #[test]
    fn a_tag_is_what_is_between_the_first_braces() {
        assert_eq!(tag(b"{user1000}.following"), b"user1000");
        assert_eq!(tag(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(tag(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(tag(b"foo{bar}{zap}"), b"bar");
        assert_eq!(tag(b"foo{bar"), b"foo{bar");
    }

    #[test]
    fn a_run_is_read_and_cut() {
        let run = |text: &str| text.parse::<SlotRange>().unwrap();
        assert_eq!(run("7").to_string(), "7-7");
        assert_eq!(run("0-16383"), SlotRange::ALL);
        for wrong in ["", "-", "9-8", "0-16384", "a-b", "1-2-3"] {
            assert_eq!(wrong.parse::<SlotRange>(), Err(NoSlotRange), "{wrong}");
        }
        let all = SlotRange::ALL;
        assert_eq!(
            all.without(run("5-9")),
            [Some(run("0-4")), Some(run("10-16383"))]
        );
        assert_eq!(run("5-9").without(all), [None, None]);
        assert_eq!(run("5-9").without(run("0-6")), [None, Some(run("7-9"))]);
        assert_eq!(run("5-9").without(run("10")), [Some(run("5-9")), None]);
    }
}
