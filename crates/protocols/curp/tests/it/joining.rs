//! A view that is served while a new backup gets its copy.

use manxdb_core::{Nanos, NodeId};
use manxdb_curp::{Completion, Durability, mutants::Mutant};
use manxdb_sim::hunt::Case;
use manxdb_sim::{SimTime, World};

use crate::common::{Cluster, Load, Setting, plan};

/// The master, and the spare of the backup n2.
const MASTER: NodeId = NodeId(1);
const NEW: NodeId = NodeId(3);

/// Copies that take long: a piece has few bytes of many keys.
fn setting() -> Setting {
    Setting {
        piece_bytes: 4,
        spares_follow: false,
        keys: 240,
        clients: 4,
        reader: true,
        think: Nanos::from_millis(4),
        until: SimTime::from_millis(2_000),
        ..Setting::default()
    }
}

/// Whether the view in use has the new backup.
fn has_changed(world: &World<Cluster>) -> bool {
    let coordinator = world.core(NodeId(0)).and_then(|node| node.coordinator());
    let config = coordinator.and_then(|coordinator| coordinator.config());
    config.is_some_and(|config| config.backups.iter().any(|member| member.node == NEW))
}

fn is_serving(world: &World<Cluster>) -> bool {
    let server = world.core(MASTER).and_then(|node| node.server());
    server.is_some_and(|server| server.serves().is_some())
}

/// What clients were told by now: reads, and updates in one round trip.
fn answered(load: &Load) -> (usize, usize) {
    let count = |completion| load.completions.get(&completion).copied().unwrap_or(0);
    (count(Completion::AtMaster), count(Completion::Fast))
}

/// What clients were told while a new backup got its copy, and how long that and the change of views behind it
/// took: the time in which nobody was served is the second one.
fn while_copying(text: &str) -> ((usize, usize), Nanos, Nanos) {
    let setting = setting();
    let mut world = setting.world(3);
    world.schedule_all(&plan(text));
    let mut load = Load::new(setting);
    // The backup is suspected by then, and the copy has begun.
    let begun = SimTime::from_millis(1_080);
    world.run_until(&mut load, begun).unwrap();
    assert!(!has_changed(&world) && is_serving(&world), "{text}");
    let before = answered(&load);
    let (mut now, mut closed, mut during) = (begun, Nanos::ZERO, before);
    let step = Nanos::from_micros(250);
    while !has_changed(&world) {
        now = now + step;
        assert!(now < SimTime::from_millis(2_000), "the copy takes no end");
        world.run_until(&mut load, now).unwrap();
        if is_serving(&world) {
            during = answered(&load);
        } else {
            closed += step;
        }
    }
    let new = (during.0 - before.0, during.1 - before.1);
    (new, now.since(begun), closed)
}

#[test]
fn clients_are_served_while_a_new_backup_gets_its_copy() {
    // Without the backup nothing is synced: updates that are waited for keep their clients waiting.
    for (text, syncs) in [("1s+2s crash n2", false), ("1s+900ms cut n2 n0", true)] {
        let ((reads, updates), took, closed) = while_copying(text);
        assert!(took > Nanos::from_millis(60), "{took:?}");
        assert!(closed < Nanos::from_millis(8), "{closed:?} of {took:?}");
        assert!(reads > 20, "{text}: {reads} reads");
        assert!(updates > 20 || !syncs, "{text}: {updates} updates");
    }
}

/// The coordinator does not hear a backup, and replaces it; its master does, and acknowledges. All stop
/// about when the copy is on the disk of the new backup, and the view that it is for is not in use.
fn stops_behind_a_copy(mutant: Option<Mutant>, quarter: u64) -> Result<(), String> {
    let setting = Setting {
        keys: 8,
        piece_bytes: 64,
        spares_follow: false,
        durability: Durability::Fsync,
        think: Nanos::from_micros(800),
        outstanding: 2,
        until: SimTime::from_millis(320),
        mutant,
        ..Setting::default()
    };
    let at = 260_000 + quarter * 250;
    let options = setting.options();
    let stops = 0..=options.servers + options.witnesses;
    let stops: Vec<String> = stops
        .map(|node| format!("{at}us+60ms crash n{node}"))
        .collect();
    let text = format!("200ms+100ms cut n2 n0; {}", stops.join("; "));
    let plan = plan(&text);
    let run = || setting.run(&Case { seed: 7, plan }).map(|_| ());
    match std::panic::catch_unwind(run) {
        Ok(ran) => ran.map_err(|why| format!("{text}: {why}")),
        Err(_) => Err(format!("{text}: panic")),
    }
}

/// Quarters of a millisecond in which copies are made, in `stops_behind_a_copy`.
const QUARTERS: u64 = 120;

#[test]
fn a_copy_behind_which_a_view_was_served_does_not_count_as_all_of_it() {
    for quarter in 0..QUARTERS {
        assert_eq!(stops_behind_a_copy(None, quarter), Ok(()));
    }
}

#[test]
fn a_copy_that_counts_as_all_of_the_view_it_was_made_in_is_found() {
    let mutant = Some(Mutant::AnyCopyComplete);
    let mut quarters = 0..QUARTERS;
    let found = quarters.find(|quarter| stops_behind_a_copy(mutant, *quarter).is_err());
    assert!(found.is_some(), "it was not found");
}
