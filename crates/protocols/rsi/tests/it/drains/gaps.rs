//! What is not synced is lost under log archivers that die over it.

use manxdb_core::{Nanos, Random};
use manxdb_rsi::Snapshot;
use manxdb_rsi::mutants::Mutant;
use manxdb_test_harness::seeds;

use crate::drains::archiver::Cellar;
use crate::drains::story::Story;
use crate::drains::tally::Tally;
use crate::drains::{SEEDS, TELLERS};
use crate::simulated_rack::plan::THREADS;
use crate::simulated_rack::rack::LEASE;

/// Log archivers seldom sync, and what they have not is lost when they die; then all power is lost, twice.
fn gaps(seed: u64) -> Tally {
    let mut random = Random::stream(seed, &[34]);
    let mut story = Story::new(seed, None, Cellar::new(seed, Snapshot::empty(THREADS)));
    let mut tally = Tally::default();
    for _ in 0..2 {
        let until = story.rack.now() + LEASE * 60;
        for _ in 0..TELLERS {
            story.teller(until);
        }
        for least in [LEASE * 6, Nanos::ZERO] {
            story.notes.is_hasty.set(true);
            story.cellar.sync_one_in.set(u64::MAX);
            story.rack.run_until(story.rack.now() + LEASE * 3);
            story.cellar.disk.borrow_mut().fail(&mut random);
            story.cellar.sync_one_in.set(2);
            story.notes.is_hasty.set(false);
            story.succeed();
            // It takes some leases to be sure that something is lost.
            let span = least + Nanos(random.below(9 * LEASE.0));
            story.rack.run_until(story.rack.now() + span);
        }
        tally.add(&story);
        story = story.restart(&mut random, None);
    }
    tally.add(&story.close());
    tally
}

/// Once, and the power is lost as soon as the next log archiver has written something.
pub fn gap_and_power(seed: u64, mutant: Option<Mutant>) -> Tally {
    let mut random = Random::stream(seed, &[35]);
    let mut story = Story::new(seed, mutant, Cellar::new(seed, Snapshot::empty(THREADS)));
    for _ in 0..TELLERS {
        story.teller(story.rack.now() + LEASE * 60);
    }
    story.notes.is_hasty.set(true);
    story.cellar.sync_one_in.set(u64::MAX);
    story.rack.run_until(story.rack.now() + LEASE * 2);
    story.cellar.disk.borrow_mut().fail(&mut random);
    story.cellar.sync_one_in.set(1);
    story.notes.is_hasty.set(false);
    story.succeed();
    let before = story.cellar.disk.borrow().batches;
    let end = story.rack.now() + LEASE * 20;
    while story.cellar.disk.borrow().batches == before && story.rack.now() < end {
        story
            .rack
            .run_until(story.rack.now() + Nanos(LEASE.0 / 100));
    }
    let span = Nanos(random.below(LEASE.0 / 10));
    story.rack.run_until(story.rack.now() + span);
    let mut tally = Tally::default();
    tally.add(&story);
    story = story.restart(&mut random, mutant);
    tally.add(&story.close());
    tally
}

const GAP_SEEDS: u64 = 5;

#[test]
fn what_a_disk_loses_under_an_archiver_that_dies_is_copied_from_memory() {
    let mut tally = Tally::default();
    let count = seeds(GAP_SEEDS);
    for seed in 0..count {
        tally.join(&gaps(seed));
    }
    tally.print(&format!("gaps, {count} seeds"));
    let is_seen = tally.closed > count / 2 && tally.found > tally.closed;
    assert!(is_seen, "this test is blind");
    let mut tally = Tally::default();
    let count = seeds(SEEDS);
    for seed in 0..count {
        tally.join(&gap_and_power(seed, None));
    }
    tally.print(&format!("a gap and no power, {count} seeds"));
    let is_seen = tally.found > count / 2 && tally.closed < tally.found;
    assert!(is_seen, "this test is blind");
}
