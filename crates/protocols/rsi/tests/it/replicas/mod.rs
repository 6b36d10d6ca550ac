//! Memory on several servers, some of which are lost: in virtual time, under load.
//!
//! | test | what happens | what must hold |
//! |---|---|---|
//! | counts | a commit, with one replica and with three | round trips and operations |
//! | steps | a server is lost at each step of a commit | the commit is whole or absent, what is acknowledged is there, the client hears the truth |
//! | losses | clients die, a server is lost, its regions are copied, another is lost | history, money, all replicas the same |
//! | keys | the same, while keys are added that all want to add | one record under each, with all that was counted under it |
//! | tree | the same, while rows are inserted under keys that a tree has in order, several at a time; and at each step of that | all that is acknowledged is found, once |
//! | looks | a server is taken for lost and answers those who have not heard of it | nobody begins before what he could have heard of |
//! | contention | the vector's primary alone knows what was published, and is lost | nothing is installed over what others have made of it |
//! | copies | new replicas are filled under load | they are what they are copies of |
//! | deaths | clients die and are recovered, no server is lost | all replicas are the same |
//! | agreement | many propose what is lost, some die, one of those who remember is lost | all hear the same |
//! | defects | each is planted | one of the above finds it |
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod agreement;
mod bank;
mod client_handle;
mod cluster;
mod keys;
mod tree;

use std::cell::Cell;
use std::rc::Rc;

use crate::common::{LAYOUT, change, each_is_found};
use bank::{Notes, TOTAL};
use client_handle::{REPLICAS, SERVERS};
use cluster::TestCluster;
use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Isolation, ReplicatedRegion, Seen};
use manxdb_test_harness::seeds;

const SEEDS: u64 = 25;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 400;

/// Batches and operations of one commit that writes two records in two regions.
fn counts(replicas: usize, isolation: Isolation) -> (u64, u64) {
    let mut cluster = TestCluster::new(1, replicas);
    let counts = Rc::<Cell<(u64, u64)>>::default();
    let noted = Rc::clone(&counts);
    cluster.client(move |mut handle| async move {
        let snapshot = handle.run(handle.session.begin().unwrap()).await.unwrap();
        let seen = [0, 1, 2].map(|place| handle.plan.record(place));
        let mut read: Vec<Seen> = Vec::new();
        for at in seen {
            let work = handle.session.read(&snapshot, at, LAYOUT);
            read.push(handle.run(work).await.unwrap());
        }
        let before = handle.counts();
        let changes = vec![change(&read[0], 1), change(&read[1], 2)];
        let others = [read[2].clone().into()];
        let commit = handle.session.commit(&others, changes, isolation).unwrap();
        handle.run(commit).await.unwrap();
        let after = handle.counts();
        noted.set((after.0 - before.0, after.1 - before.1));
    });
    cluster.run();
    counts.get()
}

#[test]
fn a_commit_on_three_replicas_takes_one_round_trip_more_than_on_one() {
    // Swaps, what was read, logs, records, lines; the log has as many replicas as all else.
    assert_eq!(counts(1, Isolation::Snapshot), (4, 2 + 1 + 2 + 1));
    assert_eq!(counts(3, Isolation::Snapshot), (5, 2 + 3 + 6 + 3));
    assert_eq!(counts(1, Isolation::Serializable), (5, 2 + 1 + 1 + 2 + 1));
    assert_eq!(counts(3, Isolation::Serializable), (6, 2 + 1 + 3 + 6 + 3));
}

#[test]
fn rows_with_new_keys_take_one_commit_however_many_they_are() {
    // A snapshot, a leaf; then a swap, logs, a leaf and four records, lines. The vector has its
    // snapshot confirmed by a backup.
    assert_eq!(tree::counts(1), (2 + 4, 2 + 1 + 1 + 5 + 1));
    assert_eq!(tree::counts(3), (2 + 5, 3 + 1 + 3 + 15 + 3));
}

#[test]
fn they_take_two_where_others_have_entered_keys_since() {
    // A leaf; a snapshot and the leaf again, then a commit of it; then a commit of four records.
    assert_eq!(tree::counts_apart(1), (1 + 2 + 4 + 4, 1 + 2 + 4 + 10));
    assert_eq!(tree::counts_apart(3), (1 + 2 + 5 + 5, 1 + 3 + 10 + 22));
}

