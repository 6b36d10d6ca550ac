//! Clients that insert rows under keys in order, each its own; servers are lost, and all that was
//! acknowledged is found under its key, once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_rsi::rows::{Client, Extent, Failure, Keyspace, Transaction};
use manxdb_rsi::{Isolation, RecordAddress, Snapshot, Span, Tree};
use manxdb_sim::SimTime;

use crate::replicas::client_handle::{
    Carried, ClientHandle, NODES, PLACES, Plan, REPLICAS, ROWS, SERVERS, THREADS, each,
};
use crate::replicas::cluster::TestCluster;

const CLIENTS: u64 = 3;

/// What is known to be there.
type Notes = Rc<RefCell<BTreeMap<Vec<u8>, Vec<u8>>>>;

fn keyspace(plan: &Plan) -> Keyspace {
    let root = RecordAddress::new(plan.nodes).unwrap();
    Keyspace {
        tree: Tree::new(root, NODES).unwrap(),
        records: ROWS,
    }
}

/// A client with a share of the places; the root is nobody's.
fn client(handle: &ClientHandle, own: u64) -> Client<Carried> {
    let share = (PLACES - 1) / CLIENTS;
    let first = 1 + own * share;
    let extent = |base: manxdb_fabric::Address, layout: manxdb_rsi::Layout| {
        Extent::new(base.plus(first * each(layout)), layout.bytes(), share).unwrap()
    };
    let (rows, nodes) = (
        extent(handle.plan.rows, ROWS),
        extent(handle.plan.nodes, NODES),
    );
    let carrier = Carried(handle.clone());
    Client::new(
        carrier,
        handle.session.clone(),
        keyspace(&handle.plan),
        rows,
        nodes,
    )
}

/// Inserts those of some rows that are not there; whether it is acknowledged.
async fn insert(
    client: &mut Client<Carried>,
    keys: &[Vec<u8>],
) -> Result<(), Failure<std::convert::Infallible>> {
    let mut rows = client.begin(Isolation::Serializable).await?;
    for key in keys {
        if rows.get(key).await?.is_none() {
            rows.write(key.clone(), Some(key.repeat(2)));
        }
    }
    rows.commit().await?;
    Ok(())
}

async fn work(mut handle: ClientHandle, notes: Notes, own: u64, until: SimTime) {
    let mut client = client(&handle, own);
    let mut number = 0;
    while handle.now() < until && number < 30 {
        // Neighbours are others'; some keys lie far from each other, some are others' as well.
        let key = |number: u64| format!("key {:04}", number * CLIENTS + own).into_bytes();
        let of_all = format!("key {:04} of all", handle.random.below(20)).into_bytes();
        let count = 1 + handle.random.below(4);
        let mut keys: Vec<Vec<u8>> = (number..number + count).map(key).collect();
        keys.extend([key(100 - number), of_all]);
        match insert(&mut client, &keys).await {
            Ok(()) => {
                number += count;
                let rows = keys.into_iter().map(|key| (key.clone(), key.repeat(2)));
                notes.borrow_mut().extend(rows);
            }
            Err(failure) if failure.is_conflict() => {}
            Err(Failure::NoRoom(_)) => return,
            Err(Failure::Abort(_)) => {
                handle.rejoin().await;
                client.go_on(Carried(handle.clone()), handle.session.clone());
            }
            Err(Failure::Carrier(never)) => match never {},
        }
    }
}

/// All that is known is there, and what else is there is whole.
async fn judge(handle: ClientHandle, notes: Notes, seed: u64) {
    let mut client = client(&handle, 0);
    let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
    let found = rows.scan(Span::all()).await.unwrap();
    let is_ordered = found.windows(2).all(|pair| pair[0].0 < pair[1].0);
    assert!(is_ordered, "seed {seed}: {found:?}");
    for (key, value) in &found {
        assert_eq!(*value, key.repeat(2), "seed {seed}");
    }
    let found: BTreeMap<_, _> = found.into_iter().collect();
    let known = notes.borrow().clone();
    for (key, value) in known {
        assert_eq!(found.get(&key), Some(&value), "seed {seed}");
        assert_eq!(rows.get(&key).await.unwrap(), Some(value));
    }
}

