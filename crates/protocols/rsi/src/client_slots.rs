//! Who may be which thread: a word for each, and another by which its owner shows that it lives.
//!
//! A thread's place is one process's at a time. It is taken by a swap, kept by writing a word
//! again and again ([`crate::lease`]), and given out anew by whoever leads ([`crate::membership`]):
//!
//! ```text
//! Free(n) --taken--> Taken(n) --lapsed, or left--> Over(n) --shut out, recovered--> Free(m), m > n
//!                    Taken(n) --a server is lost--> Kept(m) --its owner is back--> Taken(m)
//!                                                   Kept(m) --lapsed--> Over(m)
//! ```
//!
//! The number is the thread's last transaction before its owner: every owner of a place has another
//! one, so that `n` tells the owners of a place apart, in this word, at the servers that shut one
//! of them out ([`Name`]), and in every lock that one of them takes. What somebody sends late,
//! however late, is for an owner that is over, and fails.
//!
//! ```text
//! TERM, BEAT, SHUT, 0 | SLOT, BEAT, FORMER, NOTE for each thread
//! ```
//!
//! The first words are the recovery coordinators': how many have led so far, how the present one shows that it
//! lives, and up to which of them all are shut out. Memory that is all zero is a table without
//! owners, which no recovery coordinator has led yet.
//!
//! **On several servers** ([`Kind::Places`](crate::Kind)). After the loss of one all owners are closed,
//! and those who live go on under other numbers. A client slot is kept for its owner then, whose former
//! number is beside it: nobody else takes it for a free one, nor anybody for his own. Terms, client slots
//! and former numbers only ever go up, so a swap at the primary is repeated at the backups by raising
//! what is there; one that comes late finds more, and changes nothing. Beats are written to all
//! replicas: so an owner that does nothing else hears of a loss as soon as everybody is shut out.

use crate::vector::Vector;
use manxdb_fabric::operation::BYTES_MAX;
use manxdb_fabric::{Address, Operation, WORD, WORD_LENGTH};

use crate::version::{Stamp, ThreadId};

/// Words before the client slots.
const FIRST: u64 = 4;
/// Words of a client slot.
const THREAD_WORDS: u64 = 4;
const _: () = assert!(
    ThreadId::COUNT < u16::MAX - 1,
    "names of owners are none of a coordinator's and none of a guest's"
);
const _: () = assert!(
    (FIRST + THREAD_WORDS * Vector::THREADS_MAX as u64) * WORD <= BYTES_MAX,
    "one operation reads the whole table"
);

/// Where the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientSlots {
    base: Address,
    threads: u16,
}

/// What a thread's word says. The number is its last transaction that is none of its owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientSlot {
    /// It is nobody's.
    Free(u64),
    /// A server was lost; it is kept for whom it had been taken by, to go on behind this number.
    Kept(u64),
    /// It is somebody's, who lives as far as anybody knows.
    Taken(u64),
    /// It was somebody's, who is to be shut out and recovered, alive or not.
    Over(u64),
}

impl ClientSlot {
    /// As it is in memory: more with each number, and with each state of a number.
    #[must_use]
    pub const fn word(self) -> u64 {
        let (Self::Free(number) | Self::Kept(number) | Self::Taken(number) | Self::Over(number)) =
            self;
        assert!(
            number <= u64::MAX >> 2,
            "a number leaves two bits for the state of its slot"
        );
        match self {
            Self::Free(number) => number << 2,
            Self::Kept(number) => number << 2 | 1,
            Self::Taken(number) => number << 2 | 2,
            Self::Over(number) => number << 2 | 3,
        }
    }

    /// What a word means.
    #[must_use]
    pub const fn of_word(word: u64) -> Self {
        let number = word >> 2;
        match word & 3 {
            0 => Self::Free(number),
            1 => Self::Kept(number),
            2 => Self::Taken(number),
            _ => Self::Over(number),
        }
    }
}

/// Who has a thread's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Which place.
    pub thread: ThreadId,
    /// The thread's last transaction before: the owner's own begin behind it.
    pub after: u64,
}

/// Who acts at memory servers. Each is let in, and shut out for good, by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// Who leads in a term.
    RecoveryCoordinator(u64),
    /// Who has a thread's place.
    Owner(Owner),
    /// Who has no name yet: it looks at the table and swaps words of it, and writes nothing else.
    /// Numbers of guests are drawn by chance.
    Guest(u64),
}

