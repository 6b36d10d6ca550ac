//! DAST under random faults: nothing acknowledged is lost, nothing runs twice, every call ends.
//!
//! Settings and faults are drawn from a seed ([`manxdb_lab::soak`]). A seed that fails is cut
//! down to the faults that it needs, and printed with the command that runs it again.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use manxdb_core::{Nanos, NodeId};
use manxdb_dast::mutants::Mutant;
use manxdb_dast::{Level, Options};
use manxdb_lab::soak::{Setting, of_case, plan};
use manxdb_sim::hunt::{Case, Found, VARIABLE, hunt};
use manxdb_sim::{Fault, FaultKind, Group, Plan, SimTime};
use manxdb_test_harness::seeds;
use manxdb_workloads::append::Settings;

fn draw(seed: u64) -> Plan {
    plan::draw(seed, &Setting::of_seed(seed))
}

/// So many seeds are drawn by each of four tests, which use the processors that there are: a hundred, two
/// thousand with `MANXDB_SEEDS=20` (`make night`), and any others by `make soak`.
const SEEDS: u64 = 25;

/// Seeds of the `part`th of four tests hold.
fn hold(test: &str, part: u64) {
    let count = seeds(SEEDS);
    let seeds = part * count..(part + 1) * count;
    if let Err(found) = hunt(seeds, draw, |case| of_case(case).map(|ran| ran.digest)) {
        fail(test, &found);
    }
}

fn fail(test: &str, found: &Found) -> ! {
    let hunt = format!("cargo test -p manxdb-lab --test it dast_faults::{test}");
    panic!("{found}\n{}", found.command(&hunt));
}

#[test]
fn seeds_of_the_first_quarter_hold() {
    hold("seeds_of_the_first_quarter_hold", 0);
}

#[test]
fn seeds_of_the_second_quarter_hold() {
    hold("seeds_of_the_second_quarter_hold", 1);
}

#[test]
fn seeds_of_the_third_quarter_hold() {
    hold("seeds_of_the_third_quarter_hold", 2);
}

#[test]
fn seeds_of_the_last_quarter_hold() {
    hold("seeds_of_the_last_quarter_hold", 3);
}

fn with(mutant: Mutant) -> Options {
    Options {
        mutant: Some(mutant),
        ..Options::default()
    }
}

/// A coordinator that is cut off from the other replicas of its shard, and then fails.
fn lonely_coordinator(node: u32) -> Vec<Fault> {
    let shard = node / 3;
    let others = (shard * 3..shard * 3 + 3).filter(|other| *other != node);
    let at = SimTime::from_millis(1_500);
    let apart = Fault {
        at,
        lasts: Nanos::from_millis(500),
        kind: FaultKind::Part {
            one: Group::Nodes(vec![NodeId(node)]),
            other: Group::Nodes(others.map(NodeId).collect()),
        },
    };
    let crash = Fault {
        at: at + Nanos::from_millis(45),
        lasts: Nanos::from_millis(500),
        kind: FaultKind::Crash {
            node: NodeId(node),
            disk_lost: true,
        },
    };
    vec![apart, crash]
}

/// Its two faults hidden among harmless ones.
fn lonely_among_others(seed: u64) -> Plan {
    let harmless: Plan = "400ms+300ms delay r0>r1 20ms; 700ms+1s drift n3 100ppm; \
                          900ms+200ms duplicate *>* 300000ppm; 2s+100ms loss r1>r0 50000ppm"
        .parse()
        .unwrap();
    let mut faults = harmless.faults;
    faults.extend(lonely_coordinator(u32::try_from(seed % 6).unwrap()));
    Plan { faults }
}

/// The hunt cuts the plan down to what the defect needs, and the command that it prints fails in
/// the same way: this test runs itself again, as it says.
#[test]
fn an_answer_that_one_replica_holds_is_found_and_its_plan_cut_down() {
    let test = "an_answer_that_one_replica_holds_is_found_and_its_plan_cut_down";
    let setting = Setting::small();
    let run = |case: &Case, options| setting.run(case, options).map(|ran| ran.digest);
    let sound = |case: &Case| run(case, Options::default());
    assert!(hunt(0..6, lonely_among_others, sound).is_ok());
    let mutant = |case: &Case| run(case, with(Mutant::TooFewAcknowledgements));
    let found = hunt(0..60, lonely_among_others, mutant).unwrap_err();
    if std::env::var(VARIABLE).is_ok() {
        fail(test, &found);
    }
    let kinds = found.case.plan.faults.iter().map(|fault| fault.kind.name());
    let kinds: Vec<&str> = kinds.collect();
    assert!(kinds.ends_with(&["part", "wipe"]), "{found}");
    assert!(kinds.len() <= 3, "{found}");
    assert_eq!(sound(&found.case).err(), None, "it is another defect");
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("dast_faults::{test}")])
        .env(VARIABLE, found.case.to_string())
        .output()
        .unwrap();
    assert!(!again.status.success(), "the case does not fail again");
    let printed = String::from_utf8_lossy(&again.stdout).into_owned()
        + &String::from_utf8_lossy(&again.stderr);
    let first = found.why.lines().next().unwrap();
    assert!(printed.contains(first), "{first}\nis not in\n{printed}");
}

