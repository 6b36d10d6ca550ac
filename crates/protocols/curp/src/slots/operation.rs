//! The steps of a migration as commands of the replicated machine, and their answers, in bytes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::migration::{Group, Has, Migration, SlotRefusal};
use super::ownership::Ownership;
use super::slot::{Slot, SlotRange};

/// What steps, their effects and the state of slots begin with: eleven bytes that are no number of
/// postcard's, which has at most ten, and with which no machine's own bytes begin.
pub(super) const MARK: [u8; 11] = [0xFF; 11];

/// Bytes of keys and values in a piece, and keys looked at for one, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceLimits {
    /// Keys that are looked at, of these slots or not: a piece may have none of them.
    pub keys: u32,
    /// Bytes after which no further key is added.
    pub bytes: u32,
}

impl PieceLimits {
    /// What a master does for one piece between two commands: milliseconds.
    pub const MOST: Self = Self {
        keys: 10_000,
        bytes: 1 << 20,
    };

    /// Within [`PieceLimits::MOST`], and with at least one key.
    #[must_use]
    pub(super) fn bounded(self) -> Self {
        let bounded = Self {
            keys: self.keys.clamp(1, Self::MOST.keys),
            bytes: self.bytes.clamp(1, Self::MOST.bytes),
        };
        assert!(bounded.keys > 0, "a piece goes on by a key at least");
        bounded
    }
}

/// Keys of a run of slots, as the machine inside writes them down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The machine's own.
    #[serde(with = "crate::bytes")]
    pub bytes: Vec<u8>,
    /// The key up to which all are in this piece or those before; nothing when it is the last one.
    pub next: Option<Vec<u8>>,
}

/// A step of a migration, or a question about one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotOperation {
    /// What does the group own?
    Show,
    /// The group, which begins empty, owns none of these slots: that one does.
    Disown {
        /// The slots.
        slots: SlotRange,
        /// Their owner.
        to: Group,
    },
    /// To the source, before anything is done: may it give the slots?
    Check(Migration),
    /// To the target: the slots arrive.
    Take(Migration),
    /// To the source: the slots leave.
    Give(Migration),
    /// To the source: the piece behind this key.
    Read {
        /// Of which migration.
        migration: Migration,
        /// The key.
        after: Option<Vec<u8>>,
        /// How much.
        limits: PieceLimits,
    },
    /// To the target: the piece behind this key.
    Put {
        /// Of which migration.
        migration: Migration,
        /// The key.
        after: Option<Vec<u8>>,
        /// The piece.
        piece: Piece,
    },
    /// To the source, once the target has all: the target may own the slots. It cannot be cancelled any more.
    Release(Migration),
    /// To the target, once the source has released them: it owns the slots.
    Own(Migration),
    /// To the source, once the target owns the slots: it removes keys of them.
    Remove {
        /// Of which migration.
        migration: Migration,
        /// How many keys at once.
        limits: PieceLimits,
    },
    /// To the source, which has not released the slots: it owns them, as if it had never given them.
    Cancel(Migration),
    /// To the target, once the source has cancelled the move: it removes what it has of it.
    Forget {
        /// Of which migration.
        migration: Migration,
        /// How many keys at once.
        limits: PieceLimits,
    },
}

/// The answer to a [`SlotOperation`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotAnswer {
    /// What the group owns.
    Owns(Box<Ownership>),
    /// The step is done, now or before.
    Done,
    /// Keys were removed, and there are more.
    More,
    /// A piece.
    Piece(Piece),
    /// What of their keys the target has.
    Has(Has),
    /// Not done.
    Refused(SlotRefusal),
}

/// Why a command on keys is not executed in a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Misplaced {
    /// Another group is to be asked.
    Moved {
        /// The slot of the first key.
        slot: Slot,
        /// The group.
        to: Group,
    },
    /// It will be executed here, or at another group, once a migration is over.
    TryAgain,
    /// It needs keys of several groups.
    CrossSlot,
}

impl SlotOperation {
    /// Its bytes: a command of the machine.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        marked(self)
    }

    /// Whether a command is a step: it may still be one that cannot be read.
    #[must_use]
    pub(super) fn is_one(command: &[u8]) -> bool {
        command.starts_with(&MARK)
    }

    /// Reads a command; nothing when it is none.
    #[must_use]
    pub fn decode(command: &[u8]) -> Option<Self> {
        unmarked(command)
    }

    /// Whether it changes nothing, whatever the state.
    pub(super) fn reads_only(&self) -> bool {
        matches!(self, Self::Show | Self::Check(_) | Self::Read { .. })
    }

    /// Whether all commands before it have to be synced when it is, and none behind it may be answered
    /// before: it decides for the keys of slots where they are executed.
    pub(super) fn touches_all(&self) -> bool {
        let touches_all = matches!(
            self,
            Self::Disown { .. }
                | Self::Give(_)
                | Self::Own(_)
                | Self::Remove { .. }
                | Self::Cancel(_)
                | Self::Forget { .. }
        );
        assert!(
            !touches_all || !self.reads_only(),
            "a question is in nobody's way"
        );
        touches_all
    }
}

impl SlotAnswer {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        marked(self)
    }

    /// Reads an answer; nothing when it is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        unmarked(bytes)
    }
}

impl Misplaced {
    /// Its bytes: an answer that no machine of keys gives to a command that it has executed, so that who
    /// asked may ask another group without having it executed twice.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        marked(self)
    }

    /// Reads an answer; nothing when the command was executed.
    #[must_use]
    pub fn decode(answer: &[u8]) -> Option<Self> {
        let misplaced = unmarked(answer)?;
        match &misplaced {
            Self::Moved { slot, to } if !slot.is_valid() || !to.is_valid() => None,
            _ => Some(misplaced),
        }
    }
}

/// A value behind the mark.
pub(super) fn marked<T: Serialize>(value: &T) -> Vec<u8> {
    let bytes = postcard::to_stdvec(value);
    assert!(bytes.is_ok(), "steps and answers can be written down");
    [&MARK[..], &bytes.unwrap_or_default()].concat()
}

fn unmarked<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes.strip_prefix(&MARK)?).ok()?;
    rest.is_empty().then_some(value)
}
