//! FIFO links keep the promises of `Reliable` by themselves: in order and once between two lives,
//! and nothing in flight survives a crash at either end.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::toys::chatter::{BareChatters, Chatters, Log};
use crate::toys::words::{History, check_words};
use manxdb_core::Nanos;
use manxdb_core::channel::ChannelOptions;
use manxdb_sim::clock::EPOCH;
use manxdb_sim::fault::Choice;
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{Link, Ppm, Profile, SimTime, Topology, World, WorldOptions};

const NODES: u32 = 4;

fn topology() -> Topology {
    let link = |millis| Link {
        loss: Ppm::percent(2),
        reorder: Ppm::percent(5),
        reorder_by: Nanos::from_millis(60),
        ..Link::after(Nanos::from_millis(millis)).with_jitter(Nanos::from_millis(2))
    };
    Topology::even(2, NODES / 2, link(3), link(40))
}

fn profile() -> Profile {
    let mut profile = Profile::everything(&topology(), SimTime::from_secs(4));
    profile.choices = vec![
        Choice::Crash,
        Choice::Crash,
        Choice::Pause,
        Choice::CutNode,
        Choice::PartNode,
        Choice::PartRegion,
        Choice::Loss(Ppm::percent(30)),
        Choice::Reorder(Ppm::percent(50), Nanos::from_millis(300)),
        Choice::Delay(Nanos::from_millis(300)),
    ];
    for group in &mut profile.down {
        group.most = 2;
    }
    profile.recovery = Nanos::ZERO;
    profile
}

fn check(case: &Case) -> Result<u64, String> {
    let options = WorldOptions::new(case.seed, topology());
    let log = Log::default();
    let system = BareChatters(Chatters {
        seed: case.seed,
        nodes: NODES as usize,
        until: EPOCH + Nanos::from_secs(3),
        log: log.clone(),
        options: ChannelOptions::default(),
    });
    let mut world = World::new(system, options);
    world.schedule_all(&case.plan);
    let ran = world.run_alone(SimTime::from_secs(9));
    ran.map_err(|failure| failure.to_string())?;
    let ids = world.topology().node_ids();
    let history = History {
        lives: ids.map(|id| (id, world.life(id))).collect(),
        digest: world.digest(),
        log: log.take(),
    };
    check_words(&history)?;
    Ok(history.digest)
}

#[test]
fn fifo_links_keep_order_and_lose_only_what_a_crash_takes() {
    let draw = |seed| profile().draw(seed, &topology());
    if let Err(found) = hunt(0..2_000, draw, check) {
        panic!("{found}");
    }
}
