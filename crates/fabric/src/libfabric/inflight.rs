//! What is asked and what has come: operations cut into pieces, and their outcomes put together.
//!
//! Nothing in here knows libfabric. A piece is what one call does; of an ordered write the word is
//! a piece that is handed out when those of the bytes are done, unless the provider keeps them in
//! their order.

use std::collections::{BTreeMap, VecDeque};

use super::shape::{Copies, Kind, Shape};
use crate::address::{Address, WORD, WORD_LENGTH};
use crate::fabric::{BatchId, Completion};
use crate::operation::{Fault, Operation, OperationOutcome};

/// A part of an operation, for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    job: u64,
    operation: usize,
    part: Part,
    /// Where in the server's memory.
    pub(super) at: Address,
    /// How many bytes.
    pub(super) bytes: u64,
}

/// Which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Bytes from here on, of those that are read or written.
    Bytes(u64),
    /// The word of an ordered write.
    Last,
    /// All of it: a swap or an addition.
    Word,
}

/// A batch that is under way.
#[derive(Debug)]
struct Job {
    batch: BatchId,
    operations: Vec<Operation>,
    outcomes: Vec<OperationOutcome>,
    rest: Vec<Rest>,
}

/// What is left of an operation.
#[derive(Debug, Default)]
struct Rest {
    /// Pieces that were handed out and are not over.
    open: u64,
    /// The word of an ordered write that waits for them.
    held: Option<Piece>,
}

/// All batches that are under way.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    jobs: BTreeMap<u64, Job>,
    next: u64,
    done: VecDeque<Completion>,
}

impl InFlight {
    /// Begins a batch, of which every operation has been checked; returns its pieces, in an order
    /// that ordered writes rely upon.
    pub(super) fn begin(
        &mut self,
        batch: BatchId,
        operations: Vec<Operation>,
        shape: Shape,
    ) -> Vec<Piece> {
        let job = self.next;
        self.next += 1;
        let (mut pieces, mut rest) = (Vec::new(), Vec::new());
        for (operation, asked) in operations.iter().enumerate() {
            let cut = Cut { job, operation };
            let (now, held) = cut.operation(asked, shape);
            let open = now.len() as u64;
            assert!(
                open > 0,
                "an operation of no pieces would pass for done: {asked:?}"
            );
            pieces.extend(now);
            rest.push(Rest { open, held });
        }
        let begun = Job {
            batch,
            outcomes: operations.iter().map(hoped_for).collect(),
            operations,
            rest,
        };
        assert_eq!(
            begun.outcomes.len(),
            begun.rest.len(),
            "an outcome for each operation"
        );
        let other = self.jobs.insert(job, begun);
        assert!(other.is_none(), "a job's number is used once: {job}");
        self.settle(job); // an empty one is over
        pieces
    }

    /// The call that a piece is; none if its batch is over.
    pub(super) fn kind(&self, piece: &Piece, copies: Copies) -> Option<Kind> {
        Some(match (self.asked(piece)?, copies) {
            (Operation::Read { .. }, Copies::Directly) => Kind::Read,
            (Operation::Read { .. }, Copies::ByWords) => Kind::ReadWords,
            (Operation::CompareSwap { .. }, _) => Kind::CompareSwap,
            (Operation::FetchAdd { .. }, _) => Kind::FetchAdd,
            (_, Copies::Directly) => Kind::Write,
            (_, Copies::ByWords) => Kind::WriteWords,
        })
    }

    /// What a call sends.
    pub(super) fn sent(&self, piece: &Piece) -> Vec<u8> {
        match (self.asked(piece), piece.part) {
            (Some(Operation::WriteThenSet { word, .. }), Part::Last) => words(&[*word]),
            (
                Some(Operation::Write { bytes, .. } | Operation::WriteThenSet { bytes, .. }),
                Part::Bytes(from),
            ) => {
                let sent: Vec<u8> = bytes
                    .get(span(from, piece.bytes))
                    .unwrap_or_default()
                    .into();
                assert_eq!(
                    sent.len() as u64,
                    piece.bytes,
                    "a piece lies in what is written"
                );
                sent
            }
            (Some(Operation::CompareSwap { expected, new, .. }), _) => words(&[*new, *expected]),
            (Some(Operation::FetchAdd { delta, .. }), _) => words(&[*delta, 0]),
            _ => Vec::new(),
        }
    }

