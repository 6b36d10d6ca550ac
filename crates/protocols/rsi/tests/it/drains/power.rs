//! Processes and log archivers die, and servers are lost; then all power is gone, twice.

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

/// All power is lost, twice.
pub fn power(seed: u64, mutant: Option<Mutant>) -> Tally {
    let mut random = Random::stream(seed, &[31]);
    let mut story = Story::new(seed, mutant, Cellar::new(seed, Snapshot::empty(THREADS)));
    let mut tally = Tally::default();
    for _ in 0..2 {
        let span = Nanos(LEASE.0 + random.below(6 * LEASE.0));
        let until = story.rack.now() + span;
        for _ in 0..TELLERS {
            story.teller(until + LEASE);
        }
        story.rack.late_one_in = 200;
        story.go(&mut random, until);
        tally.add(&story);
        story = story.restart(&mut random, mutant);
    }
    let until = story.rack.now() + LEASE * 2;
    for _ in 0..TELLERS {
        story.teller(until);
    }
    tally.add(&story.close());
    tally
}

#[test]
fn what_is_on_disk_is_all_that_was_promised_and_a_state_that_was() {
    let mut tally = Tally::default();
    let count = seeds(SEEDS);
    for seed in 0..count {
        tally.join(&power(seed, None));
    }
    tally.print(&format!("power, {count} seeds"));
    let is_seen = tally.cut_off > 0 && tally.used > count / 4 && tally.epochs > count / 4;
    assert!(is_seen, "this test is blind");
}
