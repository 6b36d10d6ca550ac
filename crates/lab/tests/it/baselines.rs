//! Janus and SLOG, which DAST is compared with: what a transaction takes when nothing else runs, exactly;
//! histories, judged; and planted defects, which the judges must find.

use manxdb_baselines::janus::JanusMutant;
use manxdb_baselines::slog::SlogMutant;
use manxdb_baselines::{JanusOptions, SlogOptions};
use manxdb_checker::append::Level as Promise;
use manxdb_common::Release;
use manxdb_core::Nanos;
use manxdb_lab::baselines::{JanusSystem, SlogSystem};
use manxdb_lab::candidate::{Candidate, Cluster};
use manxdb_lab::scenario::Scenario;
use manxdb_lab::simulate::simulate;
use manxdb_lab::systems::SystemName;
use manxdb_workloads::append::Settings;
use manxdb_workloads::tpcc::{Parameters, Scale};
use manxdb_workloads::{Topology, Workload};

use crate::common::baselines::{floors, is_found, keeps, takes};

#[test]
fn janus_takes_two_round_trips_and_a_way_for_each_value() {
    takes::<JanusSystem>(0, Nanos::ZERO, JANUS);
}

/// Milliseconds: two round trips of the client; a value from region to region leaves when its piece
/// has run, half a round trip before the answer, and arrives with it.
const JANUS: &str = "
one shard                                10.000  10.000 network in the region
two shards of a region                   10.000  10.000 network in the region
home waits for the other shard           12.500  12.500 network in the region
2 regions                               200.000  200.000 network between regions
3 regions                               200.000  200.000 network between regions
home waits for another region           202.500  200.000 network between regions  2.500 network in the region
another region waits for home           202.500  200.000 network between regions  2.500 network in the region
a third region waits for the second     250.000  250.000 network between regions
";

#[test]
fn slog_waits_for_batches_and_for_the_global_log() {
    // From region 0, whose manager leads the global log, and between two others; a microsecond before
    // a batch is closed.
    let asked = Nanos::from_micros(4_999);
    let found = [0, 2]
        .map(|home| floors::<SlogSystem>(home, asked))
        .join("\n");
    assert_eq!(found, SLOG.trim(), "found:\n{found}\n");
}

/// Milliseconds. The second half is of a client in region 1, with no shard in region 0, whose manager
/// hands out the global order.
const SLOG: &str = "
one shard                                15.001  10.000 network in the region  5.001 region log
two shards of a region                   17.501  12.500 network in the region  5.001 region log
home waits for the other shard           17.501  12.500 network in the region  5.001 region log
2 regions                               215.001  100.000 global log  100.000 network between regions  10.000 network in the region  5.001 region log
3 regions                               215.001  100.000 global log  100.000 network between regions  10.000 network in the region  5.001 region log
home waits for another region           215.001  100.000 global log  100.000 network between regions  10.000 network in the region  5.001 region log
another region waits for home           215.001  100.000 global log  100.000 network between regions  10.000 network in the region  5.001 region log
a third region waits for the second     265.001  100.000 global log  150.000 network between regions  10.000 network in the region  5.001 region log
one shard                                15.001  10.000 network in the region  5.001 region log
two shards of a region                   17.501  12.500 network in the region  5.001 region log
home waits for the other shard           17.501  12.500 network in the region  5.001 region log
2 regions                               265.001  100.000 global log  150.000 network between regions  7.500 network in the region  7.501 region log
3 regions                               265.001  100.000 global log  150.000 network between regions  7.500 network in the region  7.501 region log
home waits for another region           265.001  100.000 global log  150.000 network between regions  7.500 network in the region  7.501 region log
another region waits for home           315.001  100.000 global log  200.000 network between regions  7.500 network in the region  7.501 region log
a third region waits for the second     315.001  100.000 global log  200.000 network between regions  7.500 network in the region  7.501 region log
";

#[test]
fn janus_is_strict() {
    keeps(Promise::Strict, 10, JanusSystem::build);
}