/// How a client's one commit ended, as it heard.
type MembershipEvent = Rc<Cell<Option<bool>>>;

/// Money in the first record, and a client that is about to move half of it to the second.
fn one_move(seed: u64, mutant: Option<Mutant>) -> (TestCluster, MembershipEvent, Notes) {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    let notes = Notes::default();
    cluster.client(|handle| bank::fill(handle, Rc::clone(&notes)));
    cluster.run();
    cluster.mutant = mutant;
    let heard = MembershipEvent::default();
    let hears = Rc::clone(&heard);
    let noted = Rc::clone(&notes);
    cluster.client(move |handle| async move {
        let mut teller = bank::Teller {
            handle,
            notes: noted,
        };
        let halves = |seen: &[u64]| vec![seen[0] / 2, seen[1] + seen[0] / 2];
        hears.set(Some(teller.transact(&[0, 1], halves).await));
    });
    (cluster, heard, notes)
}

/// A server is lost after so many events; whether the client was at work then, and what it heard.
fn lost_at(seed: u64, server: u16, events: u64, mutant: Option<Mutant>) -> (bool, bool) {
    let (mut cluster, heard, notes) = one_move(seed, mutant);
    cluster.steps(events);
    let is_at_work = cluster.is_at_work(2);
    let acknowledged = heard.get();
    cluster.lose(ServerId(server), true, None);
    cluster.run();
    let is_there = heard.get().unwrap();
    assert!(acknowledged != Some(true) || is_there);
    let expected = if is_there { TOTAL / 2 } else { 0 };
    let found = cluster.newest(1).1;
    assert_eq!(
        found, expected,
        "seed {seed}: server {server} at event {events}"
    );
    bank::judge(&cluster, &notes, seed);
    cluster.client(|handle| bank::touch_all(handle, Rc::clone(&notes)));
    cluster.run();
    bank::judge(&cluster, &notes, seed);
    (is_at_work, is_there)
}

#[test]
fn a_commit_is_whole_or_absent_whichever_server_is_lost_at_whichever_step() {
    let (mut runs, mut committed, mut absent) = (0, 0, 0);
    for seed in 0..seeds(1) {
        for server in 0..SERVERS {
            for events in 0.. {
                let (is_at_work, is_there) = lost_at(seed, server, events, None);
                runs += 1;
                committed += u32::from(is_there && is_at_work);
                absent += u32::from(!is_there);
                if !is_at_work {
                    break;
                }
            }
        }
    }
    println!("{runs} losses: {committed} commits there, {absent} not");
    assert!(committed > 20 && absent > 20, "this test is blind");
}

/// What happens in a run.
#[derive(Debug, Clone, Copy)]
struct Story {
    /// The first server that is lost lives on.
    is_gone: bool,
    mutant: Option<Mutant>,
}

/// Clients move money; some die; a server is lost, what it had is copied, another one is lost.
fn losses(seed: u64, story: Story) -> Notes {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    let notes = Notes::default();
    cluster.client(|handle| bank::fill(handle, Rc::clone(&notes)));
    cluster.run();
    cluster.mutant = story.mutant;
    let mut random = Random::stream(seed, &[7]);
    let until = cluster.memory.now() + Nanos(400_000);
    let tellers: Vec<u64> = (0..3)
        .map(|_| cluster.client(|handle| bank::work(handle, Rc::clone(&notes), until)))
        .collect();
    cluster.steps(random.below(1_500));
    if random.below(2) == 0 {
        cluster.kill(tellers[0]);
        cluster.steps(random.below(200));
        if random.below(2) == 0 {
            cluster.reap(tellers[0]);
            cluster.steps(random.below(200));
        }
    }
    let first = random.below(u64::from(SERVERS));
    let cut = (random.below(3) == 0).then(|| random.below(400));
    cluster.lose(ServerId(u16::try_from(first).unwrap()), story.is_gone, cut);
    let refilled = cluster.refill();
    cluster.steps(random.below(3_000));
    cluster.note(&refilled);
    let is_whole = |cluster: &TestCluster| {
        let mut replicas = cluster
            .map
            .regions()
            .iter()
            .flat_map(ReplicatedRegion::replicas);
        replicas.all(|replica| replica.is_whole)
    };
    while !is_whole(&cluster) && cluster.step() {
        cluster.note(&refilled);
    }
    assert!(refilled.borrow().is_empty());
    assert!(
        is_whole(&cluster),
        "seed {seed}: what was lost is not copied"
    );
    if random.below(2) == 0 {
        cluster.kill(tellers[1]);
    }
    let second = (first + 1 + random.below(u64::from(SERVERS) - 1)) % u64::from(SERVERS);
    cluster.steps(random.below(500));
    cluster.lose(ServerId(u16::try_from(second).unwrap()), true, None);
    cluster.run();
    cluster.client(|handle| bank::touch_all(handle, Rc::clone(&notes)));
    cluster.run();
    bank::judge(&cluster, &notes, seed);
    notes
}

