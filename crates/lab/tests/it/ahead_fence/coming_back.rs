//! Replicas that come back while values that they need are under way.

use manxdb_core::Nanos;
use manxdb_dast::mutants::Mutant;
use manxdb_sim::hunt::Case;

use super::{options, setting};

/// A replica of region 2 loses its memory while values of other regions are under way, and its peer gives
/// it its state before it has them itself.
const AMID_VALUES: &str = "814104us+423660us part n19 *; 2652139us+803308us reorder r0>r2 150000ppm 262ms; \
                           3038508us+423607us wipe n8";

fn run(mutant: Option<Mutant>) -> Result<(), String> {
    let (seed, plan) = (69, AMID_VALUES.parse().unwrap());
    let mut setting = setting(seed);
    setting.rest_within = Nanos::from_secs(3);
    let ran = setting.run(&Case { seed, plan }, options(mutant));
    ran.map(|_| ())
}

/// The others keep what they gave until it has run what needs it.
#[test]
fn a_replica_that_comes_back_gets_values_that_its_peer_did_not_have_yet() {
    assert_eq!(run(None), Ok(()));
}

#[test]
fn a_region_that_passes_a_replica_on_its_way_in_is_found() {
    let wrong = run(Some(Mutant::PassesJoining)).unwrap_err();
    assert!(wrong.contains("transactions wait on NodeId(8)"), "{wrong}");
}
