//! Processes that move money while they have a place, and take another one when they have lost it;
//! all that they see and do is noted and judged.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use manxdb_checker::versions::{History, Level, Outcome, Read, Transaction, Version, Write, check};
use manxdb_core::Nanos;
use manxdb_rsi::{
    Abort, Block, Change, Chart, Isolation, Join, JoinError, Joined, Owner, Seen, Session,
    Snapshot, Stamp, ThreadId,
};
use manxdb_sim::SimTime;
use manxdb_sim::memory::Memory;

use crate::common::{LAYOUT, can_be_tried_again, change, log, number, record};
use crate::leases::rack::{ClientHandle, THREADS};

pub const ACCOUNTS: u64 = 4;
pub const TOTAL: u64 = 1_000;

/// What all processes note.
#[derive(Default)]
pub struct Ledger {
    pub transactions: RefCell<Vec<Transaction>>,
    /// Owners that heard that they are over.
    pub lost: RefCell<Vec<Owner>>,
}

pub type Notes = Rc<Ledger>;

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
    session: Session,
    notes: Notes,
}

impl Teller {
    /// Takes a place, as soon as there is one.
    pub async fn join(mut handle: ClientHandle, notes: &Notes) -> Self {
        handle.be_a_guest().await;
        loop {
            let first = u16::try_from(handle.random.below(u64::from(THREADS))).unwrap();
            match handle
                .run(Join::new(handle.client_slots, Chart::fixed(), first))
                .await
            {
                Ok(Joined { owner, .. }) => {
                    handle.own(owner).await;
                    let session = Session::new(owner.thread, handle.vector, owner.after).unwrap();
                    let session = session.with_log(log(owner.thread));
                    let notes = Rc::clone(notes);
                    return Self {
                        handle,
                        owner,
                        session,
                        notes,
                    };
                }
                Err(JoinError::Full(_)) => handle.sleep(Nanos::from_micros(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Moves some money.
    ///
    /// # Errors
    /// Not to be tried again: the session is over.
    pub async fn move_money(&mut self) -> Result<(), Abort> {
        let from = self.handle.random.below(ACCOUNTS);
        let to = (from + 1 + self.handle.random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let share = 1 + self.handle.random.below(3);
        let values = |seen: &[u64]| {
            let amount = seen[0] / share;
            vec![seen[0] - amount, seen[1] + amount]
        };
        self.transact(&[from, to], values).await.map(|_| ())
    }

    /// Writes into records what it makes of them; whether it is committed.
    pub async fn transact(
        &mut self,
        keys: &[u64],
        make: impl FnOnce(&[u64]) -> Vec<u64>,
    ) -> Result<bool, Abort> {
        let begin = self.session.begin()?;
        let snapshot = self.handle.run(begin).await?;
        self.session.saw(&snapshot);
        let mut seen = Vec::new();
        for key in keys {
            let read = self.session.read(&snapshot, record(*key), LAYOUT);
            match self.handle.run(read).await {
                Ok(read) => seen.push(read),
                Err(abort) if can_be_tried_again(abort) => return Ok(false),
                Err(abort) => return Err(abort),
            }
        }
        let values = make(&seen.iter().map(number).collect::<Vec<_>>());
        let pairs = seen.iter().zip(&values);
        let changes: Vec<Change> = pairs.map(|(seen, value)| change(seen, *value)).collect();
        let place = self.note(&snapshot, keys, (&seen, &values));
        let commit = self.session.commit(&[], changes, Isolation::Snapshot);
        let committed = match commit {
            Ok(commit) => {
                let committed = self.handle.run(commit).await;
                self.session.ended(&committed);
                committed
            }
            Err(abort) => Err(abort),
        };
        let outcome = match committed {
            Ok(_) => Outcome::Ok,
            Err(abort) if can_be_tried_again(abort) => Outcome::Failed,
            Err(abort) => return Err(abort),
        };
        self.notes.transactions.borrow_mut()[place].outcome = outcome;
        Ok(outcome == Outcome::Ok)
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
        let thread = self.owner.thread;
        let sequence = snapshot.of(thread) + 1;
        let mut transactions = self.notes.transactions.borrow_mut();
        let place = transactions.len();
        transactions.push(Transaction {
            name: place as u64,
            session: u64::from(thread.number()) << 48 | self.owner.after,
            outcome: Outcome::Unknown,
            version: Some(version(Stamp { thread, sequence })),
            snapshot: numbers.collect(),
            reads: pairs().map(read).collect(),
            writes: pairs().zip(seen.1).map(write).collect(),
        });
        place
    }
}

/// Moves money until a time, with one place after another; leaves the last one.
pub async fn work(handle: ClientHandle, notes: Notes, until: SimTime) {
    let mut teller = Teller::join(handle, &notes).await;
    while teller.handle.now() < until {
        match teller.move_money().await {
            Ok(()) => {
                let pause = teller.handle.random.below(400_000);
                teller.handle.sleep(Nanos(pause)).await;
            }
            Err(Abort::Fault(_)) => {
                notes.lost.borrow_mut().push(teller.owner);
                teller = Teller::join(teller.handle, &notes).await;
            }
            Err(abort) => panic!("{abort}"),
        }
    }
    teller.handle.leave().await;
}

/// Writes every account, whoever has had a lock on it.
pub async fn touch_all(handle: ClientHandle, notes: Notes) {
    let mut teller = Teller::join(handle, &notes).await;
    for key in 0..ACCOUNTS {
        let is_done = teller.transact(&[key], <[u64]>::to_vec).await.unwrap();
        assert!(is_done, "account {key} cannot be written");
    }
    teller.handle.leave().await;
}

/// All money into the first account.
pub async fn fill(handle: ClientHandle, notes: Notes) {
    let mut teller = Teller::join(handle, &notes).await;
    assert!(teller.transact(&[0], |_| vec![TOTAL]).await.unwrap());
    teller.handle.leave().await;
}

/// Nothing is lost or half there, every read is its snapshot's, every number was used once.
pub fn judge(memory: &Memory, notes: &Ledger, seed: u64) {
    let newest = |key| {
        let copy = memory.look(record(key), LAYOUT.bytes() as u64);
        let (_, block) = Block::parse(LAYOUT, copy).unwrap();
        let version = block.visible(|_| true).unwrap().unwrap();
        let value = version
            .value
            .map_or(0, |value| u64::from_le_bytes(*value.first_chunk().unwrap()));
        (version.stamp, value)
    };
    let found: BTreeMap<u64, (Stamp, u64)> = (0..ACCOUNTS).map(|key| (key, newest(key))).collect();
    let sum: u64 = found.values().map(|(_, value)| value).sum();
    assert_eq!(sum, TOTAL, "seed {seed}");
    let history = History {
        transactions: notes.transactions.borrow().clone(),
        first: (0..ACCOUNTS)
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
