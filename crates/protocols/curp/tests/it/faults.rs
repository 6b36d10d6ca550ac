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

/// Less is kept for spares than what they lack after some faults: they get one copy after another.
#[test]
fn a_cluster_whose_spares_lag_behind_stays_linearizable_and_comes_to_rest() {
    survives(Setting {
        spares: 2,
        kept_bytes: 1_000,
        ..Setting::default()
    });
}

#[test]
fn a_cluster_for_two_faults_stays_linearizable_and_comes_to_rest() {
    survives(Setting {
        faults: 2,
        ..Setting::default()
    });
}
