//! Ordering ahead under random faults, and what only its managers can do wrong.
#![allow(clippy::unwrap_used, clippy::panic)]

use manxdb_core::Nanos;
use manxdb_dast::mutants::Mutant;
use manxdb_dast::{Crossing, Options, Survive};
use manxdb_lab::soak::{Setting, plan};
use manxdb_sim::Plan;
use manxdb_sim::hunt::{Case, hunt};
use manxdb_test_harness::seeds;

fn options(mutant: Option<Mutant>) -> Options {
    Options {
        crossing: Crossing::Ahead,
        mutant,
        ..Options::default()
    }
}

fn draw(seed: u64) -> Plan {
    plan::draw(seed, &Setting::of_seed(seed))
}

/// Settings and faults of the seeds that `dast_faults` uses.
#[test]
fn random_faults_are_survived() {
    let run = |case: &Case| {
        let ran = Setting::of_seed(case.seed).run(case, options(None));
        ran.map(|ran| ran.digest)
    };
    if let Err(found) = hunt(0..seeds(40), draw, run) {
        let test = "cargo test -p manxdb-lab --test it ahead_faults::random_faults_are_survived";
        panic!("{found}\n{}", found.command(test));
    }
}

fn whole() -> Options {
    Options {
        survive: Survive::Region,
        ..options(None)
    }
}

/// The first of them with whole streams.
#[test]
fn random_faults_are_survived_with_whole_streams() {
    let run = |case: &Case| {
        let ran = Setting::of_seed(case.seed).run(case, whole());
        ran.map(|ran| ran.digest)
    };
    if let Err(found) = hunt(0..seeds(6), draw, run) {
        let test = "cargo test -p manxdb-lab --test it ahead_faults::random_faults_are_survived_with_whole_streams";
        panic!("{found}\n{}", found.command(test));
    }
}

/// Managers of both regions lose their memory, one after another; and, while one does, the other
/// region is not heard.
#[test]
fn managers_that_keep_streams_lose_their_memory_in_turn() {
    let in_turn = "1s+300ms wipe n9; 1600ms+300ms wipe n10; 2200ms+300ms wipe n11; \
                   2800ms+300ms wipe n6";
    let unheard = "900ms+1500ms part r0 *; 1s+300ms wipe n9; 1600ms+300ms wipe n10";
    for faults in [in_turn, unheard] {
        for seed in 0..3 {
            let mut setting = Setting::small();
            setting.lists.cross_region = 0.8;
            let plan = faults.parse().unwrap();
            if let Err(wrong) = setting.run(&Case { seed, plan }, whole()) {
                panic!("seed {seed}, {faults}: {wrong}");
            }
        }
    }
}

/// Two regions of one shard: replicas n0 to n2 and n3 to n5, managers n6 to n8 and n9 to n11.
fn told(mutant: Option<Mutant>, seed: u64, faults: &str) -> Result<(), String> {
    let mut setting = Setting::small();
    setting.clients_per_shard = 4;
    setting.lists.cross_region = 0.8;
    setting.rest_within = Nanos::from_secs(6);
    let plan = faults.parse().unwrap();
    let run = move || setting.run(&Case { seed, plan }, options(mutant));
    let ran = std::panic::catch_unwind(run).map_err(|_| "an assertion failed".to_owned())?;
    ran.map(|_| ())
}

/// Whether a defect is found under these faults, which the protocol survives without it.
fn is_found(mutant: Mutant, faults: &str) -> bool {
    let found = (0..4).find(|seed| told(Some(mutant), *seed, faults).is_err());
    found.is_some_and(|seed| {
        assert_eq!(told(None, seed, faults), Ok(()), "seed {seed}, {faults}");
        true
    })
}

/// What the leader that fails had been sent and not told its replicas is lost with it.
#[test]
fn a_new_leader_that_follows_a_stream_with_a_gap_is_found() {
    let faults = "1s+500ms wipe n9; 2s+500ms wipe n10";
    assert!(is_found(Mutant::GapAccepted, faults));
}

/// The first leader has learned that the way is long and tells marks far ahead; its successor has not
/// learned it yet.
#[test]
fn a_new_leader_that_knows_nothing_of_the_marks_told_is_found() {
    let faults = "300ms+4s delay r0>r1 400ms; 2200ms+500ms wipe n6";
    assert!(is_found(Mutant::MarkNotReserved, faults));
}
