//! What transactions see of each other, over seeds: in virtual time, reads and writes meet line by
//! line in every way that hardware allows. And defects that these tests find.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{TestCluster, change, number, record};
use manxdb_rsi::Isolation;
use manxdb_rsi::mutants::Mutant;
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 40;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 600;

/// A test of one seed, with a defect or without; it panics over what must not be.
type Scenario = fn(u64, Option<Mutant>, MemoryOptions);

fn holds_over_seeds(scenario: Scenario) {
    for seed in 0..seeds(SEEDS) {
        scenario(seed, None, MemoryOptions::default());
    }
}

/// Whether some seed finds a defect: the rarest shows in one seed of forty.
fn is_found(scenario: Scenario, mutant: Option<Mutant>, options: MemoryOptions) -> bool {
    (0..DEFECT_SEEDS)
        .any(|seed| catch_unwind(AssertUnwindSafe(|| scenario(seed, mutant, options))).is_err())
}

/// Several clients add to the same two numbers.
fn increments(seed: u64, mutant: Option<Mutant>, options: MemoryOptions) {
    const CLIENTS: u16 = 4;
    const TIMES: u64 = 8;
    let mut cluster = TestCluster::new(seed, CLIENTS + 1, 2, options).with(mutant);
    for _ in 0..CLIENTS {
        cluster.client(|mut handle| async move {
            for _ in 0..TIMES {
                loop {
                    let snapshot = handle.begin().await;
                    let place = handle.random.below(2);
                    let Ok(seen) = handle.read(&snapshot, record(place)).await else {
                        continue;
                    };
                    let changes = vec![change(&seen, number(&seen) + 1)];
                    if handle.commit(&[], changes, Isolation::Snapshot).await {
                        break;
                    }
                }
            }
        });
    }
    cluster.run();
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        let mut sum = 0;
        for place in 0..2 {
            sum += number(&handle.read(&snapshot, record(place)).await.unwrap());
        }
        assert_eq!(sum, u64::from(CLIENTS) * TIMES, "seed {seed}");
    });
    cluster.run();
}

#[test]
fn no_update_is_lost() {
    holds_over_seeds(increments);
}

#[test]
fn a_swap_that_fails_and_is_taken_for_ones_own_is_found() {
    let options = MemoryOptions::default();
    assert!(is_found(increments, Some(Mutant::TakesEveryLock), options));
}

#[test]
fn a_fabric_that_unlocks_before_it_has_written_is_found() {
    let options = MemoryOptions {
        keeps_order: false,
        ..MemoryOptions::default()
    };
    assert!(is_found(increments, None, options));
}

/// Some move amounts between accounts, others add all accounts up.
fn transfers(seed: u64, mutant: Option<Mutant>, options: MemoryOptions) {
    const ACCOUNTS: u64 = 4;
    const TOTAL: u64 = 1_000;
    let mut cluster = TestCluster::new(seed, 6, ACCOUNTS, options).with(mutant);
    cluster.client(|mut handle| async move {
        let snapshot = handle.begin().await;
        let seen = handle.read(&snapshot, record(0)).await.unwrap();
        let changes = vec![change(&seen, TOTAL)];
        assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
    });
    cluster.run();
    for _ in 0..3 {
        cluster.client(|mut handle| async move {
            for _ in 0..10 {
                let snapshot = handle.begin().await;
                let from = handle.random.below(ACCOUNTS);
                let to = (from + 1 + handle.random.below(ACCOUNTS - 1)) % ACCOUNTS;
                let from = handle.read(&snapshot, record(from)).await;
                let to = handle.read(&snapshot, record(to)).await;
                let (Ok(from), Ok(to)) = (from, to) else {
                    continue;
                };
                let amount = handle.random.below(number(&from) + 1);
                let changes = vec![
                    change(&from, number(&from) - amount),
                    change(&to, number(&to) + amount),
                ];
                handle.commit(&[], changes, Isolation::Snapshot).await;
            }
        });
    }
    for _ in 0..2 {
        cluster.client(move |mut handle| async move {
            for _ in 0..15 {
                let snapshot = handle.begin().await;
                let mut sum = 0;
                let mut is_whole = true;
                for place in 0..ACCOUNTS {
                    match handle.read(&snapshot, record(place)).await {
                        Ok(seen) => sum += number(&seen),
                        Err(_) => is_whole = false,
                    }
                }
                assert!(!is_whole || sum == TOTAL || sum == 0, "seed {seed}: {sum}");
            }
        });
    }
    cluster.run();
}

