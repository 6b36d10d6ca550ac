//! Snapshots that are older than all that a record keeps: they get the version that they are to
//! see out of overflow areas, or hear that they are too old, and never another one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{ClientHandle, LAYOUT, SERVERS, TestCluster, can_be_tried_again, value};
use manxdb_core::Random;
use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Abort, Change, Isolation, Layout, Overflow, Seen, Snapshot};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 50;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 200;
const ACCOUNTS: u64 = 3;
const TOTAL: u64 = 1_000;
const WRITERS: u64 = 3;
const READERS: u64 = 2;
const MOVES: u64 = 30;

/// As the accounts lie in memory: two versions, and those before them elsewhere.
const KEPT: Layout = LAYOUT.with_overflow();
const STRIDE: u64 = (KEPT.bytes() as u64).next_multiple_of(64);

fn account(number: u64) -> Address {
    Address {
        server: ServerId(u16::try_from(number % u64::from(SERVERS)).unwrap()),
        offset: (640 << 10) + number * STRIDE,
    }
}

/// A thread's ring, of a few versions.
fn ring(thread: u64, versions: u64) -> Overflow {
    let base = Address {
        server: ServerId(u16::try_from(thread % u64::from(SERVERS)).unwrap()),
        offset: (768 << 10) + thread * (16 << 10),
    };
    Overflow::new(base, versions * 256, KEPT).unwrap()
}

/// What readers have come to.
#[derive(Default)]
struct Counts {
    whole: Cell<u32>,
    too_old: Cell<u32>,
}

fn number(seen: &Seen) -> u64 {
    let bytes = seen.value().unwrap();
    let first: [u8; 8] = bytes[..8].try_into().unwrap();
    assert_eq!(*bytes, first.repeat(20), "a value of two times");
    u64::from_le_bytes(first)
}

fn change(seen: &Seen, to: u64) -> Change {
    Change {
        seen: seen.clone(),
        value: Some(value(to)),
    }
}

async fn read(handle: &ClientHandle, snapshot: &Snapshot, number: u64) -> Result<Seen, Abort> {
    handle
        .run(handle.session.read(snapshot, account(number), KEPT))
        .await
}

async fn move_money(mut handle: ClientHandle, moves: u64, progress: Rc<Cell<u64>>) {
    for _ in 0..moves {
        let snapshot = handle.begin().await;
        let from = handle.random.below(ACCOUNTS);
        let to = (from + 1 + handle.random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let from = read(&handle, &snapshot, from).await;
        let to = read(&handle, &snapshot, to).await;
        let (from, to) = match (from, to) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(abort), _) | (_, Err(abort)) => {
                assert!(can_be_tried_again(abort), "{abort}");
                continue;
            }
        };
        let amount = handle.random.below(number(&from) + 1);
        let (left, right) = (number(&from) - amount, number(&to) + amount);
        let changes = vec![change(&from, left), change(&to, right)];
        handle.commit(&[], changes, Isolation::Snapshot).await;
        progress.set(progress.get() + 1);
    }
}

/// Reads all accounts under one snapshot, while others write them again and again between two
/// reads; together they always have all the money.
async fn add_up(mut handle: ClientHandle, seed: u64, progress: Rc<Cell<u64>>, counts: Rc<Counts>) {
    for _ in 0..6 {
        let snapshot = handle.begin().await;
        let mut sum = Some(0);
        for number_of in 0..ACCOUNTS {
            let until = progress.get() + handle.random.below(8);
            let mut waited = 0;
            while progress.get() < until && waited < 100 {
                let again = handle.begin().await; // something else, meanwhile
                assert!(again.includes(&snapshot));
                waited += 1;
            }
            match read(&handle, &snapshot, number_of).await {
                Ok(seen) => sum = sum.map(|sum| sum + number(&seen)),
                Err(Abort::SnapshotTooOld(_)) => sum = None,
                Err(abort) => panic!("seed {seed}: {abort}"),
            }
        }
        match sum {
            Some(sum) => {
                assert_eq!(sum, TOTAL, "seed {seed}");
                counts.whole.set(counts.whole.get() + 1);
            }
            None => counts.too_old.set(counts.too_old.get() + 1),
        }
    }
}

