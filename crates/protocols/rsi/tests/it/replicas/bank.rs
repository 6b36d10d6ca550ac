//! Clients that move money in one epoch after another; all that they see and do is noted and judged.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use manxdb_checker::versions::{History, Level, Outcome, Read, Transaction, Version, Write, check};
use manxdb_fabric::Address;
use manxdb_rsi::{Abort, Change, Closed, Isolation, Seen, Snapshot, Stamp, ThreadId};
use manxdb_sim::SimTime;

use crate::common::{LAYOUT, can_be_tried_again, change, number};
use crate::replicas::client_handle::{ClientHandle, RECORDS, THREADS};
use crate::replicas::cluster::TestCluster;

pub const TOTAL: u64 = 1_000;

/// What all clients note.
#[derive(Default)]
pub struct Ledger {
    pub transactions: RefCell<Vec<Transaction>>,
    /// Commits whose end was heard of in the next epoch only: those that are there, and others.
    pub late: RefCell<(u64, u64)>,
}

pub type Notes = Rc<Ledger>;

impl Ledger {
    /// Transactions that are known to be committed.
    pub fn count(&self) -> usize {
        let transactions = self.transactions.borrow();
        let there = transactions.iter();
        there.filter(|one| one.outcome == Outcome::Ok).count()
    }
}

fn version(stamp: Stamp) -> Version {
    Version {
        writer: u64::from(stamp.thread.number()),
        number: stamp.sequence,
    }
}

/// A client that moves money until a time.
pub async fn work(handle: ClientHandle, notes: Notes, until: SimTime) {
    let mut teller = Teller { handle, notes };
    while teller.handle.now() < until {
        teller.move_money().await;
    }
}

/// A client that does nothing but begin.
pub async fn begin(handle: ClientHandle, notes: Notes, until: SimTime) {
    let mut teller = Teller { handle, notes };
    while teller.handle.now() < until {
        teller.begin().await;
    }
}

/// A client that writes one record again and again.
pub async fn insist(handle: ClientHandle, notes: Notes, until: SimTime) {
    let mut teller = Teller { handle, notes };
    while teller.handle.now() < until {
        teller.transact(&[1], |seen| vec![seen[0]]).await;
    }
}

/// All money into the first record.
pub async fn fill(handle: ClientHandle, notes: Notes) {
    let mut teller = Teller { handle, notes };
    assert!(teller.transact(&[0], |_| vec![TOTAL]).await);
}

/// Writes every record, whoever has had a lock on it.
pub async fn touch_all(handle: ClientHandle, notes: Notes) {
    let mut teller = Teller { handle, notes };
    for key in 0..RECORDS {
        let is_done = teller.transact(&[key], <[u64]>::to_vec).await;
        assert!(is_done, "record {key} cannot be written");
    }
}

pub struct Teller {
    pub handle: ClientHandle,
    pub notes: Notes,
}

impl Teller {
    async fn move_money(&mut self) {
        let from = self.handle.random.below(RECORDS);
        let to = (from + 1 + self.handle.random.below(RECORDS - 1)) % RECORDS;
        let share = 1 + self.handle.random.below(3);
        let values = |seen: &[u64]| {
            let amount = seen[0] / share;
            vec![seen[0] - amount, seen[1] + amount]
        };
        self.transact(&[from, to], values).await;
    }

    /// A snapshot; none: the epoch is over.
    async fn begin(&mut self) -> Option<Snapshot> {
        // Every line says at least this from the beginning of an epoch on.
        let before = self.handle.closed.borrow().clone();
        let begun = self.handle.run(self.handle.session.begin().unwrap()).await;
        let Ok(snapshot) = begun else {
            self.handle.rejoin().await;
            return None;
        };
        let misses = before.iter().find(|closed| !snapshot.admits(closed.by));
        assert_eq!(misses, None, "a snapshot is of before it was asked for");
        self.handle.session.saw(&snapshot);
        Some(snapshot)
    }

