//! Messages over `Reliable` arrive in order and once between two lives, whatever the network and
//! crashes do; nothing sent to an old life reaches a new one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::toys::chatter::{Chatters, Entry, Log, Word};
use crate::toys::words::{History, check_complete, check_lives, check_order, check_words, streams};
use manxdb_core::channel::{ChannelOptions, Life};
use manxdb_core::{Nanos, NodeId};
use manxdb_sim::clock::EPOCH;
use manxdb_sim::fault::Choice;
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{Link, Plan, Ppm, Profile, SimTime, Topology, Transport, World, WorldOptions};

const NODES: u32 = 4;
const TALKING: Nanos = Nanos::from_secs(3);
const END: SimTime = SimTime::from_secs(9);

fn topology() -> Topology {
    let bad = Link {
        loss: Ppm::percent(5),
        duplicate: Ppm::percent(5),
        reorder: Ppm::percent(10),
        reorder_by: Nanos::from_millis(40),
        ..Link::after(Nanos::from_millis(2)).with_jitter(Nanos::from_millis(1))
    };
    Topology::even(2, NODES / 2, bad, bad)
}

fn profile() -> Profile {
    let mut profile = Profile::everything(&topology(), SimTime::from_secs(4));
    profile.choices = vec![
        Choice::Crash,
        Choice::Crash,
        Choice::Crash,
        Choice::Pause,
        Choice::Slow(10),
        Choice::CutNode,
        Choice::PartNode,
        Choice::PartRegion,
        Choice::Loss(Ppm::percent(60)),
        Choice::Duplicate(Ppm::percent(50)),
        Choice::Reorder(Ppm::percent(50), Nanos::from_millis(500)),
        Choice::Delay(Nanos::from_millis(300)),
    ];
    for group in &mut profile.down {
        group.most = 2;
    }
    profile.recovery = Nanos::ZERO;
    profile
}

fn run(seed: u64, plan: &Plan, channel: ChannelOptions) -> Result<History, String> {
    let mut options = WorldOptions::new(seed, topology());
    options.transport = Transport::Datagram;
    let log = Log::default();
    let system = Chatters {
        seed,
        nodes: NODES as usize,
        until: EPOCH + TALKING,
        log: log.clone(),
        options: channel,
    };
    let mut world = World::new(system, options);
    world.schedule_all(plan);
    world
        .run_alone(END)
        .map_err(|failure| failure.to_string())?;
    let ids = world.topology().node_ids();
    Ok(History {
        lives: ids.map(|id| (id, world.life(id))).collect(),
        digest: world.digest(),
        log: log.take(),
    })
}

fn check(case: &Case) -> Result<u64, String> {
    let history = run(case.seed, &case.plan, ChannelOptions::default())?;
    check_words(&history)?;
    Ok(history.digest)
}

#[test]
fn words_arrive_in_order_and_once_between_two_lives() {
    let profile = profile();
    let draw = |seed| profile.draw(seed, &topology());
    if let Err(found) = hunt(0..2_000, draw, check) {
        panic!("{found}");
    }
}

#[test]
fn a_peer_that_too_much_waits_for_hears_no_more_rather_than_a_part() {
    let channel = ChannelOptions {
        waiting_max: 20,
        ..ChannelOptions::default()
    };
    let part: Plan = "1s+2s part n0 n1".parse().unwrap();
    for seed in 0..20 {
        let history = run(seed, &part, channel).unwrap();
        let streams = streams(&history.log);
        check_order(&streams).unwrap();
        let last = |from, to| {
            let words = &streams[&(NodeId(from), Life(1), NodeId(to), Life(1))];
            words.last().unwrap().sent
        };
        let parted = EPOCH + Nanos::from_millis(1_100);
        assert!(last(0, 1) < parted && last(1, 0) < parted, "seed {seed}");
        assert!(last(0, 2) > parted, "seed {seed}");
    }
}

/// A history of words from node 0 to node 1, by (life, number, life of the hearer).
fn heard(words: &[(u64, u64, u64)]) -> Vec<Entry> {
    let at = |number: usize| EPOCH + Nanos::from_millis(number as u64);
    let starts = [(0, 1), (1, 1), (1, 2)].into_iter().zip([0, 0, 5]);
    let mut log: Vec<Entry> = starts
        .map(|((node, life), millis)| Entry::Started {
            node: NodeId(node),
            life: Life(life),
            at: at(millis),
        })
        .collect();
    for (place, (life, number, to_life)) in words.iter().enumerate() {
        let word = Word {
            life: Life(*life),
            number: *number,
            sent: at(place),
        };
        let (from, to, to_life, at) = (NodeId(0), NodeId(1), Life(*to_life), at(place + 10));
        log.push(Entry::Sent { from, to, word });
        log.push(Entry::Heard {
            from,
            to,
            to_life,
            word,
            at,
        });
    }
    log
}

#[test]
fn the_checks_see_doubles_holes_swaps_and_words_of_old_lives() {
    let order = |words: &[_]| check_order(&streams(&heard(words))).is_ok();
    assert!(order(&[(1, 1, 1), (1, 2, 1), (1, 5, 2), (1, 6, 2)]));
    assert!(!order(&[(1, 1, 1), (1, 1, 1)]), "a double");
    assert!(!order(&[(1, 1, 1), (1, 3, 1)]), "a hole");
    assert!(!order(&[(1, 2, 1), (1, 1, 1)]), "a swap");
    assert!(!order(&[(1, 2, 1), (1, 2, 2)]), "a double in the next life");
    let lives = |words: &[_]| check_lives(&heard(words)).is_ok();
    assert!(lives(&[(1, 1, 1)]));
    // Sent at 0 ms; life 2 began at 5 ms.
    assert!(!lives(&[(1, 1, 2)]), "of an old life");
    let complete = |words: &[_], lost: u64| {
        let mut log = heard(words);
        let word = Word {
            life: Life(1),
            number: lost,
            sent: EPOCH,
        };
        let (from, to) = (NodeId(0), NodeId(1));
        log.push(Entry::Sent { from, to, word });
        let history = History {
            lives: [(from, Life(1)), (to, Life(2))].into(),
            digest: 0,
            log,
        };
        check_complete(&history, &streams(&history.log)).is_ok()
    };
    assert!(complete(&[(1, 1, 2)], 1));
    assert!(!complete(&[(1, 1, 2)], 2), "the last word is missing");
}
