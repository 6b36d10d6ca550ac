//! A client that stops at each step of the commit with which it enters keys: into two leaves, which
//! are split, as is what is above them. All of the keys are there then, or none.
//!
//! The commit is the client's only one: with the rows under the keys, or without, where the client's
//! snapshot is older than the leaves. Then its transaction is refused behind the commit, for one of its
//! rows is too long. The first run of a seed goes to its end, so that it is known what changes, and
//! to what; the second one stops in the first moment that a row describes.

use std::cell::Cell;
use std::rc::Rc;

use manxdb_fabric::Address;
use manxdb_rsi::{Head, Isolation, Layout, RecordAddress, Snapshot, Span};
use manxdb_sim::memory::MemoryOptions;

use crate::common::{self, ClientHandle, TestCluster, thread_of};
use crate::entering::{RECORDS, SMALL, at, client, extents, key, keyspace, read, write};

const SEEDS: u64 = 40;
const THREADS: u16 = 12;
/// The client that stops. Another one has filled the tree.
const CLIENT: u64 = 2;
/// Four of one leaf, one of another.
const NEW: [u64; 5] = [101, 102, 103, 104, 301];

/// How keys are entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With the rows under them.
    Together,
    /// By themselves.
    Apart,
}

fn old() -> Vec<u64> {
    (0..60).map(|number| number * 10).collect()
}

/// How much of a place holds what it comes to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Nothing,
    Part,
    All,
}

/// How far the commit has come.
struct View {
    /// What was there before and is locked, of how many.
    locked: usize,
    old: usize,
    /// What has heads that name its version, of how many.
    set: usize,
    all: usize,
    logs: [Share; 2],
    /// Behind the heads of all that changes.
    bodies: Vec<Share>,
    line: Share,
}

impl View {
    fn logs(&self, share: Share) -> usize {
        self.logs.iter().filter(|other| **other == share).count()
    }

    fn bodies(&self, share: Share) -> usize {
        self.bodies.iter().filter(|other| **other == share).count()
    }

    /// Everything is logged, nothing is published.
    fn is_installing(&self) -> bool {
        self.logs(Share::All) == 2 && self.line == Share::Nothing
    }
}

