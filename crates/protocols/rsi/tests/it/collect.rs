//! Keys whose rows were deleted go, and their records are given to other rows, while others read
//! under old snapshots: nobody ever sees a row twice, none, or another's.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::common::{Carried, ClientHandle, SERVERS, TestCluster, at, each_is_found, thread_of};
use manxdb_core::Random;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::rows::collect::Collector;
use manxdb_rsi::rows::{Client, Extent, Failure, Keyspace};
use manxdb_rsi::{Isolation, Layout, LowWatermark, RecordAddress, Snapshot, Span, ThreadId};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 24;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 960;
/// Tokens, each under one of many keys.
const TOKENS: u64 = 6;
const KEYS: u64 = 200;
const MOVERS: u64 = 3;
const READERS: u64 = 2;
const MOVES: u32 = 40;
/// Records of a mover: far fewer than keys that it uses.
const ROOM: u64 = 24;
const THREADS: u16 = 16;

const NODES: Layout = match Layout::new(2, 200) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
const RECORDS: Layout = match Layout::new(3, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn keyspace() -> Keyspace {
    crate::common::keyspace(NODES, RECORDS)
}

fn low_watermark() -> LowWatermark {
    LowWatermark::new(at(1, 64 << 10), at(1, 66 << 10), THREADS).unwrap()
}

/// A client of the cluster with memory of its own.
fn client(handle: &ClientHandle, rows: u64) -> Client<Carried> {
    let number = u64::from(handle.thread.number());
    let server = handle.thread.number() % SERVERS;
    let base = (128 << 10) + number * (24 << 10);
    let records = Extent::new(at(server, base), RECORDS.bytes(), rows).unwrap();
    let nodes = at(server, base + (10 << 10));
    let nodes = Extent::new(nodes, NODES.bytes(), 25).unwrap();
    let session = handle.session.clone();
    Client::new(handle.carrier(), session, keyspace(), records, nodes)
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn token(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// What all know of each other, as a table of places would say it.
#[derive(Default)]
struct World {
    /// Threads that have places.
    present: RefCell<BTreeSet<ThreadId>>,
    /// Places that are given to other rows.
    free: RefCell<Vec<RecordAddress>>,
    /// The same of nodes.
    nodes: RefCell<Vec<RecordAddress>>,
    again: Cell<u32>,
    /// Movers that have not come to their end.
    at_work: Cell<u64>,
    moves: Cell<u32>,
    scans: Cell<u32>,
    too_old: Cell<u32>,
    reused: Cell<u32>,
}

impl World {
    /// Places for rows to come, at most so many.
    fn give(&self, most: usize) -> Vec<RecordAddress> {
        let mut free = self.free.borrow_mut();
        let count = free.len().min(most);
        self.reused
            .set(self.reused.get() + u32::try_from(count).unwrap());
        free.drain(..count).collect()
    }
}

fn must_be_conflict<E: std::fmt::Debug + std::fmt::Display>(failure: &Failure<E>) {
    assert!(failure.is_conflict(), "{failure}");
}

/// Takes a place, and looks at the bound before anything else.
async fn join(handle: &ClientHandle, world: &World, rows: u64) -> Client<Carried> {
    let mut client = client(handle, rows);
    world.present.borrow_mut().insert(handle.thread);
    let bound = client.look_at(low_watermark()).await.unwrap();
    client
        .advance_watermark(low_watermark(), &bound)
        .await
        .unwrap();
    client
}

async fn advance_watermark(client: &mut Client<Carried>) {
    let bound = client.look_at(low_watermark()).await.unwrap();
    client
        .advance_watermark(low_watermark(), &bound)
        .await
        .unwrap();
}

/// Moves some tokens from their keys to others that are free, which they are under for the first time,
/// or again; how many.
async fn move_some(client: &mut Client<Carried>, random: &mut Random) -> Option<u32> {
    let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
    let all = rows.scan(Span::all()).await;
    let mut all = all.inspect_err(must_be_conflict).ok()?;
    let count = [1, 1, 2, 3][usize::try_from(random.below(4)).unwrap()];
    for _ in 0..count {
        let place = usize::try_from(random.below(all.len() as u64)).unwrap();
        let (from, value) = all.swap_remove(place);
        let to = key(random.below(KEYS));
        let there = rows.get(&to).await.inspect_err(must_be_conflict).ok()?;
        if there.is_some() {
            return None;
        }
        rows.write(from, None);
        rows.write(to, Some(value));
    }
    let committed = rows.commit().await;
    committed.inspect_err(must_be_conflict).ok()?.map(|_| count)
}

async fn mover(handle: ClientHandle, world: Rc<World>) {
    let mut client = join(&handle, &world, ROOM).await;
    let mut random = handle.random.clone();
    for _ in 0..MOVES {
        let few = client.left().0 < 4;
        client.recycle(world.give(if few { 8 } else { 0 }));
        let nodes = std::mem::take(&mut *world.nodes.borrow_mut());
        world
            .again
            .set(world.again.get() + u32::try_from(nodes.len()).unwrap());
        client.recycle_nodes(&nodes).await.unwrap();
        if client.left().0 > 2 {
            let moved = move_some(&mut client, &mut random).await;
            world.moves.set(world.moves.get() + moved.unwrap_or(0));
        }
        advance_watermark(&mut client).await;
    }
    world.present.borrow_mut().remove(&handle.thread);
    world.at_work.set(world.at_work.get() - 1);
}

/// Reads all keys one by one, under one snapshot, while others move tokens. It heeds bounds only
/// between its transactions, or, impatient, also in the middle of one, which is too old then.
async fn reader(handle: ClientHandle, world: Rc<World>, seed: u64, is_patient: bool) {
    let mut client = join(&handle, &world, 1).await;
    let mut random = handle.random.clone();
    while world.at_work.get() > 0 {
        let snapshot = client.snapshot().await.unwrap();
        match look(&mut client, &snapshot, &mut random, is_patient).await {
            Some(found) => {
                let all: BTreeSet<u64> = found.values().copied().collect();
                let is_whole = found.len() == all.len() && all.len() as u64 == TOKENS;
                assert!(is_whole, "seed {seed}: {found:?}");
                world.scans.set(world.scans.get() + 1);
            }
            None => world.too_old.set(world.too_old.get() + 1),
        }
        advance_watermark(&mut client).await;
    }
    world.present.borrow_mut().remove(&handle.thread);
}

async fn look(
    client: &mut Client<Carried>,
    snapshot: &Snapshot,
    random: &mut Random,
    is_patient: bool,
) -> Option<BTreeMap<u64, u64>> {
    let mut found = BTreeMap::new();
    let mut next = Vec::new();
    loop {
        let mut rows = client.begin_at(snapshot.clone(), Isolation::Snapshot);
        let span = Span {
            low: next.clone(),
            limit: 2,
            ..Span::all()
        };
        let page = rows.scan(span).await.inspect_err(must_be_conflict).ok()?;
        drop(rows);
        for (key, value) in &page {
            let number = String::from_utf8(key.clone()).unwrap().parse().unwrap();
            found.insert(number, token(value));
        }
        match page.last() {
            Some((key, _)) => next = [key, &[0][..]].concat(),
            None => return Some(found),
        }
        for _ in 0..random.below(12) {
            client.snapshot().await.unwrap(); // something else, meanwhile
        }
        if !is_patient && random.below(3) == 0 {
            advance_watermark(client).await;
        }
    }
}

async fn collector(handle: ClientHandle, world: Rc<World>, mutant: Option<Mutant>) {
    let mut client = join(&handle, &world, 1).await;
    let mut collector = Collector::new(low_watermark()).with(mutant);
    while world.at_work.get() > 0 {
        let proposed = collector.propose(&mut client).await;
        if let Err(failure) = proposed {
            must_be_conflict(&failure);
        }
        advance_watermark(&mut client).await;
        let present: Vec<ThreadId> = world.present.borrow().iter().copied().collect();
        collector.agree(&mut client, &present).await.unwrap();
        for _ in 0..4 {
            match collector.collect(&mut client).await {
                Ok(collected) => world.free.borrow_mut().extend(collected.places),
                Err(failure) => must_be_conflict(&failure),
            }
        }
        world.nodes.borrow_mut().extend(collector.nodes());
    }
    world.present.borrow_mut().remove(&handle.thread);
}

/// Movers, readers and one that collects, some of whom die; what became of it all.
fn shell_game(seed: u64, deaths: u64, mutant: Option<Mutant>) -> Rc<World> {
    let mut cluster = TestCluster::new(seed, THREADS, 0, MemoryOptions::default())
        .with_logs()
        .unwatched();
    let world = Rc::<World>::default();
    cluster.client(|handle| async move {
        let mut client = client(&handle, ROOM);
        let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
        for token in 0..TOKENS {
            rows.write(key(token), Some(token.to_le_bytes().to_vec()));
        }
        rows.commit().await.unwrap();
    });
    cluster.run();
    let mut cluster = cluster.with(mutant);
    world.at_work.set(MOVERS);
    for _ in 0..MOVERS {
        let world = Rc::clone(&world);
        cluster.client(move |handle| mover(handle, world));
    }
    for number in 0..READERS {
        let world = Rc::clone(&world);
        cluster.client(move |handle| reader(handle, world, seed, number == 0));
    }
    let world_of_one = Rc::clone(&world);
    let last = cluster.client(move |handle| collector(handle, world_of_one, mutant));
    cluster.start();
    let mut random = Random::stream(seed, &[7]);
    for number in 0..deaths {
        for _ in 0..random.below(3_000) {
            cluster.step();
        }
        // A mover, then the one that collects, which is followed by another.
        let dead = if number == 0 { 2 } else { last };
        if number == 0 && !world.present.borrow().contains(&thread_of(dead)) {
            continue; // it has come to its end, or has not begun
        }
        cluster.kill(dead);
        let is_done = cluster.go_on_for(dead);
        while !is_done.get() && cluster.step() {}
        world.present.borrow_mut().remove(&thread_of(dead));
        if number == 0 {
            world.at_work.set(world.at_work.get() - 1);
        } else {
            let world = Rc::clone(&world);
            let next = cluster.client(move |handle| collector(handle, world, mutant));
            cluster.begin(next);
        }
    }
    while cluster.step() {}
    assert_eq!(
        world.at_work.get(),
        0,
        "seed {seed}: somebody waits for ever"
    );
    world
}

fn all(deaths: u64) -> (u32, u32, u32, u32) {
    let mut sums = (0, 0, 0, 0);
    for seed in 0..seeds(SEEDS) {
        let world = shell_game(seed, deaths, None);
        sums.0 += world.moves.get();
        sums.1 += world.scans.get();
        sums.2 += world.too_old.get();
        sums.3 += world.reused.get();
    }
    sums
}

#[test]
fn rows_come_and_go_in_little_room_and_every_snapshot_sees_each_once() {
    let (moves, scans, too_old, reused) = all(0);
    // Movers have room for fewer rows than that.
    let room = u32::try_from(seeds(SEEDS) * MOVERS * ROOM).unwrap();
    assert!(moves > room, "{moves} moves in {room} records");
    assert!(
        scans > 200,
        "{scans} scans, {too_old} too old: this test is blind"
    );
    assert!(
        too_old > 20 && reused > 200,
        "{too_old} too old, {reused} reused: blind"
    );
}

#[test]
fn so_they_do_when_movers_die_and_those_who_collect() {
    let (moves, scans, too_old, reused) = all(2);
    assert!(moves > 0 && scans > 200, "{moves} {scans} {too_old}: blind");
    assert!(reused > 100, "{reused} reused: blind");
}

#[test]
fn planted_defects_are_found() {
    // The last is found in one seed of a hundred: what is too old is seldom another's already.
    let cases = [
        (Mutant::AsksNobody, 0, ()),
        (Mutant::LeavesRecordsAsTheyAre, 0, ()),
        (Mutant::ReadsWhatIsTooOld, 186, ()),
    ];
    each_is_found(&cases, DEFECT_SEEDS, |(), seed, mutant| {
        shell_game(seed, 0, Some(mutant));
    });
}

/// Everybody has heeded everything, so that all that is gone may go.
async fn settle(collector: &mut Collector, client: &mut Client<Carried>, own: ThreadId) {
    collector.propose(client).await.unwrap();
    advance_watermark(client).await;
    assert!(collector.agree(client, &[own]).await.unwrap());
}

/// A snapshot is led to a leaf that has been taken out of the tree since; the leaf may have become
/// another one by then, if that was given away too soon. Whether the snapshot sees all rows.
fn reads_past_a_leaf_that_went(mutant: Option<Mutant>) -> bool {
    let mut cluster = TestCluster::new(3, THREADS, 0, MemoryOptions::default()).with_logs();
    let is_fine = Rc::<Cell<bool>>::default();
    let found = Rc::clone(&is_fine);
    cluster.client(move |handle| async move {
        let mut client = client(&handle, 75);
        let mut collector = Collector::new(low_watermark()).with(mutant);
        let write =
            async |client: &mut Client<Carried>, keys: std::ops::Range<u64>, value: Option<u64>| {
                for number in keys {
                    let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
                    rows.write(key(number), value.map(|value| value.to_le_bytes().to_vec()));
                    rows.commit().await.unwrap();
                }
            };
        write(&mut client, 0..40, Some(1)).await;
        write(&mut client, 8..32, None).await;
        settle(&mut collector, &mut client, handle.thread).await;
        while !collector.collect(&mut client).await.unwrap().is_round {} // the keys
        settle(&mut collector, &mut client, handle.thread).await;
        let snapshot = client.snapshot().await.unwrap();
        while !collector.collect(&mut client).await.unwrap().is_round {} // leaves without keys
        let nodes = collector.nodes();
        assert_eq!(nodes.is_empty(), mutant.is_none());
        client.recycle_nodes(&nodes).await.unwrap();
        write(&mut client, 40..70, Some(2)).await;
        let mut rows = client.begin_at(snapshot, Isolation::Snapshot);
        let seen = rows.scan(Span::all()).await;
        let expected: Vec<Vec<u8>> = (0..8).chain(32..40).map(key).collect();
        let keys = seen.map(|page| page.into_iter().map(|(key, _)| key).collect::<Vec<_>>());
        found.set(keys.is_ok_and(|keys| keys == expected));
    });
    cluster.run();
    is_fine.get()
}

#[test]
fn a_leaf_is_another_one_only_when_no_snapshot_is_led_to_it() {
    assert!(reads_past_a_leaf_that_went(None));
    assert!(!reads_past_a_leaf_that_went(Some(Mutant::GivesNodesAtOnce)));
}
