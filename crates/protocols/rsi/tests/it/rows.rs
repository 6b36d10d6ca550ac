//! Rows under keys: what transactions read is what a model has, under their own writes; what many
//! do at once adds up; and what was not there is relied on.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::common::{Carried, ClientHandle, TestCluster, absence_is_relied_on, at};
use manxdb_core::Random;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::rows::{Client, Extent, Keyspace, Transaction};
use manxdb_rsi::{Isolation, Layout, Span};
use manxdb_sim::memory::MemoryOptions;
use manxdb_test_harness::seeds;

const SEEDS: u64 = 25;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 60;

/// Some six keys a node, so that the tree has several levels.
const NODES: Layout = match Layout::new(3, 200) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

const RECORDS: Layout = match Layout::new(3, 40) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn keyspace() -> Keyspace {
    crate::common::keyspace(NODES, RECORDS)
}

/// A client of the cluster with memory of its own.
fn client(handle: &ClientHandle) -> Client<Carried> {
    let number = u64::from(handle.thread.number());
    let server = handle.thread.number() % 2;
    let base = (128 << 10) + number * (64 << 10);
    let records = Extent::new(at(server, base), RECORDS.bytes(), 100).unwrap();
    let nodes = Extent::new(at(server, base + records.bytes()), NODES.bytes(), 50).unwrap();
    let session = handle.session.clone();
    Client::new(handle.carrier(), session, keyspace(), records, nodes)
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:04} {}", "x".repeat((number % 9) as usize)).into_bytes()
}

fn whole(descending: bool) -> Span {
    Span {
        descending,
        ..Span::all()
    }
}

