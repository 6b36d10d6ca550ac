//! A client that stops at each step of a commit, and what becomes of its transaction.
//!
//! The first run of a seed goes to its end, so that it is known what each place of memory comes to
//! hold. The second stops in the first moment that a row describes: the client is shut out, and of
//! what it has under way nothing lands any more. Whoever goes on for it finds a transaction that is
//! committed, or one that never was; each row says which.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::Cell;
use std::rc::Rc;

use crate::common::{
    ClientHandle, LAYOUT, SERVERS, TestCluster, change, number, record, thread_of,
};
use manxdb_fabric::{Address, Fault, ServerId};
use manxdb_rsi::{Abort, Head, Isolation, Recover};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 40;
const THREADS: u16 = 24;
/// Two records of the first server: the second one has a log, and may be lost.
const RECORDS: [u64; 2] = [0, 2];
/// Money in the first record; the client moves half of it to the second.
const TOTAL: u64 = 1_000;
/// The client that stops. Another one has put the money there.
const CLIENT: u64 = 2;

/// How much of a place holds what it comes to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Nothing,
    Part,
    All,
}

/// How far a commit has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct View {
    /// Locks on records that it has.
    locked: usize,
    /// Heads of records that name its version.
    set: usize,
    /// The two logs,
    logs: [Share; 2],
    /// what is behind the two heads,
    bodies: [Share; 2],
    /// and its line of the vector.
    line: Share,
}

impl View {
    /// How many of two places are whole.
    fn whole(places: [Share; 2]) -> usize {
        places.iter().filter(|share| **share == Share::All).count()
    }

    fn untouched(places: [Share; 2]) -> bool {
        places == [Share::Nothing; 2]
    }