fn janus(mutant: JanusMutant) -> impl Fn(Cluster) -> JanusSystem + Copy {
    move |cluster| {
        let options = JanusOptions {
            mutant: Some(mutant),
            ..JanusOptions::default()
        };
        JanusSystem::of(cluster, options)
    }
}

#[test]
fn a_majority_taken_for_a_fast_quorum_is_found() {
    assert!(is_found(
        Promise::Strict,
        janus(JanusMutant::MajorityIsFast)
    ));
}

#[test]
fn ancestors_that_are_not_awaited_are_found() {
    assert!(is_found(
        Promise::Strict,
        janus(JanusMutant::AncestorsNotAwaited)
    ));
}

#[test]
fn slog_is_serializable_however_rows_are_released() {
    for release in [Release::Transaction, Release::Piece] {
        let build = move |cluster| {
            let options = SlogOptions {
                release,
                ..SlogOptions::default()
            };
            SlogSystem::of(cluster, options)
        };
        keeps(Promise::Serializable, 5, build);
    }
}

fn slog(mutant: SlogMutant) -> impl Fn(Cluster) -> SlogSystem + Copy {
    move |cluster| {
        let options = SlogOptions {
            mutant: Some(mutant),
            ..SlogOptions::default()
        };
        SlogSystem::of(cluster, options)
    }
}

#[test]
fn a_lock_that_is_freed_early_is_found() {
    assert!(is_found(
        Promise::Serializable,
        slog(SlogMutant::LockFreedEarly)
    ));
}

#[test]
fn a_gap_in_the_log_is_found() {
    assert!(is_found(Promise::Serializable, slog(SlogMutant::GapInLog)));
}

/// The baselines.
fn baselines() -> impl Iterator<Item = SystemName> {
    SystemName::ALL
        .into_iter()
        .filter(|system| *system != SystemName::Dast)
}

#[test]
fn conditions_of_tpcc_hold_under_every_system() {
    for system in baselines() {
        let topology = Topology {
            regions: 3,
            shards_per_region: 2,
        };
        let mut scenario = Scenario::new(topology, Workload::Tpcc(Parameters::as_published()));
        scenario.system = system;
        scenario.scale = Scale::tiny();
        scenario.clients_per_shard = 3;
        scenario.warm_up = Nanos::ZERO;
        scenario.measured = Nanos::from_secs(2);
        let outcome = simulate(&scenario, &mut |_| {}).unwrap();
        assert_eq!(outcome.findings, Vec::<String>::new(), "{system:?}");
        assert!(
            outcome.made.len() > 300,
            "{system:?}: {}",
            outcome.made.len()
        );
    }
}

#[test]
fn messages_that_come_late_twice_and_out_of_order_change_nothing() {
    for system in baselines() {
        let topology = Topology {
            regions: 3,
            shards_per_region: 1,
        };
        let mut scenario = Scenario::new(topology, Workload::Append(Settings::default()));
        scenario.system = system;
        scenario.clients_per_shard = 2;
        scenario.warm_up = Nanos::ZERO;
        scenario.measured = Nanos::from_secs(2);
        for fault in [
            "200ms+1s reorder *>* 50000ppm 20ms",
            "200ms+1s duplicate *>* 50000ppm",
            "300ms+1s loss r0>r1 50000ppm",
            "1s+300ms part r0 r2",
        ] {
            let fault: manxdb_sim::Fault = fault.parse().unwrap();
            assert_eq!(system.survives(&fault.kind), Ok(()));
            scenario.faults.push(fault);
        }
        let outcome = simulate(&scenario, &mut |_| {}).unwrap();
        assert_eq!(outcome.findings, Vec::<String>::new(), "{system:?}");
    }
}

#[test]
fn a_baseline_refuses_faults_that_take_its_memory() {
    let crash: manxdb_sim::Fault = "1s+1s crash n3".parse().unwrap();
    for system in baselines() {
        let refused = system.survives(&crash.kind).unwrap_err();
        assert!(refused.contains("dast takes this one"), "{refused}");
    }
    assert_eq!(SystemName::Dast.survives(&crash.kind), Ok(()));
}
