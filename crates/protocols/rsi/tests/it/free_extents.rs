//! Free-extent records: what a client has not drawn goes to whoever has its place next, and nobody uses a place
//! that another has used, whoever dies when.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{Carried, ClientHandle, SERVERS, TestCluster, at, thread_of};
use manxdb_core::Random;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::rows::{Client, Extent, FreeExtentRecord, Keyspace};
use manxdb_rsi::{Isolation, Layout, RecordAddress, Span};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 40;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 150;
const PLACES: u64 = 3;
const DEATHS: u64 = 5;
/// Owners of places, those who go on for the dead, and readers.
const THREADS: u16 = 32;
/// Rows that an owner of a place adds.
const ROWS: u32 = 60;
/// Of a room. A client draws 64 records and 16 nodes, or what it lacks.
const RECORDS_EACH: u64 = 96;
const NODES_EACH: u64 = 24;

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

fn free_extent_record(place: u64) -> FreeExtentRecord {
    FreeExtentRecord::new(RecordAddress::new(at(1, (64 << 10) + place * 1024)).unwrap())
}

/// What all know of each other.
#[derive(Default)]
struct World {
    /// Rooms that were given away.
    rooms: Cell<u64>,
    /// Rows that were acknowledged.
    rows: RefCell<BTreeSet<u32>>,
    next: Cell<u32>,
    at_work: Cell<u64>,
}

impl World {
    fn room(&self) -> (Extent, Extent) {
        let number = self.rooms.replace(self.rooms.get() + 1);
        let server = u16::try_from(number).unwrap() % SERVERS;
        let base = at(
            server,
            (128 << 10) + number / u64::from(SERVERS) * (32 << 10),
        );
        let records = Extent::new(base, RECORDS.bytes(), RECORDS_EACH).unwrap();
        let nodes = Extent::new(records.end(), NODES.bytes(), NODES_EACH).unwrap();
        assert!(nodes.end().offset <= 512 << 10, "there are too few rooms");
        (records, nodes)
    }

    fn next(&self) -> u32 {
        self.next.replace(self.next.get() + 1)
    }
}

fn client(handle: &ClientHandle) -> Client<Carried> {
    let nothing = |layout: Layout| Extent::new(at(0, 64), layout.bytes(), 0).unwrap();
    let (records, nodes) = (nothing(RECORDS), nothing(NODES));
    let session = handle.session.clone();
    Client::new(handle.carrier(), session, keyspace(), records, nodes)
}

/// Gives a client what it lacks, as the owner of a place.
async fn make_room(client: &mut Client<Carried>, world: &World, place: u64, rows: u64) {
    let lacking = client.lacks((rows, 8));
    if lacking == (0, 0) {
        return;
    }
    let opened = client.open(free_extent_record(place)).await.unwrap();
    let more = (!opened.has(lacking)).then(|| world.room());
    client.draw(opened, more, lacking).await.unwrap();
}

/// Adds rows, each with its own key as its value.
async fn add(client: &mut Client<Carried>, world: &World, rows: &[u32]) {
    loop {
        let mut transaction = client.begin(Isolation::Snapshot).await.unwrap();
        for row in rows {
            let key = row.reverse_bits().to_be_bytes(); // each somewhere else
            transaction.write(key.to_vec(), Some(u64::from(*row).to_le_bytes().to_vec()));
        }
        match transaction.commit().await {
            Ok(_) => break,
            Err(failure) => assert!(failure.is_conflict(), "{failure}"),
        }
    }
    world.rows.borrow_mut().extend(rows);
}

async fn owner(handle: ClientHandle, world: Rc<World>, place: u64) {
    let mut client = client(&handle);
    let mut random = handle.random.clone();
    let mut added = 0;
    while added < ROWS {
        let count = 1 + u32::try_from(random.below(4)).unwrap();
        make_room(&mut client, &world, place, count.into()).await;
        let rows: Vec<u32> = (0..count).map(|_| world.next()).collect();
        add(&mut client, &world, &rows).await;
        added += count;
    }
    world.at_work.set(world.at_work.get() - 1);
}

/// All rows are under their own keys, those that were acknowledged among them.
fn check(cluster: &mut TestCluster, world: &Rc<World>, seed: u64) {
    let acknowledged = world.rows.borrow().clone();
    cluster.client(move |handle| async move {
        let mut client = client(&handle);
        let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
        let mut found = BTreeMap::new();
        for (key, value) in rows.scan(Span::all()).await.unwrap() {
            let row = u32::from_be_bytes(key.try_into().unwrap()).reverse_bits();
            found.insert(row, u64::from_le_bytes(value.try_into().unwrap()));
        }
        let is_own = |(row, value): (&u32, &u64)| u64::from(*row) == *value;
        assert!(found.iter().all(is_own), "seed {seed}: {found:?}");
        let is_there = |row: &u32| found.contains_key(row);
        assert!(acknowledged.iter().all(is_there), "seed {seed}: {found:?}");
    });
    while cluster.step() {}
    cluster.run();
}

