//! Processes that move money while they have a place, go on with it after losses, and take another
//! one when they have lost it; all that they see and do is noted and judged.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use manxdb_checker::versions::{History, Level, Outcome, Read, Transaction, Version, Write, check};
use manxdb_core::Nanos;
use manxdb_rsi::{
    Abort, Block, Change, Chart, Head, Isolation, Join, JoinError, Map, Owner, Rejoin, RejoinError,
    Seen, Session, Snapshot, Stamp, ThreadId,
};
use manxdb_sim::SimTime;

use super::client_handle::ClientHandle;
use super::plan::{RECORDS, THREADS, replicas};
use super::rack::Rack;
use crate::common::{LAYOUT, can_be_tried_again, change, number};

pub const TOTAL: u64 = 1_000;
/// Who waits for the log archiver looks so often.
const PATIENCE: u32 = 400;

/// What all processes note.
#[derive(Default)]
pub struct Ledger {
    pub transactions: RefCell<Vec<Transaction>>,
    /// Owners that heard that they are over.
    pub lost: RefCell<Vec<Owner>>,
    /// Owners that went on in another epoch.
    pub returned: RefCell<u64>,
    /// Commits whose end was heard of in the next epoch only: those that are there, and others.
    pub late: RefCell<(u64, u64)>,
    /// What those had seen who were told that nothing of it is lost, whatever happens.
    pub synced: RefCell<Vec<Snapshot>>,
    /// Commits that waited for the log archiver in vain.
    pub unwritten: RefCell<u64>,
    /// Nobody waits for what is synced.
    pub is_hasty: Cell<bool>,
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

/// A process with a place.
pub struct Teller {
    pub handle: ClientHandle,
    pub owner: Owner,
    pub map: Arc<Map>,
    session: Session,
    notes: Notes,
}

impl Teller {
    /// Takes a place, as soon as there is one.
    pub async fn join(mut handle: ClientHandle, notes: &Notes) -> Self {
        handle.be_a_guest().await;
        loop {
            let first = u16::try_from(handle.random.below(u64::from(THREADS))).unwrap();
            let join = Join::new(handle.plan.client_slots, handle.plan.chart.clone(), first);
            match handle.run(join.with(handle.mutant)).await {
                Ok(joined) => {
                    handle.own(joined.owner, &joined.map).await;
                    return Self {
                        session: handle.session(joined.owner, &joined.map),
                        handle,
                        owner: joined.owner,
                        map: joined.map,
                        notes: Rc::clone(notes),
                    };
                }
                Err(JoinError::Full(_) | JoinError::Ending | JoinError::Fault(_)) => {
                    handle.sleep(Nanos::from_micros(50)).await;
                }
            }
        }
    }

    /// After a fault: goes on in the next epoch, where it hears whether a commit is there; or takes
    /// another place, and does not.
    pub async fn go_on(mut self, cut_off: Option<Stamp>) -> (Self, Option<bool>) {
        self.handle.be_a_guest().await;
        let epoch_log = self.handle.plan.chart.epoch_log.unwrap();
        let chart = Chart::new(epoch_log, Arc::clone(&self.map));
        let rejoin = Rejoin::new(self.handle.plan.client_slots, chart, self.owner);
        match self.handle.run(rejoin).await {
            Ok(rejoined) => {
                self.handle.own(rejoined.owner, &rejoined.map).await;
                self.session = self.handle.session(rejoined.owner, &rejoined.map);
                self.owner = rejoined.owner;
                self.map = rejoined.map;
                *self.notes.returned.borrow_mut() += 1;
                let is_there = cut_off.map(|stamp| rejoined.closed.has(stamp));
                if let Some(is_there) = is_there {
                    let mut late = self.notes.late.borrow_mut();
                    late.0 += u64::from(is_there);
                    late.1 += u64::from(!is_there);
                }
                (self, is_there)
            }
            Err(RejoinError::Over(owner)) => {
                self.notes.lost.borrow_mut().push(owner);
                let notes = Rc::clone(&self.notes);
                (Self::join(self.handle, &notes).await, None)
            }
            Err(RejoinError::Fault(fault)) => panic!("{fault}"),
        }
    }

