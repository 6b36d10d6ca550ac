//! Clusters whose processes all stop, and begin again from their disks.

use manxdb_core::{Nanos, NodeId};
use manxdb_curp::mutants::Mutant;
use manxdb_curp::{Durability, Options};
use manxdb_sim::fault::{Choice, DownTogether};
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{Profile, SimTime};
use manxdb_test_harness::seeds;

use crate::common::{Ran, Setting, choices, plan};

/// Seeds of a run of the tests: 1,000 at night.
const SEEDS: u64 = 25;
/// Seeds in which a mutant has to be found.
const MUTANT_SEEDS: u64 = 40;

fn fsync(faults: usize) -> Setting {
    Setting {
        faults,
        until: SimTime::from_millis(320),
        think: Nanos::from_micros(800),
        outstanding: 2,
        durability: Durability::Fsync,
        ..Setting::default()
    }
}

/// The coordinator, all servers and all witnesses.
fn processes(options: &Options) -> std::ops::RangeInclusive<u32> {
    0..=options.servers + options.witnesses
}

/// All processes but the clients stop at a time, and some of them without their disks.
fn all_stop(setting: &Setting, micros: u64, lost: &[u32]) -> String {
    let options = setting.options();
    let stop = |node| {
        let how = if lost.contains(&node) {
            "wipe"
        } else {
            "crash"
        };
        format!("{micros}us+60ms {how} n{node}")
    };
    let stops: Vec<String> = processes(&options).map(stop).collect();
    stops.join("; ")
}

fn run(setting: &Setting, seed: u64, text: &str) -> Result<Ran, String> {
    setting.run(&Case {
        seed,
        plan: plan(text),
    })
}

#[track_caller]
fn goes_well(setting: &Setting, text: &str) -> Ran {
    let ran = run(setting, 7, text).unwrap_or_else(|why| panic!("{text}: {why}"));
    assert_eq!(ran.unknown, 0, "{text}: {ran:?}");
    ran
}

#[test]
fn what_is_acknowledged_is_there_after_all_processes_stop_at_any_step() {
    for faults in [1, 2] {
        for quarter in 0..12 {
            let setting = fsync(faults);
            let ran = goes_well(&setting, &all_stop(&setting, 200_000 + quarter * 250, &[]));
            assert!(ran.calls > 50, "{ran:?}");
            assert_eq!(ran.fast, 0, "witnesses hold nothing: {ran:?}");
        }
    }
}

#[test]
fn it_is_there_too_when_as_many_disks_are_lost_as_faults_are_survived() {
    let one = fsync(1);
    for lost in [1, 2, 3] {
        for quarter in 0..6 {
            goes_well(&one, &all_stop(&one, 200_000 + quarter * 250, &[lost]));
        }
    }
    let two = fsync(2);
    for lost in [[1, 2], [1, 3], [2, 3], [3, 4]] {
        goes_well(&two, &all_stop(&two, 200_000, &lost));
    }
}

#[test]
fn all_processes_may_stop_again_while_they_come_back() {
    let setting = Setting {
        until: SimTime::from_millis(480),
        ..fsync(1)
    };
    for later in 0..30 {
        let again = 200_000 + 60_000 + later * 5_000;
        // The second time one of the two disks is lost that had everything the first time.
        for lost in [&[][..], &[1], &[2]] {
            let (first, second) = (
                all_stop(&setting, 200_000, &[]),
                all_stop(&setting, again, lost),
            );
            goes_well(&setting, &format!("{first}; {second}"));
        }
    }
}

#[test]
fn a_backup_of_an_earlier_view_has_no_say() {
    goes_well(&old_backup(None), OLD_BACKUP);
}

/// The backup n2 is replaced, and comes back with the log that it had. Then all stop, and it is back
/// before the members of the view are, with a spare.
const OLD_BACKUP: &str = "150ms+110ms crash n2; 300ms+60ms crash n0; 300ms+400ms crash n1; \
                          300ms+60ms crash n2; 300ms+400ms crash n3; 300ms+60ms crash n4; \
                          300ms+60ms crash n5; 300ms+60ms crash n6";

fn old_backup(mutant: Option<Mutant>) -> Setting {
    Setting {
        spares: 2,
        mutant,
        // Only then does the view have n3 for sure, and n2 no copy of its log.
        rest: Nanos::from_millis(500),
        until: SimTime::from_millis(290),
        ..fsync(1)
    }
}