/// Owners add rows while some of them die, and others have their places then; the rooms that it took.
fn heirs(seed: u64, deaths: u64, mutant: Option<Mutant>) -> u64 {
    let cluster = TestCluster::new(seed, THREADS, 0, MemoryOptions::default());
    let mut cluster = cluster.with_logs().unwatched().with(mutant);
    let world = Rc::<World>::default();
    let mut owners = Vec::new();
    let begin = |cluster: &mut TestCluster, place| {
        world.at_work.set(world.at_work.get() + 1);
        let world = Rc::clone(&world);
        cluster.client(move |handle| owner(handle, world, place))
    };
    for place in 0..PLACES {
        owners.push(begin(&mut cluster, place));
    }
    cluster.start();
    let mut random = Random::stream(seed, &[7]);
    for _ in 0..deaths {
        for _ in 0..random.below(600) {
            cluster.step();
        }
        if world.at_work.get() < PLACES {
            break; // somebody has come to its end
        }
        let place = random.below(PLACES);
        let dead = owners[usize::try_from(place).unwrap()];
        cluster.kill(dead);
        let is_done = cluster.go_on_for(dead);
        while !is_done.get() && cluster.step() {}
        world.at_work.set(world.at_work.get() - 1);
        let next = begin(&mut cluster, place);
        cluster.begin(next);
        owners[usize::try_from(place).unwrap()] = next;
    }
    while cluster.step() {}
    assert_eq!(world.at_work.get(), 0, "seed {seed}: somebody waits");
    check(&mut cluster, &world, seed);
    world.rooms.get()
}

#[test]
fn who_has_a_place_next_goes_on_with_its_free_extent_record() {
    let count = seeds(SEEDS);
    let rooms: u64 = (0..count).map(|seed| heirs(seed, DEATHS, None)).sum();
    // Each owner draws once, or twice; without free-extent records each would take a room at its beginning.
    let owners = count * (PLACES + DEATHS);
    assert!(rooms < owners, "{rooms} rooms for {owners} owners");
}

#[test]
fn without_deaths_all_of_each_room_is_drawn() {
    for seed in 0..seeds(5) {
        assert_eq!(heirs(seed, 0, None), PLACES);
    }
}

#[test]
fn a_client_that_uses_what_is_in_the_free_extent_record_is_found() {
    let mutant = Some(Mutant::UsesWhatIsInTheFreeExtentRecord);
    let found = (0..DEFECT_SEEDS).find(|seed| {
        let lived = catch_unwind(AssertUnwindSafe(|| heirs(*seed, DEATHS, mutant)));
        lived.is_err()
    });
    assert!(
        found.is_some(),
        "nobody has found it in {DEFECT_SEEDS} seeds"
    );
}

/// A client that stops at each step from its first draw to the rows that it adds.
#[test]
fn whoever_stops_at_any_step_the_next_one_uses_nothing_that_was_used() {
    let mut stopped = 0;
    for stop in 0.. {
        let cluster = TestCluster::new(stop, THREADS, 0, MemoryOptions::default());
        let mut cluster = cluster.with_logs().unwatched();
        let world = Rc::<World>::default();
        world.at_work.set(1);
        let of_first = Rc::clone(&world);
        let first = cluster.client(move |handle| async move {
            let mut client = client(&handle);
            for rows in [2, 3] {
                // The second time nothing is left of what was drawn.
                let (records, _) = client.left();
                make_room(&mut client, &of_first, 0, records + rows).await;
                let rows: Vec<u32> = (0..rows).map(|_| of_first.next()).collect();
                add(&mut client, &of_first, &rows).await;
            }
            of_first.at_work.set(0);
        });
        cluster.start();
        for _ in 0..stop {
            cluster.step();
        }
        let is_over = world.at_work.get() == 0;
        cluster.kill(first);
        cluster.recovered(thread_of(first));
        let of_next = Rc::clone(&world);
        cluster.client(move |handle| async move {
            let mut client = client(&handle);
            for _ in 0..8 {
                make_room(&mut client, &of_next, 0, 4).await;
                let rows: Vec<u32> = (0..4).map(|_| of_next.next()).collect();
                add(&mut client, &of_next, &rows).await;
            }
        });
        cluster.run();
        check(&mut cluster, &world, stop);
        assert!(world.rooms.get() <= 3, "{stop}: {}", world.rooms.get());
        stopped = stop;
        if is_over {
            break;
        }
    }
    assert!(stopped > 40, "it has only {stopped} steps");
}