    /// Everything is logged, nothing is published.
    fn is_installing(&self) -> bool {
        View::whole(self.logs) == 2 && self.line == Share::Nothing
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Absent,
    Committed,
}

/// A moment in which the client stops, and what becomes of its transaction.
struct Row {
    name: &'static str,
    is_at: fn(&View) -> bool,
    fate: Fate,
}

const fn row(name: &'static str, fate: Fate, is_at: fn(&View) -> bool) -> Row {
    Row { name, is_at, fate }
}

const MATRIX: [Row; 14] = [
    row("nothing is done", Fate::Absent, |view| {
        view.locked == 0 && View::untouched(view.logs)
    }),
    row("one of two records is locked", Fate::Absent, |view| {
        view.locked == 1 && View::untouched(view.logs)
    }),
    row("all records are locked", Fate::Absent, |view| {
        view.locked == 2 && View::untouched(view.logs)
    }),
    row(
        "parts of logs are written, none whole",
        Fate::Absent,
        |view| !View::untouched(view.logs) && View::whole(view.logs) == 0,
    ),
    row(
        "one of two logs is whole, the other untouched",
        Fate::Committed,
        |view| View::whole(view.logs) == 1 && view.logs.contains(&Share::Nothing),
    ),
    row(
        "one of two logs is whole, the other half",
        Fate::Committed,
        |view| View::whole(view.logs) == 1 && view.logs.contains(&Share::Part),
    ),
    row("all logs are whole", Fate::Committed, |view| {
        view.is_installing() && View::untouched(view.bodies)
    }),
    row("a part of one record is written", Fate::Committed, |view| {
        view.is_installing()
            && view.bodies.contains(&Share::Part)
            && view.bodies.contains(&Share::Nothing)
    }),
    row(
        "parts of both records are written",
        Fate::Committed,
        |view| view.is_installing() && view.bodies == [Share::Part; 2],
    ),
    row(
        "all is written and all is locked",
        Fate::Committed,
        |view| view.is_installing() && View::whole(view.bodies) == 2 && view.locked == 2,
    ),
    row("one of two records is unlocked", Fate::Committed, |view| {
        view.is_installing() && view.set == 1
    }),
    row(
        "all is installed, nothing published",
        Fate::Committed,
        |view| view.is_installing() && view.set == 2,
    ),
    row("half of the line is written", Fate::Committed, |view| {
        view.line == Share::Part
    }),
    row("all is published", Fate::Committed, |view| {
        view.line == Share::All
    }),
];

/// The places that a commit writes, apart from heads.
fn places(cluster: &TestCluster) -> [(Address, u64); 5] {
    let line = cluster.vector().bytes() / u64::from(THREADS);
    let own = Address {
        server: ServerId(0),
        offset: line * u64::from(thread_of(CLIENT).number()),
    };
    let body = |place: usize| (record(RECORDS[place]).plus(8), LAYOUT.bytes() as u64 - 8);
    let log = |server| {
        (
            crate::common::log_place(thread_of(CLIENT), server),
            crate::common::LOG_BYTES,
        )
    };
    [log(0), log(1), body(0), body(1), (own, line)]
}

fn contents(cluster: &TestCluster) -> [Vec<u8>; 5] {
    places(cluster).map(|(at, bytes)| cluster.memory.look(at, bytes))
}

/// What every place holds before the commit, and after it.
struct Ends {
    before: [Vec<u8>; 5],
    after: [Vec<u8>; 5],
}

impl Ends {
    fn view(&self, cluster: &TestCluster) -> View {
        let mut shares = [Share::Nothing; 5];
        let now = contents(cluster);
        for (place, share) in shares.iter_mut().enumerate() {
            *share = match &now[place] {
                now if *now == self.after[place] => Share::All,
                now if *now == self.before[place] => Share::Nothing,
                _ => Share::Part,
            };
        }
        let [log, other_log, body, other_body, line] = shares;
        let own = thread_of(CLIENT);
        let owners = cluster.owners();
        let is_set = |place: &&u64| {
            let head = cluster.memory.look(record(**place), 8);
            let head = Head::of_word(u64::from_le_bytes(*head.first_chunk().unwrap()));
            matches!(head, Head::Free(stamp) if stamp.thread == own)
        };
        View {
            locked: owners.iter().filter(|(_, owner)| *owner == own).count(),
            set: RECORDS.iter().filter(|place| is_set(place)).count(),
            logs: [log, other_log],
            bodies: [body, other_body],
            line,
        }
    }
}

/// What the client heard of its commit.
type MembershipEvent = Rc<Cell<Option<Result<bool, Abort>>>>;

/// Moves half of the money; whether there was something to write.
async fn move_half(handle: &mut ClientHandle) -> Result<bool, Abort> {
    let snapshot = handle.run(handle.session.begin()?).await?;
    handle.session.saw(&snapshot);
    let from = handle.read(&snapshot, record(RECORDS[0])).await?;
    let to = handle.read(&snapshot, record(RECORDS[1])).await?;
    let changes = vec![change(&from, TOTAL / 2), change(&to, TOTAL / 2)];
    let committed = handle.try_commit(&[], changes, Isolation::Snapshot).await?;
    Ok(committed.is_some())
}

/// Two records with money in one, and a client that is about to move half of it.
fn cluster(seed: u64) -> (TestCluster, MembershipEvent) {
    assert_eq!(SERVERS, 2);
    let mut cluster = TestCluster::new(seed, THREADS, 3, MemoryOptions::default()).with_logs();
    cluster.client(|mut handle| async move {
        let snapshot = handle.begin().await;
        let seen = handle.read(&snapshot, record(RECORDS[0])).await.unwrap();
        let changes = vec![change(&seen, TOTAL)];
        assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
    });
    cluster.run();
    let heard = MembershipEvent::default();
    let hears = Rc::clone(&heard);
    let client = cluster.client(move |mut handle| async move {
        let end = move_half(&mut handle).await;
        if let Err(Abort::Fault(_)) = end {
            // Over, if it was committing; shut out from all else.
            let again = move_half(&mut handle).await;
            assert!(matches!(again, Err(Abort::Over(_) | Abort::Fault(_))));
        }
        hears.set(Some(end));
    });
    assert_eq!(client, CLIENT);
    cluster.start();
    (cluster, heard)
}

fn ends(seed: u64) -> Ends {
    let (mut cluster, heard) = cluster(seed);
    let before = contents(&cluster);
    while cluster.step() {}
    assert_eq!(heard.get(), Some(Ok(true)));
    let after = contents(&cluster);
    Ends { before, after }
}

/// Runs a seed until a moment comes; none if it never does.
fn until(seed: u64, ends: &Ends, row: &Row) -> Option<(TestCluster, MembershipEvent)> {
    let (mut cluster, heard) = cluster(seed);
    loop {
        if (row.is_at)(&ends.view(&cluster)) {
            return Some((cluster, heard));
        }
        if !cluster.step() {
            return None;
        }
    }
}

/// Everything is as a row says.
fn judge(cluster: &mut TestCluster, row: &Row, seed: u64) {
    let fate = row.fate;
    let name = row.name;
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        let from = handle.read(&snapshot, record(RECORDS[0])).await.unwrap();
        let to = handle.read(&snapshot, record(RECORDS[1])).await.unwrap();
        let expected = match fate {
            Fate::Absent => (TOTAL, 0),
            Fate::Committed => (TOTAL / 2, TOTAL / 2),
        };
        let found = (number(&from), number(&to));
        assert_eq!(found, expected, "{name}, seed {seed}");
    });
    cluster.run();
}

