//! What a log archiver writes to disk, in virtual time, under load, with deaths and losses: then all power
//! is gone, and what comes of the disk is judged.
//!
//! | test | what happens | what must hold |
//! |---|---|---|
//! | power | processes and log archivers die, servers are lost; then all is lost but what is on disk, twice | history up to the cut, money, replicas; what was promised is there; no lock is in the way; all go on |
//! | gaps | what is not synced is lost under log archivers that die over it, again and again; then as above | the same; nothing is promised that needs a copy of memory which is not complete |
//! | slow | a log archiver is slow, or dead for long | nothing is written over that is not written; those who wait go on |
//! | rows | the same of rows in a tree, inserted and deleted | of each client what it did up to some moment is there, and what was promised |
//! | deaths | log archivers and others die one after the other, and servers are lost, while nothing is written | all are reaped; then all is written |
//! | defects | each is planted | one of the above finds it |
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod archiver;
mod deaths;
mod disk;
mod gaps;
mod power;
mod slow;
mod story;
mod tally;
mod tree;

use crate::common::each_is_found;
use gaps::gap_and_power;
use manxdb_rsi::mutants::Mutant;
use manxdb_test_harness::seeds;
use power::power;
use slow::slow;

/// Slots of a log: data goes round fast.
const SLOTS: u64 = 5;
const TELLERS: usize = 3;

/// Seeds of a story without a defect; one that shows a defect may be far behind these.
const SEEDS: u64 = 16;
const TREE_SEEDS: u64 = 6;
/// Seeds among which each defect is found.
const DEFECT_SEEDS: u64 = 400;

#[test]
fn rows_are_there_with_their_tree_up_to_a_moment() {
    let count = seeds(TREE_SEEDS);
    let counts = (0..count).map(|seed| tree::power(seed, None));
    let (kept, lost) = counts.fold((0, 0), |(kept, lost), one| (kept + one.0, lost + one.1));
    println!("rows, {count} seeds: {kept} writes are there, {lost} are not");
    assert!(lost > 0 && kept > count * 10, "this test is blind");
}

type Scenario = fn(u64, Mutant);

#[test]
fn planted_defects_are_found() {
    let slowly: Scenario = |seed, mutant| {
        slow(seed, Some(mutant));
    };
    let powerless: Scenario = |seed, mutant| {
        power(seed, Some(mutant));
    };
    let with_rows: Scenario = |seed, mutant| {
        tree::power(seed, Some(mutant));
    };
    let over_a_gap: Scenario = |seed, mutant| {
        gap_and_power(seed, Some(mutant));
    };
    let cases = [
        (Mutant::OverwritesTheUnwritten, 0, slowly),
        (Mutant::DrainsWhatIsLogged, 1, powerless),
        (Mutant::WaitsForItselfAlone, 10, powerless),
        (Mutant::ReplaysByThread, 2, powerless),
        (Mutant::ReplaysByThread, 2, with_rows),
        (Mutant::CompletesTooEarly, 8, powerless),
        (Mutant::GoesOnOverAGap, 136, over_a_gap),
        (Mutant::PromisesOverAGap, 0, over_a_gap),
    ];
    each_is_found(&cases, DEFECT_SEEDS, |scenario, seed, mutant| {
        scenario(seed, mutant);
    });
}