    /// A call is over, and has brought what was read, or the word that was there. Returns the
    /// piece that was waiting for it.
    pub(super) fn finish(&mut self, piece: &Piece, came: Result<&[u8], Fault>) -> Option<Piece> {
        assert!(
            self.jobs.contains_key(&piece.job),
            "a batch is under way until all of its pieces are over: {piece:?}"
        );
        let job = self.jobs.get_mut(&piece.job)?;
        let outcome = job.outcomes.get_mut(piece.operation)?;
        let rest = job.rest.get_mut(piece.operation)?;
        match came {
            Ok(came) => take(outcome, piece, came),
            Err(fault) => {
                *outcome = OperationOutcome::Failed(fault);
                rest.held = None; // the word must not say that the bytes are there
            }
        }
        assert!(rest.open > 0, "a piece is over once: {piece:?}");
        rest.open -= 1;
        let follows = (rest.open == 0).then(|| rest.held.take()).flatten();
        assert!(
            follows.is_none() || !matches!(outcome, OperationOutcome::Failed(_)),
            "no word is set that says of bytes that they are there when they may not be"
        );
        rest.open += u64::from(follows.is_some());
        self.settle(piece.job);
        follows
    }

    /// The next batch that is over.
    pub(super) fn done(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// Whether no batch is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    fn asked(&self, piece: &Piece) -> Option<&Operation> {
        self.jobs.get(&piece.job)?.operations.get(piece.operation)
    }

    /// Ends a batch of which nothing is left.
    fn settle(&mut self, job: u64) {
        let is_over = |job: &Job| job.rest.iter().all(|rest| rest.open == 0);
        if self.jobs.get(&job).is_some_and(is_over)
            && let Some(job) = self.jobs.remove(&job)
        {
            assert!(
                job.rest.iter().all(|rest| rest.held.is_none()),
                "no ordered write is over before its word is"
            );
            let completion = Completion::new(job.batch, &job.operations, job.outcomes);
            self.done.push_back(completion);
        }
    }
}

/// Cuts one operation of a batch.
#[derive(Clone, Copy)]
struct Cut {
    job: u64,
    operation: usize,
}

impl Cut {
    fn piece(self, part: Part, at: Address, bytes: u64) -> Piece {
        Piece {
            job: self.job,
            operation: self.operation,
            part,
            at,
            bytes,
        }
    }

    /// Pieces to be posted now, and one for when they are done.
    fn operation(self, asked: &Operation, shape: Shape) -> (Vec<Piece>, Option<Piece>) {
        match asked {
            Operation::Read { at, bytes } => (self.bytes(*at, *bytes, shape.piece), None),
            Operation::Write { at, bytes } => {
                (self.bytes(*at, bytes.len() as u64, shape.piece), None)
            }
            Operation::WriteThenSet {
                at, bytes, word_at, ..
            } => {
                let offset = *word_at;
                let word = self.piece(Part::Last, Address { offset, ..*at }, WORD);
                let mut now = self.bytes(*at, bytes.len() as u64, shape.piece);
                let held = (!shape.in_order).then_some(word);
                if held.is_none() {
                    now.push(word);
                }
                (now, held)
            }
            Operation::CompareSwap { at, .. } | Operation::FetchAdd { at, .. } => {
                (vec![self.piece(Part::Word, *at, WORD)], None)
            }
        }
    }

    fn bytes(self, at: Address, bytes: u64, most: u64) -> Vec<Piece> {
        assert!(most > 0, "pieces have a length");
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < bytes {
            let length = most.min(bytes - from);
            pieces.push(self.piece(Part::Bytes(from), at.plus(from), length));
            from += length;
        }
        pieces
    }
}

