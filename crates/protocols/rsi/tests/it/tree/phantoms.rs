//! What was scanned can be relied on, and one's own keys are no phantoms.

use std::cell::Cell;
use std::rc::Rc;

use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Change, Isolation, LookupResult, Snapshot, Span, rely_on_own};
use manxdb_sim::memory::MemoryOptions;

use crate::common::{ClientHandle, TestCluster, absence_is_relied_on};
use crate::tree::{LAYOUT, Rooms, SEEDS, enter, enter_with, key, scan};

/// A tree with keys on both sides of a gap, in several leaves.
fn house_with_a_gap(seed: u64, mutant: Option<Mutant>) -> TestCluster {
    let mut cluster = TestCluster::new(seed, 8, 0, MemoryOptions::default()).with(mutant);
    cluster.client(|mut handle| async move {
        let rooms = Rooms::new(1);
        for number in (0..30).chain(60..90) {
            enter(&mut handle, &rooms, &[number], None).await;
        }
    });
    cluster.run();
    cluster
}

/// What lies in the gap, all records of which are read; whether one of them is there.
async fn look_into_the_gap(
    handle: &ClientHandle,
    snapshot: &Snapshot,
    descending: bool,
) -> (Vec<LookupResult>, bool) {
    let span = Span {
        low: key(30),
        high: Some(key(60)),
        descending,
        limit: usize::MAX,
    };
    let scanned = scan(handle, snapshot, span).await;
    let (mut reads, mut is_there) = (scanned.leaves, false);
    for (_, place) in scanned.entries {
        let read = handle.session.read(snapshot, place.address(), LAYOUT);
        let seen = handle.run(read).await.unwrap();
        is_there |= seen.value().is_some();
        reads.push(seen.into());
    }
    (reads, is_there)
}

/// Writes a record into the gap, unless there is one; whether it did.
async fn fill_the_gap(
    handle: &mut ClientHandle,
    client: u64,
    numbers: &[u64],
    isolation: Isolation,
) -> bool {
    let rooms = Rooms::new(client);
    let snapshot = handle.begin().await;
    let (mut reads, is_there) = look_into_the_gap(handle, &snapshot, client == 2).await;
    if is_there {
        return false;
    }
    let records = rooms.all().skip(50);
    let known = loop {
        let entered = enter_with(handle, &rooms, numbers, records.clone(), None).await;
        match entered {
            Ok(known) => break known,
            Err(abort) => assert!(abort.is_conflict(), "{abort}"),
        }
    };
    if let Some(stamp) = known.stamp {
        rely_on_own(&mut reads, &known.changes, stamp);
    }
    let mut changes = Vec::new();
    for place in known.places.values() {
        changes.push(Change {
            seen: handle
                .run(handle.session.read(&snapshot, place.address(), LAYOUT))
                .await
                .unwrap(),
            value: Some(vec![1]),
        });
    }
    handle.commit(&reads, changes, isolation).await
}

/// Two fill the gap, each if there is nothing in it. Returns whether both did.
fn phantoms(seed: u64, isolation: Isolation, mutant: Option<Mutant>) -> bool {
    let mut cluster = house_with_a_gap(seed, mutant);
    let both = Rc::<Cell<u32>>::default();
    for client in 2..4 {
        let both = Rc::clone(&both);
        cluster.client(move |mut handle| async move {
            let number = [44 + client];
            if fill_the_gap(&mut handle, client, &number, isolation).await {
                both.set(both.get() + 1);
            }
        });
    }
    cluster.run();
    both.get() == 2
}

#[test]
fn keys_of_ones_own_are_no_phantoms() {
    let mut cluster = house_with_a_gap(1, None);
    cluster.client(|mut handle| async move {
        // So many that leaves are split.
        let numbers: Vec<u64> = (31..55).collect();
        assert!(fill_the_gap(&mut handle, 2, &numbers, Isolation::Serializable).await);
        assert!(!fill_the_gap(&mut handle, 3, &[56], Isolation::Serializable).await);
    });
    cluster.run();
}

#[test]
fn what_was_scanned_can_be_relied_on() {
    absence_is_relied_on(SEEDS, phantoms);
}
