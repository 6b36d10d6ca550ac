//! Everything that may go wrong, seed after seed: the sum of all accounts stays, no acknowledged
//! transfer is lost, nothing that a read has shown is lost, and no read shows an old state.

use manxdb_core::{Nanos, NodeId};
use manxdb_curp::Durability;
use manxdb_sim::fault::{Choice, DownTogether};
use manxdb_sim::hunt::hunt;
use manxdb_sim::{Ppm, Profile, SimTime};
use manxdb_test_harness::seeds;

use crate::bank::add;
use crate::setting::{Rows, Setting};

/// Seeds of a run of the tests: 20 times as many at night.
const SEEDS: u64 = 6;
/// With rows on disk, where each start of a process opens an engine.
const SEEDS_ON_DISK: u64 = 3;

fn profile(setting: &Setting) -> Profile {
    let options = setting.options();
    let mut profile = Profile::everything(&setting.far(), setting.until);
    let few = Ppm::percent(30);
    profile.choices = vec![
        Choice::Crash,
        Choice::Crash,
        Choice::Crash,
        Choice::Pause,
        Choice::Pause,
        Choice::ClockStep(Nanos::from_secs(10)),
        Choice::ClockDrift(200),
        Choice::CutNode,
        Choice::PartNode,
        Choice::Loss(few),
        Choice::Duplicate(few),
        Choice::Reorder(few, Nanos::from_millis(100)),
        Choice::Flip(few),
        Choice::Delay(Nanos::from_millis(20)),
    ];
    profile.from = SimTime::from_millis(200);
    profile.healed_by = setting.until;
    profile.lasts = Nanos::from_millis(1)..=Nanos::from_millis(400);
    profile.recovery = Nanos::from_millis(400);
    let replicas = 1..=options.servers + options.witnesses;
    let clients = (1..=options.servers).map(|server| setting.client_of(server));
    profile.down = vec![
        DownTogether {
            nodes: replicas.map(NodeId).collect(),
            most: setting.faults,
        },
        DownTogether {
            nodes: vec![NodeId(0)],
            most: 1,
        },
        DownTogether {
            nodes: clients.map(NodeId).collect(),
            most: 1,
        },
    ];
    profile
}

fn survives(setting: Setting, count: u64) {
    let (profile, topology) = (profile(&setting), setting.far());
    let (mut acknowledged, mut reigns, mut unknown) = (0, 0, 0);
    let mut counts = manxdb_curp_sql::primary::CommitCounts::default();
    let found = hunt(
        0..seeds(count),
        |seed| profile.draw(seed, &topology),
        |case| {
            let ran = setting.run(case)?;
            acknowledged += ran.acknowledged;
            unknown += ran.unknown;
            reigns += ran.reigns;
            add(&mut counts, ran.counts);
            Ok(ran.digest)
        },
    );
    if let Err(found) = found {
        panic!("{found}");
    }
    assert!(reigns > seeds(count), "no server ever took over");
    let is_fast = counts.fast > 0 || !setting.durability.trusts_witnesses();
    assert!(
        acknowledged > 0 && is_fast && counts.at_backups > 0,
        "{acknowledged} transfers, {unknown} unknown, {reigns} reigns, {counts:?}"
    );
}

#[test]
fn money_is_kept_through_everything_that_one_fault_may_do() {
    survives(Setting::default(), SEEDS);
}

#[test]
fn money_is_kept_through_everything_that_two_faults_may_do() {
    let setting = Setting {
        faults: 2,
        ..Setting::default()
    };
    survives(setting, SEEDS);
}

#[test]
fn money_is_kept_where_rows_are_on_disk() {
    for durability in [Durability::Memory, Durability::Fsync] {
        let setting = Setting {
            rows: Rows::OnDisk,
            durability,
            ..Setting::default()
        };
        survives(setting, SEEDS_ON_DISK);
    }
}
