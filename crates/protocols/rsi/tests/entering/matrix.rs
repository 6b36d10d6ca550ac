//! A client that stops at each step of the commit with which it enters keys: into two leaves, which
//! are split, as is what is above them. All of the keys are there then, or none.
//!
//! The client's transaction is refused behind that, for one of its rows is too long, so that the
//! commit is its only one. The first run of a seed goes to its end, so that it is known which nodes
//! change, and to what; the second one stops in the first moment that a row describes.

use std::cell::Cell;
use std::rc::Rc;

use manxdb_fabric::Address;
use manxdb_rsi::{Head, Isolation, Place, Span};
use manxdb_sim::memory::MemoryOptions;

use crate::common::{self, Hand, House, thread_of};
use crate::{RECORDS, SMALL, at, client, extents, key, keyspace, read, write};

const SEEDS: u64 = 40;
const THREADS: u16 = 12;
/// The client that stops. Another one has filled the tree.
const CLIENT: u64 = 2;
/// Four of one leaf, one of another.
const NEW: [u64; 5] = [101, 102, 103, 104, 301];

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
    /// Nodes that were there before, and are locked, of how many.
    locked: usize,
    old: usize,
    /// Nodes whose heads name its version, of how many.
    set: usize,
    nodes: usize,
    logs: [Share; 2],
    /// Behind the heads of all nodes that change.
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
        view.is_installing() && view.bodies(Share::Nothing) == view.nodes
    }),
    ("a part of one node is written", true, |view| {
        view.is_installing() && view.bodies(Share::Part) == 1 && view.bodies(Share::All) == 0
    }),
    ("some nodes are written, others not", true, |view| {
        view.is_installing() && view.bodies(Share::All) > 0 && view.bodies(Share::Nothing) > 0
    }),
    ("some nodes are unlocked", true, |view| {
        view.is_installing() && view.set > 0 && view.set < view.nodes
    }),
    ("all is installed, nothing published", true, |view| {
        view.is_installing() && view.set == view.nodes
    }),
    ("half of the line is written", true, |view| {
        view.line == Share::Part
    }),
    ("all is published", true, |view| view.line == Share::All),
];

/// All nodes that there are, or may come to be.
fn nodes() -> Vec<Address> {
    let own = (0..2).flat_map(|thread| extents(thread, SMALL).1.left());
    let root = keyspace(SMALL).tree.root();
    [root].into_iter().chain(own).map(Place::address).collect()
}

fn bodies(house: &House, nodes: &[Address]) -> Vec<Vec<u8>> {
    let body = |at: &Address| house.memory.look(at.plus(8), SMALL.bytes() as u64 - 8);
    nodes.iter().map(body).collect()
}

/// The two logs, and the line of the vector.
fn others(house: &House) -> [Vec<u8>; 3] {
    let thread = thread_of(CLIENT);
    let log = |server| {
        let place = common::log_place(thread, server);
        house.memory.look(place, common::LOG_BYTES)
    };
    let line = house.vector().bytes() / u64::from(THREADS);
    let own = at(0, line * u64::from(thread.number()));
    [log(0), log(1), house.memory.look(own, line)]
}

/// What every place holds before and after.
struct Ends {
    /// Nodes that change,
    nodes: Vec<Address>,
    /// how many of which were there before.
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
    fn of(seed: u64) -> Self {
        let (mut house, is_over) = house(seed);
        let all = nodes();
        let (before, first) = (bodies(&house, &all), others(&house));
        while house.step() {}
        assert!(is_over.get());
        let (after, last) = (bodies(&house, &all), others(&house));
        let changed = (0..all.len()).filter(|node| before[*node] != after[*node]);
        let changed: Vec<usize> = changed.collect();
        let of = |all: &[Vec<u8>]| changed.iter().map(|node| all[*node].clone()).collect();
        let is_old = |node: &&usize| before[**node].iter().any(|byte| *byte != 0);
        let ends = Self {
            nodes: changed.iter().map(|node| all[*node]).collect(),
            old: changed.iter().filter(is_old).count(),
            bodies: [of(&before), of(&after)],
            others: [first, last],
        };
        // Two leaves, what is above them and the root, and the new half of each but the root.
        assert_eq!((ends.nodes.len(), ends.old), (7, 4), "seed {seed}");
        ends
    }