/// The records can be written as before: back to what they were.
fn write_again(cluster: &mut TestCluster) {
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        let from = handle.read(&snapshot, record(RECORDS[0])).await.unwrap();
        let to = handle.read(&snapshot, record(RECORDS[1])).await.unwrap();
        let changes = vec![change(&from, TOTAL), change(&to, 0)];
        assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
    });
    cluster.run();
}

#[test]
fn a_transaction_is_whole_or_absent_wherever_its_client_stops() {
    let count = seeds(SEEDS);
    let ends: Vec<Ends> = (0..count).map(ends).collect();
    for row in &MATRIX {
        let mut met = 0;
        for (seed, ends) in (0..count).zip(&ends) {
            let Some((mut cluster, heard)) = until(seed, ends, row) else {
                continue;
            };
            assert_eq!(heard.get(), None, "{}, seed {seed}: too late", row.name);
            cluster.fence(CLIENT);
            cluster.kill(CLIENT);
            cluster.recover(&[CLIENT]);
            judge(&mut cluster, row, seed);
            write_again(&mut cluster);
            met += 1;
        }
        println!("{}: {met} of {count} seeds", row.name);
        assert!(met > count / 40, "{}: only {met} seeds come by", row.name);
    }
}

#[test]
fn a_client_that_comes_back_from_the_dead_writes_nothing_and_hears_so() {
    let mut refused = 0;
    for seed in 0..seeds(SEEDS) {
        let ends = ends(seed);
        for row in &MATRIX {
            let Some((mut cluster, heard)) = until(seed, &ends, row) else {
                continue;
            };
            // It lives on, and all that it has under way is still to come.
            cluster.fence(CLIENT);
            cluster.recover(&[CLIENT]);
            judge(&mut cluster, row, seed);
            write_again(&mut cluster);
            let end = heard.get();
            let fenced = |server| Abort::Fault(Fault::Fenced(ServerId(server)));
            match end {
                Some(Err(abort)) => {
                    assert!(abort == fenced(0) || abort == fenced(1), "{abort}");
                    refused += 1;
                }
                Some(Ok(_)) => assert_eq!(row.fate, Fate::Committed),
                None => panic!("{}, seed {seed}: it hears nothing", row.name),
            }
        }
    }
    assert!(
        refused > seeds(SEEDS),
        "{refused} refusals: this test is blind"
    );
}

/// The client stops when only the second server has its whole transaction. Who goes on for it stops
/// when one of the two records is installed; then the second server is lost.
#[test]
fn a_transaction_that_one_server_knows_is_whole_when_that_server_is_lost_over_its_recovery() {
    let row = row("only the second log is whole", Fate::Committed, |view| {
        view.logs[1] == Share::All && view.logs[0] != Share::All
    });
    let mut met = 0;
    for seed in 0..seeds(SEEDS) {
        let ends = ends(seed);
        let Some((mut cluster, _)) = until(seed, &ends, &row) else {
            continue;
        };
        cluster.fence(CLIENT);
        cluster.kill(CLIENT);
        let (thread, vector) = (thread_of(CLIENT), cluster.vector());
        let first = cluster.client(move |handle| async move {
            let recover = Recover::new(thread, vector, crate::common::log(thread));
            handle.run(recover).await.unwrap();
        });
        cluster.start();
        while ends.view(&cluster).set != 1 && cluster.step() {}
        met += u32::from(ends.view(&cluster).set == 1);
        cluster.fence(first);
        cluster.kill(first);
        cluster.memory.lose(ServerId(1));
        cluster.recover(&[CLIENT]);
        judge(&mut cluster, &row, seed);
    }
    assert!(met > 4, "only {met} seeds come by");
}