#[test]
fn a_snapshot_is_of_one_time() {
    holds_over_seeds(transfers);
}

#[test]
fn a_transaction_that_is_published_before_it_is_installed_is_found() {
    let options = MemoryOptions::default();
    assert!(is_found(transfers, Some(Mutant::PublishesFirst), options));
}

#[test]
fn a_read_of_the_newest_version_is_found() {
    let options = MemoryOptions::default();
    assert!(is_found(transfers, Some(Mutant::ReadsTheNewest), options));
}

/// One counts, another copies what it sees of the count; whoever sees the copy sees the count.
fn copies(seed: u64, mutant: Option<Mutant>, options: MemoryOptions) {
    let mut cluster = TestCluster::new(seed, 4, 2, options).with(mutant);
    cluster.client(|mut handle| async move {
        for _ in 0..60 {
            let snapshot = handle.begin().await;
            let seen = handle.read(&snapshot, record(0)).await.unwrap();
            let changes = vec![change(&seen, number(&seen) + 1)];
            assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
        }
    });
    for _ in 0..2 {
        cluster.client(move |mut handle| async move {
            for _ in 0..60 {
                let snapshot = handle.begin().await;
                let copy = handle.read(&snapshot, record(1)).await;
                let count = handle.read(&snapshot, record(0)).await;
                if let (Ok(copy), Ok(count)) = (copy, count) {
                    let (copy, count) = (number(&copy), number(&count));
                    assert!(copy <= count, "seed {seed}: copy {copy} of count {count}");
                }
            }
        });
    }
    // Its line of the vector is far from the first one's: they are read at different times.
    cluster.client(|mut handle| async move {
        for _ in 0..60 {
            let snapshot = handle.begin().await;
            let Ok(count) = handle.read(&snapshot, record(0)).await else {
                continue;
            };
            let copy = handle.read(&snapshot, record(1)).await.unwrap();
            let changes = vec![change(&copy, number(&count))];
            assert!(handle.commit(&[], changes, Isolation::Snapshot).await);
        }
    });
    cluster.run();
}

#[test]
fn who_sees_a_transaction_sees_what_it_had_seen() {
    holds_over_seeds(copies);
}

#[test]
fn a_vector_without_what_was_seen_is_found() {
    let options = MemoryOptions::default();
    assert!(is_found(copies, Some(Mutant::ForgetsWhatWasSeen), options));
}

/// Two doctors are on call, and each leaves if the other one stays. Returns how often nobody was.
fn doctors(seed: u64, isolation: Isolation, mutant: Option<Mutant>) -> u32 {
    let nobody = Rc::<Cell<u32>>::default();
    for round in 0..8 {
        let options = MemoryOptions::default();
        let mut cluster = TestCluster::new(seed * 100 + round, 3, 2, options).with(mutant);
        // 0, as at the beginning: on call. 1: away.
        for me in 0..2 {
            cluster.client(move |mut handle| async move {
                let snapshot = handle.begin().await;
                let own = handle.read(&snapshot, record(me)).await.unwrap();
                let other = handle.read(&snapshot, record(1 - me)).await.unwrap();
                if number(&other) == 0 {
                    let changes = vec![change(&own, 1)];
                    let reads = [own.into(), other.into()];
                    handle.commit(&reads, changes, isolation).await;
                }
            });
        }
        cluster.run();
        let count = Rc::clone(&nobody);
        cluster.client(move |mut handle| async move {
            let snapshot = handle.begin().await;
            let mut away = 0;
            for place in 0..2 {
                away += number(&handle.read(&snapshot, record(place)).await.unwrap());
            }
            count.set(count.get() + u32::from(away == 2));
        });
        cluster.run();
    }
    nobody.get()
}

#[test]
fn write_skew_happens_under_snapshot_isolation_and_never_under_serializable() {
    let skews = |isolation| {
        (0..seeds(SEEDS))
            .map(|seed| doctors(seed, isolation, None))
            .sum::<u32>()
    };
    assert!(skews(Isolation::Snapshot) > 0, "this test is blind");
    assert_eq!(skews(Isolation::Serializable), 0);
}

#[test]
fn reads_that_are_not_looked_at_again_are_found() {
    let mutant = Some(Mutant::NeverValidates);
    let mut skews = (0..DEFECT_SEEDS).map(|seed| doctors(seed, Isolation::Serializable, mutant));
    assert!(skews.any(|count| count > 0));
}
