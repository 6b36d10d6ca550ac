//! What can be asked of memory, and what comes back.

use crate::address::{Address, ServerId, WORD};

/// Bytes that one operation moves at most: as many as every carrier takes in one piece.
pub const BYTES_MAX: u64 = 1 << 20;
const _: () = assert!(
    BYTES_MAX.is_multiple_of(WORD) && BYTES_MAX <= u32::MAX as u64,
    "the longest operation is whole words, of a length that every carrier can state"
);

/// One thing done to the memory of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Copies bytes from there. Each word is whole; together they may be of different times.
    Read {
        /// From here on,
        at: Address,
        /// so many bytes, a multiple of [`WORD`].
        bytes: u64,
    },
    /// Copies bytes to there, in no order.
    Write {
        /// From here on,
        at: Address,
        /// these, a multiple of [`WORD`].
        bytes: Vec<u8>,
    },
    /// Copies bytes to there, and when all of them are there sets a word at the same server:
    /// nobody sees the word without seeing the bytes.
    WriteThenSet {
        /// From here on,
        at: Address,
        /// these, a multiple of [`WORD`];
        bytes: Vec<u8>,
        /// then here, of the same server's memory,
        word_at: u64,
        /// this.
        word: u64,
    },
    /// Sets a word if it is what it is expected to be; returns what it was.
    CompareSwap {
        /// Of this word:
        at: Address,
        /// if it is this,
        expected: u64,
        /// it becomes that.
        new: u64,
    },
    /// Adds to a word, around the end; returns what it was.
    FetchAdd {
        /// To this word
        at: Address,
        /// this.
        delta: u64,
    },
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OperationOutcome {
    /// What was read.
    Read(Vec<u8>),
    /// It is written, where every reader sees it.
    Written,
    /// What the word was before.
    Word(u64),
    /// Nobody knows whether it was done.
    Failed(Fault),
}

/// Why nobody knows whether an operation was done. It was not the asker's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The server does not answer, or is gone.
    #[error("memory server {} is gone", .0.0)]
    Gone(ServerId),
    /// The server has shut this client out.
    #[error("memory server {} has shut this client out", .0.0)]
    Fenced(ServerId),
}

/// An operation that makes no sense. It was not started, nor was any other of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// Not a multiple of the size of a word.
    #[error("{at}, {bytes} bytes: offsets and lengths are multiples of {WORD}")]
    Unaligned {
        /// Where.
        at: Address,
        /// How many.
        bytes: u64,
    },
    /// Nothing, or more than goes in one piece.
    #[error("{at}, {bytes} bytes: an operation moves {WORD} to {BYTES_MAX} bytes")]
    Length {
        /// Where.
        at: Address,
        /// How many.
        bytes: u64,
    },
    /// Beyond the end of what the server has registered.
    #[error("{at}, {bytes} bytes: the server has registered {registered}")]
    Outside {
        /// Where.
        at: Address,
        /// How many.
        bytes: u64,
        /// How many there are.
        registered: u64,
    },
    /// A server that this client has no connection to.
    #[error("memory server {} is unknown", .0.0)]
    Unknown(ServerId),
}

impl Operation {
    /// Whose memory it is done to.
    #[must_use]
    pub fn server(&self) -> ServerId {
        self.span().0.server
    }

    /// Where it works; of a [`Operation::WriteThenSet`] where its bytes go.
    #[must_use]
    pub fn at(&self) -> Address {
        self.span().0
    }

    /// The same somewhere else; the word of a [`Operation::WriteThenSet`] stays as far from its
    /// bytes as it was.
    #[must_use]
    pub fn moved(mut self, to: Address) -> Self {
        let from = self.at().offset;
        assert_eq!(
            from % WORD,
            to.offset % WORD,
            "replicas begin at words: a moved operation stays as far from the next word"
        );
        match &mut self {
            Self::Read { at, .. }
            | Self::Write { at, .. }
            | Self::CompareSwap { at, .. }
            | Self::FetchAdd { at, .. } => *at = to,
            Self::WriteThenSet { at, word_at, .. } => {
                let distance = word_at.abs_diff(at.offset);
                *word_at = word_at.wrapping_sub(at.offset).wrapping_add(to.offset);
                assert_eq!(
                    word_at.abs_diff(to.offset),
                    distance,
                    "the word of an ordered write lies in the replica that has its bytes"
                );
                *at = to;
            }
        }
        self
    }

    /// Whether an outcome is one that this operation can have: of its kind, and as long as what was
    /// asked for.
    #[must_use]
    pub fn is_answered_by(&self, outcome: &OperationOutcome) -> bool {
        match (self, outcome) {
            (_, OperationOutcome::Failed(fault)) => match fault {
                Fault::Gone(server) | Fault::Fenced(server) => *server == self.server(),
            },
            (Self::Read { bytes, .. }, OperationOutcome::Read(copy)) => copy.len() as u64 == *bytes,
            (Self::Write { .. } | Self::WriteThenSet { .. }, OperationOutcome::Written)
            | (Self::CompareSwap { .. } | Self::FetchAdd { .. }, OperationOutcome::Word(_)) => true,
            _ => false,
        }
    }