/// Writers, some of whom may die, and slow readers; how often these found everything, and how often
/// something was gone. No versions: nothing is kept.
fn slow_readers(seed: u64, versions: u64, deaths: u64, mutant: Option<Mutant>) -> (u32, u32) {
    let threads = u16::try_from(1 + WRITERS + READERS + deaths + 1).unwrap();
    let mut cluster = TestCluster::new(seed, threads, 0, MemoryOptions::default()).with_logs();
    cluster.client(|mut handle| async move {
        let fresh = |number| Seen::fresh(account(number), KEPT);
        let money = |number| if number == 0 { TOTAL } else { 0 };
        let changes = (0..ACCOUNTS).map(|number| change(&fresh(number), money(number)));
        assert!(
            handle
                .commit(&[], changes.collect(), Isolation::Snapshot)
                .await
        );
    });
    cluster.run();
    let mut cluster = cluster.with(mutant);
    let progress = Rc::<Cell<u64>>::default();
    let counts = Rc::<Counts>::default();
    for writer in 0..WRITERS {
        let progress = Rc::clone(&progress);
        cluster.client(move |mut handle| {
            if versions > 0 {
                handle.session = handle.session.clone().with_overflow(ring(writer, versions));
            }
            move_money(handle, MOVES, progress)
        });
    }
    for _ in 0..READERS {
        let (progress, counts) = (Rc::clone(&progress), Rc::clone(&counts));
        cluster.client(move |handle| add_up(handle, seed, progress, counts));
    }
    cluster.start();
    let mut random = Random::stream(seed, &[9]);
    for writer in 0..deaths {
        for _ in 0..random.below(400) {
            cluster.step();
        }
        let dead = 2 + writer;
        cluster.kill(dead);
        for _ in 0..random.below(40) {
            cluster.step();
        }
        cluster.go_on_for(dead);
    }
    while cluster.step() {}
    (counts.whole.get(), counts.too_old.get())
}

fn all(versions: u64, deaths: u64, mutant: Option<Mutant>) -> (u32, u32) {
    let add = |(a, b): (u32, u32), (c, d): (u32, u32)| (a + c, b + d);
    let runs = (0..seeds(SEEDS)).map(|seed| slow_readers(seed, versions, deaths, mutant));
    runs.fold((0, 0), add)
}

#[test]
fn old_snapshots_read_what_they_see_as_long_as_it_is_kept() {
    let (whole, too_old) = all(0, 0, None);
    assert!(too_old > 4 * whole, "this test is blind: {whole} {too_old}");
    let (whole, too_old) = all(60, 0, None);
    assert_eq!(too_old, 0, "{whole} found everything");
    let (whole, too_old) = all(3, 0, None);
    assert!(
        whole > 0 && too_old > 0,
        "{whole} {too_old}: a ring goes round"
    );
}

#[test]
fn nobody_gets_another_version_when_writers_die() {
    let (whole, too_old) = all(60, 2, None);
    assert!(whole > 10 * too_old, "{whole} {too_old}");
    let (whole, too_old) = all(3, 2, None);
    assert!(whole > 0 && too_old > 0, "{whole} {too_old}");
}

fn is_found(versions: u64, mutant: Mutant) -> bool {
    (0..DEFECT_SEEDS).any(|seed| {
        let run = || slow_readers(seed, versions, 0, Some(mutant));
        catch_unwind(AssertUnwindSafe(run)).is_err()
    })
}

#[test]
fn taking_what_lies_there_now_is_found() {
    assert!(is_found(3, Mutant::TakesAnothersVersion));
}

#[test]
fn links_over_a_gap_are_found() {
    assert!(is_found(60, Mutant::LinksOverAGap));
}
