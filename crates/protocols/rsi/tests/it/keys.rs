//! Records under keys: clients add the same ones at the same time, in a directory so small that its
//! chains grow; who looked for a key and found nothing can rely on it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{ClientHandle, TestCluster, at, value};
use manxdb_core::Random;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Abort, Change, FreeSpace, Isolation, Layout, LookupResult, RecordAddress, Release, Snapshot,
    Table, ThreadId,
};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 40;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 150;

const LAYOUT: Layout = match Layout::keyed(2, 160, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

/// Two chains.
fn table() -> Table {
    let shares = vec![at(0, 256 << 10), at(1, 256 << 10)];
    Table::new(LAYOUT, shares, 1, 7).unwrap()
}

/// Memory of a client's own, of which it gives places away.
struct Extent {
    client: u64,
    records: Cell<u64>,
    buckets: Cell<u64>,
}

impl Extent {
    fn new(client: u64) -> Self {
        Self {
            client,
            records: Cell::new(0),
            buckets: Cell::new(0),
        }
    }

    fn room(&self) -> FreeSpace {
        let record = self.records.get() * (LAYOUT.bytes() as u64).next_multiple_of(64);
        let bucket = (12 << 10) + self.buckets.get() * 64;
        let base = (320 << 10) + self.client * (16 << 10);
        let place = |offset| RecordAddress::new(at(0, base + offset)).unwrap();
        FreeSpace {
            record: place(record),
            generation: 0,
            bucket: place(bucket),
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

async fn find(
    handle: &ClientHandle,
    snapshot: &Snapshot,
    number: u64,
) -> Result<LookupResult, Abort> {
    let find = handle
        .session
        .find(snapshot, &table(), &key(number))
        .unwrap();
    handle.run(find).await
}

/// Inserts a record; whether it did, or none if it is to be tried again. What was looked for and
/// not there is relied on, if it is to be serializable.
async fn insert(
    handle: &mut ClientHandle,
    extent: &Extent,
    (snapshot, number, to): (&Snapshot, u64, u64),
    reads: &[LookupResult],
    isolation: Isolation,
) -> Option<bool> {
    let seen = match find(handle, snapshot, number).await {
        Ok(LookupResult::Record(seen)) => seen,
        Ok(LookupResult::Nothing(absence)) => {
            let add = handle.session.add(snapshot, absence, extent.room());
            let added = handle.run(add).await.ok()?;
            extent
                .records
                .set(extent.records.get() + u64::from(added.took_record));
            extent
                .buckets
                .set(extent.buckets.get() + u64::from(added.took_bucket));
            added.seen
        }
        Err(_) => return None,
    };
    if seen.value().is_some() {
        return Some(false);
    }
    let value = Some(value(to));
    let changes = vec![Change { seen, value }];
    handle
        .commit(reads, changes, isolation)
        .await
        .then_some(true)
}

/// Tries to insert a record so many times, until it or another is there; whether it is this one.
async fn insert_at_last(
    handle: &mut ClientHandle,
    extent: &Extent,
    (number, to): (u64, u64),
    tries: u32,
) -> bool {
    for _ in 0..tries {
        let snapshot = handle.begin().await;
        let what = (&snapshot, number, to);
        if let Some(done) = insert(handle, extent, what, &[], Isolation::Snapshot).await {
            return done;
        }
    }
    false
}

/// Clients insert the same keys, each in an order of its own: one of them does, whose value stays.
fn races(seed: u64, mutant: Option<Mutant>) {
    const CLIENTS: u64 = 4;
    const KEYS: u64 = 20;
    let mut cluster = TestCluster::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    let winners = Rc::<RefCell<BTreeMap<u64, u64>>>::default();
    for client in 1..=CLIENTS {
        let winners = Rc::clone(&winners);
        cluster.client(move |mut handle| async move {
            let extent = Extent::new(client);
            let first = handle.random.below(3);
            for number in 0..KEYS {
                let number = (first + number) % KEYS;
                if insert_at_last(&mut handle, &extent, (number, client), u32::MAX).await {
                    let former = winners.borrow_mut().insert(number, client);
                    assert_eq!(former, None, "seed {seed}: two inserted {number}");
                }
            }
        });
    }
    cluster.run();
    let winners = winners.borrow().clone();
    assert_eq!(winners.len() as u64, KEYS);
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        for (number, winner) in winners {
            let LookupResult::Record(seen) = find(&handle, &snapshot, number).await.unwrap() else {
                panic!("seed {seed}: {number} is gone");
            };
            assert_eq!(
                seen.value(),
                Some(&value(winner)[..]),
                "seed {seed}: {number}"
            );
        }
        let nothing = find(&handle, &snapshot, KEYS).await.unwrap();
        assert!(matches!(nothing, LookupResult::Nothing(_)));
    });
    cluster.run();
}

#[test]
fn of_those_who_insert_a_key_one_does() {
    for seed in 0..seeds(SEEDS) {
        races(seed, None);
    }
}

#[test]
fn who_does_not_look_whose_entry_it_is_is_found() {
    let mutant = Some(Mutant::AddsWithoutLooking);
    let is_found = |seed| catch_unwind(AssertUnwindSafe(|| races(seed, mutant))).is_err();
    assert!((0..DEFECT_SEEDS).any(is_found));
}

/// Two clients insert the same keys until one dies; the other one recovers it and inserts the rest.
/// Returns how many locks the dead one had left.
fn dying_inserters(seed: u64) -> u32 {
    const KEYS: u64 = 8;
    let mut cluster = TestCluster::new(seed, 8, 0, MemoryOptions::default()).with_logs();
    let known = Rc::<RefCell<BTreeMap<u64, u64>>>::default();
    let inserts = |cluster: &mut TestCluster, client: u64| {
        let known = Rc::clone(&known);
        cluster.client(move |mut handle| async move {
            let extent = Extent::new(client);
            for number in 0..KEYS {
                if insert_at_last(&mut handle, &extent, (number, client), 20).await {
                    known.borrow_mut().insert(number, client);
                }
            }
        })
    };
    let dead = inserts(&mut cluster, 1);
    inserts(&mut cluster, 2);
    cluster.start();
    for _ in 0..Random::stream(seed, &[3]).below(600) {
        cluster.step();
    }
    cluster.kill(dead);
    while cluster.step() {}
    let last = cluster.recovered(ThreadId::FIRST);
    // Whoever writes such a record takes its lock over; here they are looked for.
    let locks = Rc::<Cell<u32>>::default();
    let count = Rc::clone(&locks);
    cluster.client(move |handle| async move {
        for (client, number) in (1..=2).flat_map(|client| (0..KEYS).map(move |n| (client, n))) {
            let extent = Extent::new(client);
            extent.records.set(number);
            let at = extent.room().record.address();
            let is_released = handle.run(Release::new(at, LAYOUT, last)).await.unwrap();
            count.set(count.get() + u32::from(is_released));
        }
    });
    cluster.run();
    inserts(&mut cluster, 3);
    cluster.run();
    let known = known.borrow().clone();
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        for number in 0..KEYS {
            let LookupResult::Record(seen) = find(&handle, &snapshot, number).await.unwrap() else {
                panic!("seed {seed}: {number} is gone");
            };
            // The dead one may have committed what it did not hear of.
            let winner = known.get(&number).copied().unwrap_or(1);
            assert_eq!(
                seen.value(),
                Some(&value(winner)[..]),
                "seed {seed}: {number}"
            );
        }
    });
    cluster.run();
    locks.get()
}