fn random_span(random: &mut Random) -> Span {
    let low = key(random.below(100));
    let high = key(random.below(100));
    Span {
        low: if random.below(4) == 0 {
            Vec::new()
        } else {
            low
        },
        high: (random.below(4) > 0).then_some(high),
        descending: random.below(2) == 0,
        limit: usize::try_from(random.below(12)).unwrap(),
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn of_model(model: &Model, span: &Span) -> Vec<(Vec<u8>, Vec<u8>)> {
    let has = |key: &Vec<u8>| *key >= span.low && span.high.as_ref().is_none_or(|high| key < high);
    let rows = model.iter().filter(|(key, _)| has(key));
    let mut rows: Vec<_> = rows
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if span.descending {
        rows.reverse();
    }
    rows.truncate(span.limit);
    rows
}

/// Reads and writes at random, in step with a model.
async fn live(rows: &mut Transaction<'_, Carried>, model: &mut Model, random: &mut Random) {
    for _ in 0..random.below(25) {
        let key = key(random.below(100));
        match random.below(4) {
            0 => assert_eq!(rows.get(&key).await.unwrap().as_ref(), model.get(&key)),
            1 => {
                let span = random_span(random);
                let expected = of_model(model, &span);
                assert_eq!(rows.scan(span.clone()).await.unwrap(), expected, "{span:?}");
            }
            2 => {
                model.remove(&key);
                rows.write(key, None);
            }
            _ => {
                let value = random.below(1 << 40).to_le_bytes().to_vec();
                model.insert(key.clone(), value.clone());
                rows.write(key, Some(value));
            }
        }
    }
}

#[test]
fn transactions_read_what_a_model_has() {
    for seed in 0..seeds(SEEDS) {
        let mut cluster = TestCluster::new(seed, 4, 0, MemoryOptions::default());
        cluster.client(move |handle| async move {
            let (mut client, mut random) = (client(&handle), handle.random.clone());
            let mut model = Model::new();
            for _ in 0..25 {
                let isolation = [Isolation::Snapshot, Isolation::Serializable];
                let isolation = isolation[usize::try_from(random.below(2)).unwrap()];
                let mut changed = model.clone();
                let mut rows = client.begin(isolation).await.unwrap();
                live(&mut rows, &mut changed, &mut random).await;
                if random.below(4) > 0 {
                    rows.commit().await.unwrap();
                    model = changed;
                }
            }
            let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
            let all = rows.scan(whole(false)).await.unwrap();
            assert_eq!(all, model.into_iter().collect::<Vec<_>>(), "seed {seed}");
        });
        cluster.run();
    }
}

const MONEY: u64 = 1_000;

fn amount(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Moves money between two accounts; one that is left without is closed, one that is not there is
/// opened. What all accounts hold is what it always was. False: somebody else was there.
async fn transfer(client: &mut Client<Carried>, random: &mut Random, isolation: Isolation) -> bool {
    let mut rows = client.begin(isolation).await.unwrap();
    let all = match rows.scan(whole(random.below(2) == 0)).await {
        Ok(all) => all,
        Err(failure) => {
            assert!(failure.is_conflict(), "{failure}");
            return false;
        }
    };
    let sum: u64 = all.iter().map(|(_, value)| amount(value)).sum();
    assert_eq!(sum, MONEY, "money came or went");
    let from = &all[usize::try_from(random.below(all.len() as u64)).unwrap()];
    let to = key(random.below(30));
    if from.0 == to {
        return false;
    }
    let moved = 1 + random.below(amount(&from.1));
    let there = match rows.get(&to).await {
        Ok(there) => there.map_or(0, |value| amount(&value)),
        Err(failure) => {
            assert!(failure.is_conflict(), "{failure}");
            return false;
        }
    };
    let left = amount(&from.1) - moved;
    let value = |amount: u64| (amount > 0).then(|| amount.to_le_bytes().to_vec());
    rows.write(from.0.clone(), value(left));
    rows.write(to, value(there + moved));
    match rows.commit().await {
        Ok(stamp) => stamp.is_some(),
        Err(failure) => {
            assert!(failure.is_conflict(), "{failure}");
            false
        }
    }
}

/// Several move money at the same time. Returns how many transfers there were.
fn bank(seed: u64, isolation: Isolation, mutant: Option<Mutant>) -> u32 {
    let options = MemoryOptions::default();
    let mut cluster = TestCluster::new(seed, 8, 0, options)
        .with(mutant)
        .with_logs();
    cluster.client(|handle| async move {
        let mut client = client(&handle);
        let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
        rows.write(key(0), Some(MONEY.to_le_bytes().to_vec()));
        rows.commit().await.unwrap();
    });
    cluster.run();
    let done = Rc::<Cell<u32>>::default();
    for _ in 0..4 {
        let done = Rc::clone(&done);
        cluster.client(move |handle| async move {
            let (mut client, mut random) = (client(&handle), handle.random.clone());
            for _ in 0..15 {
                if transfer(&mut client, &mut random, isolation).await {
                    done.set(done.get() + 1);
                }
            }
        });
    }
    cluster.run();
    cluster.client(|handle| async move {
        let mut client = client(&handle);
        let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
        let all = rows.scan(whole(false)).await.unwrap();
        let sum: u64 = all.iter().map(|(_, value)| amount(value)).sum();
        assert_eq!(sum, MONEY, "money came or went");
    });
    cluster.run();
    done.get()
}

#[test]
fn money_stays() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let done: u32 = (0..seeds(SEEDS))
            .map(|seed| bank(seed, isolation, None))
            .sum();
        assert!(
            u64::from(done) > 5 * seeds(SEEDS),
            "{done}: this test is blind"
        );
    }
}

#[test]
fn money_that_comes_or_goes_is_found() {
    let defects = [
        Mutant::TakesEveryLock,
        Mutant::ReadsTheNewest,
        Mutant::PublishesFirst,
        Mutant::WritesTheKnownUnlocked,
    ];
    for mutant in defects {
        let run = |seed| bank(seed, Isolation::Snapshot, Some(mutant));
        let is_found = |seed| catch_unwind(AssertUnwindSafe(|| run(seed))).is_err();
        assert!((0..DEFECT_SEEDS).any(is_found), "{mutant:?}");
    }
}

/// Two want the last client slot of a row of client slots, and look whether anybody has one; returns whether both
/// got one.
fn both_sit(seed: u64, isolation: Isolation, mutant: Option<Mutant>) -> bool {
    let mut cluster = TestCluster::new(seed, 4, 0, MemoryOptions::default()).with(mutant);
    let in_slot = Rc::<Cell<u32>>::default();
    for number in 0..2 {
        let in_slot = Rc::clone(&in_slot);
        cluster.client(move |handle| async move {
            let mut client = client(&handle);
            // Each may be in the way of the other, until one is faster.
            while in_slot.get() == 0 {
                let mut rows = client.begin(isolation).await.unwrap();
                match rows.scan(whole(number == 0)).await {
                    Ok(taken) if taken.is_empty() => {}
                    _ => return,
                }
                rows.write(key(number), Some(vec![1]));
                match rows.commit().await {
                    Ok(_) => return in_slot.set(in_slot.get() + 1),
                    Err(failure) => assert!(failure.is_conflict(), "{failure}"),
                }
            }
        });
    }
    cluster.run();
    assert!(in_slot.get() > 0, "seed {seed}: nobody sits");
    in_slot.get() == 2
}

#[test]
fn what_was_not_there_is_relied_on() {
    absence_is_relied_on(SEEDS, both_sit);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let mut cluster = TestCluster::new(1, 2, 0, MemoryOptions::default());
    cluster.client(|handle| async move {
        let mut client = client(&handle);
        let refusals = [
            (key(1), vec![0; 41], "holds 40 bytes, not 41"),
            (vec![b'k'; 200], vec![1], "keys have at most"),
        ];
        for (key, value, why) in refusals {
            let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
            rows.write(b"other".to_vec(), Some(vec![1]));
            rows.write(key, Some(value));
            let failure = rows.commit().await.unwrap_err();
            assert!(failure.to_string().contains(why), "{failure}");
            assert!(!failure.is_conflict());
        }
        let mut wrote = 0;
        let failure = loop {
            let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
            rows.write(key(wrote), Some(vec![1]));
            match rows.commit().await {
                Ok(_) => wrote += 1,
                Err(failure) => break failure,
            }
        };
        assert!(
            failure.to_string().contains("no more room for"),
            "{failure}"
        );
        let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
        let all = rows.scan(whole(false)).await.unwrap();
        assert_eq!(all.len() as u64, wrote);
    });
    cluster.run();
}
