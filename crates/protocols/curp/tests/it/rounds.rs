//! Round trips, counted: links of exactly one millisecond and work that takes no time.

use crate::common::machine::{Answer, Command, Value, bytes};
use crate::common::{Cluster, Load, Setting};
use manxdb_core::{Nanos, NodeId};
use manxdb_curp::{ClientAnswer, Completion, Durability};
use manxdb_sim::{CostModel, Driver, Link, Outside, SimTime, Topology, World, WorldOptions};

const ONE_WAY: Nanos = Nanos::from_millis(1);

/// Asks commands at given times, and keeps when and how they were answered.
struct Script {
    client: NodeId,
    commands: Vec<(SimTime, Command)>,
    answers: Vec<(Nanos, Completion, Answer)>,
}

impl Driver<Cluster> for Script {
    fn begin(&mut self, outside: &mut Outside<'_, Cluster>) {
        for (at, command) in &self.commands {
            outside.request_at(*at, self.client, bytes(command));
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Cluster>,
        _: NodeId,
        _: manxdb_core::RequestId,
        body: ClientAnswer,
    ) {
        let (at, _) = self.commands[self.answers.len()];
        let (answer, completion) = body.answer.unwrap();
        let answer = postcard::from_bytes(&answer).unwrap();
        let took = outside.now().since(at);
        self.answers.push((took, completion, answer));
    }
}

fn run(faults: usize, commands: &[(u64, Command)]) -> (World<Cluster>, Script) {
    run_with((Durability::Volatile, Nanos::ZERO), faults, commands)
}

/// With disks that take so long for a write.
fn run_with(
    (durability, sync): (Durability, Nanos),
    faults: usize,
    commands: &[(u64, Command)],
) -> (World<Cluster>, Script) {
    let setting = Setting {
        faults,
        durability,
        spares: 0,
        clients: 1,
        sync_after: Nanos::from_millis(20),
        ..Setting::default()
    };
    let mut options = WorldOptions::new(
        1,
        Topology::single(setting.client_ids().end, Link::after(ONE_WAY)),
    );
    options.cost = CostModel {
        sync,
        ..CostModel::free()
    };
    let options_of_nodes = manxdb_curp::Options {
        race_after: Nanos::from_millis(50),
        patience: Nanos::from_millis(100),
        ..setting.options()
    };
    let cluster = Cluster::new(options_of_nodes, setting.stores);
    let mut world = World::new(cluster, options);
    let at = |micros: &u64| SimTime::from_micros(*micros);
    let mut script = Script {
        client: NodeId(setting.client_ids().start),
        commands: commands
            .iter()
            .map(|(time, command)| (at(time), command.clone()))
            .collect(),
        answers: Vec::new(),
    };
    world.run_until(&mut script, SimTime::from_secs(2)).unwrap();
    assert_eq!(script.answers.len(), commands.len());
    (world, script)
}

fn round_trips(script: &Script) -> Vec<(u64, Completion)> {
    let all = script.answers.iter();
    all.map(|(took, completion, _)| {
        assert_eq!(
            took.0 % (2 * ONE_WAY.0),
            0,
            "{took:?} is no number of round trips"
        );
        (took.0 / (2 * ONE_WAY.0), *completion)
    })
    .collect()
}

#[test]
fn a_commuting_write_takes_one_round_trip_and_a_conflicting_one_two() {
    use Command::{Get, Incr, IncrAll, Set};
    for faults in [1, 2, 3] {
        let commands = [
            (1_000_000, Set(1, 7)),
            (1_003_000, Incr(2)),
            (1_006_000, IncrAll(vec![3, 4, 5, 6, 7, 8, 9, 10])),
            // The first write of key 1 is not synced yet.
            (1_009_000, Incr(1)),
            // Synced by now.
            (1_100_000, Get(1)),
            (1_200_000, Incr(1)),
            // Not synced: the read waits.
            (1_203_000, Get(1)),
            // More keys than a record can have.
            (1_300_000, IncrAll((1..=9).collect())),
        ];
        let (world, script) = run(faults, &commands);
        assert_eq!(
            round_trips(&script),
            [
                (1, Completion::Fast),
                (1, Completion::Fast),
                (1, Completion::Fast),
                (2, Completion::AtMaster),
                (1, Completion::AtMaster),
                (1, Completion::Fast),
                (2, Completion::AtMaster),
                (2, Completion::AtMaster),
            ],
            "f={faults}"
        );
        assert_eq!(script.answers[4].2, [(1, Some(Value::Number(8)))]);
        let witness = |node: NodeId| world.core(node)?.witness();
        let view = world
            .core(NodeId(0))
            .unwrap()
            .coordinator()
            .unwrap()
            .config()
            .unwrap()
            .view;
        for node in world.topology().node_ids() {
            if let Some(witness) = witness(node) {
                assert_eq!(witness.records(view), 0, "collected in the end");
            }
        }
    }
}

#[test]
fn a_write_takes_two_round_trips_and_one_write_to_disk_where_disks_are_waited_for() {
    use Command::{Get, Incr, Set};
    let commands = [
        (1_000_000, Set(1, 7)),
        (1_100_000, Incr(2)),
        (1_200_000, Get(1)),
    ];
    let trips = |mode, sync| {
        let (_, script) = run_with((mode, sync), 2, &commands);
        let trips = round_trips(&script).into_iter();
        trips.map(|(trips, _)| trips).collect::<Vec<_>>()
    };
    assert_eq!(trips(Durability::Fsync, Nanos::ZERO), [2, 2, 1]);
    // Master and backups write at the same time; a write here takes as long as a round trip.
    let slow = ONE_WAY * 2;
    assert_eq!(trips(Durability::Fsync, slow), [3, 3, 1]);
    assert_eq!(trips(Durability::Memory, slow), [1, 1, 1]);
}

#[test]
fn a_script_that_touches_an_undeclared_key_takes_two_round_trips() {
    let commands = [
        (1_000_000, Command::Script(1, 2)), // 1: odd, so nothing more
        (1_100_000, Command::Script(1, 2)), // 2: even, so key 2 too
    ];
    let (_, script) = run(1, &commands);
    assert_eq!(
        round_trips(&script),
        [(1, Completion::Fast), (2, Completion::AtMaster)]
    );
}

#[test]
fn a_load_is_answered_in_one_round_trip_for_the_most_part() {
    let setting = Setting {
        keys: 64,
        scripts: false,
        ..Setting::default()
    };
    let mut world = setting.world(1);
    let mut load = Load::new(setting);
    world.run_until(&mut load, SimTime::from_secs(3)).unwrap();
    let counts = |completion| load.completions.get(&completion).copied().unwrap_or(0);
    let (fast, sync) = (counts(Completion::Fast), counts(Completion::Sync));
    assert!(fast > 300 && sync * 20 < fast, "{:?}", load.completions);
}