impl Name {
    /// The client's number for the fabric, different for each name: what it is, in the first
    /// sixteen bits, and which one.
    #[must_use]
    pub fn client(self) -> u64 {
        let (kind, number) = match self {
            Self::RecoveryCoordinator(term) => (0, term),
            Self::Owner(owner) => (1 + u64::from(owner.thread.number()), owner.after),
            Self::Guest(number) => (u64::from(u16::MAX), number),
        };
        kind << 48 | number & Stamp::SEQUENCE_MAX
    }
}

/// What a copy of the table says. Each word is of its own time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Look {
    pub term: u64,
    pub beat: u64,
    pub shut: u64,
    /// By threads.
    pub chairs: Vec<SlotWords>,
}

/// What a copy says of one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SlotWords {
    pub client_slot: ClientSlot,
    pub beat: u64,
    /// For whom it is kept, if it is.
    pub former: u64,
}

impl ClientSlots {
    /// A table for so many threads.
    #[must_use]
    pub const fn new(base: Address, threads: u16) -> Self {
        Self { base, threads }
    }

    /// Bytes of it.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        (FIRST + THREAD_WORDS * self.threads as u64) * WORD
    }

    /// Threads in it.
    #[must_use]
    pub const fn threads(self) -> u16 {
        self.threads
    }

    /// Where a thread's word is.
    #[must_use]
    pub fn client_slot(self, thread: ThreadId) -> Address {
        assert!(
            thread.number() < self.threads,
            "the table has a slot for thread {thread}"
        );
        let before = FIRST + THREAD_WORDS * u64::from(thread.number());
        self.base.plus(before * WORD)
    }

    /// Where a thread's word is that its owner has for itself: 0, unless somebody has written it.
    #[must_use]
    pub fn note(self, thread: ThreadId) -> Address {
        self.client_slot(thread).plus(3 * WORD)
    }

    pub(crate) fn beat(self, thread: ThreadId) -> Address {
        self.client_slot(thread).plus(WORD)
    }

    pub(crate) fn former(self, thread: ThreadId) -> Address {
        self.client_slot(thread).plus(2 * WORD)
    }

    pub(crate) fn term(self) -> Address {
        self.base
    }

    pub(crate) fn term_beat(self) -> Address {
        self.base.plus(WORD)
    }

    pub(crate) fn shut(self) -> Address {
        self.base.plus(2 * WORD)
    }

    pub(crate) fn read(self) -> Operation {
        Operation::Read {
            at: self.base,
            bytes: self.bytes(),
        }
    }

    pub(crate) fn swap(self, thread: ThreadId, from: ClientSlot, to: ClientSlot) -> Operation {
        Operation::CompareSwap {
            at: self.client_slot(thread),
            expected: from.word(),
            new: to.word(),
        }
    }

    /// What a copy of the whole table says.
    pub(crate) fn parse(self, copy: &[u8]) -> Look {
        assert_eq!(copy.len() as u64, self.bytes(), "the table is read whole");
        let (words, _) = copy.as_chunks::<WORD_LENGTH>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let (term, beat, shut, _) = (next(), next(), next(), next());
        let mut chair = || {
            let (client_slot, beat, former, _) = (next(), next(), next(), next());
            let client_slot = ClientSlot::of_word(client_slot);
            SlotWords {
                client_slot,
                beat,
                former,
            }
        };
        Look {
            term,
            beat,
            shut,
            chairs: (0..self.threads).map(|_| chair()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_slots_go_up_and_memory_that_is_zero_is_free() {
        let mut last = None;
        for number in [0, 1, 2, Stamp::SEQUENCE_MAX] {
            let client_slots = [
                ClientSlot::Free,
                ClientSlot::Kept,
                ClientSlot::Taken,
                ClientSlot::Over,
            ];
            for client_slot in client_slots.map(|client_slot| client_slot(number)) {
                assert_eq!(ClientSlot::of_word(client_slot.word()), client_slot);
                assert!(
                    last < Some(client_slot.word()),
                    "{client_slot:?} is not more"
                );
                last = Some(client_slot.word());
            }
        }
        assert_eq!(ClientSlot::of_word(0), ClientSlot::Free(0));
    }

    #[test]
    fn no_two_names_are_the_same_client() {
        let owner = |thread, after| {
            let thread = ThreadId::new(thread).unwrap();
            Name::Owner(Owner { thread, after })
        };
        let last = ThreadId::COUNT - 1;
        let names = [
            Name::RecoveryCoordinator(1),
            Name::RecoveryCoordinator(2),
            owner(0, 1),
            owner(0, 2),
            owner(1, 1),
            owner(last, Stamp::SEQUENCE_MAX),
            Name::Guest(1),
            Name::Guest(2),
        ];
        let clients: std::collections::BTreeSet<u64> =
            names.iter().map(|name| name.client()).collect();
        assert_eq!(clients.len(), names.len());
    }
}
