//! A crash of each role at every quarter of a millisecond of one run, a message every half of one.

use crate::common::{Load, Setting};
use manxdb_core::{Nanos, NodeId};
use manxdb_sim::hunt::Case;
use manxdb_sim::{AfterPause, SimTime};

fn setting() -> Setting {
    Setting {
        faults: 1,
        until: SimTime::from_millis(320),
        think: Nanos::from_micros(800),
        sync_after: Nanos::from_millis(1),
        outstanding: 2,
        after_pause: AfterPause::DueTimers,
        ..Setting::default()
    }
}

#[test]
fn a_crash_of_any_role_at_any_step_loses_nothing() {
    // Coordinator, master, backup, witness, client.
    for node in [0, 1, 2, 4, 6] {
        for quarter in 0..24 {
            let at = 200_000 + quarter * 250;
            let plan = crate::common::plan(&format!("{at}us+60ms crash n{node}"));
            let case = Case { seed: 7, plan };
            let ran = setting().run(&case);
            let ran = ran.unwrap_or_else(|why| panic!("{case}: {why}"));
            assert!(ran.fast > 50, "{case}: {ran:?}");
            let lost = usize::from(node == 6) * 2;
            assert!(ran.unknown <= lost, "{case}: {ran:?}");
        }
    }
}

/// A second crash while the first is being recovered from, at every other millisecond, of a
/// cluster that survives two.
#[test]
fn a_crash_of_the_new_master_at_any_step_of_its_recovery_loses_nothing() {
    let setting = Setting {
        faults: 2,
        ..setting()
    };
    for later in 0..40 {
        let second = 200_000 + 50_000 + later * 2_000;
        let text = format!("200ms+400ms crash n1; {second}us+100ms crash n2");
        let case = Case {
            seed: 7,
            plan: crate::common::plan(&text),
        };
        let ran = setting.run(&case);
        let ran = ran.unwrap_or_else(|why| panic!("{case}: {why}"));
        assert_eq!(ran.unknown, 0, "{case}: {ran:?}");
    }
}

/// It is away for less than the time after which it is suspected, so that its next life is there when
/// the coordinator looks for another.
#[test]
fn a_spare_replaces_what_has_ended_and_is_back_at_once() {
    for (ended, in_its_place) in [(2, 3), (4, 5)] {
        let case = Case {
            seed: 7,
            plan: crate::common::plan(&format!("200ms+2ms crash n{ended}")),
        };
        let mut world = setting().world(case.seed);
        world.schedule_all(&case.plan);
        let mut load = Load::new(setting());
        world
            .run_until(&mut load, SimTime::from_millis(400))
            .unwrap();
        let coordinator = world.core(NodeId(0)).and_then(|node| node.coordinator());
        let config = coordinator.and_then(|coordinator| coordinator.config());
        let config = config.expect("a view is in use");
        let members = config.backups.iter().chain(&config.witnesses);
        let members: Vec<_> = members.map(|member| member.node.0).collect();
        assert!(members.contains(&in_its_place), "{members:?}");
        assert!(!members.contains(&ended), "{members:?}");
    }
}
