//! Memory whose operations land piece by piece, in an order that the checker chooses.
//!
//! Places where memory may be cut are called seams. A write lands one piece at a time; the word of
//! an ordered write last. A read is taken apart at the same seams, and each of its pieces is copied
//! at the last moment: before the next write to that piece, or when the whole read ends. Copying
//! earlier would give the same, because nothing else has changed there in between; so all orders
//! are explored, and each only once.

use std::sync::Arc;

use manxdb_fabric::{Operation, OperationOutcome, WORD, WORD_LENGTH};

/// All words of all servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory(pub Vec<u64>);

/// Where memory is cut: the first words of pieces, ascending.
#[derive(Debug, Clone)]
pub struct Seams(pub Vec<usize>);

/// A part of an operation that has not landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    pub operation: usize,
    /// Words of memory, from and to.
    pub from: usize,
    pub to: usize,
    /// The word of an ordered write: after all else of it.
    pub is_last: bool,
}

/// Operations of one client under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch {
    pub operations: Arc<Vec<Operation>>,
    pub outcomes: Vec<OperationOutcome>,
    pub pieces: Vec<Piece>,
    /// What came of them the time before, where they are asked for again.
    pub former: Option<Vec<OperationOutcome>>,
}

fn place(offset: u64) -> usize {
    usize::try_from(offset / WORD).unwrap()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<WORD_LENGTH>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

impl Seams {
    fn cut(&self, operation: usize, from: usize, to: usize) -> Vec<Piece> {
        let inside = self.0.iter().filter(|seam| from < **seam && **seam < to);
        let starts: Vec<usize> = std::iter::once(from).chain(inside.copied()).collect();
        let ends = starts[1..].iter().copied().chain([to]);
        let piece = |(from, to)| Piece {
            operation,
            from,
            to,
            is_last: false,
        };
        starts.iter().copied().zip(ends).map(piece).collect()
    }

    fn pieces(&self, number: usize, operation: &Operation) -> Vec<Piece> {
        let spanned = |offset: u64, bytes: u64| {
            let from = place(offset);
            self.cut(number, from, from + place(bytes))
        };
        match operation {
            Operation::Read { at, bytes } => spanned(at.offset, *bytes),
            Operation::Write { at, bytes } => spanned(at.offset, bytes.len() as u64),
            Operation::WriteThenSet {
                at, bytes, word_at, ..
            } => {
                let mut pieces = spanned(at.offset, bytes.len() as u64);
                let from = place(*word_at);
                pieces.push(Piece {
                    operation: number,
                    from,
                    to: from + 1,
                    is_last: true,
                });
                pieces
            }
            Operation::CompareSwap { at, .. } | Operation::FetchAdd { at, .. } => {
                spanned(at.offset, WORD)
            }
        }
    }
}

impl Batch {
    pub fn new(
        seams: &Seams,
        operations: Vec<Operation>,
        former: Option<Vec<OperationOutcome>>,
    ) -> Self {
        let blank = |operation: &Operation| match operation {
            Operation::Read { bytes, .. } => {
                OperationOutcome::Read(vec![0; usize::try_from(*bytes).unwrap()])
            }
            Operation::Write { .. } | Operation::WriteThenSet { .. } => OperationOutcome::Written,
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => OperationOutcome::Word(0),
        };
        let numbered = operations.iter().enumerate();
        Self {
            outcomes: operations.iter().map(blank).collect(),
            pieces: numbered.flat_map(|(n, one)| seams.pieces(n, one)).collect(),
            operations: Arc::new(operations),
            former,
        }
    }

    /// Whether it only reads, so that it ends when its client looks.
    pub fn is_read(&self) -> bool {
        let mut operations = self.operations.iter();
        operations.all(|one| matches!(one, Operation::Read { .. }))
    }

    /// Whether a piece may land now: the word of an ordered write waits for the rest of it.
    pub fn may_land(&self, piece: &Piece, keeps_order: bool) -> bool {
        let is_rest = |other: &Piece| other.operation == piece.operation && !other.is_last;
        !piece.is_last || !keeps_order || !self.pieces.iter().any(is_rest)
    }

    /// Copies a piece of a read.
    pub fn copy(&mut self, memory: &Memory, piece: &Piece) {
        let Operation::Read { at, .. } = &self.operations[piece.operation] else {
            return;
        };
        let start = (piece.from - place(at.offset)) * WORD_LENGTH;
        let OperationOutcome::Read(copy) = &mut self.outcomes[piece.operation] else {
            return;
        };
        let found = &memory.0[piece.from..piece.to];
        let found: Vec<u8> = found.iter().flat_map(|word| word.to_le_bytes()).collect();
        copy[start..start + found.len()].copy_from_slice(&found);
    }

    /// Copies all that is left of reads; what came of it all.
    pub fn end(mut self, memory: &Memory) -> Vec<OperationOutcome> {
        for piece in std::mem::take(&mut self.pieces) {
            self.copy(memory, &piece);
        }
        self.outcomes
    }

    /// The words that a piece of a write or a swap leaves behind, and what it found.
    pub fn effect(&self, memory: &Memory, piece: &Piece) -> (Vec<u64>, OperationOutcome) {
        let found = memory.0[piece.from];
        match &self.operations[piece.operation] {
            Operation::WriteThenSet { word, .. } if piece.is_last => {
                (vec![*word], OperationOutcome::Written)
            }
            Operation::Write { at, bytes } | Operation::WriteThenSet { at, bytes, .. } => {
                let skipped = piece.from - place(at.offset);
                let length = piece.to - piece.from;
                let written = words(bytes).skip(skipped).take(length).collect();
                (written, OperationOutcome::Written)
            }
            Operation::CompareSwap { expected, new, .. } => {
                let after = if found == *expected { *new } else { found };
                (vec![after], OperationOutcome::Word(found))
            }
            Operation::FetchAdd { delta, .. } => (
                vec![found.wrapping_add(*delta)],
                OperationOutcome::Word(found),
            ),
            Operation::Read { .. } => (Vec::new(), OperationOutcome::Written),
        }
    }
}

impl Memory {
    pub fn bytes(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let from = place(offset);
        let found = &self.0[from..from + bytes / WORD_LENGTH];
        found.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn word(&self, offset: u64) -> u64 {
        self.0[place(offset)]
    }

    /// Does a whole batch at once.
    pub fn run(&mut self, seams: &Seams, operations: Vec<Operation>) -> Vec<OperationOutcome> {
        let mut batch = Batch::new(seams, operations, None);
        for piece in std::mem::take(&mut batch.pieces) {
            let (written, outcome) = batch.effect(self, &piece);
            if written.is_empty() {
                batch.copy(self, &piece);
                continue;
            }
            self.0[piece.from..piece.to].copy_from_slice(&written);
            batch.outcomes[piece.operation] = outcome;
        }
        batch.outcomes
    }
}
