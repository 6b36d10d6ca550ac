//! How far the log archiver has come: which transactions are written to disk, and which are synced.
//!
//! Two words for each thread, WRITTEN and SYNCED: the last sequence of what is in a file, and of what
//! is there when all power is gone. The log archiver alone writes them ([`crate::drain`]); both only go up, while
//! no disk loses what was written to it.
//! In regions they are lines ([`Kind::Lines`](crate::Kind)): a replica that is new says 0, until the
//! log archiver writes the words again, which it does with each batch. To wait for a little more than is
//! needed is never wrong.
//!
//! A session looks at WRITTEN before it locks anything, when what it was last known to be does not
//! allow one more transaction in the thread's ring: with its first transaction, and then once in half
//! a ring ([`crate::log`] has the rule). It waits there if it has to.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, WORD, WORD_LENGTH};

use crate::log::Log;
use crate::machine::{Machine, Step, copy_of, only};
use crate::vector::Snapshot;
use crate::version::{Stamp, ThreadId};

/// Words for each thread.
const WORDS: u64 = 2;

/// Where the words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DurablePositions {
    base: Address,
    threads: u16,
}

impl DurablePositions {
    /// Of so many threads, from an address on. Memory that is all zero says that nothing is written.
    #[must_use]
    pub const fn new(base: Address, threads: u16) -> Self {
        Self { base, threads }
    }

    /// Bytes of all words.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        WORDS * WORD * self.threads as u64
    }

    /// Threads in it.
    #[must_use]
    pub const fn threads(self) -> u16 {
        self.threads
    }

    /// Says what is written, and what of it is synced, of all threads.
    #[must_use]
    pub fn publish(self, written: &Snapshot, synced: &Snapshot) -> Operation {
        let count = usize::from(self.threads);
        assert!(
            written.numbers().len() == count && synced.numbers().len() == count,
            "positions of all {count} threads are published at once"
        );
        assert!(
            written.includes(synced),
            "nothing is synced before it is written"
        );
        let threads = (0..self.threads).filter_map(ThreadId::new);
        let words = threads.flat_map(|thread| [written.of(thread), synced.of(thread)]);
        Operation::Write {
            at: self.base,
            bytes: words.flat_map(u64::to_le_bytes).collect(),
        }
    }

    /// Reads all words.
    #[must_use]
    pub fn read(self) -> Operation {
        Operation::Read {
            at: self.base,
            bytes: self.bytes(),
        }
    }

    /// What a copy says is written, and synced.
    #[must_use]
    pub fn parse(self, copy: &[u8]) -> (Snapshot, Snapshot) {
        assert_eq!(copy.len() as u64, self.bytes(), "positions are read whole");
        let (words, _) = copy.as_chunks::<WORD_LENGTH>();
        let word = |place: usize| words.get(place).map_or(0, |word| u64::from_le_bytes(*word));
        let of = |which: usize| {
            let threads = 0..usize::from(self.threads);
            Snapshot::of_numbers(threads.map(|thread| word(2 * thread + which)).collect())
        };
        (of(0), of(1))
    }

    /// Reads what is written of one thread.
    fn written(self, thread: ThreadId) -> Operation {
        assert!(
            thread.number() < self.threads,
            "there are positions of thread {thread}"
        );
        Operation::Read {
            at: self.base.plus(WORDS * WORD * u64::from(thread.number())),
            bytes: WORD,
        }
    }
}

/// A thread's way round its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ring {
    kept: DurablePositions,
    slots: u64,
    /// Up to this sequence transactions may be logged, by what was seen of the words.
    until: u64,
}

impl Ring {
    /// Of a thread with a log; none: that is no ring, or there are no words for the thread.
    pub(crate) fn new(kept: DurablePositions, log: &Log, thread: ThreadId) -> Option<Self> {
        let is_fine = log.slots() >= Log::RING_MIN && thread.number() < kept.threads;
        let (slots, until) = (log.slots(), 0);
        is_fine.then_some(Self { kept, slots, until })
    }

    /// What is to be seen before a transaction is logged; none: that was seen before.
    pub(crate) fn needs(&self, stamp: Stamp) -> Option<Need> {
        (stamp.sequence > self.until).then(|| Need {
            operation: self.kept.written(stamp.thread),
            least: self.least(stamp.sequence),
        })
    }

    /// The sequence that must be written before one is logged behind what was allowed so far. At
    /// first all that came before this session; later so much that half a ring is free.
    fn least(&self, sequence: u64) -> u64 {
        assert!(
            self.slots >= Log::RING_MIN,
            "a ring has slots beside those for closings"
        );
        let room = self.slots - Log::SPARE;
        let ahead = if self.until == 0 { room } else { room / 2 };
        (sequence + ahead - 1).saturating_sub(room)
    }

    /// A transaction was logged.
    pub(crate) fn logged(&mut self, sequence: u64) {
        if sequence > self.until {
            self.until = self.least(sequence) + self.slots - Log::SPARE;
            assert!(
                self.until >= sequence,
                "what was logged was allowed: {sequence}, and {} is",
                self.until
            );
        }
    }
}