fn memory(mutant: Option<Mutant>) -> Setting {
    Setting {
        durability: Durability::Memory,
        until: SimTime::from_millis(260),
        rest: Nanos::from_millis(300),
        mutant,
        ..fsync(1)
    }
}

/// The backup hears nothing of the master for a while, the master completes operations with its witness,
/// and all stop when what was asked is done and on the master's disk, as in an orderly stop.
const ORDERLY: &str = "235ms+100ms part n1 n2; 290ms+60ms crash n0; 290ms+60ms crash n1; 290ms+60ms crash n2; \
                       290ms+60ms crash n3; 290ms+60ms crash n4; 290ms+60ms crash n5";

#[test]
fn a_cluster_in_memory_that_is_stopped_in_order_comes_back_with_the_longest_log() {
    let mut fast = 0;
    for seed in 0..10 {
        let setting = memory(None);
        let ran = run(&setting, seed, ORDERLY).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        fast += ran.fast;
    }
    assert!(fast > 100, "{fast}");
}

/// As without disks: they only follow.
#[test]
fn a_cluster_in_memory_survives_what_it_survived_without_disks() {
    let setting = Setting {
        durability: Durability::Memory,
        ..Setting::default()
    };
    survives(&setting, &setting.profile());
}

fn survives(setting: &Setting, profile: &Profile) {
    let topology = setting.topology();
    let found = hunt(
        0..seeds(SEEDS),
        |seed| profile.draw(seed, &topology),
        |case| Ok(setting.run(case)?.digest),
    );
    if let Err(found) = found {
        panic!("{found}");
    }
}

#[test]
fn any_faults_of_any_number_of_processes_lose_nothing_that_is_on_disks() {
    for faults in [1, 2] {
        let setting = Setting {
            until: SimTime::from_millis(2_500),
            think: Nanos::from_millis(12),
            outstanding: 1,
            ..fsync(faults)
        };
        let options = setting.options();
        let mut profile = setting.profile();
        profile.choices = choices();
        profile.choices.extend([Choice::Crash; 8]);
        let servers: Vec<NodeId> = processes(&options).map(NodeId).collect();
        profile.down[0] = DownTogether {
            most: servers.len(),
            nodes: servers,
        };
        profile.down.remove(1);
        survives(&setting, &profile);
    }
}

/// Some seed of few shows a defect; a failed assertion counts as that too.
#[track_caller]
fn is_found(setting: &Setting, text: fn(u64) -> String) {
    let wrong = |seed| {
        let text = text(seed);
        let case = || run(setting, seed, &text);
        !matches!(std::panic::catch_unwind(case), Ok(Ok(_)))
    };
    let found = (0..MUTANT_SEEDS).find(|seed| wrong(*seed));
    assert!(found.is_some(), "{:?} was not found", setting.mutant);
    println!("{:?}: seed {}", setting.mutant, found.unwrap_or(0));
}

#[test]
fn a_server_that_acknowledges_before_its_disk_does_is_found() {
    let setting = Setting {
        mutant: Some(Mutant::AcknowledgedUnpersisted),
        ..fsync(1)
    };
    is_found(&setting, |seed| {
        let slow = "150ms+200ms disk-slow n1 x20; 150ms+200ms disk-slow n2 x20";
        let stops = all_stop(&fsync(1), 200_000 + seed * 100, &[]);
        format!("{slow}; {stops}")
    });
}

#[test]
fn a_shorter_log_that_is_chosen_is_found() {
    is_found(&memory(Some(Mutant::ShortestLog)), |_| ORDERLY.to_owned());
}

#[test]
fn a_log_of_an_earlier_view_that_is_chosen_is_found() {
    is_found(&old_backup(Some(Mutant::AnyStore)), |_| {
        OLD_BACKUP.to_owned()
    });
}

/// The master is out of the coordinator's reach for a while, and its backup has started again.
const OUT_OF_REACH: &str = "200ms+150ms cut n1 n0; 215ms+60ms crash n2";

#[test]
fn a_cluster_in_memory_that_begins_again_while_its_master_lives_is_found() {
    let early = memory(Some(Mutant::RestoresEarly));
    let honest = memory(None);
    let ran = run(&honest, 7, OUT_OF_REACH).unwrap_or_else(|why| panic!("{why}"));
    assert!(ran.fast > 0, "{ran:?}");
    is_found(&early, |_| OUT_OF_REACH.to_owned());
}
