//! Keys in their order: a tree with nodes so small that it grows all the time, against a model,
//! under many writers, under deaths; and what was scanned can be relied on.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use common::{Hand, House};
use manxdb_core::Random;
use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Abort, Change, EnterError, Entered, Found, Hint, Isolation, Layout, Place, Recover, Release,
    Scanned, Seek, Seen, Snapshot, Span, Stamp, ThreadId, Tree, rely_on_own,
};
use manxdb_sim::memory::MemoryOptions;

const SEEDS: u64 = 60;

/// Some six keys of ten bytes a node.
const LAYOUT: Layout = match Layout::new(2, 176) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn place(server: u16, offset: u64) -> Place {
    let server = ServerId(server);
    Place::new(Address { server, offset }).unwrap()
}

fn tree() -> Tree {
    Tree::new(place(0, 128 << 10), LAYOUT).unwrap()
}

/// Room for nodes that is a client's own.
struct Rooms {
    client: u64,
    taken: Cell<u64>,
}

impl Rooms {
    const EACH: u64 = 100;

    fn new(client: u64) -> Self {
        let taken = Cell::new(0);
        Self { client, taken }
    }

    fn all(&self) -> impl Iterator<Item = Place> + use<> {
        let node = (LAYOUT.bytes() as u64).next_multiple_of(64);
        let base = (128 << 10) + node + self.client * Self::EACH * node;
        let server = u16::try_from(self.client % 2).unwrap();
        (self.taken.get()..Self::EACH).map(move |number| place(server, base + number * node))
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:04} {}", "x".repeat((number % 9) as usize)).into_bytes()
}

/// What stands for the record under a key: nobody goes there.
fn record(number: u64, client: u64) -> Place {
    place(7, (1 + number * 16 + client) * 64)
}

/// What came of entering a key.
struct Known {
    place: Place,
    hint: Option<Hint>,
    /// What it took, and as which version that was committed.
    changes: Vec<Change>,
    stamp: Option<Stamp>,
}

