//! Clocks of a region after its manager was late: what a late reader takes for a wrong clock must
//! not make one that is right wrong for good.
#![allow(clippy::unwrap_used)]

use manxdb_core::Nanos;
use manxdb_dast::Crossing;
use manxdb_lab::load::Made;
use manxdb_lab::scenario::Scenario;
use manxdb_lab::simulate::simulate;
use manxdb_sim::SimTime;
use manxdb_workloads::{Topology, Workload};

#[test]
fn local_latencies_are_as_before_once_a_paused_manager_goes_on() {
    let topology = Topology {
        regions: 2,
        shards_per_region: 2,
    };
    let workload = Workload::Tpca {
        cross_region: 0.1,
        theta: 0.5,
    };
    let pauses = [5, 12, 20, 30, 45].map(|millis| (Crossing::Anticipated, millis));
    let ahead = [12, 45].map(|millis| (Crossing::Ahead, millis));
    for (crossing, millis) in pauses.into_iter().chain(ahead) {
        let mut scenario = Scenario::new(topology, workload);
        scenario.crossing = crossing;
        scenario.clients_per_shard = 2;
        scenario.measured = Nanos::from_secs(2);
        let leader = scenario.shape().servers() - 6;
        scenario.faults = vec![format!("500ms+{millis}ms pause n{leader}").parse().unwrap()];
        let outcome = simulate(&scenario, &mut |_| {}).unwrap();
        assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
        let after = outcome
            .made
            .iter()
            .filter(|made| !made.job.crosses_regions && made.asked >= SimTime::from_secs(1));
        let longest = after.filter_map(Made::latency).max();
        assert!(
            longest <= Some(Nanos::from_micros(15_002)),
            "{crossing:?}, paused for {millis} ms: {longest:?}"
        );
    }
}
