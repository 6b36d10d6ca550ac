//! Clients that count under few keys, which all of them add: whoever adds a key, whoever is the
//! first to write under it, and whichever server is lost, there is one record under it, and it has
//! all counts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use manxdb_core::{Nanos, Random};
use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{
    Abort, Change, FreeSpace, Isolation, LookupResult, RecordAddress, Seen, Stamp, Table,
};
use manxdb_sim::SimTime;

use crate::common::{can_be_tried_again, number, value};
use crate::replicas::client_handle::{ClientHandle, KEYED, Plan, REPLICAS, ROOMS, SERVERS, each};
use crate::replicas::cluster::TestCluster;

const KEYS: u64 = 24;
const CLIENTS: u64 = 3;
/// Overflow buckets begin here.
const OVERFLOW: u64 = 1024;

#[derive(Default)]
struct Notes {
    /// What is known to be under each key.
    counts: RefCell<BTreeMap<u64, u64>>,
    /// Of those whose client died over it, one more may be there.
    unknown: RefCell<BTreeMap<u64, u64>>,
    increments: Cell<u64>,
    shared: Cell<u64>,
}

fn table(plan: &Plan) -> Table {
    Table::new(KEYED, vec![plan.entries], 2, 7).unwrap()
}

struct Counter {
    handle: ClientHandle,
    notes: Rc<Notes>,
    /// Places that are its own.
    rooms: Vec<RecordAddress>,
    buckets: Vec<RecordAddress>,
}

impl Counter {
    fn new(handle: ClientHandle, notes: Rc<Notes>, own: u64) -> Self {
        let share = ROOMS / CLIENTS;
        let room =
            |number| RecordAddress::new(handle.plan.keyed.plus(number * each(KEYED))).unwrap();
        let bucket = |number: u64| {
            RecordAddress::new(handle.plan.entries.plus(OVERFLOW + number * 64)).unwrap()
        };
        let rooms = (own * share..(own + 1) * share).map(room).collect();
        let buckets = (own * share..(own + 1) * share).map(bucket).collect();
        Self {
            handle,
            notes,
            rooms,
            buckets,
        }
    }

    /// Goes on in the next epoch when a server did not answer; else somebody was in the way.
    async fn after(&mut self, abort: Abort) {
        match abort {
            Abort::Fault(_) => {
                self.handle.rejoin().await;
            }
            abort => assert!(can_be_tried_again(abort), "{abort}"),
        }
    }

    /// Adds one under a key; none: to be tried again.
    async fn count(&mut self, key: u64) -> Result<(), Abort> {
        let begin = self.handle.session.begin()?;
        let snapshot = self.handle.run(begin).await?;
        self.handle.session.saw(&snapshot);
        let table = table(&self.handle.plan);
        let name = key.to_le_bytes();
        let find = self.handle.session.find(&snapshot, &table, &name)?;
        let (seen, is_anothers) = match self.handle.run(find).await? {
            LookupResult::Record(seen) => (seen, true),
            LookupResult::Nothing(absence) => {
                let room = FreeSpace {
                    record: self.rooms[self.rooms.len() - 1],
                    generation: 0,
                    bucket: self.buckets[self.buckets.len() - 1],
                };
                let add = self.handle.session.add(&snapshot, absence, room);
                // It may have come to be there, whatever is heard of it: never offered again.
                self.rooms.pop();
                self.buckets.pop();
                let added = self.handle.run(add).await?;
                (added.seen, !added.took_record)
            }
        };
        let is_first = is_anothers && seen.stamp == Stamp::NOTHING;
        self.commit(key, seen).await?;
        let shared = &self.notes.shared;
        shared.set(shared.get() + u64::from(is_first));
        Ok(())
    }

    async fn commit(&mut self, key: u64, seen: Seen) -> Result<(), Abort> {
        let next = number(&seen) + 1;
        let changes = vec![Change {
            seen,
            value: Some(value(next)),
        }];
        let stamp = self.handle.session.holder();
        let commit = self
            .handle
            .session
            .commit(&[], changes, Isolation::Snapshot)?;
        *self.notes.unknown.borrow_mut().entry(key).or_insert(0) += 1;
        let committed = self.handle.run(commit).await;
        self.handle.session.ended(&committed);
        let is_there = match committed {
            Err(Abort::Fault(_)) => self.handle.rejoin().await.has(stamp),
            Err(_) => false,
            Ok(_) => true,
        };
        *self.notes.unknown.borrow_mut().get_mut(&key).unwrap() -= 1;
        if is_there {
            *self.notes.counts.borrow_mut().entry(key).or_insert(0) += 1;
            self.notes.increments.set(self.notes.increments.get() + 1);
        }
        match committed {
            Err(Abort::Fault(_)) | Ok(_) => Ok(()),
            Err(abort) => Err(abort),
        }
    }

    async fn work(mut self, until: SimTime) {
        let mut next = 0;
        while self.handle.now() < until && self.rooms.len() > 1 {
            // All at about the same key.
            let key = (next + self.handle.random.below(2)) % KEYS;
            match self.count(key).await {
                Ok(()) => next += 1,
                Err(abort) => self.after(abort).await,
            }
        }
    }