/// Makes a key known, with a place for it. An error: somebody else was there.
async fn enter_once(
    hand: &mut Hand,
    rooms: &Rooms,
    (number, ours): (u64, Place),
    mut hint: Option<Hint>,
) -> Result<Known, Abort> {
    let snapshot = hand.begin().await;
    let key = key(number);
    loop {
        let seek = Seek::At(key.clone());
        let locate = hand.session.locate(&snapshot, tree(), seek, hint);
        let located = hand.run(locate).await?;
        let mut free = rooms
            .all()
            .map(|place| Seen::fresh(place.address(), LAYOUT));
        let changes = match located.enter(&key, ours, &mut free) {
            Ok(Entered::There(place)) => {
                return Ok(Known {
                    place,
                    hint: located.hint(),
                    changes: Vec::new(),
                    stamp: None,
                });
            }
            Ok(Entered::Changes(changes)) => changes,
            Err(EnterError::FromTheRoot) => {
                hint = None;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let taken = Rooms::EACH - free.count() as u64;
        let committed = hand.try_commit(&[], changes.clone(), Isolation::Snapshot);
        let stamp = committed.await?;
        rooms.taken.set(taken);
        return Ok(Known {
            place: ours,
            hint: located.hint(),
            changes,
            stamp,
        });
    }
}

/// The same, as often as it takes.
async fn enter(hand: &mut Hand, rooms: &Rooms, what: (u64, Place), hint: Option<Hint>) -> Known {
    loop {
        match enter_once(hand, rooms, what, hint).await {
            Ok(known) => return known,
            Err(abort) => assert!(common::can_be_tried_again(abort), "{abort}"),
        }
    }
}

async fn scan(hand: &Hand, snapshot: &Snapshot, span: Span) -> Scanned {
    let scan = hand.session.scan(snapshot, tree(), span, None);
    hand.run(scan).await.unwrap()
}

fn everything(descending: bool) -> Span {
    Span {
        low: Vec::new(),
        high: None,
        descending,
        limit: usize::MAX,
    }
}

/// All entries; they are the same in both directions, and each can be found.
async fn all_of(hand: &mut Hand) -> BTreeMap<Vec<u8>, Place> {
    let snapshot = hand.begin().await;
    let forward = scan(hand, &snapshot, everything(false)).await;
    let mut backward = scan(hand, &snapshot, everything(true)).await.entries;
    backward.reverse();
    assert_eq!(forward.entries, backward);
    assert!(forward.entries.is_sorted_by(|a, b| a.0 < b.0));
    for (key, place) in &forward.entries {
        let seek = Seek::At(key.clone());
        let locate = hand.session.locate(&snapshot, tree(), seek, None);
        let located = hand.run(locate).await.unwrap();
        assert_eq!(located.place(key), Some(*place));
    }
    forward.entries.into_iter().collect()
}

/// What a span has of a model.
fn expected(model: &BTreeMap<Vec<u8>, Place>, span: &Span) -> Vec<(Vec<u8>, Place)> {
    let has = |key: &Vec<u8>| *key >= span.low && span.high.as_ref().is_none_or(|high| key < high);
    let entries = model.iter().filter(|(key, _)| has(key));
    let mut entries: Vec<_> = entries.map(|(key, place)| (key.clone(), *place)).collect();
    if span.descending {
        entries.reverse();
    }
    entries.truncate(span.limit);
    entries
}

fn random_span(random: &mut Random) -> Span {
    let bound = |random: &mut Random| key(random.below(300));
    let low = bound(random);
    Span {
        low: if random.below(4) == 0 {
            Vec::new()
        } else {
            low
        },
        high: (random.below(4) > 0).then(|| bound(random)),
        descending: random.below(2) == 0,
        limit: usize::try_from(1 + random.below(40)).unwrap(),
    }
}

#[test]
fn a_tree_has_what_a_model_has() {
    for seed in 0..SEEDS / 4 {
        let mut house = House::new(seed, 4, 0, MemoryOptions::default());
        house.client(move |mut hand| async move {
            let (rooms, mut model) = (Rooms::new(1), BTreeMap::new());
            let mut hints = Vec::new();
            for _ in 0..150 {
                let number = hand.random.below(300);
                let hint = match hints.len() as u64 {
                    0 => None,
                    // Often of another leaf, or of one that has split since.
                    count => Some(hints[usize::try_from(hand.random.below(count)).unwrap()]),
                };
                let what = (number, record(number, 1));
                let known = enter_once(&mut hand, &rooms, what, hint).await.unwrap();
                hints.extend(known.hint);
                assert_eq!(
                    known.place,
                    *model.entry(key(number)).or_insert(known.place)
                );
            }
            let snapshot = hand.begin().await;
            for _ in 0..60 {
                let span = random_span(&mut hand.random);
                let scanned = scan(&hand, &snapshot, span.clone()).await;
                assert_eq!(
                    scanned.entries,
                    expected(&model, &span),
                    "seed {seed}: {span:?}"
                );
                let all = expected(
                    &model,
                    &Span {
                        limit: usize::MAX,
                        ..span.clone()
                    },
                );
                assert!(scanned.is_cut || all.len() == scanned.entries.len());
            }
            assert_eq!(all_of(&mut hand).await, model, "seed {seed}");
        });
        house.run();
    }
}

/// Clients make the same keys known at the same time, each in an order of its own.
fn races(seed: u64, mutant: Option<Mutant>) {
    const CLIENTS: u64 = 4;
    const KEYS: u64 = 40;
    let mut house = House::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    let known = Rc::<RefCell<BTreeMap<Vec<u8>, Place>>>::default();
    for client in 1..=CLIENTS {
        let known = Rc::clone(&known);
        house.client(move |mut hand| async move {
            let rooms = Rooms::new(client);
            let mut hint = None;
            for number in 0..KEYS {
                let number = (number * 7 + client * 10) % KEYS;
                let what = (number, record(number, client));
                let Known {
                    place, hint: next, ..
                } = enter(&mut hand, &rooms, what, hint).await;
                hint = next;
                let former = *known.borrow_mut().entry(key(number)).or_insert(place);
                assert_eq!(former, place, "seed {seed}: {number} has two places");
            }
        });
    }
    house.run();
    let known = known.borrow().clone();
    assert_eq!(known.len() as u64, KEYS);
    house.client(move |mut hand| async move {
        assert_eq!(all_of(&mut hand).await, known, "seed {seed}");
    });
    house.run();
}

#[test]
fn all_that_many_enter_is_there_once() {
    for seed in 0..SEEDS {
        races(seed, None);
    }
}

#[test]
fn nodes_that_two_write_are_found() {
    let mutant = Some(Mutant::TakesEveryLock);
    let is_found = |seed| catch_unwind(AssertUnwindSafe(|| races(seed, mutant))).is_err();
    assert!((0..SEEDS).any(is_found));
}

/// Two clients enter keys until one dies, perhaps in the middle of a split; it is recovered, and
/// another one enters the rest. Returns how many nodes were left locked by what was not logged.
fn dying_writers(seed: u64, mutant: Option<Mutant>) -> u32 {
    const KEYS: u64 = 30;
    let mut house = House::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    house = house.with_logs();
    let known = Rc::<RefCell<BTreeMap<Vec<u8>, Place>>>::default();
    let enters = |house: &mut House, client: u64| {
        let known = Rc::clone(&known);
        house.client(move |mut hand| async move {
            let rooms = Rooms::new(client);
            for number in 0..KEYS {
                let mut entered = None;
                let what = (number, record(number, client));
                for _ in 0..20 {
                    match enter_once(&mut hand, &rooms, what, None).await {
                        Ok(known) => entered = Some(known.place),
                        Err(abort) => assert!(common::can_be_tried_again(abort), "{abort}"),
                    }
                    if entered.is_some() {
                        break;
                    }
                }
                let Some(place) = entered else { return };
                let former = *known.borrow_mut().entry(key(number)).or_insert(place);
                assert_eq!(former, place, "seed {seed}: {number} has two places");
            }
        })
    };
    let dead = enters(&mut house, 1);
    enters(&mut house, 2);
    house.start();
    for _ in 0..Random::stream(seed, &[3]).below(900) {
        house.step();
    }
    house.kill(dead);
    while house.step() {}
    let (thread, vector) = (ThreadId::FIRST, house.vector());
    let last = Rc::new(Cell::new(Stamp::NOTHING));
    let closing = Rc::clone(&last);
    house.client(move |hand| async move {
        let recover = Recover::new(thread, vector, common::log(thread));
        closing.set(hand.run(recover).await.unwrap().last);
    });
    house.run();
    let last = last.get();
    let released = Rc::<Cell<u32>>::default();
    let count = Rc::clone(&released);
    house.client(move |hand| async move {
        let nodes = (1..=2).flat_map(|client| Rooms::new(client).all());
        for node in std::iter::once(tree().root()).chain(nodes) {
            let release = Release::new(node.address(), LAYOUT, last);
            let is_released = hand.run(release).await.unwrap();
            count.set(count.get() + u32::from(is_released));
        }
    });
    house.run();
    enters(&mut house, 3);
    house.run();
    let known = known.borrow().clone();
    assert_eq!(known.len() as u64, KEYS, "seed {seed}");
    house.client(move |mut hand| async move {
        assert_eq!(all_of(&mut hand).await, known, "seed {seed}");
    });
    house.run();
    released.get()
}

#[test]
fn a_tree_is_whole_when_writers_die() {
    let locks: u32 = (0..SEEDS).map(|seed| dying_writers(seed, None)).sum();
    assert!(locks > 0, "this test is blind");
}

#[test]
fn nodes_that_are_written_before_they_are_logged_are_found() {
    let mutant = Some(Mutant::InstallsBeforeItLogs);
    let is_found = |seed| catch_unwind(AssertUnwindSafe(|| dying_writers(seed, mutant))).is_err();
    assert!((0..4 * SEEDS).any(is_found));
}

/// A tree with keys on both sides of a gap, in several leaves.
fn house_with_a_gap(seed: u64, mutant: Option<Mutant>) -> House {
    let mut house = House::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    house.client(|mut hand| async move {
        let rooms = Rooms::new(1);
        for number in (0..30).chain(60..90) {
            enter(&mut hand, &rooms, (number, record(number, 1)), None).await;
        }
    });
    house.run();
    house
}

/// What lies in the gap, all records of which are read; whether one of them is there.
async fn look_into_the_gap(
    hand: &Hand,
    snapshot: &Snapshot,
    descending: bool,
) -> (Vec<Found>, bool) {
    let span = Span {
        low: key(30),
        high: Some(key(60)),
        descending,
        limit: usize::MAX,
    };
    let scanned = scan(hand, snapshot, span).await;
    let (mut reads, mut is_there) = (scanned.leaves, false);
    for (_, place) in scanned.entries {
        let read = hand.session.read(snapshot, place.address(), LAYOUT);
        let seen = hand.run(read).await.unwrap();
        is_there |= seen.value().is_some();
        reads.push(seen.into());
    }
    (reads, is_there)
}

/// Writes a record into the gap, unless there is one; whether it did.
async fn fill_the_gap(hand: &mut Hand, client: u64, numbers: &[u64], isolation: Isolation) -> bool {
    let rooms = Rooms::new(client);
    let snapshot = hand.begin().await;
    let (mut reads, is_there) = look_into_the_gap(hand, &snapshot, client == 2).await;
    if is_there {
        return false;
    }
    let mut changes = Vec::new();
    for (number, place) in numbers.iter().zip(rooms.all().skip(50)) {
        let known = enter(hand, &rooms, (*number, place), None).await;
        assert_eq!(known.place, place);
        if let Some(stamp) = known.stamp {
            rely_on_own(&mut reads, &known.changes, stamp);
        }
        changes.push(Change {
            seen: hand
                .run(hand.session.read(&snapshot, place.address(), LAYOUT))
                .await
                .unwrap(),
            value: Some(vec![1]),
        });
    }
    hand.commit(&reads, changes, isolation).await
}

/// Two fill the gap, each if there is nothing in it. Returns whether both did.
fn phantoms(seed: u64, isolation: Isolation, mutant: Option<Mutant>) -> bool {
    let mut house = house_with_a_gap(seed, mutant);
    let both = Rc::<Cell<u32>>::default();
    for client in 2..4 {
        let both = Rc::clone(&both);
        house.client(move |mut hand| async move {
            let number = [44 + client];
            if fill_the_gap(&mut hand, client, &number, isolation).await {
                both.set(both.get() + 1);
            }
        });
    }
    house.run();
    both.get() == 2
}

#[test]
fn keys_of_ones_own_are_no_phantoms() {
    let mut house = house_with_a_gap(1, None);
    house.client(|mut hand| async move {
        // So many that leaves are split.
        let numbers: Vec<u64> = (31..55).collect();
        assert!(fill_the_gap(&mut hand, 2, &numbers, Isolation::Serializable).await);
        assert!(!fill_the_gap(&mut hand, 3, &[56], Isolation::Serializable).await);
    });
    house.run();
}

#[test]
fn what_was_scanned_can_be_relied_on() {
    let count = |isolation, mutant| {
        let both = (0..SEEDS).filter(|seed| phantoms(*seed, isolation, mutant));
        both.count()
    };
    assert!(count(Isolation::Snapshot, None) > 0, "this test is blind");
    assert_eq!(count(Isolation::Serializable, None), 0);
    let mutant = Some(Mutant::NeverValidates);
    assert!(
        count(Isolation::Serializable, mutant) > 0,
        "a defect is not found"
    );
}

#[test]
fn what_is_no_node_is_told() {
    let mut house = House::new(1, 2, 0, MemoryOptions::default());
    house.client(|mut hand| async move {
        let root = Seen::fresh(tree().root().address(), LAYOUT);
        let change = Change {
            seen: root,
            value: Some(b"no node".to_vec()),
        };
        assert!(hand.commit(&[], vec![change], Isolation::Snapshot).await);
        let snapshot = hand.begin().await;
        let seek = Seek::At(key(1));
        let locate = hand.session.locate(&snapshot, tree(), seek, None);
        let error = hand.run(locate).await.unwrap_err();
        assert_eq!(error, Abort::Damaged(tree().root().address()));
    });
    house.run();
}

#[test]
fn a_tree_without_room_for_keys_is_refused() {
    let small = Layout::new(2, 100).unwrap();
    let keyed = Layout::keyed(2, 1000, 8).unwrap();
    for layout in [small, keyed] {
        let error = Tree::new(place(0, 64), layout).unwrap_err().to_string();
        assert!(error.contains("records without keys"), "{error}");
    }
}

#[test]
fn what_a_tree_cannot_take_is_refused() {
    let mut house = House::new(1, 2, 0, MemoryOptions::default());
    house.client(|mut hand| async move {
        let snapshot = hand.begin().await;
        let longest = tree().key_max();
        let key = vec![7; longest + 1];
        let seek = Seek::At(key.clone());
        let locate = hand.session.locate(&snapshot, tree(), seek, None);
        let located = hand.run(locate).await.unwrap();
        assert_eq!(located.place(&key), None);
        let mut none = std::iter::empty();
        let refused = located.enter(&key, record(1, 1), &mut none);
        assert_eq!(refused, Err(EnterError::TooLong(longest, longest + 1)));
    });
    house.run();
}

/// What an old snapshot is shown is in order, and has all that it saw and nothing that was not
/// entered.
#[test]
fn a_snapshot_never_becomes_too_old_for_a_tree() {
    for seed in 0..SEEDS {
        let mut house = House::new(seed, 4, 0, MemoryOptions::default());
        house.client(move |mut hand| async move {
            let (rooms, mut model) = (Rooms::new(1), BTreeMap::new());
            let mut enter_some = async |hand: &mut Hand, count: u64| {
                for _ in 0..count {
                    let number = hand.random.below(120);
                    let what = (number, record(number, 1));
                    let known = enter(hand, &rooms, what, None).await;
                    model.insert(key(number), known.place);
                }
                model.clone()
            };
            let count = hand.random.below(40);
            let before = enter_some(&mut hand, count).await;
            let snapshot = hand.begin().await;
            let after = enter_some(&mut hand, 100).await;
            for descending in [false, true] {
                let mut seen = scan(&hand, &snapshot, everything(descending)).await.entries;
                if descending {
                    seen.reverse();
                }
                assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
                let seen: BTreeMap<_, _> = seen.into_iter().collect();
                assert!(
                    seen.iter()
                        .all(|(key, place)| after.get(key) == Some(place))
                );
                assert!(
                    before
                        .iter()
                        .all(|(key, place)| seen.get(key) == Some(place))
                );
            }
            for (key, place) in before {
                let seek = Seek::At(key.clone());
                let locate = hand.session.locate(&snapshot, tree(), seek, None);
                assert_eq!(hand.run(locate).await.unwrap().place(&key), Some(place));
            }
        });
        house.run();
    }
}
