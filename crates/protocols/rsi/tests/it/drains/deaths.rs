//! Log archivers and others die one after the other, while nothing is written.

use manxdb_core::{Nanos, Random};
use manxdb_rsi::Snapshot;
use manxdb_test_harness::seeds;

use crate::drains::archiver::Cellar;
use crate::drains::story::Story;
use crate::drains::{SLOTS, TELLERS};
use crate::simulated_rack::plan::{self, THREADS};
use crate::simulated_rack::rack::LEASE;

/// How many transactions of a thread are published and not written, at most.
fn behind(story: &Story) -> u64 {
    let Story { rack, cellar, .. } = story;
    let at = plan::replicas(&rack.watch.map, rack.plan.lines)[0];
    let vector = rack.plan.vector;
    let (published, _) = vector.parse(&rack.memory.look(at, vector.bytes()));
    let disk = cellar.disk.borrow();
    let (batches, _) = disk.read();
    let written = batches.last().map_or(&disk.base, |batch| &batch.cut);
    let pairs = published.numbers().iter().zip(written.numbers());
    pairs
        .map(|(published, written)| published - written)
        .max()
        .unwrap()
}

/// Nobody writes to disk what the dead leave, log archivers least of all.
fn deaths(seed: u64) -> u64 {
    let mut random = Random::stream(seed, &[33]);
    let cellar = Cellar::new(seed, Snapshot::empty(THREADS));
    let mut story = Story::new(seed, None, cellar);
    let losses = [random.below(50), 50 + random.below(50)];
    let until = story.rack.now() + LEASE * 200;
    for round in 0..100 {
        story.rack.kill(story.archiver);
        if round % 3 > 0 {
            story.cellar.asleep.set(100 * LEASE.0);
            story.begin_to_keep();
        } else {
            story.teller(until);
        }
        story
            .rack
            .run_until(story.rack.now() + Nanos(random.below(2 * LEASE.0)));
        for teller in story.tellers.drain(..) {
            story.rack.kill(teller);
        }
        if losses.contains(&round) {
            let epochs = story.rack.watch.map.epoch();
            story.rack.memory.lose(story.rack.watch.primary());
            while story.rack.watch.map.epoch() == epochs {
                assert!(story.rack.step(until), "seed {seed}: no epoch begins");
            }
        }
    }
    story.rack.kill(story.archiver);
    let behind = behind(&story);
    story.cellar.asleep.set(0);
    story.begin_to_keep();
    let until = story.rack.now() + LEASE * 4;
    for _ in 0..TELLERS {
        story.teller(until);
    }
    story.rack.run_until(until);
    story.restart(&mut random, None).close();
    behind
}

#[test]
fn who_closes_the_dead_never_waits_for_an_archiver() {
    let behind = (0..seeds(5)).map(deaths);
    let behind: Vec<u64> = behind.collect();
    println!("deaths: threads were {behind:?} transactions ahead of what is written");
    let is_round = behind.iter().filter(|count| **count > 2 * SLOTS).count();
    assert!(2 * is_round > behind.len(), "this test is blind");
}
