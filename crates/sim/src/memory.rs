//! One-sided memory in virtual time.
//!
//! A third carrier beside memory shared by processes and network cards: operations travel, and are
//! done line by line at moments drawn from a seed, so that a read meets a write in all the ways in
//! which hardware lets them meet. Clients can die with operations on their way, of which some
//! lines still arrive, and can be shut out, after which none do; servers can be lost. The driver
//! posts for all clients and takes what completes, one event after another.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::{Nanos, Random};
use manxdb_fabric::fabric::check;
use manxdb_fabric::{
    Address, BatchId, Completion, Fault, Misuse, Operation, OperationOutcome, ServerId, WORD,
    WORD_LENGTH,
};

use crate::time::SimTime;

/// What a fabric moves at once: all of it is seen, or nothing.
const LINE: u64 = 64;

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOptions {
    /// From the client to the server, and back.
    pub one_way: Nanos,
    /// Lines of one operation arrive within this time of each other.
    pub spread: Nanos,
    /// One operation in this many is slow: its lines arrive within a hundred times as long.
    pub slow_one_in: u64,
    /// Of an ordered write, the word comes last; without, tests must find out.
    pub keeps_order: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            one_way: Nanos(1_000),
            spread: Nanos(500),
            slow_one_in: 16,
            keeps_order: true,
        }
    }
}

/// A client of all servers, by the number that the driver gives it.
pub type ClientId = u64;

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// Memory was read or written somewhere.
    Touched,
    /// A batch is over.
    Completed(ClientId, Completion),
}

/// The memory of all servers.
#[derive(Debug)]
pub struct Memory {
    options: MemoryOptions,
    random: Random,
    now: SimTime,
    servers: BTreeMap<ServerId, Vec<u64>>,
    lost: BTreeSet<ServerId>,
    fenced: BTreeSet<ClientId>,
    /// By one server alone.
    fenced_at: BTreeSet<(ClientId, ServerId)>,
    /// What will be done, in the order of its time.
    agenda: BTreeMap<(SimTime, u64), Piece>,
    batches: BTreeMap<(ClientId, BatchId), Pending>,
    pieces: u64,
}

/// A part of an operation.
#[derive(Debug, Clone, Copy)]
struct Piece {
    client: ClientId,
    batch: BatchId,
    operation: usize,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// A line, from this byte of the operation on.
    Line(u64),
    /// The word of an ordered write, or an atomic operation.
    Word,
    /// The client hears of it.
    Heard,
}

#[derive(Debug)]
struct Pending {
    operations: Vec<Operation>,
    outcomes: Vec<OperationOutcome>,
    left: usize,
}

impl Memory {
    /// No servers yet.
    #[must_use]
    pub fn new(seed: u64, options: MemoryOptions) -> Self {
        Self {
            options,
            random: Random::stream(seed, &[0x006d_656d]),
            now: SimTime::default(),
            servers: BTreeMap::new(),
            lost: BTreeSet::new(),
            fenced: BTreeSet::new(),
            fenced_at: BTreeSet::new(),
            agenda: BTreeMap::new(),
            batches: BTreeMap::new(),
            pieces: 0,
        }
    }

    /// A server registers so many bytes, all zero.
    pub fn register(&mut self, server: ServerId, bytes: u64) {
        let words = usize::try_from(bytes / WORD).unwrap_or(0);
        self.servers.insert(server, vec![0; words]);
    }

    /// The time of what happened last.
    #[must_use]
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// When the next event is; none when nothing is under way.
    #[must_use]
    pub fn next_time(&self) -> Option<SimTime> {
        self.agenda.first_key_value().map(|((time, _), _)| *time)
    }

    /// Lets time pass, but not beyond the next event: for drivers with alarms of their own.
    pub fn wait_until(&mut self, time: SimTime) {
        let next = self.next_time().unwrap_or(time);
        self.now = self.now.max(time.min(next));
    }

    /// Bytes of a server's memory as they are now, for checks.
    #[must_use]
    pub fn look(&self, at: Address, bytes: u64) -> Vec<u8> {
        let count = usize::try_from(bytes / WORD).unwrap_or(0);
        let words = (0..count as u64).map(|word| self.word(at.plus(word * WORD)));
        words.flat_map(u64::to_le_bytes).collect()
    }