/// What must be written before a transaction is logged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Need {
    /// Reads the word.
    pub operation: Operation,
    least: u64,
}

impl Need {
    /// It is looked at so often: for most of a second, as drivers pause.
    pub(crate) const TRIES_MAX: u32 = 1 << 10;

    pub(crate) fn is_met(&self, copy: &[u8]) -> bool {
        let word = copy.first_chunk().map(|word| u64::from_le_bytes(*word));
        word.is_some_and(|word| word >= self.least)
    }
}

/// Waits until all that a snapshot holds is synced. It asks again for as long as that takes: whoever
/// carries it out decides when to give up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Await {
    kept: DurablePositions,
    snapshot: Snapshot,
    times: u32,
    #[cfg(feature = "mutants")]
    pub(crate) only: Option<ThreadId>,
}

impl Await {
    /// For all that somebody has seen, itself included ([`crate::Session::seen`]).
    #[must_use]
    pub fn new(kept: DurablePositions, snapshot: Snapshot) -> Self {
        Self {
            kept,
            snapshot,
            times: 0,
            #[cfg(feature = "mutants")]
            only: None,
        }
    }

    fn is_met(&self, copy: &[u8]) -> bool {
        let (_, synced) = self.kept.parse(copy);
        #[cfg(feature = "mutants")]
        if let Some(thread) = self.only {
            return synced.of(thread) >= self.snapshot.of(thread);
        }
        synced.includes(&self.snapshot)
    }
}

impl Machine for Await {
    type Output = Result<(), Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        let Some(outcome) = only(outcomes) else {
            return Step::Post(vec![self.kept.read()]);
        };
        match copy_of(&outcome) {
            Err(fault) => Step::Done(Err(fault)),
            Ok(copy) if self.is_met(copy) => Step::Done(Ok(())),
            Ok(_) => {
                self.times += 1;
                Step::Backoff(vec![self.kept.read()], self.times)
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let numbers = self.snapshot.numbers().len();
        ensure(numbers == usize::from(self.kept.threads), || {
            format!(
                "it waits for {numbers} threads, and there are positions of {}",
                self.kept.threads
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;

    fn kept() -> DurablePositions {
        let server = ServerId(0);
        DurablePositions::new(Address { server, offset: 64 }, 3)
    }

    fn log(slots: u64) -> Log {
        let server = ServerId(0);
        let place = Address { server, offset: 0 };
        Log::new(vec![place], 128, slots).unwrap()
    }

    #[test]
    fn what_is_said_is_heard() {
        let written = Snapshot::of_numbers(vec![1, 2, 3]);
        let synced = Snapshot::of_numbers(vec![0, 2, 1]);
        let Operation::Write { bytes, .. } = kept().publish(&written, &synced) else {
            panic!("it writes");
        };
        assert_eq!(bytes.len() as u64, kept().bytes());
        assert_eq!(kept().parse(&bytes), (written.clone(), synced.clone()));
        let mut wait = Await::new(kept(), synced);
        assert_eq!(wait.step(Vec::new()), Step::Post(vec![kept().read()]));
        let heard = vec![OperationOutcome::Read(bytes.clone())];
        assert_eq!(wait.step(heard.clone()), Step::Done(Ok(())));
        let mut wait = Await::new(kept(), written);
        assert_eq!(wait.step(Vec::new()), Step::Post(vec![kept().read()]));
        for times in 1..3 {
            let again = Step::Backoff(vec![kept().read()], times);
            assert_eq!(wait.step(heard.clone()), again);
        }
    }

    #[test]
    fn a_log_without_a_ring_has_no_archiver() {
        let thread = |number| ThreadId::new(number).unwrap();
        assert!(Ring::new(kept(), &log(1), thread(0)).is_none());
        assert!(Ring::new(kept(), &log(4), thread(2)).is_some());
        assert!(Ring::new(kept(), &log(4), thread(3)).is_none());
    }

    /// Whatever the log archiver has written when it is looked at, nothing is written over before, there is
    /// room for two closings, and one look is enough for half of what is left.
    #[test]
    fn what_is_allowed_is_written_before_it_is_written_over() {
        for slots in Log::RING_MIN..12 {
            for after in [0, 1, 7, 100] {
                let thread = ThreadId::FIRST;
                let mut ring = Ring::new(kept(), &log(slots), thread).unwrap();
                let (mut written, mut looks) = (0, 0);
                let count = 10 * slots;
                for sequence in after + 1..=after + count {
                    if let Some(need) = ring.needs(Stamp { thread, sequence }) {
                        looks += 1;
                        let word = |word: u64| word.to_le_bytes();
                        assert!(need.is_met(&word(sequence - 1)), "it waits for itself");
                        // The log archiver is as slow as it may be.
                        written = (written..sequence)
                            .find(|least| need.is_met(&word(*least)))
                            .unwrap();
                    }
                    ring.logged(sequence);
                    assert!(written >= after, "what was there before is not written");
                    assert!(sequence + Log::SPARE <= written.max(after) + slots);
                }
                let half = (slots - Log::SPARE) / 2;
                assert!(looks <= 1 + count.div_ceil(half), "{looks} of {slots}");
            }
        }
    }
}