    /// Moves some money.
    async fn move_money(mut self) -> Self {
        let from = self.handle.random.below(RECORDS);
        let to = (from + 1 + self.handle.random.below(RECORDS - 1)) % RECORDS;
        let share = 1 + self.handle.random.below(3);
        let values = |seen: &[u64]| {
            let amount = seen[0] / share;
            vec![seen[0] - amount, seen[1] + amount]
        };
        let (teller, is_done) = self.transact(&[from, to], values).await;
        if is_done { teller.wait().await } else { teller }
    }

    /// Reads everything, and relies on it.
    async fn rely(mut self) -> Self {
        let all: Vec<u64> = (0..RECORDS).collect();
        match self.look(&all).await {
            Ok(_) => self.wait().await,
            Err(abort) if can_be_tried_again(abort) => self,
            Err(_) => self.go_on(None).await.0,
        }
    }

    /// Waits where a log archiver writes to disk, more often than not, until all that it has seen is synced.
    async fn wait(mut self) -> Self {
        let Some(wait) = self.session.wait() else {
            return self;
        };
        if self.notes.is_hasty.get() || self.handle.random.below(3) == 0 {
            return self;
        }
        match self.handle.try_by(&self.map, wait, PATIENCE).await {
            None => self, // nothing is promised
            Some(Ok(())) => {
                let seen = self.session.seen().clone();
                self.notes.synced.borrow_mut().push(seen);
                self
            }
            Some(Err(_)) => self.go_on(None).await.0,
        }
    }

    async fn look(&mut self, keys: &[u64]) -> Result<(Snapshot, Vec<Seen>), Abort> {
        let begin = self.session.begin()?;
        let snapshot = self.handle.run_by(&self.map, begin).await?;
        self.session.saw(&snapshot);
        let mut seen = Vec::new();
        for key in keys {
            let at = self.handle.plan.record(*key);
            let read = self.session.read(&snapshot, at, LAYOUT);
            seen.push(self.handle.run_by(&self.map, read).await?);
        }
        Ok((snapshot, seen))
    }

    /// Writes into records what it makes of them; whether it is committed.
    pub async fn transact(
        mut self,
        keys: &[u64],
        make: impl FnOnce(&[u64]) -> Vec<u64>,
    ) -> (Self, bool) {
        let (snapshot, seen) = match self.look(keys).await {
            Ok(found) => found,
            Err(abort) if can_be_tried_again(abort) => return (self, false),
            Err(_) => return (self.go_on(None).await.0, false),
        };
        let values = make(&seen.iter().map(number).collect::<Vec<_>>());
        let pairs = seen.iter().zip(&values);
        let changes: Vec<Change> = pairs.map(|(seen, value)| change(seen, *value)).collect();
        let place = self.note(&snapshot, keys, (&seen, &values));
        let stamp = self.session.holder();
        let commit = self.session.commit(&[], changes, Isolation::Snapshot);
        let committed = match commit {
            Ok(commit) => {
                let committed = self.handle.run_by(&self.map, commit).await;
                self.session.ended(&committed);
                committed
            }
            Err(abort) => Err(abort),
        };
        let (teller, is_there) = match committed {
            Ok(_) => (self, Some(true)),
            Err(Abort::Unwritten(_)) => {
                *self.notes.unwritten.borrow_mut() += 1;
                (self, Some(false))
            }
            Err(abort) if can_be_tried_again(abort) => (self, Some(false)),
            Err(Abort::Fault(_)) => self.go_on(Some(stamp)).await,
            Err(abort) => panic!("{abort}"),
        };
        let mut transactions = teller.notes.transactions.borrow_mut();
        transactions[place].outcome = match is_there {
            Some(true) => Outcome::Ok,
            Some(false) => Outcome::Failed,
            None => Outcome::Unknown,
        };
        drop(transactions);
        (teller, is_there == Some(true))
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
        let mut transactions = self.notes.transactions.borrow_mut();
        let place = transactions.len();
        transactions.push(Transaction {
            name: place as u64,
            session: u64::from(self.owner.thread.number()) << 48 | self.owner.after,
            outcome: Outcome::Unknown,
            version: Some(version(self.session.holder())),
            snapshot: numbers.collect(),
            reads: pairs().map(read).collect(),
            writes: pairs().zip(seen.1).map(write).collect(),
        });
        place
    }

