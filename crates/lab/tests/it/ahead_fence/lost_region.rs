//! A region whose servers all lose their memory, as when all its processes are killed: the others fence
//! it, and it serves nothing any more, for nobody else has its rows (decision 61).

use manxdb_checker::append::check;
use manxdb_core::{Nanos, NodeId};
use manxdb_dast::Level;
use manxdb_dast::manager::Manager;
use manxdb_dast::mutants::Mutant;
use manxdb_dast::replica::Replica;
use manxdb_lab::append::{AppendLoad, history, promise, shared};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions, Made};
use manxdb_sim::{SimTime, World, WorldOptions};
use manxdb_workloads::append::{Settings, decode};

use super::{THREE, options};

/// Replicas and managers of region 0.
const KILLED: [u32; 6] = [0, 1, 2, 9, 10, 11];

const AT: SimTime = SimTime::from_millis(600);

/// Whether a call reads or writes a list of region 0.
fn touches_lost(made: &Made) -> bool {
    let (_, operations) = decode(&made.job.ask.args).unwrap();
    let mut homes = operations.iter().map(|it| THREE.home_of(it.list.partition));
    homes.any(|shard| shard.0 == 0)
}

/// What is wrong with a run in which the servers of region 0 are down for so long from [`AT`] on.
fn run(seed: u64, level: Level, lasts: Nanos, mutant: Option<Mutant>) -> Vec<String> {
    let shared = shared(THREE, options(mutant));
    let topology = shared.topology;
    let (lan, wan) = paper_links();
    let (places, clients) = place(topology, 4, lan, wan);
    let mut world = World::new(DastSystem::new(shared), WorldOptions::new(seed, places));
    let millis = lasts.as_micros() / 1_000;
    let faults = KILLED.map(|node| format!("600ms+{millis}ms wipe n{node}"));
    world.schedule_all(&faults.join("; ").parse().unwrap());
    let load = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_millis(2_100),
        explain: false,
    };
    let settings = Settings {
        lists_per_shard: 4,
        cross_region: 0.4,
        ..Settings::default()
    };
    let mut load = Load::new(AppendLoad::new(THREE, settings, level, seed), load);
    let mut found = Vec::new();
    if let Err(failure) = world.run_until(&mut load, SimTime::from_secs(4)) {
        found.push(failure.to_string());
    }
    let verdict = check(&history(load.made()).unwrap(), promise(level));
    found.extend(verdict.violations().iter().map(|it| format!("{it:?}")));
    found.extend(load.made().iter().filter_map(misled));
    for node in KILLED {
        let core = world.core(NodeId(node)).unwrap();
        let takes_part = core.replica().is_some_and(Replica::is_live);
        let has_memory = core.manager().is_some_and(Manager::has_memory);
        if takes_part || has_memory {
            found.push(format!("n{node} has lost its memory and takes part"));
        }
    }
    for region in topology.all_regions().filter(|region| region.0 != 0) {
        let managers = topology.managers(region);
        let managers = managers.filter_map(|node| world.core(node)?.manager());
        let fenced =
            managers.filter_map(|it| it.ledger().fences.fenced().map(|span| span.region.0));
        if fenced.collect::<Vec<_>>() != [0, 0, 0] {
            found.push(format!("{region:?} does not know of the fence"));
        }
    }
    found
}

/// A call that was asked behind the loss and ended otherwise than it should.
fn misled(made: &Made) -> Option<String> {
    if made.asked < AT {
        return None;
    }
    let touches = touches_lost(made);
    match made.answered.as_ref().map(|(_, answer)| &answer.given) {
        Some(Ok(_)) if touches => Some(format!("what is lost was served: {made:?}")),
        Some(Err(why)) if !touches || !why.contains("region 0 is cut off") => {
            Some(format!("refused: {made:?}"))
        }
        _ => None,
    }
}

/// For less than a silence that is noticed, for longer, and until after the fence.
const LASTS: [Nanos; 3] = [
    Nanos::from_millis(50),
    Nanos::from_millis(400),
    Nanos::from_millis(1_300),
];

#[test]
fn a_region_that_lost_its_memory_serves_nothing() {
    let found = run(0, Level::Serializable, LASTS[0], None);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn servers_that_lost_their_memory_and_begin_as_if_at_first_are_found() {
    for lasts in LASTS {
        let run = || run(0, Level::Serializable, lasts, Some(Mutant::BeginsAgain));
        let found = std::panic::catch_unwind(run);
        assert!(
            found.is_err() || found.is_ok_and(|it| !it.is_empty()),
            "{lasts:?}"
        );
    }
}
