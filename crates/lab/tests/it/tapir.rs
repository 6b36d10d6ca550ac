//! TAPIR: what a transaction takes when nothing else runs, exactly; histories, judged; its published rule,
//! whose order does not agree with real time; and planted defects, which the judges must find.

use manxdb_baselines::TapirOptions;
use manxdb_baselines::tapir::{TapirMutant, Validation};
use manxdb_checker::append::Level as Promise;
use manxdb_core::Nanos;
use manxdb_lab::baselines::TapirSystem;
use manxdb_lab::candidate::{Candidate as _, Cluster};
use manxdb_test_harness::seeds;

use crate::common::baselines::{is_found, keeps, lists_with_clocks, takes};

#[test]
fn tapir_takes_a_round_trip_for_each_level_and_one_to_prepare() {
    takes::<TapirSystem>(0, Nanos::ZERO, TAPIR);
}

/// Milliseconds: a value travels by way of the client.
const TAPIR: &str = "
one shard                                10.000  10.000 network in the region
two shards of a region                   10.000  10.000 network in the region
home waits for the other shard           15.000  15.000 network in the region
2 regions                               200.000  200.000 network between regions
3 regions                               200.000  200.000 network between regions
home waits for another region           205.000  200.000 network between regions  5.000 network in the region
another region waits for home           205.000  200.000 network between regions  5.000 network in the region
a third region waits for the second     300.000  300.000 network between regions
";

fn tapir(options: TapirOptions) -> impl Fn(Cluster) -> TapirSystem + Copy {
    move |cluster| TapirSystem::of(cluster, options)
}

#[test]
fn tapir_is_strict() {
    keeps(Promise::Strict, 10, TapirSystem::build);
}

/// Clocks that are off by more than a local transaction takes.
const WRONG: Nanos = Nanos::from_millis(100);

#[test]
fn tapir_is_strict_whatever_clocks_say() {
    for seed in 0..seeds(10) {
        let found = lists_with_clocks(WRONG, seed, Promise::Strict, TapirSystem::build);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
}

fn published() -> TapirOptions {
    TapirOptions {
        validation: Validation::Timestamps,
        ..TapirOptions::default()
    }
}

#[test]
fn the_published_rule_is_serializable() {
    keeps(Promise::Serializable, 5, tapir(published()));
}

#[test]
fn abstentions_taken_for_assent_are_found() {
    let options = TapirOptions {
        mutant: Some(TapirMutant::AbstainIsOk),
        ..TapirOptions::default()
    };
    assert!(is_found(Promise::Strict, tapir(options)));
}

#[test]
fn versions_that_are_not_compared_are_found() {
    let options = TapirOptions {
        mutant: Some(TapirMutant::VersionsUnchecked),
        ..TapirOptions::default()
    };
    assert!(is_found(Promise::Strict, tapir(options)));
}
