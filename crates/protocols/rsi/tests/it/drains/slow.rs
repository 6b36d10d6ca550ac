//! A log archiver is slow, or there is none for long.

use manxdb_core::Random;
use manxdb_rsi::Snapshot;
use manxdb_rsi::mutants::Mutant;
use manxdb_test_harness::seeds;

use crate::drains::archiver::Cellar;
use crate::drains::story::Story;
use crate::drains::tally::Tally;
use crate::drains::{SEEDS, SLOTS, TELLERS};
use crate::simulated_rack::plan::THREADS;
use crate::simulated_rack::rack::LEASE;

/// A log archiver takes far longer than threads take to go round their logs.
pub fn slow(seed: u64, mutant: Option<Mutant>) -> Tally {
    let mut random = Random::stream(seed, &[32]);
    let mut story = Story::new(seed, mutant, Cellar::new(seed, Snapshot::empty(THREADS)));
    story.cellar.pause.set(4 * LEASE.0);
    let until = story.rack.now() + LEASE * 12;
    for _ in 0..TELLERS {
        story.teller(until);
    }
    story.rack.run_until(until);
    story.cellar.pause.set(100_000);
    let mut tally = Tally::default();
    tally.add(&story);
    story = story.restart(&mut random, mutant);
    tally.add(&story.close());
    tally
}

#[test]
fn nothing_is_written_over_that_a_slow_archiver_has_not_written() {
    let mut tally = Tally::default();
    let count = seeds(SEEDS);
    for seed in 0..count {
        tally.join(&slow(seed, None));
    }
    tally.print(&format!("slow, {count} seeds"));
}

/// No log archiver lives for so long that commits give up; then one does.
#[test]
fn who_waits_for_an_archiver_in_vain_goes_on_when_there_is_one() {
    let room = SLOTS - 2;
    for seed in 0..seeds(5) {
        let cellar = Cellar::new(seed, Snapshot::empty(THREADS));
        let mut story = Story::new(seed, None, cellar);
        story.rack.kill(story.archiver);
        let before = story.notes.count() as u64;
        let until = story.rack.now() + LEASE * 60;
        for _ in 0..TELLERS {
            story.teller(until + LEASE * 10);
        }
        story.rack.run_until(until);
        let done = story.notes.count() as u64 - before;
        assert!(done <= TELLERS as u64 * room, "seed {seed}: {done} commits");
        assert!(*story.notes.unwritten.borrow() > 0, "seed {seed}");
        story.begin_to_keep();
        let story = story.close();
        let all = story.notes.count() as u64 - before;
        assert!(all > 4 * done, "seed {seed}: {all} commits");
    }
}