/// A moment in which the client stops, and whether the keys are there then.
type Row = (&'static str, bool, fn(&View) -> bool);

const MATRIX: [Row; 12] = [
    ("nothing is done", false, |view| view.locked == 0),
    ("some nodes are locked", false, |view| {
        view.locked > 0 && view.locked < view.old && view.logs(Share::Nothing) == 2
    }),
    ("all nodes are locked", false, |view| {
        view.locked == view.old && view.logs(Share::Nothing) == 2
    }),
    ("parts of logs are written, none whole", false, |view| {
        view.logs(Share::Nothing) < 2 && view.logs(Share::All) == 0
    }),
    ("one log is whole, the other is not", true, |view| {
        view.logs(Share::All) == 1
    }),
    ("all logs are whole", true, |view| {
        view.is_installing() && view.bodies(Share::Nothing) == view.all
    }),
    ("a part of one is written", true, |view| {
        view.is_installing() && view.bodies(Share::Part) == 1 && view.bodies(Share::All) == 0
    }),
    ("some are written, others not", true, |view| {
        view.is_installing() && view.bodies(Share::All) > 0 && view.bodies(Share::Nothing) > 0
    }),
    ("some are unlocked", true, |view| {
        view.is_installing() && view.set > 0 && view.set < view.all
    }),
    ("all is installed, nothing published", true, |view| {
        view.is_installing() && view.set == view.all
    }),
    ("half of the line is written", true, |view| {
        view.line == Share::Part
    }),
    ("all is published", true, |view| view.line == Share::All),
];

/// All nodes and records that there are, or may come to be.
fn all() -> Vec<(Address, Layout)> {
    let both = |thread| {
        let (records, nodes) = extents(thread, SMALL);
        let records = records.left().map(|place| (place, RECORDS));
        records.chain(nodes.left().map(|place| (place, SMALL)))
    };
    let root = (keyspace(SMALL).tree.root(), SMALL);
    let all = [root].into_iter().chain((0..2).flat_map(both));
    all.map(|(place, layout)| (place.address(), layout))
        .collect()
}

fn bodies(cluster: &TestCluster, all: &[(Address, Layout)]) -> Vec<Vec<u8>> {
    let body = |(at, layout): &(Address, Layout)| {
        cluster.memory.look(at.plus(8), layout.bytes() as u64 - 8)
    };
    all.iter().map(body).collect()
}

/// The two logs, and the line of the vector.
fn others(cluster: &TestCluster) -> [Vec<u8>; 3] {
    let thread = thread_of(CLIENT);
    let log = |server| {
        let place = common::log_place(thread, server);
        cluster.memory.look(place, common::LOG_BYTES)
    };
    let line = cluster.vector().bytes() / u64::from(THREADS);
    let own = at(0, line * u64::from(thread.number()));
    [log(0), log(1), cluster.memory.look(own, line)]
}

/// What every place holds before and after.
struct Ends {
    /// What changes,
    all: Vec<(Address, Layout)>,
    /// how much of which was there before.
    old: usize,
    bodies: [Vec<Vec<u8>>; 2],
    others: [[Vec<u8>; 3]; 2],
}

fn share([before, after]: [&Vec<u8>; 2], now: &Vec<u8>) -> Share {
    match now {
        now if now == after => Share::All,
        now if now == before => Share::Nothing,
        _ => Share::Part,
    }
}

impl Ends {
    fn of(seed: u64, way: Way) -> Self {
        let (mut cluster, is_over) = cluster(seed, way);
        let all = all();
        let (before, first) = (bodies(&cluster, &all), others(&cluster));
        while cluster.step() {}
        assert!(is_over.get());
        let (after, last) = (bodies(&cluster, &all), others(&cluster));
        let changed = (0..all.len()).filter(|one| before[*one] != after[*one]);
        let changed: Vec<usize> = changed.collect();
        let of = |all: &[Vec<u8>]| changed.iter().map(|one| all[*one].clone()).collect();
        let is_old = |one: &&usize| before[**one].iter().any(|byte| *byte != 0);
        let ends = Self {
            all: changed.iter().map(|one| all[*one]).collect(),
            old: changed.iter().filter(is_old).count(),
            bodies: [of(&before), of(&after)],
            others: [first, last],
        };
        // Two leaves, what is above them and the root, and the new half of each but the root.
        let rows = if way == Way::Together { NEW.len() } else { 0 };
        assert_eq!((ends.all.len(), ends.old), (7 + rows, 4), "seed {seed}");
        ends
    }

    fn view(&self, cluster: &TestCluster) -> View {
        let now = bodies(cluster, &self.all);
        let [before, after] = &self.bodies;
        let pairs = before.iter().zip(after).zip(&now);
        let bodies = pairs.map(|((before, after), now)| share([before, after], now));
        let others = others(cluster);
        let other = |one: usize| share([&self.others[0][one], &self.others[1][one]], &others[one]);
        let head = |(at, _): &(Address, Layout)| {
            let word = cluster.memory.look(*at, 8).try_into().unwrap();
            Head::of_word(u64::from_le_bytes(word))
        };
        let own = thread_of(CLIENT);
        let heads: Vec<Head> = self.all.iter().map(head).collect();
        let is_locked = |head: &&Head| matches!(head, Head::Locked(stamp) if stamp.thread == own);
        let is_set = |head: &&Head| matches!(head, Head::Free(stamp) if stamp.thread == own);
        View {
            locked: heads.iter().filter(is_locked).count(),
            old: self.old,
            set: heads.iter().filter(is_set).count(),
            all: self.all.len(),
            logs: [other(0), other(1)],
            bodies: bodies.collect(),
            line: other(2),
        }
    }
}

/// A tree of two levels, and a client that is about to enter keys; whether it has come to its end.
fn cluster(seed: u64, way: Way) -> (TestCluster, Rc<Cell<bool>>) {
    let options = MemoryOptions::default();
    let mut cluster = TestCluster::new(seed, THREADS, 0, options).with_logs();
    cluster.client(|handle| async move {
        let (mut client, _) = client(&handle, SMALL);
        for some in old().chunks(20) {
            write(&mut client, some.iter().copied()).await.unwrap();
        }
    });
    cluster.run();
    let is_over = Rc::<Cell<bool>>::default();
    let ends = Rc::clone(&is_over);
    cluster.client(move |handle| async move {
        let (mut client, tally) = client(&handle, SMALL);
        let mut rows = match way {
            Way::Together => client.begin(Isolation::Snapshot).await.unwrap(),
            Way::Apart => client.begin_at(Snapshot::empty(THREADS), Isolation::Snapshot),
        };
        for number in NEW {
            rows.write(key(number), Some(number.to_le_bytes().to_vec()));
        }
        if way == Way::Apart {
            let too_long = vec![0; RECORDS.value_max() + 1];
            rows.write(key(0), Some(too_long));
        }
        let committed = rows.commit().await;
        assert_eq!(committed.is_ok(), way == Way::Together);
        assert_eq!(tally.commits.get(), 1);
        ends.set(true);
    });
    cluster.start();
    (cluster, is_over)
}

/// Runs a seed until a moment comes; none if it never does.
fn until(
    seed: u64,
    way: Way,
    ends: &Ends,
    is_at: fn(&View) -> bool,
) -> Option<(TestCluster, Rc<Cell<bool>>)> {
    let (mut cluster, is_over) = cluster(seed, way);
    loop {
        if is_at(&ends.view(&cluster)) {
            return Some((cluster, is_over));
        }
        if !cluster.step() {
            return None;
        }
    }
}

/// Keys that the tree has, with places of their own.
async fn keys(handle: &mut ClientHandle) -> Vec<Vec<u8>> {
    let snapshot = handle.begin().await;
    let scan = handle
        .session
        .scan(&snapshot, keyspace(SMALL).tree, Span::all(), None);
    let entries = handle.run(scan).await.unwrap().entries;
    let mut places: Vec<RecordAddress> = entries.iter().map(|(_, place)| *place).collect();
    places.sort();
    assert!(places.is_sorted_by(|a, b| a < b), "two keys share a record");
    entries.into_iter().map(|(key, _)| key).collect()
}

/// All of the keys are there or none, with rows or without, and all can be written.
fn judge(cluster: &mut TestCluster, seed: u64, way: Way, (name, is_there, _): Row) {
    cluster.client(move |mut handle| async move {
        let mut expected = old();
        if is_there {
            expected.extend(NEW);
            expected.sort_unstable();
        }
        let rows = if way == Way::Together {
            expected.clone()
        } else {
            old()
        };
        let expected: Vec<_> = expected.into_iter().map(key).collect();
        assert_eq!(keys(&mut handle).await, expected, "{name}, seed {seed}");
        let (mut client, _) = client(&handle, SMALL);
        assert_eq!(read(&mut client).await, rows, "{name}, seed {seed}");
        let some = [NEW.as_slice(), &[105, 303]].concat();
        write(&mut client, some.iter().copied()).await.unwrap();
        let mut expected = [old(), some].concat();
        expected.sort_unstable();
        assert_eq!(read(&mut client).await, expected, "{name}, seed {seed}");
    });
    cluster.run();
}

fn all_or_none(way: Way) {
    let ends: Vec<Ends> = (0..SEEDS).map(|seed| Ends::of(seed, way)).collect();
    for row in MATRIX {
        let mut met = 0;
        for (seed, ends) in (0..SEEDS).zip(&ends) {
            let Some((mut cluster, is_over)) = until(seed, way, ends, row.2) else {
                continue;
            };
            assert!(!is_over.get(), "{}, seed {seed}: too late", row.0);
            cluster.fence(CLIENT);
            cluster.kill(CLIENT);
            cluster.recover(&[CLIENT]);
            judge(&mut cluster, seed, way, row);
            met += 1;
        }
        println!("{}: {met} of {SEEDS} seeds", row.0);
        assert!(met > SEEDS / 20, "{}: only {met} seeds come by", row.0);
    }
}

#[test]
fn all_keys_are_entered_or_none_wherever_their_client_stops() {
    all_or_none(Way::Apart);
}

#[test]
fn all_keys_are_entered_with_their_rows_or_none_wherever_their_client_stops() {
    all_or_none(Way::Together);
}