#[test]
fn two_losses_with_copies_in_between_lose_nothing_under_load() {
    for is_gone in [true, false] {
        let (mut there, mut absent, mut all) = (0, 0, 0);
        for seed in 0..seeds(SEEDS) {
            let mutant = None;
            let notes = losses(seed, Story { is_gone, mutant });
            all += notes.count();
            there += notes.late.borrow().0;
            absent += notes.late.borrow().1;
        }
        println!("{all} commits; of those cut off by a loss {there} are there, {absent} not");
        assert!(there > 5 && absent > 1, "this test is blind");
    }
}

/// Clients die and are recovered, and nothing else happens.
fn deaths(seed: u64, mutant: Option<Mutant>) {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    let notes = Notes::default();
    cluster.client(|handle| bank::fill(handle, Rc::clone(&notes)));
    cluster.run();
    cluster.mutant = mutant;
    let mut random = Random::stream(seed, &[8]);
    let until = cluster.memory.now() + Nanos(100_000);
    let tellers: Vec<u64> = (0..4)
        .map(|_| cluster.client(|handle| bank::work(handle, Rc::clone(&notes), until)))
        .collect();
    for teller in tellers {
        cluster.steps(random.below(600));
        cluster.kill(teller);
        cluster.reap(teller);
    }
    cluster.run();
    bank::judge(&cluster, &notes, seed);
}

#[test]
fn clients_that_die_leave_all_replicas_the_same() {
    for seed in 0..seeds(SEEDS) {
        deaths(seed, None);
    }
}

/// The server of the vector's primary is taken for lost; those who only look have not heard of it.
fn looks(seed: u64, mutant: Option<Mutant>) {
    let mut cluster = TestCluster::new(seed, REPLICAS);
    cluster.mutant = mutant;
    let notes = Notes::default();
    let until = cluster.memory.now() + Nanos(100_000);
    for _ in 0..2 {
        cluster.client(|handle| bank::work(handle, Rc::clone(&notes), until));
        cluster.client(|handle| bank::begin(handle, Rc::clone(&notes), until));
    }
    cluster.steps(Random::stream(seed, &[10]).below(400));
    cluster.lose(ServerId(0), false, None);
    cluster.run();
}

#[test]
fn nobody_begins_at_a_server_that_others_have_given_up() {
    for seed in 0..seeds(SEEDS) {
        looks(seed, None);
    }
}

/// All write the same record, and lines come late; the server of the vector's primary is lost when
/// it alone says that what is being written over was published. Whether that came to be.
fn contention(seed: u64, mutant: Option<Mutant>) -> bool {
    let mut cluster = TestCluster::slow(seed, REPLICAS, 3);
    let notes = Notes::default();
    cluster.client(|handle| bank::fill(handle, Rc::clone(&notes)));
    cluster.run();
    cluster.mutant = mutant;
    let until = cluster.memory.now() + Nanos(3_000_000);
    for _ in 0..3 {
        cluster.client(|handle| bank::insist(handle, Rc::clone(&notes), until));
    }
    while cluster.ahead(1).is_none() && cluster.memory.now() < until {
        cluster.step();
    }
    // It dies, so that its line never comes to the backups.
    let ahead = cluster.ahead(1);
    if let Some(client) = ahead {
        cluster.kill(client);
    }
    cluster.lose(ServerId(0), true, None);
    cluster.run();
    bank::judge(&cluster, &notes, seed);
    ahead.is_some()
}

