//! Random transactions whose whole history is judged: which versions they read and wrote, and what
//! their snapshots held ([`manxdb_checker::versions`]). With clients that live and clients that
//! die, at both levels; and defects that the judge finds.
//!
//! Nobody looks at memory meanwhile, so that what is found is found by the judge. A fabric that
//! unlocks before it has written is not in its list: records become unreadable, and no history
//! comes to its end (`isolation.rs` and `model` find that).
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{ClientHandle, TestCluster, can_be_tried_again, record, value};
use manxdb_checker::versions::{
    Anomaly, History, Level, Outcome, Read, Transaction, Verdict, Version, Write, check,
};
use manxdb_core::Random;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Change, Head, Isolation, LookupResult, Seen, Snapshot, Stamp, ThreadId};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 80;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 400;
const RECORDS: u64 = 5;
const CLIENTS: u64 = 4;
const TIMES: u64 = 10;
const THREADS: u16 = 24;
/// Events within which all clients of a run are at work.
const EVENTS: u64 = 1_500;

type Notes = Rc<RefCell<Vec<Transaction>>>;

fn version(stamp: Stamp) -> Version {
    Version {
        writer: u64::from(stamp.thread.number()),
        number: stamp.sequence,
    }
}

/// What a value says; one of two times says what nobody wrote.
fn number(seen: &Seen) -> u64 {
    let Some(bytes) = seen.value() else { return 0 };
    let first = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    if *bytes == value(first) {
        first
    } else {
        u64::MAX
    }
}

/// A transaction as far as its reads, which may be all that comes of it.
fn begun(
    handle: &ClientHandle,
    snapshot: &Snapshot,
    seen: &[(u64, Seen)],
    name: u64,
) -> Transaction {
    let numbers = (0..THREADS).filter_map(ThreadId::new);
    let numbers = numbers.map(|thread| (u64::from(thread.number()), snapshot.of(thread)));
    let read = |(key, seen): &(u64, Seen)| Read {
        key: *key,
        version: version(seen.stamp),
        value: number(seen),
    };
    Transaction {
        name,
        session: u64::from(handle.thread.number()),
        outcome: Outcome::Failed,
        version: None,
        snapshot: numbers.collect(),
        reads: seen.iter().map(read).collect(),
        writes: Vec::new(),
    }
}

/// Runs transactions on records drawn by the client, and notes all that it sees.
async fn work(mut handle: ClientHandle, isolation: Isolation, notes: Notes) {
    for time in 0..TIMES {
        let snapshot = handle.begin().await;
        let count = 1 + handle.random.below(3);
        let first = handle.random.below(RECORDS);
        let step = 1 + handle.random.below(RECORDS - 1);
        let mut seen = Vec::new();
        for key in (0..count).map(|number| (first + number * step) % RECORDS) {
            if let Ok(read) = handle.read(&snapshot, record(key)).await {
                seen.push((key, read));
            }
        }
        let name = u64::from(handle.thread.number()) * TIMES + time;
        let mut transaction = begun(&handle, &snapshot, &seen, name);
        let mut changes = Vec::new();
        let mut reads = Vec::new();
        for (key, read) in seen {
            if handle.random.below(2) == 0 {
                reads.push(read.into());
                continue;
            }
            let value = 1 + name * RECORDS + key; // said by nobody else
            transaction.writes.push(Write {
                key,
                over: version(read.stamp),
                value,
            });
            changes.push(crate::common::change(&read, value));
        }
        commit(
            &mut handle,
            (transaction, &notes),
            &reads,
            changes,
            isolation,
        )
        .await;
    }
}

/// Commits, and notes the end; until then nobody knows it.
async fn commit(
    handle: &mut ClientHandle,
    (mut transaction, notes): (Transaction, &Notes),
    reads: &[LookupResult],
    changes: Vec<Change>,
    isolation: Isolation,
) {
    let own = transaction.session;
    if !changes.is_empty() {
        transaction.version = Some(Version {
            writer: own,
            number: transaction.snapshot[&own] + 1,
        });
    }
    transaction.outcome = Outcome::Unknown;
    let place = notes.borrow().len();
    notes.borrow_mut().push(transaction);
    let committed = handle.try_commit(reads, changes, isolation).await;
    let outcome = match committed {
        Ok(_) => Outcome::Ok,
        Err(abort) if can_be_tried_again(abort) => Outcome::Failed,
        Err(other) => panic!("{other}"),
    };
    notes.borrow_mut()[place].outcome = outcome;
}

/// A way to run all this.
#[derive(Clone, Copy)]
struct Plan {
    isolation: Isolation,
    dies: bool,
    mutant: Option<Mutant>,
}

impl Plan {
    const fn new(isolation: Isolation, dies: bool) -> Self {
        Self {
            isolation,
            dies,
            mutant: None,
        }
    }

    const fn with(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }
}

