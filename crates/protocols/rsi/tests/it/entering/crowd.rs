//! Many who enter keys into the same leaves, several at a time, some of them the same keys.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use manxdb_sim::memory::MemoryOptions;

use crate::common::TestCluster;
use crate::entering::{SMALL, Tally, client, read, write};

const SEEDS: u64 = 40;
const CLIENTS: u64 = 4;
const TRANSACTIONS: u64 = 5;

/// Which keys a client writes in one of its transactions.
type Keys = fn(client: u64, turn: u64) -> Vec<u64>;

/// Neighbours in one leaf, or two: each client its own.
fn near(client: u64, turn: u64) -> Vec<u64> {
    let keys = turn * 20..turn * 20 + 4;
    keys.map(|number| number * 4 + client).collect()
}

/// One in each of several leaves, in which all others write as well.
fn far(client: u64, turn: u64) -> Vec<u64> {
    let keys = (0..6).map(|leaf| leaf * 100 + turn * 4 + client);
    keys.collect()
}

/// The same for all.
fn same(client: u64, turn: u64) -> Vec<u64> {
    let keys = (0..8).map(|number| number * 50 + turn * 5);
    keys.chain([client * 100 + turn]).collect()
}

/// What all have done: transactions that were begun, commits that were begun, round trips.
fn crowd(seed: u64, keys: Keys) -> (u64, u64, u64) {
    let mut cluster = TestCluster::new(seed, 8, 0, MemoryOptions::default()).with_logs();
    let written = Rc::<RefCell<BTreeSet<u64>>>::default();
    let tallies = Rc::<RefCell<Vec<Rc<Tally>>>>::default();
    let begun = Rc::<RefCell<u64>>::default();
    for number in 0..CLIENTS {
        let (written, tallies) = (Rc::clone(&written), Rc::clone(&tallies));
        let begun = Rc::clone(&begun);
        cluster.client(move |handle| async move {
            let (mut client, tally) = client(&handle, SMALL);
            tallies.borrow_mut().push(tally);
            for turn in 0..TRANSACTIONS {
                loop {
                    *begun.borrow_mut() += 1;
                    match write(&mut client, keys(number, turn)).await {
                        Ok(_) => break,
                        Err(failure) => assert!(failure.is_conflict(), "{failure}"),
                    }
                }
                written.borrow_mut().extend(keys(number, turn));
            }
        });
    }
    cluster.run();
    let all: Vec<u64> = written.borrow().iter().copied().collect();
    cluster.client(move |handle| async move {
        let (mut client, _) = client(&handle, SMALL);
        assert_eq!(read(&mut client).await, all, "seed {seed}");
    });
    cluster.run();
    let tallies = tallies.borrow();
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(|tally| of(tally)).sum();
    let commits = sum(|tally| tally.commits.get());
    let begun = *begun.borrow();
    (begun, commits, sum(|tally| tally.round_trips.get()))
}

#[test]
fn who_enters_many_keys_where_others_do_comes_to_an_end() {
    let kinds: [(&str, Keys); 3] = [("near", near), ("far", far), ("same", same)];
    for (name, keys) in kinds {
        let runs = (0..SEEDS).map(|seed| crowd(seed, keys));
        let (begun, commits, round_trips) = runs.fold((0, 0, 0), |sum, run| {
            (sum.0 + run.0, sum.1 + run.1, sum.2 + run.2)
        });
        let done = SEEDS * CLIENTS * TRANSACTIONS;
        println!(
            "{name}: {begun} for {done} transactions, {commits} commits, {round_trips} round trips"
        );
        // A commit a key, and one for the rows, if nobody were in anybody's way.
        let each = keys(0, 0).len() as u64 + 1;
        assert!(commits < done * each, "{name}: {commits}");
    }
}
