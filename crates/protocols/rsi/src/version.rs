//! Who wrote what: threads, their sequence numbers, and the words that are made of both.

use std::fmt;

/// A thread that commits: one transaction at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u16);

impl ThreadId {
    /// Threads that there can be.
    pub const COUNT: u16 = 1 << 15;

    /// The thread of number 0.
    pub const FIRST: Self = Self(0);

    /// A thread by its number; none if it is not below [`ThreadId::COUNT`].
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number, and its place in the vector.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A version: the thread that wrote it, and the transaction's ordinal among that thread's. 0 is what
/// memory held before the first write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Who.
    pub thread: ThreadId,
    /// Counted from 1, below [`Stamp::SEQUENCE_MAX`].
    pub sequence: u64,
}

impl Stamp {
    /// At a million transactions a second a thread has this many in nine years.
    pub const SEQUENCE_MAX: u64 = (1 << 48) - 1;

    /// What memory held before anybody wrote.
    pub const NOTHING: Self = Self {
        thread: ThreadId(0),
        sequence: 0,
    };

    /// What no thread ever writes, and no snapshot admits.
    pub(crate) const NEVER: Self = Self {
        thread: ThreadId(ThreadId::COUNT - 1),
        sequence: Self::SEQUENCE_MAX,
    };

    const fn bits(self) -> u64 {
        assert!(
            self.sequence <= Self::SEQUENCE_MAX,
            "a sequence does not reach into the thread's bits"
        );
        (self.thread.0 as u64) << 48 | self.sequence
    }

    const fn of_bits(bits: u64) -> Self {
        Self {
            thread: ThreadId((bits >> 48) as u16 & (ThreadId::COUNT - 1)),
            sequence: bits & Self::SEQUENCE_MAX,
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.thread.0, self.sequence)
    }
}

/// The first bit of a word says what the rest means.
const MARK: u64 = 1 << 63;
const _: () = assert!(
    ThreadId::COUNT.is_power_of_two() && Stamp::NEVER.bits() < MARK,
    "no stamp reaches into the mark"
);
const _: () = assert!(
    Stamp::NOTHING.bits() == 0,
    "memory that nobody has written says that nobody has written"
);

/// The word of a block that is swapped: the only one that two clients may write at a time.
///
/// Unlocked it names the newest version, locked the transaction that holds the lock, so that one
/// swap validates, locks and says whose lock it is; the newest version is in the block (the paper's
/// word has a lock bit and no owner).
///
/// A transaction is published when it has unlocked everything, and a dead thread's last number is
/// published when what it had logged is installed ([`crate::recover`]). So a lock of a transaction
/// that a snapshot admits is nobody's: its owner died before it wrote anything under it, and the
/// number never comes again, whoever has the thread's place now. Such a lock is no obstacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Head {
    /// Nobody writes. The newest version is this one.
    Free(Stamp),
    /// Only this transaction's thread writes.
    Locked(Stamp),
}

impl Head {
    /// As it is in memory.
    #[must_use]
    pub const fn word(self) -> u64 {
        match self {
            Self::Free(stamp) => stamp.bits(),
            Self::Locked(holder) => MARK | holder.bits(),
        }
    }

    /// What a word means.
    #[must_use]
    pub const fn of_word(word: u64) -> Self {
        let stamp = Stamp::of_bits(word);
        if word & MARK == 0 {
            Self::Free(stamp)
        } else {
            Self::Locked(stamp)
        }
    }
}

/// What a slot says of the version in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label {
    /// Which version.
    pub stamp: Stamp,
    /// From it on there is no record.
    pub is_deleted: bool,
}

impl Label {
    /// As it is in memory.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.stamp.bits() | if self.is_deleted { MARK } else { 0 }
    }

    /// What a word means.
    #[must_use]
    pub const fn of_word(word: u64) -> Self {
        Self {
            stamp: Stamp::of_bits(word),
            is_deleted: word & MARK != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_word_is_a_head_and_a_label(word: u64) {
            prop_assert_eq!(Head::of_word(word).word(), word);
            prop_assert_eq!(Label::of_word(word).word(), word);
        }
    }

    #[test]
    fn a_lock_names_its_transaction() {
        let holder = Stamp {
            thread: ThreadId::new(7).unwrap(),
            sequence: Stamp::SEQUENCE_MAX,
        };
        let locked = Head::Locked(holder);
        assert_eq!(Head::of_word(locked.word()), locked);
        assert_ne!(locked.word(), Head::Free(holder).word());
        assert!(ThreadId::new(ThreadId::COUNT).is_none());
    }
}