    /// Every key has what is known of it.
    async fn judge(self, seed: u64) {
        let begin = self.handle.session.begin().unwrap();
        let snapshot = self.handle.run(begin).await.unwrap();
        let table = table(&self.handle.plan);
        for key in 0..KEYS {
            let find = self
                .handle
                .session
                .find(&snapshot, &table, &key.to_le_bytes());
            let found = match self.handle.run(find.unwrap()).await.unwrap() {
                LookupResult::Record(seen) => number(&seen),
                LookupResult::Nothing(_) => 0,
            };
            let known = self.notes.counts.borrow().get(&key).copied().unwrap_or(0);
            let unknown = self.notes.unknown.borrow().get(&key).copied().unwrap_or(0);
            let is_fine = (known..=known + unknown).contains(&found);
            assert!(
                is_fine,
                "seed {seed}: key {key} has {found}, known are {known}"
            );
        }
    }
}

/// Clients count, one may die, one server is lost after another; increments, and how many first
/// ones were of a record that another client had added.
pub fn losses(seed: u64, mutant: Option<Mutant>) -> (u64, u64) {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    cluster.mutant = mutant;
    let notes = Rc::<Notes>::default();
    let mut random = Random::stream(seed, &[9]);
    let until = cluster.memory.now() + Nanos(600_000);
    let clients: Vec<u64> = (0..CLIENTS)
        .map(|own| {
            cluster.client(|handle| Counter::new(handle, Rc::clone(&notes), own).work(until))
        })
        .collect();
    cluster.steps(random.below(1_000));
    if random.below(4) == 0 {
        cluster.kill(clients[0]);
    }
    // The directory's primary more often than others.
    let primary =
        cluster.map.regions()[usize::from(cluster.plan.entries.server.0 - 512)].replicas()[0];
    let first = match random.below(2) {
        0 => primary.at.server,
        _ => ServerId(u16::try_from(random.below(u64::from(SERVERS))).unwrap()),
    };
    cluster.lose(first, true, None);
    let refilled = cluster.refill();
    for _ in 0..1_500 {
        cluster.step();
    }
    cluster.note(&refilled);
    let second = ServerId((first.0 + 1 + u16::try_from(random.below(4)).unwrap()) % SERVERS);
    cluster.lose(second, true, None);
    cluster.run();
    cluster.client(|handle| Counter::new(handle, Rc::clone(&notes), 0).judge(seed));
    cluster.run();
    (notes.increments.get(), notes.shared.get())
}

/// A client whose entry is at the primary of the directory, and at no backup.
fn half_entered(cluster: &TestCluster) -> Option<u64> {
    let replicas = cluster.replicas(cluster.plan.entries);
    let word = |at: Address| {
        let word = cluster.memory.look(at, 8);
        u64::from_le_bytes(*word.first_chunk().unwrap())
    };
    let half = |offset: &u64| {
        let words: Vec<u64> = replicas.iter().map(|at| word(at.plus(*offset))).collect();
        words[0] != 0 && words[1..].iter().all(|word| *word == 0)
    };
    let is_ones_own = |offset: &u64| {
        let place = word(replicas[0].plus(*offset)) << 16;
        // Ten bits of the server, the rest in units of a place.
        let (server, number) = (place >> 54, (place << 10) >> 26);
        let is_record = server == u64::from(cluster.plan.keyed.server.0);
        is_record.then(|| number * 64 / each(KEYED) / (ROOMS / CLIENTS))
    };
    let offsets = (0..OVERFLOW).step_by(8);
    offsets.filter(half).find_map(|offset| is_ones_own(&offset))
}

/// A client dies over an entry that is at the primary alone, which is lost while others find it;
/// whether that came to be.
pub fn half_an_entry(seed: u64, mutant: Option<Mutant>) -> bool {
    let mut cluster = TestCluster::slow(seed, REPLICAS, 4);
    cluster.mutant = mutant;
    let notes = Rc::<Notes>::default();
    let mut random = Random::stream(seed, &[15]);
    let until = cluster.memory.now() + Nanos(1_500_000);
    let clients: Vec<u64> = (0..CLIENTS)
        .map(|own| {
            cluster.client(|handle| Counter::new(handle, Rc::clone(&notes), own).work(until))
        })
        .collect();
    let wait = random.below(2_000);
    cluster.steps(wait);
    while half_entered(&cluster).is_none() && cluster.memory.now() < until {
        cluster.step();
    }
    let half = half_entered(&cluster);
    if let Some(own) = half {
        cluster.kill(clients[usize::try_from(own).unwrap()]);
        cluster.steps(random.below(600));
    }
    let primary = cluster.replicas(cluster.plan.entries)[0].server;
    cluster.lose(primary, true, None);
    cluster.run();
    cluster.client(|handle| Counter::new(handle, Rc::clone(&notes), 0).judge(seed));
    cluster.run();
    half.is_some()
}