/// What an operation comes to if nothing goes wrong, with nothing in it yet.
fn hoped_for(asked: &Operation) -> OperationOutcome {
    match asked {
        Operation::Read { bytes, .. } => {
            OperationOutcome::Read(vec![0; usize::try_from(*bytes).unwrap_or_default()])
        }
        Operation::Write { .. } | Operation::WriteThenSet { .. } => OperationOutcome::Written,
        Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => OperationOutcome::Word(0),
    }
}

/// Puts what has come where it belongs. What has failed stays failed.
fn take(outcome: &mut OperationOutcome, piece: &Piece, came: &[u8]) {
    match (outcome, piece.part) {
        (OperationOutcome::Read(read), Part::Bytes(from)) => {
            assert_eq!(
                came.len() as u64,
                piece.bytes,
                "a read brings all that its piece asked for"
            );
            let part = read.get_mut(span(from, piece.bytes));
            assert!(part.is_some(), "a piece lies in what is read: {piece:?}");
            if let Some(part) = part {
                part.copy_from_slice(came);
            }
        }
        (OperationOutcome::Word(word), _) => {
            assert_eq!(
                came.len(),
                WORD_LENGTH,
                "a swap brings the word that was there"
            );
            if let Some(bytes) = came.first_chunk() {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        (OperationOutcome::Written, _) => assert!(came.is_empty(), "a write brings nothing back"),
        (OperationOutcome::Failed(_), _) => {}
        (OperationOutcome::Read(_), part) => {
            assert!(
                matches!(part, Part::Bytes(_)),
                "a read is made of bytes, not of {part:?}"
            );
        }
    }
}

fn span(from: u64, bytes: u64) -> std::ops::Range<usize> {
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    from..from.saturating_add(bytes)
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::ServerId;

    const SERVER: ServerId = ServerId(1);
    const SHAPE: Shape = Shape {
        copies: Copies::ByWords,
        piece: 16,
        in_order: false,
    };

    fn at(offset: u64) -> Address {
        let server = SERVER;
        Address { server, offset }
    }

    fn ordered() -> Operation {
        Operation::WriteThenSet {
            at: at(64),
            bytes: (0..40).collect(),
            word_at: 8,
            word: 7,
        }
    }

    fn begin(inflight: &mut InFlight, operations: Vec<Operation>, shape: Shape) -> Vec<Piece> {
        inflight.begin(BatchId(5), operations, shape)
    }

    fn places(pieces: &[Piece]) -> Vec<(u64, u64)> {
        let place = |piece: &Piece| (piece.at.offset, piece.bytes);
        pieces.iter().map(place).collect()
    }

    #[test]
    fn a_read_is_put_together_from_pieces_in_any_order() {
        let mut inflight = InFlight::default();
        let read = Operation::Read {
            at: at(8),
            bytes: 40,
        };
        let pieces = begin(&mut inflight, vec![read], SHAPE);
        assert_eq!(places(&pieces), [(8, 16), (24, 16), (40, 8)]);
        let came: Vec<u8> = (0..40).collect();
        for (piece, from) in pieces.iter().zip([0, 16, 32]).rev() {
            assert_eq!(inflight.done(), None);
            assert!(inflight.sent(piece).is_empty());
            let part = &came[from..(from + 16).min(40)];
            assert_eq!(inflight.finish(piece, Ok(part)), None);
        }
        let done = inflight.done().unwrap();
        assert_eq!(
            (done.batch, done.outcomes),
            (BatchId(5), vec![OperationOutcome::Read(came)])
        );
    }

    #[test]
    fn the_word_of_an_ordered_write_waits_for_all_of_its_bytes() {
        let mut inflight = InFlight::default();
        let pieces = begin(&mut inflight, vec![ordered()], SHAPE);
        assert_eq!(places(&pieces), [(64, 16), (80, 16), (96, 8)]);
        assert_eq!(inflight.sent(&pieces[1]), (16..32).collect::<Vec<u8>>());
        assert_eq!(inflight.finish(&pieces[2], Ok(&[])), None);
        assert_eq!(inflight.finish(&pieces[0], Ok(&[])), None);
        let word = inflight.finish(&pieces[1], Ok(&[])).unwrap();
        assert_eq!(places(&[word]), [(8, 8)]);
        assert_eq!(inflight.sent(&word), 7_u64.to_le_bytes());
        assert_eq!(inflight.done(), None);
        assert_eq!(inflight.finish(&word, Ok(&[])), None);
        assert_eq!(
            inflight.done().unwrap().outcomes,
            [OperationOutcome::Written]
        );
    }

    #[test]
    fn where_writes_are_kept_in_order_the_word_goes_with_them() {
        let mut inflight = InFlight::default();
        let in_order = true;
        let pieces = begin(&mut inflight, vec![ordered()], Shape { in_order, ..SHAPE });
        assert_eq!(places(&pieces), [(64, 16), (80, 16), (96, 8), (8, 8)]);
        for piece in &pieces {
            assert_eq!(inflight.finish(piece, Ok(&[])), None);
        }
        assert_eq!(
            inflight.done().unwrap().outcomes,
            [OperationOutcome::Written]
        );
    }

    #[test]
    fn a_word_is_not_set_when_its_bytes_have_failed() {
        let mut inflight = InFlight::default();
        let pieces = begin(&mut inflight, vec![ordered()], SHAPE);
        let fault = Fault::Gone(SERVER);
        assert_eq!(inflight.finish(&pieces[0], Err(fault)), None);
        assert_eq!(inflight.finish(&pieces[1], Ok(&[])), None);
        assert_eq!(inflight.done(), None);
        assert_eq!(inflight.finish(&pieces[2], Ok(&[])), None);
        assert_eq!(
            inflight.done().unwrap().outcomes,
            [OperationOutcome::Failed(fault)]
        );
    }

    #[test]
    fn swaps_and_additions_carry_their_operands() {
        let mut inflight = InFlight::default();
        let swap = Operation::CompareSwap {
            at: at(0),
            expected: 1,
            new: 2,
        };
        let add = Operation::FetchAdd {
            at: at(8),
            delta: 3,
        };
        let pieces = begin(&mut inflight, vec![swap, add], SHAPE);
        assert_eq!(inflight.sent(&pieces[0]), words(&[2, 1]));
        assert_eq!(inflight.sent(&pieces[1]), words(&[3, 0]));
        let kind = |piece| inflight.kind(piece, Copies::Directly);
        assert_eq!(kind(&pieces[0]), Some(Kind::CompareSwap));
        assert_eq!(kind(&pieces[1]), Some(Kind::FetchAdd));
        inflight.finish(&pieces[0], Ok(&words(&[1])));
        inflight.finish(&pieces[1], Ok(&words(&[9])));
        let outcomes = inflight.done().unwrap().outcomes;
        assert_eq!(
            outcomes,
            [OperationOutcome::Word(1), OperationOutcome::Word(9)]
        );
    }

    #[test]
    #[should_panic(expected = "a read brings all that its piece asked for")]
    fn a_read_that_brings_too_little_is_not_taken_for_zeros() {
        let mut inflight = InFlight::default();
        let read = Operation::Read {
            at: at(8),
            bytes: 16,
        };
        let pieces = begin(&mut inflight, vec![read], SHAPE);
        inflight.finish(&pieces[0], Ok(&[1; 8]));
    }

    #[test]
    #[should_panic(expected = "until all of its pieces are over")]
    fn a_piece_that_is_over_twice_ends_no_other_batch() {
        let mut inflight = InFlight::default();
        let write = Operation::Write {
            at: at(8),
            bytes: vec![0; 8],
        };
        let pieces = begin(&mut inflight, vec![write], SHAPE);
        inflight.finish(&pieces[0], Ok(&[]));
        inflight.finish(&pieces[0], Ok(&[]));
    }

    #[test]
    fn a_batch_of_nothing_is_over_at_once() {
        let mut inflight = InFlight::default();
        assert!(begin(&mut inflight, Vec::new(), SHAPE).is_empty());
        assert!(inflight.done().unwrap().outcomes.is_empty());
    }
}
