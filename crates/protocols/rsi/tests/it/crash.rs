//! Clients that die at any moment, with lines of their writes on the way; others go on, and one
//! recovers what the dead have left.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{LAYOUT, SERVERS, TestCluster, change, log, number, record};
use manxdb_core::Random;
use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Isolation, Recover, Seen, ThreadId};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 100;
/// Seeds among which the defect is found.
const DEFECT_SEEDS: u64 = 1_000;
const ACCOUNTS: u64 = 4;
const TOTAL: u64 = 1_000;
const CLIENTS: u64 = 3;
/// Events after which the last client has surely begun.
const EVENTS: u64 = 1_500;

/// Accounts with money in the first, and clients that move it, which begin with the next run.
/// Each counts the moves that it knows to be committed.
fn bank(seed: u64, mutant: Option<Mutant>) -> (TestCluster, Vec<Rc<Cell<u64>>>) {
    let options = MemoryOptions::default();
    let mut cluster = TestCluster::new(seed, 24, ACCOUNTS + CLIENTS, options).with_logs();
    cluster.client(|mut handle| async move {
        let snapshot = handle.begin().await;
        let seen = handle.read(&snapshot, record(0)).await.unwrap();
        let changes = vec![change(&seen, TOTAL)];
        assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
    });
    cluster.run();
    let mut cluster = cluster.with(mutant);
    let moves = (0..CLIENTS).map(|client| {
        let count = Rc::<Cell<u64>>::default();
        let known = Rc::clone(&count);
        cluster.client(move |mut handle| async move {
            for _ in 0..12 {
                let snapshot = handle.begin().await;
                let from = handle.random.below(ACCOUNTS);
                let to = (from + 1 + handle.random.below(ACCOUNTS - 1)) % ACCOUNTS;
                let from = handle.read(&snapshot, record(from)).await;
                let to = handle.read(&snapshot, record(to)).await;
                let own = handle.read(&snapshot, record(ACCOUNTS + client)).await;
                let (Ok(from), Ok(to), Ok(own)) = (from, to, own) else {
                    continue;
                };
                let amount = handle.random.below(number(&from) + 1);
                let changes = vec![
                    change(&from, number(&from) - amount),
                    change(&to, number(&to) + amount),
                    change(&own, number(&own) + 1),
                ];
                if handle.commit(&[], changes, Isolation::Snapshot).await {
                    known.set(known.get() + 1);
                }
            }
        });
        count
    });
    let moves = moves.collect();
    (cluster, moves)
}

/// Nothing is lost and nothing is half there.
fn judge(cluster: &mut TestCluster, moves: &[Rc<Cell<u64>>], seed: u64) {
    let known: Vec<u64> = moves.iter().map(|count| count.get()).collect();
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        let mut sum = 0;
        for place in 0..ACCOUNTS {
            sum += number(&handle.read(&snapshot, record(place)).await.unwrap());
        }
        assert_eq!(sum, TOTAL, "seed {seed}");
        for (place, known) in (ACCOUNTS..).zip(known) {
            let found = number(&handle.read(&snapshot, record(place)).await.unwrap());
            let is_fine = found == known || found == known + 1;
            assert!(is_fine, "seed {seed}: {found} moves, {known} are known");
        }
    });
    cluster.run();
}

/// One client or two die at moments drawn from the seed.
fn dying_clients(seed: u64, mutant: Option<Mutant>) {
    let (mut cluster, moves) = bank(seed, mutant);
    let mut random = Random::stream(seed, &[1]);
    cluster.start();
    let mut dead = Vec::new();
    for client in 0..=random.below(2) {
        for _ in 0..random.below(EVENTS) {
            cluster.step();
        }
        cluster.kill(2 + client);
        dead.push(2 + client);
    }
    while cluster.step() {}
    cluster.recover(&dead);
    judge(&mut cluster, &moves, seed);
}

#[test]
fn what_is_acknowledged_is_there_and_nothing_is_half_there_after_clients_die() {
    for seed in 0..seeds(SEEDS) {
        dying_clients(seed, None);
    }
}

