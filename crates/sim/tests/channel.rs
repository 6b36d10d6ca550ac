//! Messages over `Reliable` arrive in order and once between two lives, whatever the network and
//! crashes do; nothing sent to an old life reaches a new one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod toys;

use std::collections::BTreeMap;

use manxdb_core::channel::{ChannelOptions, Life};
use manxdb_core::{LocalTime, Nanos, NodeId};
use manxdb_sim::clock::EPOCH;
use manxdb_sim::fault::Choice;
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{Link, Plan, Ppm, Profile, SimTime, Topology, Transport, World, WorldOptions};
use toys::chatter::{Chatters, Entry, Log, Word};

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

/// What a run left behind.
struct History {
    log: Vec<Entry>,
    lives: BTreeMap<NodeId, Life>,
    digest: u64,
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

/// The words from one life to another, in the order of arrival.
type Streams = BTreeMap<(NodeId, Life, NodeId, Life), Vec<Word>>;

fn streams(log: &[Entry]) -> Streams {
    let mut streams = Streams::new();
    for entry in log {
        if let Entry::Heard {
            from,
            to,
            to_life,
            word,
            ..
        } = *entry
        {
            let stream = streams.entry((from, word.life, to, to_life));
            stream.or_default().push(word);
        }
    }
    streams
}

/// No word twice, none out of order, no hole; what follows reached a later life.
fn check_order(streams: &Streams) -> Result<(), String> {
    let mut last: BTreeMap<(NodeId, Life, NodeId), u64> = BTreeMap::new();
    for ((from, life, to, to_life), words) in streams {
        let last = last.entry((*from, *life, *to)).or_default();
        if words[0].number <= *last {
            return Err(format!(
                "{from:?} {life:?} → {to:?} {to_life:?}: {:?} again",
                words[0]
            ));
        }
        *last = words[0].number - 1;
        for word in words {
            *last += 1;
            if word.number != *last {
                return Err(format!(
                    "{from:?} {life:?} → {to:?} {to_life:?}: {word:?}, not {last}"
                ));
            }
        }
    }
    Ok(())
}

/// Between the last lives everything arrives; from the first word on, if the sender started last.
fn check_complete(history: &History, streams: &Streams) -> Result<(), String> {
    let mut sent: BTreeMap<(NodeId, Life, NodeId), u64> = BTreeMap::new();
    let mut order = Vec::new();
    for entry in &history.log {
        match *entry {
            Entry::Sent { from, to, word } => {
                sent.insert((from, word.life, to), word.number);
            }
            Entry::Started { node, life, .. } => order.push((node, life)),
            Entry::Heard { .. } => {}
        }
    }
    let started = |node, life| order.iter().position(|one| *one == (node, life));
    for ((from, life, to), last) in &sent {
        if history.lives[from] != *life {
            continue;
        }
        let to_life = history.lives[to];
        let empty = Vec::new();
        let words = streams.get(&(*from, *life, *to, to_life)).unwrap_or(&empty);
        let unheard =
            format!("{from:?} {life:?} → {to:?} {to_life:?}: sent {last}, heard {words:?}");
        let later = started(*from, *life) >= started(*to, to_life);
        if later && words.first().map(|word| word.number) != Some(1) {
            return Err(unheard);
        }
        if !words.is_empty() && words.last().map(|word| word.number) != Some(*last) {
            return Err(unheard);
        }
    }
    Ok(())
}

/// A word to a life that is known reaches no later one.
fn check_lives(log: &[Entry]) -> Result<(), String> {
    let mut starts: BTreeMap<(NodeId, Life), LocalTime> = BTreeMap::new();
    // When a life of a node first heard of a life of another.
    let mut known: BTreeMap<(NodeId, Life, NodeId, Life), LocalTime> = BTreeMap::new();
    for entry in log {
        match *entry {
            Entry::Started { node, life, at } => {
                starts.insert((node, life), at);
            }
            Entry::Heard {
                from,
                to,
                to_life,
                word,
                at,
            } => {
                known.entry((to, to_life, from, word.life)).or_insert(at);
                let of_old = (1..to_life.0).any(|old| {
                    // All nodes know of the first lives when they are born with them.
                    let at_birth = word.life == Life(1) && old == 1;
                    let heard = known.get(&(from, word.life, to, Life(old)));
                    at_birth || heard.is_some_and(|heard| *heard < word.sent)
                });
                if of_old && word.sent < starts[&(to, to_life)] {
                    return Err(format!(
                        "{from:?} → {to:?} {to_life:?}: {word:?} is of an old life"
                    ));
                }
            }
            Entry::Sent { .. } => {}
        }
    }
    Ok(())
}

fn check(case: &Case) -> Result<u64, String> {
    let history = run(case.seed, &case.plan, ChannelOptions::default())?;
    let streams = streams(&history.log);
    check_order(&streams)?;
    check_complete(&history, &streams)?;
    check_lives(&history.log)?;
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
