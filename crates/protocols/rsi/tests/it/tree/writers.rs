//! Many who enter the same keys at the same time; some of them die.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use manxdb_core::Random;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{RecordAddress, Release, ThreadId};
use manxdb_sim::memory::MemoryOptions;

use crate::common::{self, TestCluster};
use crate::tree::{LAYOUT, Rooms, SEEDS, all_of, enter, enter_once, tree};

/// What is known to be under keys.
type Notes = RefCell<BTreeMap<Vec<u8>, RecordAddress>>;

/// Nobody has heard of another place for these keys, nor of other keys for these places.
fn note(known: &Notes, places: BTreeMap<Vec<u8>, RecordAddress>, seed: u64) {
    let mut known = known.borrow_mut();
    for (key, place) in places {
        let former = *known.entry(key.clone()).or_insert(place);
        assert_eq!(former, place, "seed {seed}: {key:?} has two places");
        let same = known.values().filter(|other| **other == place).count();
        assert_eq!(same, 1, "seed {seed}: {key:?} shares its place");
    }
}

/// Clients make the same keys known at the same time, each in an order and in batches of its own.
fn races(seed: u64, mutant: Option<Mutant>) {
    const CLIENTS: u64 = 4;
    const KEYS: u64 = 40;
    let mut cluster = TestCluster::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    let known = Rc::<Notes>::default();
    for client in 1..=CLIENTS {
        let known = Rc::clone(&known);
        cluster.client(move |mut handle| async move {
            let rooms = Rooms::new(client);
            let mut hint = None;
            let numbers = (0..KEYS).map(|number| (number * 7 + client * 10) % KEYS);
            let numbers: Vec<u64> = numbers.collect();
            for batch in numbers.chunks(usize::try_from(client).unwrap()) {
                let entered = enter(&mut handle, &rooms, batch, hint).await;
                hint = entered.hint;
                note(&known, entered.places, seed);
            }
        });
    }
    cluster.run();
    let known = known.borrow().clone();
    assert_eq!(known.len() as u64, KEYS);
    cluster.client(move |mut handle| async move {
        assert_eq!(all_of(&mut handle).await, known, "seed {seed}");
    });
    cluster.run();
}

#[test]
fn all_that_many_enter_is_there_once() {
    for seed in 0..SEEDS {
        races(seed, None);
    }
}

#[test]
fn nodes_that_two_write_are_found_and_keys_that_are_left_out() {
    for mutant in [Mutant::TakesEveryLock, Mutant::EntersTheLastKeyAlone] {
        let run = |seed| races(seed, Some(mutant));
        let is_found = |seed| catch_unwind(AssertUnwindSafe(|| run(seed))).is_err();
        assert!((0..SEEDS).any(is_found), "{mutant:?}");
    }
}

/// Two clients enter keys until one dies, perhaps in the middle of a split; it is recovered, and
/// another one enters the rest. Returns how many nodes were left locked by what was not logged.
fn dying_writers(seed: u64, mutant: Option<Mutant>) -> u32 {
    const KEYS: u64 = 30;
    let mut cluster = TestCluster::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    cluster = cluster.with_logs();
    let known = Rc::<Notes>::default();
    let enters = |cluster: &mut TestCluster, client: u64| {
        let known = Rc::clone(&known);
        cluster.client(move |mut handle| async move {
            let rooms = Rooms::new(client);
            let numbers: Vec<u64> = (0..KEYS).collect();
            for batch in numbers.chunks(usize::try_from(client + 1).unwrap()) {
                let mut entered = None;
                for _ in 0..20 {
                    match enter_once(&mut handle, &rooms, batch, None).await {
                        Ok(known) => entered = Some(known.places),
                        Err(abort) => assert!(common::can_be_tried_again(abort), "{abort}"),
                    }
                    if entered.is_some() {
                        break;
                    }
                }
                let Some(places) = entered else { return };
                note(&known, places, seed);
            }
        })
    };
    let dead = enters(&mut cluster, 1);
    enters(&mut cluster, 2);
    cluster.start();
    for _ in 0..Random::stream(seed, &[3]).below(900) {
        cluster.step();
    }
    cluster.kill(dead);
    while cluster.step() {}
    let last = cluster.recovered(ThreadId::FIRST);
    let released = Rc::<Cell<u32>>::default();
    let count = Rc::clone(&released);
    cluster.client(move |handle| async move {
        let nodes = (1..=2).flat_map(|client| Rooms::new(client).all());
        for node in std::iter::once(tree().root()).chain(nodes) {
            let release = Release::new(node.address(), LAYOUT, last);
            let is_released = handle.run(release).await.unwrap();
            count.set(count.get() + u32::from(is_released));
        }
    });
    cluster.run();
    enters(&mut cluster, 3);
    cluster.run();
    let known = known.borrow().clone();
    assert_eq!(known.len() as u64, KEYS, "seed {seed}");
    cluster.client(move |mut handle| async move {
        assert_eq!(all_of(&mut handle).await, known, "seed {seed}");
    });
    cluster.run();
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