    fn view(&self, house: &House) -> View {
        let now = bodies(house, &self.nodes);
        let [before, after] = &self.bodies;
        let pairs = before.iter().zip(after).zip(&now);
        let bodies = pairs.map(|((before, after), now)| share([before, after], now));
        let others = others(house);
        let other = |one: usize| share([&self.others[0][one], &self.others[1][one]], &others[one]);
        let head = |at: &Address| {
            let word = house.memory.look(*at, 8).try_into().unwrap();
            Head::of_word(u64::from_le_bytes(word))
        };
        let own = thread_of(CLIENT);
        let heads: Vec<Head> = self.nodes.iter().map(head).collect();
        let is_locked = |head: &&Head| matches!(head, Head::Locked(stamp) if stamp.thread == own);
        let is_set = |head: &&Head| matches!(head, Head::Free(stamp) if stamp.thread == own);
        View {
            locked: heads.iter().filter(is_locked).count(),
            old: self.old,
            set: heads.iter().filter(is_set).count(),
            nodes: self.nodes.len(),
            logs: [other(0), other(1)],
            bodies: bodies.collect(),
            line: other(2),
        }
    }
}

/// A tree of two levels, and a client that is about to enter keys; whether it has come to its end.
fn house(seed: u64) -> (House, Rc<Cell<bool>>) {
    let options = MemoryOptions::default();
    let mut house = House::new(seed, THREADS, 0, options).with_logs();
    house.client(|hand| async move {
        let (mut client, _) = client(&hand, SMALL);
        for some in old().chunks(20) {
            write(&mut client, some.iter().copied()).await.unwrap();
        }
    });
    house.run();
    let is_over = Rc::<Cell<bool>>::default();
    let ends = Rc::clone(&is_over);
    house.client(move |hand| async move {
        let (mut client, tally) = client(&hand, SMALL);
        let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
        for number in NEW {
            rows.write(key(number), Some(number.to_le_bytes().to_vec()));
        }
        rows.write(key(0), Some(vec![0; RECORDS.value_max() + 1]));
        rows.commit().await.unwrap_err();
        assert_eq!(tally.commits.get(), 1);
        ends.set(true);
    });
    house.start();
    (house, is_over)
}

/// Runs a seed until a moment comes; none if it never does.
fn until(seed: u64, ends: &Ends, is_at: fn(&View) -> bool) -> Option<(House, Rc<Cell<bool>>)> {
    let (mut house, is_over) = house(seed);
    loop {
        if is_at(&ends.view(&house)) {
            return Some((house, is_over));
        }
        if !house.step() {
            return None;
        }
    }
}

/// Keys that the tree has, with places of their own.
async fn keys(hand: &mut Hand) -> Vec<Vec<u8>> {
    let span = Span {
        low: Vec::new(),
        high: None,
        descending: false,
        limit: usize::MAX,
    };
    let snapshot = hand.begin().await;
    let scan = hand
        .session
        .scan(&snapshot, keyspace(SMALL).tree, span, None);
    let entries = hand.run(scan).await.unwrap().entries;
    let mut places: Vec<Place> = entries.iter().map(|(_, place)| *place).collect();
    places.sort();
    assert!(places.is_sorted_by(|a, b| a < b), "two keys share a record");
    entries.into_iter().map(|(key, _)| key).collect()
}

/// All of the keys are there or none, and all can be written.
fn judge(house: &mut House, seed: u64, (name, is_there, _): Row) {
    house.client(move |mut hand| async move {
        let mut expected = old();
        if is_there {
            expected.extend(NEW);
            expected.sort_unstable();
        }
        let expected: Vec<_> = expected.into_iter().map(key).collect();
        assert_eq!(keys(&mut hand).await, expected, "{name}, seed {seed}");
        let (mut client, _) = client(&hand, SMALL);
        assert_eq!(read(&mut client).await, old(), "{name}, seed {seed}");
        let some = [NEW.as_slice(), &[105, 303]].concat();
        write(&mut client, some.iter().copied()).await.unwrap();
        let mut expected = [old(), some].concat();
        expected.sort_unstable();
        assert_eq!(read(&mut client).await, expected, "{name}, seed {seed}");
    });
    house.run();
}

#[test]
fn all_keys_are_entered_or_none_wherever_their_client_stops() {
    let ends: Vec<Ends> = (0..SEEDS).map(Ends::of).collect();
    for row in MATRIX {
        let mut met = 0;
        for (seed, ends) in (0..SEEDS).zip(&ends) {
            let Some((mut house, is_over)) = until(seed, ends, row.2) else {
                continue;
            };
            assert!(!is_over.get(), "{}, seed {seed}: too late", row.0);
            house.fence(CLIENT);
            house.kill(CLIENT);
            house.recover(&[CLIENT]);
            judge(&mut house, seed, row);
            met += 1;
        }
        println!("{}: {met} of {SEEDS} seeds", row.0);
        assert!(met > SEEDS / 20, "{}: only {met} seeds come by", row.0);
    }
}