    fn word(&self, at: Address) -> u64 {
        let place = usize::try_from(at.offset / WORD).unwrap_or(usize::MAX);
        let memory = self.servers.get(&at.server);
        memory
            .and_then(|memory| memory.get(place))
            .copied()
            .unwrap_or(0)
    }

    fn set(&mut self, at: Address, word: u64) {
        let place = usize::try_from(at.offset / WORD).unwrap_or(usize::MAX);
        let memory = self.servers.get_mut(&at.server);
        if let Some(found) = memory.and_then(|memory| memory.get_mut(place)) {
            *found = word;
        }
    }

    /// Starts a client's operations after a pause.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn post(
        &mut self,
        client: ClientId,
        batch: BatchId,
        operations: Vec<Operation>,
        pause: Nanos,
    ) -> Result<(), Misuse> {
        let registered = |server| {
            self.servers
                .get(&server)
                .map(|words| words.len() as u64 * WORD)
        };
        check(&operations, registered)?;
        let arrival = self.now + pause + self.options.one_way;
        let mut last = arrival;
        let mut left = 0;
        for (place, operation) in operations.iter().enumerate() {
            for (time, what) in self.pieces(arrival, operation) {
                last = last.max(time);
                left += 1;
                let piece = Piece {
                    client,
                    batch,
                    operation: place,
                    what,
                };
                self.enter(time, piece);
            }
        }
        let heard = Piece {
            client,
            batch,
            operation: 0,
            what: What::Heard,
        };
        self.enter(last + self.options.one_way, heard);
        let outcomes = operations.iter().map(blank).collect();
        let pending = Pending {
            operations,
            outcomes,
            left,
        };
        let former = self.batches.insert((client, batch), pending);
        assert!(
            former.is_none(),
            "{batch:?} of client {client} is under way"
        );
        Ok(())
    }

    fn enter(&mut self, time: SimTime, piece: Piece) {
        self.pieces += 1;
        self.agenda.insert((time, self.pieces), piece);
    }

    /// When which part of an operation is done that arrives at a time.
    fn pieces(&mut self, arrival: SimTime, operation: &Operation) -> Vec<(SimTime, What)> {
        let is_slow = self.random.below(self.options.slow_one_in.max(1)) == 0;
        let spread = self.options.spread.0 * if is_slow { 100 } else { 1 };
        let mut soon = || arrival + Nanos(self.random.below(spread + 1));
        let mut lines = |bytes: u64| -> Vec<(SimTime, What)> {
            let starts = (0..bytes).step_by(usize::try_from(LINE).unwrap_or(1));
            starts.map(|start| (soon(), What::Line(start))).collect()
        };
        match operation {
            Operation::Read { bytes, .. } => lines(*bytes),
            Operation::Write { bytes, .. } => lines(bytes.len() as u64),
            Operation::WriteThenSet { bytes, .. } => {
                let mut pieces = lines(bytes.len() as u64);
                let last = pieces
                    .iter()
                    .map(|(time, _)| *time)
                    .max()
                    .unwrap_or(arrival);
                let word = if self.options.keeps_order {
                    last + Nanos(1)
                } else {
                    soon()
                };
                pieces.push((word, What::Word));
                pieces
            }
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => {
                vec![(soon(), What::Word)]
            }
        }
    }

    /// The next event; none when nothing is under way.
    pub fn step(&mut self) -> Option<Happened> {
        let ((time, _), piece) = self.agenda.pop_first()?;
        self.now = time;
        let key = (piece.client, piece.batch);
        let Some(mut pending) = self.batches.remove(&key) else {
            return Some(Happened::Touched); // unreachable: a batch is there until it is heard of
        };
        if let What::Heard = piece.what {
            assert_eq!(pending.left, 0, "it is heard of before it is done");
            let batch = piece.batch;
            let completion = Completion::new(batch, &pending.operations, pending.outcomes);
            return Some(Happened::Completed(piece.client, completion));
        }
        pending.left -= 1;
        let operation = pending.operations.get(piece.operation).cloned();
        let outcome = pending.outcomes.get_mut(piece.operation);
        if let Some((operation, outcome)) = operation.zip(outcome) {
            if self.is_fenced(piece.client, operation.server()) {
                *outcome = OperationOutcome::Failed(Fault::Fenced(operation.server()));
            } else {
                self.touch(&operation, piece.what, outcome);
            }
        }
        self.batches.insert(key, pending);
        Some(Happened::Touched)
    }

    fn touch(&mut self, operation: &Operation, what: What, outcome: &mut OperationOutcome) {
        let server = operation.server();
        if self.lost.contains(&server) {
            *outcome = OperationOutcome::Failed(Fault::Gone(server));
            return;
        }
        match (operation, what) {
            (Operation::Read { at, bytes }, What::Line(start)) => {
                let end = (start + LINE).min(*bytes);
                let line = self.look(at.plus(start), end - start);
                if let OperationOutcome::Read(copy) = outcome {
                    let place = usize::try_from(start).unwrap_or(0);
                    copy[place..place + line.len()].copy_from_slice(&line);
                }
            }
            (
                Operation::Write { at, bytes } | Operation::WriteThenSet { at, bytes, .. },
                What::Line(start),
            ) => {
                let rest = &bytes[usize::try_from(start).unwrap_or(0)..];
                let (words, _) = rest.as_chunks::<WORD_LENGTH>();
                for (place, word) in (0..LINE / WORD).zip(words) {
                    self.set(at.plus(start + place * WORD), u64::from_le_bytes(*word));
                }
            }
            (
                Operation::WriteThenSet {
                    at, word_at, word, ..
                },
                _,
            ) => {
                let offset = *word_at;
                self.set(Address { offset, ..*at }, *word);
            }
            (Operation::CompareSwap { at, expected, new }, _) => {
                let former = self.word(*at);
                if former == *expected {
                    self.set(*at, *new);
                }
                *outcome = OperationOutcome::Word(former);
            }
            (Operation::FetchAdd { at, delta }, _) => {
                let former = self.word(*at);
                self.set(*at, former.wrapping_add(*delta));
                *outcome = OperationOutcome::Word(former);
            }
            _ => {}
        }
    }

    /// A client dies: it hears of nothing more. Of what it has under way, each line arrives or
    /// does not; the word of an ordered write arrives only if all before it does.
    pub fn kill(&mut self, client: ClientId) {
        let random = &mut self.random;
        let mut cut = BTreeSet::new();
        self.agenda.retain(|_, piece| {
            if piece.client != client {
                return true;
            }
            let operation = (piece.batch, piece.operation);
            let arrives = match piece.what {
                What::Heard => false,
                What::Word => !cut.contains(&operation) && random.below(2) == 0,
                What::Line(_) => random.below(2) == 0,
            };
            if !arrives {
                cut.insert(operation);
            }
            arrives
        });
    }

    /// All servers shut a client out: nothing of what it has under way or will ever ask for is done
    /// any more, and that is what it hears. What is done already stays done.
    pub fn fence(&mut self, client: ClientId) {
        self.fenced.insert(client);
    }

    /// One server shuts a client out; the others do not.
    pub fn fence_at(&mut self, client: ClientId, server: ServerId) {
        self.fenced_at.insert((client, server));
    }

    fn is_fenced(&self, client: ClientId, server: ServerId) -> bool {
        self.fenced.contains(&client) || self.fenced_at.contains(&(client, server))
    }

    /// A server dies, with all that it holds.
    pub fn lose(&mut self, server: ServerId) {
        self.lost.insert(server);
    }
}

/// The outcome of an operation that has not begun.
fn blank(operation: &Operation) -> OperationOutcome {
    match operation {
        Operation::Read { bytes, .. } => {
            OperationOutcome::Read(vec![0; usize::try_from(*bytes).unwrap_or(0)])
        }
        Operation::Write { .. } | Operation::WriteThenSet { .. } => OperationOutcome::Written,
        Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => OperationOutcome::Word(0),
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