    /// Where it works, and on how many bytes; the word of a [`Operation::WriteThenSet`] apart.
    fn span(&self) -> (Address, u64) {
        match self {
            Self::Read { at, bytes } => (*at, *bytes),
            Self::Write { at, bytes } | Self::WriteThenSet { at, bytes, .. } => {
                (*at, bytes.len() as u64)
            }
            Self::CompareSwap { at, .. } | Self::FetchAdd { at, .. } => (*at, WORD),
        }
    }

    /// Checks it against a server that has registered so many bytes.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn check(&self, registered: u64) -> Result<(), Misuse> {
        let (at, bytes) = self.span();
        check_span(at, bytes, registered)?;
        match self {
            Self::WriteThenSet { word_at, .. } => {
                let offset = *word_at;
                check_span(Address { offset, ..at }, WORD, registered)
            }
            _ => Ok(()),
        }
    }
}

fn check_span(at: Address, bytes: u64, registered: u64) -> Result<(), Misuse> {
    if !at.offset.is_multiple_of(WORD) || !bytes.is_multiple_of(WORD) {
        return Err(Misuse::Unaligned { at, bytes });
    }
    if bytes == 0 || bytes > BYTES_MAX {
        return Err(Misuse::Length { at, bytes });
    }
    let end = at.offset.checked_add(bytes);
    if end.is_none_or(|end| end > registered) {
        return Err(Misuse::Outside {
            at,
            bytes,
            registered,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTERED: u64 = 4096;

    fn at(server: u16, offset: u64) -> Address {
        let server = ServerId(server);
        Address { server, offset }
    }

    fn read(offset: u64, bytes: u64) -> Result<(), Misuse> {
        let at = at(3, offset);
        Operation::Read { at, bytes }.check(REGISTERED)
    }

    /// Eight bytes, then a word.
    fn ordered(at: Address, word_at: u64) -> Operation {
        Operation::WriteThenSet {
            at,
            bytes: vec![1; 8],
            word_at,
            word: 5,
        }
    }

    #[test]
    fn whole_words_inside_are_allowed() {
        assert_eq!(read(0, REGISTERED), Ok(()));
        assert_eq!(read(REGISTERED - WORD, WORD), Ok(()));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let said = |found: Result<(), Misuse>| found.unwrap_err().to_string();
        assert!(said(read(4, 8)).contains("multiples of 8"));
        assert!(said(read(0, 12)).contains("multiples of 8"));
        assert!(said(read(0, 0)).contains("8 to 1048576"));
        assert!(said(read(REGISTERED, 8)).contains("3+0x1000, 8 bytes: the server has registered"));
        assert!(said(read(u64::MAX - 7, 8)).contains("has registered 4096"));
    }

    #[test]
    fn what_is_moved_keeps_its_word_beside_its_bytes() {
        let moved = ordered(at(1, 72), 64).moved(at(2, 1032));
        assert_eq!(moved, ordered(at(2, 1032), 1024));
        assert_eq!((moved.at(), moved.server()), (at(2, 1032), ServerId(2)));
    }

    #[test]
    #[should_panic(expected = "as far from the next word")]
    fn an_operation_is_not_moved_into_the_middle_of_a_word() {
        let read = Operation::Read {
            at: at(0, 8),
            bytes: 8,
        };
        let _ = read.moved(at(0, 20));
    }

    #[test]
    #[should_panic(expected = "lies in the replica that has its bytes")]
    fn an_ordered_write_is_not_moved_to_where_its_word_has_no_place() {
        let _ = ordered(at(0, 72), 64).moved(at(0, 0));
    }

    #[test]
    fn an_outcome_answers_operations_of_its_kind_and_length_alone() {
        let at = at(3, 8);
        let read = Operation::Read { at, bytes: 16 };
        assert!(read.is_answered_by(&OperationOutcome::Read(vec![0; 16])));
        assert!(!read.is_answered_by(&OperationOutcome::Read(vec![0; 8])));
        assert!(!read.is_answered_by(&OperationOutcome::Written));
        let add = Operation::FetchAdd { at, delta: 1 };
        assert!(add.is_answered_by(&OperationOutcome::Word(0)));
        assert!(!add.is_answered_by(&OperationOutcome::Read(vec![0; 8])));
        assert!(add.is_answered_by(&OperationOutcome::Failed(Fault::Gone(ServerId(3)))));
        assert!(!add.is_answered_by(&OperationOutcome::Failed(Fault::Gone(ServerId(4)))));
    }

    #[test]
    fn the_word_of_an_ordered_write_is_checked_too() {
        let check = |word_at| ordered(at(0, 64), word_at).check(REGISTERED);
        assert_eq!(check(0), Ok(()));
        assert!(check(REGISTERED).is_err());
        assert!(check(1).is_err());
    }
}