#[test]
fn installing_before_logging_is_found() {
    let mutant = Some(Mutant::InstallsBeforeItLogs);
    let is_found = |seed| {
        let run = || dying_clients(seed, mutant);
        catch_unwind(AssertUnwindSafe(run)).is_err()
    };
    assert!((0..DEFECT_SEEDS).any(is_found));
}

#[test]
fn who_dies_over_a_recovery_is_followed_by_another() {
    let mut cut_short = 0;
    for seed in 0..seeds(SEEDS) {
        let (mut cluster, moves) = bank(seed, None);
        let mut random = Random::stream(seed, &[2]);
        cluster.start();
        for _ in 0..random.below(EVENTS) {
            cluster.step();
        }
        cluster.kill(2);
        while cluster.step() {}
        let thread = ThreadId::new(1).unwrap();
        let vector = cluster.vector();
        let first = cluster.client(move |handle| async move {
            handle
                .run(Recover::new(thread, vector, log(thread)))
                .await
                .unwrap();
        });
        cluster.start();
        for _ in 0..random.below(60) {
            cut_short += u32::from(cluster.step());
        }
        cluster.kill(first);
        while cluster.step() {}
        cluster.recover(&[2]);
        judge(&mut cluster, &moves, seed);
    }
    assert!(cut_short > 0, "this test is blind");
}

#[test]
fn a_server_with_one_of_the_logs_may_be_gone() {
    // The records of this test are all on the first server.
    let log = log(ThreadId::new(0).unwrap());
    let mut cluster = TestCluster::new(1, 4, 1, MemoryOptions::default()).with_logs();
    let vector = cluster.vector();
    cluster.client(|mut handle| async move {
        let snapshot = handle.begin().await;
        let seen = handle.read(&snapshot, record(0)).await.unwrap();
        let changes = vec![change(&seen, 5)];
        assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
    });
    cluster.run();
    cluster.memory.lose(ServerId(1));
    let thread = ThreadId::new(0).unwrap();
    cluster.client(move |handle| async move {
        let recovered = handle.run(Recover::new(thread, vector, log)).await.unwrap();
        // The second number is the closing's.
        assert_eq!((recovered.last.sequence, recovered.records), (2, 0));
    });
    cluster.run();
}

/// Beside what it changes, a client writes records of its own, which nobody locks.
fn dying_journals(seed: u64) -> usize {
    const MOVES: u64 = 12;
    let place = |number: u64| Address {
        server: ServerId(u16::try_from(number % u64::from(SERVERS)).unwrap()),
        offset: (640 << 10) + number * (LAYOUT.bytes() as u64).next_multiple_of(64),
    };
    let mut cluster = TestCluster::new(seed, 4, 1, MemoryOptions::default()).with_logs();
    let dead = cluster.client(move |mut handle| async move {
        for number in 0..MOVES {
            let snapshot = handle.begin().await;
            let count = handle.read(&snapshot, record(0)).await.unwrap();
            let entry = Seen::fresh(place(number), LAYOUT);
            let changes = vec![change(&entry, number + 1), change(&count, number + 1)];
            assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
        }
    });
    cluster.start();
    for _ in 0..Random::stream(seed, &[4]).below(1_000) {
        cluster.step();
    }
    cluster.kill(dead);
    while cluster.step() {}
    cluster.recover(&[dead]);
    let written = Rc::<Cell<usize>>::default();
    let found = Rc::clone(&written);
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        let count = number(&handle.read(&snapshot, record(0)).await.unwrap());
        for entry in 0..MOVES {
            let expected = if entry < count { entry + 1 } else { 0 };
            let seen = handle.read(&snapshot, place(entry)).await.unwrap();
            assert_eq!(number(&seen), expected, "seed {seed}: {count} moves");
        }
        found.set(usize::try_from(count).unwrap());
    });
    cluster.run();
    written.get()
}

#[test]
fn records_of_ones_own_are_there_with_all_else_or_not_at_all() {
    let counts: std::collections::BTreeSet<usize> = (0..seeds(SEEDS)).map(dying_journals).collect();
    assert!(counts.len() > 5, "this test is blind: {counts:?}");
}