/// Inserts rows until that is acknowledged, in one epoch after another.
async fn insert_at_last(mut handle: ClientHandle, keys: Vec<Vec<u8>>, own: u64, notes: Notes) {
    let mut client = client(&handle, own);
    loop {
        match insert(&mut client, &keys).await {
            Ok(()) => break,
            Err(failure) if failure.is_conflict() => {}
            Err(Failure::Abort(_)) => {
                handle.rejoin().await;
                client.go_on(Carried(handle.clone()), handle.session.clone());
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    let rows = keys.into_iter().map(|key| (key.clone(), key.repeat(2)));
    notes.borrow_mut().extend(rows);
}

/// Batches and operations of a transaction that inserts four neighbours into a leaf with room.
pub fn counts(replicas: usize) -> (u64, u64) {
    counted(replicas, async |client| {
        client.begin(Isolation::Snapshot).await.unwrap()
    })
}

/// The same under a snapshot that does not see all keys of the leaf.
pub fn counts_apart(replicas: usize) -> (u64, u64) {
    counted(replicas, async |client| {
        let mut numbers = vec![0; usize::from(THREADS)];
        numbers[1] = 1;
        client.begin_at(Snapshot::of_numbers(numbers), Isolation::Snapshot)
    })
}

/// The same of a transaction that begins in some way, as the third one of its client.
fn counted(
    replicas: usize,
    begin: impl AsyncFn(&mut Client<Carried>) -> Transaction<'_, Carried> + 'static,
) -> (u64, u64) {
    let mut cluster = TestCluster::new(1, replicas);
    let counts = Rc::<Cell<(u64, u64)>>::default();
    let noted = Rc::clone(&counts);
    cluster.client(move |handle| async move {
        let mut client = client(&handle, 0);
        let mut took = (0, 0);
        for numbers in [0..2, 2..4, 4..8] {
            let before = handle.counts();
            let mut rows = if numbers.start == 4 {
                begin(&mut client).await
            } else {
                client.begin(Isolation::Snapshot).await.unwrap()
            };
            for number in numbers {
                rows.write(format!("{number:03}").into_bytes(), Some(vec![1]));
            }
            rows.commit().await.unwrap();
            let after = handle.counts();
            took = (after.0 - before.0, after.1 - before.1);
        }
        noted.set(took);
    });
    cluster.run();
    counts.get()
}

/// A server is lost after so many events while somebody inserts rows whose keys are entered together,
/// into leaves that are split; whether he was at work then.
pub fn lost_at(seed: u64, server: u16, events: u64) -> bool {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    let notes = Notes::default();
    let key = |number: u64| format!("key {number:04}").into_bytes();
    let (old, new) = ([10, 20, 30, 40, 50, 60, 70, 80, 90], [11, 12, 13, 51, 91]);
    let noted = Rc::clone(&notes);
    cluster.client(move |handle| insert_at_last(handle, old.map(key).into(), 0, noted));
    cluster.run();
    let noted = Rc::clone(&notes);
    cluster.client(move |handle| insert_at_last(handle, new.map(key).into(), 1, noted));
    cluster.steps(events);
    let is_at_work = cluster.is_at_work(2);
    cluster.lose(ServerId(server), true, None);
    cluster.run();
    assert_eq!(notes.borrow().len(), old.len() + new.len());
    cluster.client(|handle| judge(handle, Rc::clone(&notes), seed));
    cluster.run();
    is_at_work
}

/// Rows that are known at the end.
pub fn losses(seed: u64) -> usize {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    let notes = Notes::default();
    let mut random = Random::stream(seed, &[14]);
    let until = cluster.memory.now() + Nanos(1_500_000);
    let clients: Vec<u64> = (0..CLIENTS)
        .map(|own| cluster.client(|handle| work(handle, Rc::clone(&notes), own, until)))
        .collect();
    cluster.steps(random.below(4_000));
    if random.below(3) == 0 {
        cluster.kill(clients[0]);
    }
    let first = random.below(u64::from(SERVERS));
    cluster.lose(ServerId(u16::try_from(first).unwrap()), true, None);
    let refilled = cluster.refill();
    cluster.steps(random.below(4_000));
    cluster.note(&refilled);
    let second = (first + 1 + random.below(u64::from(SERVERS) - 1)) % u64::from(SERVERS);
    cluster.lose(ServerId(u16::try_from(second).unwrap()), true, None);
    cluster.run();
    cluster.client(|handle| judge(handle, Rc::clone(&notes), seed));
    cluster.run();
    notes.borrow().len()
}