/// Clients at work, of whom one or two may die and be recovered; then others, to the end.
fn run(seed: u64, plan: Plan) -> Verdict {
    let cluster = TestCluster::new(seed, THREADS, RECORDS, MemoryOptions::default()).with_logs();
    let mut cluster = cluster.with(plan.mutant).unwatched();
    let notes = Notes::default();
    let isolation = plan.isolation;
    let wave = |cluster: &mut TestCluster| {
        let mut wave = Vec::new();
        for _ in 0..CLIENTS {
            let notes = Rc::clone(&notes);
            wave.push(cluster.client(move |handle| work(handle, isolation, notes)));
        }
        wave
    };
    let clients = wave(&mut cluster);
    if plan.dies {
        let mut random = Random::stream(seed, &[1]);
        cluster.start();
        let count = 1 + usize::try_from(random.below(2)).unwrap();
        for client in &clients[..count] {
            for _ in 0..random.below(EVENTS) {
                cluster.step();
            }
            cluster.kill(*client);
        }
        while cluster.step() {}
        cluster.recover(&clients[..count]);
        wave(&mut cluster);
    }
    cluster.run();
    check(&history(&cluster, &notes), level(isolation))
}

fn level(isolation: Isolation) -> Level {
    match isolation {
        Isolation::Snapshot => Level::Snapshot,
        Isolation::Serializable => Level::Serializable,
    }
}

fn history(cluster: &TestCluster, notes: &Notes) -> History {
    let last = |key| {
        let head = cluster.memory.look(record(key), 8);
        let head = Head::of_word(u64::from_le_bytes(*head.first_chunk().unwrap()));
        let Head::Free(stamp) = head else {
            panic!("record {key} is locked: {head:?}");
        };
        (key, version(stamp))
    };
    History {
        transactions: notes.borrow().clone(),
        first: (0..RECORDS)
            .map(|key| (key, (version(Stamp::NOTHING), 0)))
            .collect(),
        last: (0..RECORDS).map(last).collect::<BTreeMap<_, _>>(),
    }
}

/// No seed shows anything wrong; knots of write skew in all of them.
fn skews(plan: Plan) -> usize {
    let judge = |seed| {
        let verdict = run(seed, plan);
        assert!(verdict.is_valid(), "seed {seed}: {verdict}");
        verdict.skews()
    };
    (0..seeds(SEEDS)).map(judge).sum()
}

#[test]
fn every_history_is_of_snapshots_and_some_have_write_skew() {
    let skews = skews(Plan::new(Isolation::Snapshot, false));
    assert!(skews > 0, "this test is blind");
}

#[test]
fn every_history_is_of_snapshots_when_clients_die() {
    let skews = skews(Plan::new(Isolation::Snapshot, true));
    assert!(skews > 0, "this test is blind");
}

#[test]
fn every_serializable_history_has_a_serial_order() {
    skews(Plan::new(Isolation::Serializable, false));
}

#[test]
fn every_serializable_history_has_a_serial_order_when_clients_die() {
    skews(Plan::new(Isolation::Serializable, true));
}

/// The first seed whose history shows one of these. A run that ends in a panic shows nothing.
fn found(plan: Plan, anomalies: &[Anomaly]) -> Option<u64> {
    (0..DEFECT_SEEDS).find(|seed| {
        let verdict = catch_unwind(AssertUnwindSafe(|| run(*seed, plan)));
        let found = verdict.map(|verdict| verdict.anomalies());
        found.is_ok_and(|found| found.iter().any(|one| anomalies.contains(one)))
    })
}

#[test]
fn planted_defects_are_found_in_histories() {
    use Anomaly::{AntiDependency, BrokenCut, HalfCommit, LostWrite, NotOfSnapshot};
    let alive = Plan::new(Isolation::Snapshot, false);
    let dying = Plan::new(Isolation::Snapshot, true);
    let serial = Plan::new(Isolation::Serializable, false);
    let cases: [(&str, Plan, &[Anomaly]); 6] = [
        (
            "ForgetsWhatWasSeen",
            alive.with(Mutant::ForgetsWhatWasSeen),
            &[BrokenCut],
        ),
        (
            "TakesEveryLock",
            alive.with(Mutant::TakesEveryLock),
            &[LostWrite],
        ),
        (
            "NeverValidates",
            serial.with(Mutant::NeverValidates),
            &[AntiDependency],
        ),
        (
            "PublishesFirst",
            alive.with(Mutant::PublishesFirst),
            &[NotOfSnapshot],
        ),
        (
            "InstallsBeforeItLogs",
            dying.with(Mutant::InstallsBeforeItLogs),
            &[HalfCommit],
        ),
        (
            "ReadsTheNewest",
            alive.with(Mutant::ReadsTheNewest),
            &[NotOfSnapshot],
        ),
    ];
    for (name, plan, anomalies) in cases {
        let seed = found(plan, anomalies);
        println!("{name}: seed {seed:?}");
        assert!(seed.is_some(), "{name} is not found");
    }
}
