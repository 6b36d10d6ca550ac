//! A migration by name, how far a group is in it, and why a step of it is refused.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::slot::SlotRange;

/// Bytes of a group's name.
const GROUP_BYTES_MAX: usize = 255;

/// A group of servers, named by the address where its Redis clients connect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Group(String);

impl Group {
    /// The group that a name names; nothing when it is none: 1 to 255 bytes, all of them visible ASCII, so
    /// that it can stand in an answer.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let group = Self(name.to_owned());
        group.is_valid().then_some(group)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    pub(super) fn is_valid(&self) -> bool {
        let length = self.0.len();
        length > 0
            && length <= GROUP_BYTES_MAX
            && self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The move of a run of slots from one group to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// Larger than that of any migration which either group took part in before.
    pub number: u64,
    /// What moves.
    pub slots: SlotRange,
    /// The group that owns them before.
    pub from: Group,
    /// The group that owns them afterwards.
    pub to: Group,
}

impl Migration {
    pub(super) fn is_valid(&self) -> bool {
        let groups = self.from.is_valid() && self.to.is_valid() && self.from != self.to;
        // The last number is none, so that another migration can follow each.
        groups && self.slots.is_valid() && (1..u64::MAX).contains(&self.number)
    }
}

/// Slots that a group gives away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// Of which migration.
    pub migration: Migration,
    /// The key up to which their keys are removed here; nothing while all are there.
    pub removed: Option<Vec<u8>>,
    /// Whether the target, which has all of them, may own them: from here on it is too late to cancel.
    pub is_released: bool,
}

/// A migration that is over at a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Which.
    pub migration: Migration,
    /// Whether it was cancelled, so that the source owns the slots, or the target does.
    pub is_cancelled: bool,
}

/// Slots on their way to a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arriving {
    /// Of which migration.
    pub migration: Migration,
    /// Which of their keys are here.
    pub has: Has,
}

/// Which keys of a migration a target has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Has {
    /// All up to this one; nothing before the first piece.
    UpTo(Option<Vec<u8>>),
    /// All there are.
    All,
    /// Those behind this one, and fewer and fewer: the migration was cancelled.
    Behind(Vec<u8>),
}

/// Why a step of a migration is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SlotRefusal {
    /// A group takes part in another migration.
    #[error(
        "slots {} are on their way from {} to {}: go on with that move first",
        .0.slots, .0.from, .0.to
    )]
    Busy(Migration),
    /// It took part in a later one.
    #[error("this move is older than the last one that the group took part in")]
    Old,
    /// The source does not own all of the slots.
    #[error("the source does not own all of these slots")]
    NotOwned,
    /// The target owns some of the slots.
    #[error(
        "the target owns some of these slots: a group that begins empty has to give its slots up first"
    )]
    NotAway,
    /// The group does not take part in that migration, or is past the step.
    #[error("the group is not at this step of this move")]
    NotAtStep,
    /// The target has not all pieces.
    #[error("the target has not all keys of these slots yet")]
    Incomplete,
    /// A key is larger than one command may write.
    #[error("a key of these slots is too large to be moved: it takes {bytes} bytes of {most}")]
    TooLarge {
        /// Bytes of the key.
        bytes: u64,
        /// Bytes that a key may have.
        most: u64,
    },
    /// The target is full.
    #[error("the target has no memory left")]
    Full,
    /// A group that gives up slots has keys in them.
    #[error("the group has {0} keys in these slots, and may not give them up without moving them")]
    HasKeys(u64),
    /// It was cancelled.
    #[error(
        "this move was cancelled: manxdb cluster cancel-move lets the target forget what it has of it"
    )]
    Cancelled,
    /// The target owns the slots, or is about to.
    #[error(
        "it is too late to cancel this move, as the target has all keys: go on with manxdb cluster \
         move-slots, and move the slots back"
    )]
    Released,
    /// Bytes that are no such step.
    #[error("this step cannot be read: are the groups of another version?")]
    Unreadable,
}
