//! Clusters under everything that may go wrong, seed after seed.

use crate::common::Setting;
use manxdb_sim::hunt::hunt;
use manxdb_test_harness::seeds;

/// Seeds of a run of the tests: 1,000 at night.
const SEEDS: u64 = 50;

fn survives(setting: Setting) {
    let profile = setting.profile();
    let topology = setting.topology();
    let mut fast = 0;
    let found = hunt(
        0..seeds(SEEDS),
        |seed| profile.draw(seed, &topology),
        |case| {
            let ran = setting.run(case)?;
            fast += ran.fast;
            Ok(ran.digest)
        },
    );
    if let Err(found) = found {
        panic!("{found}");
    }
    assert!(fast > 0, "nothing took one round trip");
}

#[test]
fn a_cluster_for_one_fault_stays_linearizable_and_comes_to_rest() {
    survives(Setting::default());
}

#[test]
fn a_cluster_for_two_faults_stays_linearizable_and_comes_to_rest() {
    survives(Setting {
        faults: 2,
        ..Setting::default()
    });
}