    async fn read(&mut self, snapshot: &Snapshot, at: Address) -> Option<Seen> {
        let read = self.handle.session.read(snapshot, at, LAYOUT);
        match self.handle.run(read).await {
            Ok(seen) => Some(seen),
            Err(Abort::Fault(_)) => {
                self.handle.rejoin().await;
                None
            }
            Err(abort) => {
                assert!(can_be_tried_again(abort), "{abort}");
                None
            }
        }
    }

    /// Writes into records what it makes of them; whether it is committed.
    pub async fn transact(&mut self, keys: &[u64], make: impl FnOnce(&[u64]) -> Vec<u64>) -> bool {
        let Some(snapshot) = self.begin().await else {
            return false;
        };
        let mut seen = Vec::new();
        for key in keys {
            let at = self.handle.plan.record(*key);
            let Some(one) = self.read(&snapshot, at).await else {
                return false;
            };
            seen.push(one);
        }
        let values = make(&seen.iter().map(number).collect::<Vec<_>>());
        let pairs = seen.iter().zip(&values);
        let changes: Vec<Change> = pairs.map(|(seen, value)| change(seen, *value)).collect();
        let place = self.note(&snapshot, keys, (&seen, &values));
        let stamp = self.handle.session.holder();
        let commit = self
            .handle
            .session
            .commit(&[], changes, Isolation::Snapshot);
        let committed = match commit {
            Ok(commit) => {
                let committed = self.handle.run(commit).await;
                self.handle.session.ended(&committed);
                committed
            }
            Err(abort) => Err(abort),
        };
        let is_there = match committed {
            Ok(_) => true,
            Err(abort) if can_be_tried_again(abort) => false,
            Err(Abort::Fault(_)) => {
                let closed: Closed = self.handle.rejoin().await;
                let is_there = closed.has(stamp);
                let mut late = self.notes.late.borrow_mut();
                late.0 += u64::from(is_there);
                late.1 += u64::from(!is_there);
                is_there
            }
            Err(abort) => panic!("{abort}"),
        };
        let outcome = if is_there {
            Outcome::Ok
        } else {
            Outcome::Failed
        };
        self.notes.transactions.borrow_mut()[place].outcome = outcome;
        is_there
    }

    /// Notes a transaction whose end nobody knows yet.
    fn note(&self, snapshot: &Snapshot, keys: &[u64], seen: (&[Seen], &[u64])) -> usize {
        let numbers = (0..THREADS).filter_map(ThreadId::new);
        let numbers = numbers.map(|thread| (u64::from(thread.number()), snapshot.of(thread)));
        let pairs = || keys.iter().zip(seen.0);
        let read = |(key, seen): (&u64, &Seen)| Read {
            key: *key,
            version: version(seen.stamp),
            value: number(seen),
        };
        let write = |((key, seen), value): ((&u64, &Seen), &u64)| Write {
            key: *key,
            over: version(seen.stamp),
            value: *value,
        };
        let owner = self.handle.owner;
        let mut transactions = self.notes.transactions.borrow_mut();
        let place = transactions.len();
        transactions.push(Transaction {
            name: place as u64,
            session: u64::from(owner.thread.number()) << 48 | owner.after,
            outcome: Outcome::Unknown,
            version: Some(version(self.handle.session.holder())),
            snapshot: numbers.collect(),
            reads: pairs().map(read).collect(),
            writes: pairs().zip(seen.1).map(write).collect(),
        });
        place
    }
}

/// Nothing is lost or half there, every read is its snapshot's, all replicas say the same.
pub fn judge(cluster: &TestCluster, notes: &Ledger, seed: u64) {
    let newest = (0..RECORDS).map(|key| (key, cluster.newest(key)));
    let found: BTreeMap<u64, (Stamp, u64)> = newest.collect();
    let sum: u64 = found.values().map(|(_, value)| value).sum();
    assert_eq!(sum, TOTAL, "seed {seed}");
    let history = History {
        transactions: notes.transactions.borrow().clone(),
        first: (0..RECORDS)
            .map(|key| (key, (version(Stamp::NOTHING), 0)))
            .collect(),
        last: found
            .iter()
            .map(|(key, (stamp, _))| (*key, version(*stamp)))
            .collect(),
    };
    let verdict = check(&history, Level::Snapshot);
    assert!(verdict.is_valid(), "seed {seed}: {verdict}");
}
