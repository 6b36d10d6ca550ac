//! What every carrier is tested for.
//!
//! A carrier's tests call [`run`] with a way to make clients of one server. What its [`Grants`]
//! do not include is not asked for.
// A failed check ends the test that called it.
#![allow(clippy::panic)]

use std::thread;

use crate::address::{Address, ServerId, WORD, WORD_LENGTH};
use crate::fabric::{BatchId, Fabric};
use crate::operation::{BYTES_MAX, Operation, OperationOutcome};

/// Makes one more client, of its own number.
pub type Maker<'a> = dyn Fn(u64) -> Box<dyn Fabric + Send> + Sync + 'a;

/// Bytes that the server must have registered: two of the largest writes.
pub const REGISTERED: u64 = 2 * BYTES_MAX;

/// How often each racing client does what it does.
const TIMES: u64 = 2_000;
/// How often a client looks for an answer before it lets others run.
const POLLS: u32 = 64;
/// Clients that race.
const RACERS: u64 = 3;

/// The clients of one server, for checks.
pub struct Bench<'a> {
    maker: &'a Maker<'a>,
    server: ServerId,
}

/// One check.
pub type Check = fn(&Bench<'_>);

/// All of them, by their names.
pub const CHECKS: [(&str, Check); 7] = [
    ("what is written is read", what_is_written_is_read),
    (
        "what is complete is seen by others",
        what_is_complete_is_seen_by_others,
    ),
    (
        "outcomes come in the order of operations",
        outcomes_come_in_order,
    ),
    (
        "what makes no sense starts nothing",
        what_makes_no_sense_starts_nothing,
    ),
    ("swaps and additions are never lost", nothing_is_lost),
    ("words are whole", words_are_whole),
    (
        "the word of an ordered write comes last",
        the_word_comes_last,
    ),
];

/// Runs all checks, one after another, on memory that nobody else uses.
pub fn run(maker: &Maker<'_>, server: ServerId) {
    let bench = Bench::new(maker, server);
    for (name, check) in CHECKS {
        println_name(name);
        check(&bench);
    }
}

#[allow(clippy::print_stdout)] // tests show it when they fail
fn println_name(name: &str) {
    println!("conformance: {name}");
}

/// A client, and the number of its next batch.
struct ClientHandle {
    fabric: Box<dyn Fabric + Send>,
    next: u64,
}

impl ClientHandle {
    /// Does operations, and waits for them.
    fn all(&mut self, operations: Vec<Operation>) -> Vec<OperationOutcome> {
        self.next += 1;
        let batch = BatchId(self.next);
        if let Err(misuse) = self.fabric.post(batch, operations) {
            panic!("{misuse}");
        }
        loop {
            // What takes microseconds is not worth giving up a processor for, at once.
            let done = (0..POLLS).find_map(|_| self.fabric.poll());
            if let Some(done) = done {
                assert_eq!(done.batch, batch, "a batch that nobody waits for");
                return done.outcomes;
            }
            thread::yield_now();
        }
    }

    fn one(&mut self, operation: Operation) -> OperationOutcome {
        let mut outcomes = self.all(vec![operation]);
        assert_eq!(outcomes.len(), 1);
        outcomes.remove(0)
    }

    fn read(&mut self, at: Address, bytes: u64) -> Vec<u8> {
        match self.one(Operation::Read { at, bytes }) {
            OperationOutcome::Read(found) => found,
            other => panic!("a read ended as {other:?}"),
        }
    }

    fn write(&mut self, at: Address, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        assert_eq!(
            self.one(Operation::Write { at, bytes }),
            OperationOutcome::Written
        );
    }

    fn word(&mut self, operation: Operation) -> u64 {
        match self.one(operation) {
            OperationOutcome::Word(former) => former,
            other => panic!("an atomic operation ended as {other:?}"),
        }
    }
}

impl<'a> Bench<'a> {
    /// Clients of one server, which nobody else uses.
    pub fn new(maker: &'a Maker<'a>, server: ServerId) -> Self {
        Self { maker, server }
    }

    fn handle(&self, client: u64) -> ClientHandle {
        let fabric = (self.maker)(client);
        assert!(fabric.registered(self.server) >= Some(REGISTERED));
        ClientHandle { fabric, next: 0 }
    }

    fn at(&self, offset: u64) -> Address {
        let server = self.server;
        Address { server, offset }
    }
}

/// Words of bytes.
fn words(bytes: &[u8]) -> Vec<u64> {
    let (words, rest) = bytes.as_chunks::<WORD_LENGTH>();
    assert!(rest.is_empty());
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// A word again and again.
fn filled(word: u64, count: usize) -> Vec<u8> {
    word.to_le_bytes().repeat(count)
}

fn what_is_written_is_read(bench: &Bench<'_>) {
    let mut handle = bench.handle(1);
    for bytes in [WORD, 64, 1_000, 16 << 10, BYTES_MAX] {
        let pattern: Vec<u8> = (0..bytes).map(|byte| (byte % 251) as u8).collect();
        handle.write(bench.at(WORD), &pattern);
        assert_eq!(handle.read(bench.at(WORD), bytes), pattern, "{bytes} bytes");
    }
    let last = bench.at(REGISTERED - WORD);
    handle.write(last, &filled(7, 1));
    assert_eq!(words(&handle.read(last, WORD)), [7]);
}

fn what_is_complete_is_seen_by_others(bench: &Bench<'_>) {
    let (mut writer, mut reader) = (bench.handle(1), bench.handle(2));
    for word in 1..=TIMES {
        writer.write(bench.at(0), &filled(word, 16));
        assert_eq!(words(&reader.read(bench.at(0), 128)), [word; 16]);
    }
}

fn outcomes_come_in_order(bench: &Bench<'_>) {
    let mut handle = bench.handle(1);
    handle.write(bench.at(0), &filled(5, 4));
    let outcomes = handle.all(vec![
        Operation::Read {
            at: bench.at(0),
            bytes: WORD,
        },
        Operation::CompareSwap {
            at: bench.at(8),
            expected: 5,
            new: 6,
        },
        Operation::CompareSwap {
            at: bench.at(16),
            expected: 4,
            new: 6,
        },
        Operation::FetchAdd {
            at: bench.at(24),
            delta: u64::MAX,
        },
        Operation::Write {
            at: bench.at(32),
            bytes: filled(9, 1),
        },
    ]);
    let expected = [
        OperationOutcome::Read(filled(5, 1)),
        OperationOutcome::Word(5),
        OperationOutcome::Word(5),
        OperationOutcome::Word(5),
        OperationOutcome::Written,
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(words(&handle.read(bench.at(0), 40)), [5, 6, 5, 4, 9]);
    assert_eq!(handle.all(Vec::new()), []);
}

fn what_makes_no_sense_starts_nothing(bench: &Bench<'_>) {
    let mut handle = bench.handle(1);
    handle.write(bench.at(0), &filled(1, 1));
    let write = || Operation::Write {
        at: bench.at(0),
        bytes: filled(2, 1),
    };
    let stranger = ServerId(bench.server.0 ^ 0x7fff);
    let elsewhere = Address {
        server: stranger,
        offset: 0,
    };
    let read = |at, bytes| Operation::Read { at, bytes };
    for wrong in [
        read(bench.at(4), WORD),
        read(bench.at(0), WORD + 1),
        read(bench.at(0), 0),
        read(bench.at(0), BYTES_MAX + WORD),
        read(bench.at(u64::MAX - 7), WORD),
        read(elsewhere, WORD),
    ] {
        let batch = vec![write(), wrong.clone()];
        let refused = handle.fabric.post(BatchId(9), batch);
        assert!(refused.is_err(), "{wrong:?} is allowed");
        assert_eq!(handle.fabric.poll(), None);
    }
    assert_eq!(words(&handle.read(bench.at(0), WORD)), [1]);
}

/// Runs as many clients at a time as race, each with its number from 1 on.
fn race(bench: &Bench<'_>, what: impl Fn(&mut ClientHandle, u64) + Sync) {
    thread::scope(|scope| {
        for client in 1..=RACERS {
            let mut handle = bench.handle(client);
            let what = &what;
            scope.spawn(move || what(&mut handle, client));
        }
    });
}

fn nothing_is_lost(bench: &Bench<'_>) {
    bench.handle(1).write(bench.at(0), &filled(0, 16));
    let (added, swapped) = (bench.at(0), bench.at(64));
    race(bench, |handle, client| {
        for _ in 0..TIMES {
            handle.word(Operation::FetchAdd {
                at: added,
                delta: client,
            });
            let mut expected = 0;
            loop {
                let found = handle.word(Operation::CompareSwap {
                    at: swapped,
                    expected,
                    new: expected + client,
                });
                if found == expected {
                    break;
                }
                expected = found;
            }
        }
    });
    let total = TIMES * (1..=RACERS).sum::<u64>();
    let found = words(&bench.handle(1).read(bench.at(0), 128));
    assert_eq!((found[0], found[8]), (total, total));
}

fn words_are_whole(bench: &Bench<'_>) {
    bench.handle(1).write(bench.at(0), &filled(0, 128));
    race(bench, |handle, client| {
        for _ in 0..TIMES {
            if client == 1 {
                for word in words(&handle.read(bench.at(0), 1024)) {
                    let byte = word.to_le_bytes()[0];
                    assert_eq!(word.to_le_bytes(), [byte; 8], "half a word");
                }
            } else {
                let byte = u8::try_from(client).unwrap_or_default();
                handle.write(bench.at(0), &[byte; 1024]);
            }
        }
    });
}

fn the_word_comes_last(bench: &Bench<'_>) {
    let granted = bench.handle(1).fabric.grants();
    if !granted.writes_in_order {
        return;
    }
    // The word lies before the bytes, where whoever copies upwards comes by first.
    bench.handle(1).write(bench.at(0), &filled(0, 256));
    race(bench, |handle, client| {
        for number in 1..=TIMES {
            if client == 1 {
                let ordered = Operation::WriteThenSet {
                    at: bench.at(64),
                    bytes: filled(number, 128),
                    word_at: 0,
                    word: number,
                };
                assert_eq!(handle.one(ordered), OperationOutcome::Written);
            } else {
                let word = words(&handle.read(bench.at(0), WORD))[0];
                let bytes = words(&handle.read(bench.at(64), 1024));
                let oldest = bytes.iter().min().copied();
                assert!(
                    oldest >= Some(word),
                    "{word} came before its bytes: {oldest:?}"
                );
            }
        }
    });
}