#[test]
fn keys_are_inserted_once_when_clients_die_over_them() {
    let locks: u32 = (0..seeds(SEEDS)).map(dying_inserters).sum();
    assert!(locks > 0, "this test is blind");
}

/// Each of two inserts its key if the other's is not there. Returns how often both are.
fn phantoms(seed: u64, isolation: Isolation, mutant: Option<Mutant>) -> u32 {
    let mut cluster = TestCluster::new(seed, 4, 0, MemoryOptions::default()).with(mutant);
    for me in 0..2 {
        cluster.client(move |mut handle| async move {
            let extent = Extent::new(me + 1);
            let snapshot = handle.begin().await;
            let other = find(&handle, &snapshot, 1 - me).await.unwrap();
            let is_there = matches!(&other, LookupResult::Record(seen) if seen.value().is_some());
            if !is_there {
                let what = (&snapshot, me, 1);
                insert(&mut handle, &extent, what, &[other], isolation).await;
            }
        });
    }
    cluster.run();
    let both = Rc::<Cell<u32>>::default();
    let count = Rc::clone(&both);
    cluster.client(move |mut handle| async move {
        let snapshot = handle.begin().await;
        let mut there = 0;
        for number in 0..2 {
            let found = find(&handle, &snapshot, number).await.unwrap();
            there +=
                u32::from(matches!(found, LookupResult::Record(seen) if seen.value().is_some()));
        }
        count.set(u32::from(there == 2));
    });
    cluster.run();
    both.get()
}

#[test]
fn phantoms_come_under_snapshot_isolation_and_never_under_serializable() {
    let count = |isolation| {
        (0..seeds(SEEDS))
            .map(|seed| phantoms(seed, isolation, None))
            .sum::<u32>()
    };
    assert!(count(Isolation::Snapshot) > 0, "this test is blind");
    assert_eq!(count(Isolation::Serializable), 0);
}

#[test]
fn absences_that_are_not_looked_at_again_are_found() {
    let mutant = Some(Mutant::NeverValidates);
    let mut counts = (0..DEFECT_SEEDS).map(|seed| phantoms(seed, Isolation::Serializable, mutant));
    assert!(counts.any(|count| count > 0));
}

#[test]
fn a_key_that_is_too_long_is_refused() {
    let mut cluster = TestCluster::new(1, 2, 0, MemoryOptions::default());
    cluster.client(|mut handle| async move {
        let snapshot = handle.begin().await;
        let found = handle.session.find(&snapshot, &table(), &[7; 17]);
        assert_eq!(found.err(), Some(Abort::KeyTooLong(16, 17)));
    });
    cluster.run();
}