    pub async fn leave(self) {
        self.handle.leave(self.owner, &self.map).await;
    }
}

/// Moves money until a time; then leaves.
pub async fn work(handle: ClientHandle, notes: Notes, until: SimTime) {
    let mut teller = Teller::join(handle, &notes).await;
    while teller.handle.now() < until {
        teller = teller.move_money().await;
        if teller.handle.plan.kept.is_some() && teller.handle.random.below(4) == 0 {
            teller = teller.rely().await;
        }
        let pause = teller.handle.random.below(300_000);
        teller.handle.sleep(Nanos(pause)).await;
    }
    teller.leave().await;
}

/// Takes places and leaves them again until a time.
pub async fn visit(handle: ClientHandle, notes: Notes, until: SimTime) {
    let mut handle = handle;
    while handle.now() < until {
        let teller = Teller::join(handle, &notes).await.move_money().await;
        let Teller { owner, map, .. } = &teller;
        teller.handle.leave(*owner, map).await;
        handle = teller.handle;
        let pause = handle.random.below(200_000);
        handle.sleep(Nanos(pause)).await;
    }
}

/// Writes every record, whoever has had a lock on it.
pub async fn touch_all(handle: ClientHandle, notes: Notes) {
    let mut teller = Teller::join(handle, &notes).await;
    for key in 0..RECORDS {
        let (next, is_done) = teller.transact(&[key], <[u64]>::to_vec).await;
        assert!(is_done, "record {key} cannot be written");
        teller = next;
    }
    teller.leave().await;
}

/// All money into the first record.
pub async fn fill(handle: ClientHandle, notes: Notes) {
    let teller = Teller::join(handle, &notes).await;
    let (teller, is_done) = teller.transact(&[0], |_| vec![TOTAL]).await;
    assert!(is_done);
    teller.leave().await;
}

/// What every whole replica of a record says: the same version with the same value.
fn newest(rack: &Rack, number: u64, seed: u64) -> (Stamp, u64) {
    let places = replicas(&rack.watch.map, rack.plan.record(number));
    let newest = places.into_iter().map(|at| {
        let mut copy = rack.memory.look(at, LAYOUT.bytes() as u64);
        let head = Head::of_word(u64::from_le_bytes(*copy.first_chunk().unwrap()));
        if let Head::Locked(holder) = head {
            let is_nobodys = rack.watch.admits(&rack.memory, holder);
            assert!(is_nobodys, "seed {seed}: {holder} is in the way");
            let label = copy[16..24].to_vec();
            copy[..8].copy_from_slice(&label);
        }
        let (_, block) = Block::parse(LAYOUT, copy).unwrap();
        let version = block.visible(|_| true).unwrap().unwrap();
        let value = version
            .value
            .map_or(0, |value| u64::from_le_bytes(*value.first_chunk().unwrap()));
        (version.stamp, value)
    });
    let newest: Vec<(Stamp, u64)> = newest.collect();
    let is_same = newest.windows(2).all(|pair| pair[0] == pair[1]);
    assert!(is_same, "seed {seed}: record {number} is {newest:?}");
    newest[0]
}

/// Nothing is lost or half there, every read is its snapshot's, every number was used once, all
/// replicas are the same; and whoever is over has not kept a lease.
pub fn judge(rack: &Rack, notes: &Ledger, seed: u64) {
    let found: BTreeMap<u64, (Stamp, u64)> = (0..RECORDS)
        .map(|key| (key, newest(rack, key, seed)))
        .collect();
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
    for owner in notes.lost.borrow().iter() {
        let is_excused = rack.watch.excused.contains(owner);
        assert!(
            is_excused,
            "seed {seed}: {owner:?} lives, and does not go on"
        );
    }
}
