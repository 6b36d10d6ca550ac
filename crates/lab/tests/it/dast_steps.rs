//! A node fails at each step of a transaction: just before it takes the step, and just after.
//!
//! Equal seeds give equal runs, so the steps that a node takes for a transaction are read from a
//! run without faults, and then each is the last one of another run.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use manxdb_core::{Nanos, NodeId};
use manxdb_dast::{Crossing, Options};
use manxdb_lab::soak::Setting;
use manxdb_sim::hunt::Case;
use manxdb_sim::trace::{Kind, Record};
use manxdb_sim::{Fault, FaultKind, Plan, SimTime};
use manxdb_test_harness::seeds;

/// Two regions of one shard: replicas n0 to n2 and n3 to n5, managers n6 to n8 and n9 to n11.
fn setting() -> Setting {
    Setting {
        load_until: SimTime::from_millis(1_600),
        ..Setting::small()
    }
}

const SEED: u64 = 3;

/// A transaction, and when nodes took steps for it.
struct Steps {
    crossing: Crossing,
    coordinator: NodeId,
    taken: Vec<(NodeId, SimTime)>,
}

impl Steps {
    /// Of the first transaction of its kind that was asked after a second.
    fn of_first(crossing: Crossing, crosses_regions: bool) -> Self {
        let (mut world, mut load) = setting().begin(SEED, options(crossing), Record::All);
        world.run_until(&mut load, SimTime::from_secs(3)).unwrap();
        let mut made = load.made().iter();
        let made = made.find(|made| {
            made.asked >= SimTime::from_secs(1) && made.job.crosses_regions == crosses_regions
        });
        let (_, answer) = made.unwrap().answered.as_ref().unwrap();
        let txn = answer.id.for_traces();
        let rows = world.trace().rows().iter();
        let rows: Vec<_> = rows.filter(|row| row.txn == Some(txn)).collect();
        let received = rows.iter().find(|row| row.label == "received").unwrap();
        let messages = rows
            .iter()
            .filter(|row| matches!(row.kind, Kind::Message(_)));
        Self {
            crossing,
            coordinator: received.node,
            taken: messages.map(|row| (row.node, row.at)).collect(),
        }
    }

    /// Just before and just after each step of a node.
    fn moments(&self, node: NodeId) -> BTreeSet<SimTime> {
        let own = self.taken.iter().filter(|(other, _)| *other == node);
        let moments: BTreeSet<SimTime> = own.flat_map(|(_, at)| [*at, *at + Nanos(1)]).collect();
        assert!(moments.len() >= 2, "{node:?} took no step");
        moments
    }

    fn survives(&self, faults: Vec<Fault>) {
        let plan = Plan { faults };
        let case = Case { seed: SEED, plan };
        if let Err(wrong) = setting().run(&case, options(self.crossing)) {
            panic!("{:?}, {case}: {wrong}", self.crossing);
        }
    }
}

fn options(crossing: Crossing) -> Options {
    Options {
        crossing,
        ..Options::default()
    }
}

fn crash(node: NodeId, at: SimTime) -> Fault {
    Fault {
        at,
        lasts: Nanos::from_millis(500),
        kind: FaultKind::Crash {
            node,
            disk_lost: true,
        },
    }
}

#[test]
fn the_coordinator_of_a_local_transaction_fails_at_each_step() {
    for crossing in Crossing::ALL {
        let steps = Steps::of_first(crossing, false);
        for at in steps.moments(steps.coordinator) {
            steps.survives(vec![crash(steps.coordinator, at)]);
        }
    }
}

#[test]
fn the_coordinator_of_a_cross_region_transaction_fails_at_each_step() {
    for crossing in Crossing::ALL {
        let steps = Steps::of_first(crossing, true);
        for at in steps.moments(steps.coordinator) {
            steps.survives(vec![crash(steps.coordinator, at)]);
        }
    }
}

/// Of another shard than the coordinator's: the first of its replicas speaks for it.
fn speaker(steps: &Steps) -> NodeId {
    NodeId(if steps.coordinator.0 < 3 { 3 } else { 0 })
}

#[test]
fn who_speaks_for_a_shard_fails_before_and_after_its_output() {
    for crossing in Crossing::ALL {
        let steps = Steps::of_first(crossing, true);
        for at in steps.moments(speaker(&steps)) {
            steps.survives(vec![crash(speaker(&steps), at)]);
        }
    }
}

#[test]
fn the_managers_of_both_regions_fail_at_each_step() {
    for crossing in Crossing::ALL {
        let steps = Steps::of_first(crossing, true);
        for manager in [NodeId(6), NodeId(9)] {
            for at in steps.moments(manager) {
                steps.survives(vec![crash(manager, at)]);
            }
        }
    }
}

#[test]
fn the_coordinator_fails_at_each_step_and_the_other_shards_speaker_soon_after() {
    for crossing in Crossing::ALL {
        let steps = Steps::of_first(crossing, true);
        let later: &[u64] = if seeds(1) > 1 {
            &[0, 4, 60, 110]
        } else {
            &[4, 110]
        };
        for at in steps.moments(steps.coordinator) {
            for later in later {
                let then = at + Nanos::from_millis(*later);
                steps.survives(vec![
                    crash(steps.coordinator, at),
                    crash(speaker(&steps), then),
                ]);
            }
        }
    }
}