/// Many transactions of both kinds on few lists, and a coordinator that fails: what it alone held
/// is lost, and a cross-region transaction that it ran meanwhile is answered.
#[test]
fn an_answer_that_saw_what_one_replica_held_is_found() {
    let setting = Setting {
        clients_per_shard: 6,
        lists: Settings {
            lists_per_shard: 1,
            cross_region: 0.5,
            deferred: 0.0,
            ..Settings::default()
        },
        ..Setting::small()
    };
    let run = |case: &Case, options| setting.run(case, options).map(|ran| ran.digest);
    let draw = |seed| Plan {
        faults: lonely_coordinator(u32::try_from(seed % 6).unwrap()),
    };
    let sound = |case: &Case| run(case, Options::default());
    // Each coordinator once; more seeds are other workloads.
    assert!(hunt(0..seeds(6), draw, sound).is_ok());
    let mutant = |case: &Case| run(case, with(Mutant::RunsWhatOneHolds));
    let found = hunt(0..60, draw, mutant).unwrap_err();
    assert!(found.why.contains("incompatible order"), "{found}");
    assert_eq!(sound(&found.case).err(), None, "it is another defect");
}

/// Found by `make soak` before invariant H.
#[test]
fn a_seed_at_which_a_dirty_read_was_answered_holds() {
    let case = "seed=1795341784 plan=1525787us+243347us delay r1>r1 25ms; \
                1682665us+24803us freeze n3; 2251561us+574980us reorder r0>r1 130000ppm 195ms; \
                4612207us+96ms part n1 n0,n2; 4708207us+1us wipe n1";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Found by `make soak`: a node was put out while another was about to be let in, and what the
/// first of the others had said of it was forgotten.
#[test]
fn a_seed_at_which_a_node_left_as_another_came_holds() {
    let case = "seed=25239 plan=1189793us+401481us loss r0>r0 70000ppm";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Found by `make soak`: a node that was being let in forgot who holds a local transaction as soon as
/// the others had run it, and waited for ever to hear so.
#[test]
fn a_seed_at_which_one_let_in_lagged_behind_the_others_holds() {
    let case = "seed=103508 plan=891426us+9910us duplicate r1>r0 140000ppm; \
                1094805us+7133us freeze n15; 2034141us+248713us part n8 *";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Found by `make soak`: a manager that led no more told of a cross-region transaction after its
/// successor had told that it is decided, and clocks stayed below it.
#[test]
fn a_seed_at_which_a_former_leader_spoke_late_holds() {
    let case = "seed=105475 plan=1079556us+615483us part n8 *; \
                3180554us+5586us loss r1>r0 280000ppm; 3312901us+131368us cut * n16";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Found by `make soak`: a home region's new leader asked another region for the timestamp of a
/// transaction whose client had its answer, was not told, and never decided it.
#[test]
fn a_seed_at_which_a_new_leader_asked_what_was_answered_holds() {
    let case = "seed=111682 plan=1256801us+87208us cut n12 *; 4555042us+1us wipe n1";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Found by `make soak`: a node was put out while it was being agreed that what an earlier one had
/// stamped is collected, and what the later one had stamped counted as collected too.
#[test]
fn a_seed_at_which_a_second_node_left_before_the_first_was_closed_holds() {
    let case = "seed=303480 plan=824158us+364935us loss r1>r1 90000ppm";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Found by `make soak`: a leader that failed had told some that a node takes part, and not all;
/// one that had not heard so sent that node nothing, which waited for it for ever.
#[test]
fn a_seed_at_which_not_all_heard_who_takes_part_holds() {
    let case = "seed=414252 plan=1342431us+90687us part n17 *; 1510341us+346849us freeze n9; \
                1516607us+188288us part r1 r0; 3101491us+622750us loss r0>r0 60000ppm";
    let ran = of_case(&case.parse().unwrap());
    assert_eq!(ran.err(), None);
}

/// Seeds without faults until strict clients see a planted defect, if they do.
fn strict_seeds_to_find(setting: &Setting, mutant: Mutant) -> Option<u64> {
    let case = |seed| Case {
        seed,
        plan: Plan::default(),
    };
    let mut setting = setting.clone();
    setting.level = Level::Strict;
    setting.clients_per_shard = 4;
    setting.wan.jitter = Nanos::from_millis(20);
    setting.clocks.offset_max = Nanos::from_millis(50);
    let (sound, planted) = (Options::default(), with(mutant));
    let found = (0..120).find(|seed| setting.run(&case(*seed), planted).is_err())?;
    assert_eq!(setting.run(&case(found), sound).err(), None);
    Some(found)
}

#[test]
fn a_strict_answer_that_forgets_what_still_waits_is_found() {
    let found = strict_seeds_to_find(&Setting::small(), Mutant::HighWithoutDeferred);
    assert!(found.is_some());
}

#[test]
fn a_strict_answer_that_forgets_other_shards_is_found() {
    let mut setting = Setting::small();
    setting.topology.shards_per_region = 2;
    let found = strict_seeds_to_find(&setting, Mutant::HighOfOwnShard);
    assert!(found.is_some());
}
