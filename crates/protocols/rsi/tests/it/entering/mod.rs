//! Keys that are new, entered together: what that takes, and that it is whole wherever somebody dies.
//!
//! | tests | of |
//! |---|---|
//! | here | commits and round trips for so many keys; logs that have no room for all of them |
//! | crowd | many who enter keys into the same leaves |
//! | matrix | a client that stops at each step of the commit that enters keys, with their rows or without |
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod crowd;
mod matrix;

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;

use crate::common::{Carried, ClientHandle, TestCluster, at};
use manxdb_fabric::OperationOutcome;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::rows::{Client, Extent, Failure, Keyspace};
use manxdb_rsi::{Abort, Carrier, Isolation, Layout, Machine, Span, Step};
use manxdb_sim::memory::MemoryOptions;

const RECORDS: Layout = match Layout::new(3, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
/// Some six keys a node.
const SMALL: Layout = match Layout::new(2, 176) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
/// Some fifty.
const LARGE: Layout = match Layout::new(2, 1_000) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
/// Nodes that no log has room for.
const HUGE: Layout = match Layout::new(2, 5_000) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn keyspace(nodes: Layout) -> Keyspace {
    crate::common::keyspace(nodes, RECORDS)
}

/// What was done for a client.
#[derive(Default)]
struct Tally {
    round_trips: Cell<u64>,
    /// Commits that were begun.
    commits: Cell<u64>,
}

/// A carrier that counts.
struct Counted(Carried, Rc<Tally>);

struct Counting<W>(W, Rc<Tally>);

impl<W: Machine> Machine for Counting<W> {
    type Output = W::Output;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<W::Output> {
        let step = self.0.step(outcomes);
        if !matches!(step, Step::Done(_)) {
            self.1.round_trips.update(|count| count + 1);
        }
        step
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

impl Carrier for Counted {
    type Error = Infallible;

    async fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, Infallible> {
        if std::any::type_name::<W>().ends_with("::Commit") {
            self.1.commits.update(|count| count + 1);
        }
        let tally = Rc::clone(&self.1);
        self.0.run(Counting(work, tally)).await
    }
}

/// Records and nodes of a client.
fn extents(thread: u16, nodes: Layout) -> (Extent, Extent) {
    let (server, base) = (thread % 2, (128 << 10) + u64::from(thread) * (48 << 10));
    let records = Extent::new(at(server, base), RECORDS.bytes(), 150).unwrap();
    let count = if nodes == HUGE { 2 } else { 50 };
    let nodes = Extent::new(records.end(), nodes.bytes(), count).unwrap();
    (records, nodes)
}

/// A client of the cluster with memory of its own.
fn client(handle: &ClientHandle, nodes: Layout) -> (Client<Counted>, Rc<Tally>) {
    let tally = Rc::<Tally>::default();
    let carrier = Counted(handle.carrier(), Rc::clone(&tally));
    let (records, rooms) = extents(handle.thread.number(), nodes);
    let session = handle.session.clone();
    let client = Client::new(carrier, session, keyspace(nodes), records, rooms);
    (client, tally)
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

/// Writes rows in one transaction.
async fn write(
    client: &mut Client<Counted>,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<u64, Failure<Infallible>> {
    let mut rows = client.begin(Isolation::Serializable).await?;
    for number in numbers {
        rows.write(key(number), Some(number.to_le_bytes().to_vec()));
    }
    Ok(rows.commit().await?.unwrap().sequence)
}

/// All rows say what their keys do; which there are.
async fn read(client: &mut Client<Counted>) -> Vec<u64> {
    let mut rows = client.begin(Isolation::Snapshot).await.unwrap();
    let page = rows.scan(Span::all()).await.unwrap();
    let number = |(found, value): (Vec<u8>, Vec<u8>)| {
        let number = u64::from_le_bytes(value.try_into().unwrap());
        assert_eq!(found, key(number));
        number
    };
    page.into_iter().map(number).collect()
}

/// What others have done since a transaction began that writes new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// They have written another new row, into the same leaf.
    Entered,
}

/// Commits and round trips of a transaction that writes so many new rows, in the same leaf.
fn what_it_takes(count: u64, meanwhile: Meanwhile, mutant: Option<Mutant>) -> (u64, u64) {
    let mut cluster = TestCluster::new(1, 4, 0, MemoryOptions::default())
        .with_logs()
        .with(mutant);
    let took = Rc::<Cell<(u64, u64)>>::default();
    let noted = Rc::clone(&took);
    cluster.client(move |handle| async move {
        let (mut client, tally) = client(&handle, LARGE);
        write(&mut client, [1_000, 2_000]).await.unwrap();
        let (snapshot, mut others) = (client.snapshot().await.unwrap(), vec![2_000]);
        if meanwhile == Meanwhile::Entered {
            write(&mut client, [3_000]).await.unwrap();
            others.push(3_000);
        }
        let (commits, round_trips) = (tally.commits.get(), tally.round_trips.get());
        let mut rows = client.begin_at(snapshot, Isolation::Snapshot);
        for number in 1_500..1_500 + count {
            rows.write(key(number), Some(number.to_le_bytes().to_vec()));
        }
        rows.commit().await.unwrap();
        let commits = tally.commits.get() - commits;
        noted.set((commits, tally.round_trips.get() - round_trips));
        let left = 150 - 1 - others.len() as u64 - count;
        let rows: Vec<u64> = [1_000].into_iter().chain(1_500..1_500 + count).collect();
        assert_eq!(read(&mut client).await, [rows, others].concat());
        assert_eq!(client.left().0, left);
    });
    cluster.run();
    took.get()
}

#[test]
fn new_keys_of_a_leaf_cost_no_more_than_known_ones() {
    // The leaf; then a lock, logs, leaf and rows, and a line.
    for count in 1..=30 {
        let took = what_it_takes(count, Meanwhile::Nothing, None);
        assert_eq!(took, (1, 1 + 4), "{count} keys");
    }
}

#[test]
fn new_keys_of_a_leaf_that_others_have_written_cost_one_commit_more() {
    // The leaf as it was, which takes two; a snapshot and the leaf again, then a commit of it; and a
    // commit of the rows, which are not read before.
    for count in 1..=30 {
        let took = what_it_takes(count, Meanwhile::Entered, None);
        assert_eq!(took, (2, 2 + (2 + 4) + 4), "{count} keys");
    }
}

#[test]
fn records_that_are_given_away_twice_are_found() {
    for mutant in [Mutant::CountsRoomOnce, Mutant::EntersTheLastKeyAlone] {
        for meanwhile in [Meanwhile::Nothing, Meanwhile::Entered] {
            let run = || what_it_takes(5, meanwhile, Some(mutant));
            let run = std::panic::AssertUnwindSafe(run);
            assert!(std::panic::catch_unwind(run).is_err(), "{mutant:?}");
        }
    }
}

#[test]
fn keys_that_no_log_has_room_for_together_are_entered_in_several_commits() {
    let mut cluster = TestCluster::new(1, 4, 0, MemoryOptions::default()).with_logs();
    cluster.client(|handle| async move {
        let (mut client, _) = client(&handle, SMALL);
        // The first ones lie side by side; then one goes into each of many leaves, which are split.
        let mut before = 0;
        for (turn, least, most) in [(0, 2, 4), (1, 2, 12), (2, 3, 12)] {
            let numbers: Vec<u64> = (0..40).map(|number| 10 * number + turn).collect();
            let after = write(&mut client, numbers).await.unwrap();
            println!("{} commits", after - before);
            assert!((least..=most).contains(&(after - before)));
            before = after;
        }
        let all: Vec<u64> = (0..400).filter(|number| number % 10 < 3).collect();
        assert_eq!(read(&mut client).await, all);
        assert_eq!(client.left().0, 150 - 120);
    });
    cluster.run();
}

#[test]
fn a_key_that_no_log_has_room_for_is_refused_and_takes_nothing() {
    let mut cluster = TestCluster::new(1, 4, 0, MemoryOptions::default()).with_logs();
    cluster.client(|handle| async move {
        let (mut client, _) = client(&handle, HUGE);
        // Leaves take as much of a log as they have keys.
        let write = async |client: &mut Client<Counted>, numbers: std::ops::Range<u64>| {
            let mut rows = client.begin(Isolation::Snapshot).await?;
            for number in numbers {
                let key = [key(number), vec![b'x'; 60]].concat();
                rows.write(key, Some(vec![1]));
            }
            rows.commit().await
        };
        let mut number = 0;
        let failure = loop {
            let left = client.left();
            match write(&mut client, number..number + 10).await {
                Ok(_) => number += 10,
                Err(failure) => {
                    // Some of them may have been entered.
                    assert!(left.0 - client.left().0 < 10);
                    break failure;
                }
            }
        };
        assert!(
            matches!(failure, Failure::Abort(Abort::TooLarge(..))),
            "{failure}"
        );
        let left = client.left();
        write(&mut client, 999..1_000).await.unwrap_err();
        assert_eq!(client.left(), left);
    });
    cluster.run();
}