#[test]
fn what_others_have_seen_and_written_over_is_not_installed_again() {
    let count = seeds(4 * SEEDS);
    let met = (0..count).filter(|seed| contention(*seed, None)).count();
    println!("{met} of {count} seeds come by");
    assert!(met > 2, "this test is blind");
}

/// What a server had is copied while money moves.
fn copies(seed: u64, mutant: Option<Mutant>) {
    let mut cluster = TestCluster::slow(seed, REPLICAS, 3);
    let notes = Notes::default();
    cluster.client(|handle| bank::fill(handle, Rc::clone(&notes)));
    cluster.run();
    cluster.mutant = mutant;
    let mut random = Random::stream(seed, &[12]);
    let until = cluster.memory.now() + Nanos(1_000_000);
    for _ in 0..3 {
        cluster.client(|handle| bank::work(handle, Rc::clone(&notes), until));
    }
    cluster.steps(random.below(1_000));
    let lost = ServerId(u16::try_from(random.below(u64::from(SERVERS))).unwrap());
    cluster.lose(lost, true, None);
    cluster.steps(random.below(500));
    let refilled = cluster.refill();
    cluster.run();
    cluster.note(&refilled);
    bank::judge(&cluster, &notes, seed);
}

#[test]
fn copies_made_under_load_are_what_they_are_copies_of() {
    for seed in 0..seeds(SEEDS) {
        copies(seed, None);
    }
}

/// A run that is to show a defect.
type Scenario = fn(u64, Option<Mutant>);

#[test]
fn planted_defects_are_found() {
    let lost: Scenario = |seed, mutant| {
        let is_gone = true;
        losses(seed, Story { is_gone, mutant });
    };
    let stale: Scenario = |seed, mutant| {
        let is_gone = false;
        losses(seed, Story { is_gone, mutant });
    };
    let keyed: Scenario = |seed, mutant| {
        keys::half_an_entry(seed, mutant);
    };
    let ahead: Scenario = |seed, mutant| {
        contention(seed, mutant);
    };
    let cases = [
        (Mutant::UnlocksBeforeBackups, 0, deaths as Scenario),
        (Mutant::PromotesWithoutDraining, 0, lost),
        (Mutant::DrainsWhatWasPublished, 110, ahead),
        (Mutant::AcceptsTheStale, 0, stale),
        (Mutant::BeginsAtThePrimaryAlone, 3, looks),
        (Mutant::RefillsWithoutLocks, 39, copies),
        (Mutant::ForgetsWhatWasAccepted, 11, agreement::agree),
        (Mutant::DecidesWithoutMost, 6, agreement::agree),
        (Mutant::EntersAtThePrimaryAlone, 0, keyed),
        (Mutant::ReliesOnHalfAnEntry, 2, keyed),
    ];
    each_is_found(&cases, DEFECT_SEEDS, |scenario, seed, mutant| {
        scenario(seed, Some(mutant));
    });
}

#[test]
fn rows_and_the_tree_of_their_keys_survive_losses() {
    let rows: usize = (0..seeds(SEEDS / 2)).map(tree::losses).sum();
    println!("{rows} rows");
    assert!(rows > 120, "this test is blind");
}

#[test]
fn keys_that_are_entered_together_are_there_whichever_server_is_lost_at_whichever_step() {
    let mut runs = 0;
    for server in 0..SERVERS {
        let mut events = 0;
        while tree::lost_at(server.into(), server, events) {
            events += 1;
        }
        runs += events;
    }
    println!("{runs} losses");
    assert!(runs > 500, "this test is blind");
}

#[test]
fn keys_stay_unique_and_known_whichever_servers_are_lost() {
    let (mut added, mut shared) = (0, 0);
    for seed in 0..seeds(SEEDS) {
        let tally = keys::losses(seed, None);
        added += tally.0;
        shared += tally.1;
    }
    println!("{added} increments; {shared} first ones of a record that another added");
    assert!(shared > 1, "this test is blind");
}

#[test]
fn no_version_rests_on_half_an_entry() {
    let count = seeds(SEEDS);
    let met = (0..count)
        .filter(|seed| keys::half_an_entry(*seed, None))
        .count();
    println!("{met} of {count} seeds come by");
    assert!(met > 5, "this test is blind");
}
