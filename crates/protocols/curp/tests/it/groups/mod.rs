//! Two groups, between which slots move to and fro under all faults: each command is executed once, at one of
//! both. And each planted defect is found.

mod drive;
mod load;
mod machine;

use manxdb_core::{Nanos, NodeId, Random};
use manxdb_curp::mutants::SlotMutant;
use manxdb_curp::slots::SlotRange;
use manxdb_sim::fault::DownTogether;
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{CostModel, Link, Plan, Profile, SimTime, Topology, World, WorldOptions};
use manxdb_test_harness::seeds;

use self::load::Load;
use self::machine::{Groups, PLANTED};
use crate::common::{Setting, choices, run_to_rest, wrong_with};

/// Drivers of moves, which get into each other's way.
const MOVERS: usize = 2;
/// Seeds of a run of the tests: 1,000 at night.
const SEEDS: u64 = 40;
/// Seeds in which a defect has to be found.
const DEFECT_SEEDS: u64 = 300;

/// Two groups, how they are asked, and how often slots move.
#[derive(Debug, Clone, Copy)]
pub struct Moving {
    pub clients: u32,
    pub keys: u8,
    /// Nobody asks, and no move begins, after this.
    pub until: SimTime,
    pub think: Nanos,
    /// Between two moves of a driver.
    pub rests: Nanos,
    /// Which of [`SlotMutant::ALL`] is planted.
    pub mutant: Option<i64>,
}

impl Default for Moving {
    fn default() -> Self {
        Self {
            clients: 3,
            keys: 8,
            until: SimTime::from_millis(1_500),
            think: Nanos::from_millis(8),
            rests: Nanos::from_millis(30),
            mutant: None,
        }
    }
}

struct Ran {
    digest: u64,
    moves: usize,
    cancelled: usize,
    followed: usize,
}

impl Moving {
    /// Whether drivers ask for slots before their source has released them.
    pub fn owns_early(&self) -> bool {
        let planted = self.mutant.and_then(|number| usize::try_from(number).ok());
        planted.is_some_and(|number| SlotMutant::ALL[number] == SlotMutant::OwnBeforeLastPiece)
    }

    fn setting() -> Setting {
        Setting {
            sync_after: Nanos::from_millis(3),
            ..Setting::default()
        }
    }

    pub fn first_client() -> u32 {
        let options = Self::setting().options();
        1 + options.servers + options.witnesses
    }

    pub fn nodes_of_one(&self) -> u32 {
        Self::first_client() + self.clients + u32::try_from(MOVERS).unwrap()
    }

    fn topology(&self) -> Topology {
        let link = Link::after(Nanos::from_micros(500)).with_jitter(Nanos::from_micros(100));
        Topology::single(2 * self.nodes_of_one(), link)
    }

    fn world(&self, seed: u64) -> World<Groups> {
        let mut options = WorldOptions::new(seed, self.topology());
        options.cost = CostModel {
            sync: Nanos::from_millis(1),
            ..CostModel::free()
        };
        let groups = Groups {
            options: Self::setting().options(),
            nodes_of_one: self.nodes_of_one(),
        };
        World::new(groups, options)
    }

    fn profile(&self) -> Profile {
        let mut profile = Profile::everything(&self.topology(), self.until);
        profile.choices = choices();
        profile.from = SimTime::from_millis(200);
        profile.healed_by = self.until;
        profile.lasts = Nanos::from_millis(1)..=Nanos::from_millis(400);
        profile.recovery = Nanos::from_millis(500);
        profile.down = Vec::new();
        for base in [0, self.nodes_of_one()] {
            let together = |nodes: std::ops::Range<u32>| DownTogether {
                nodes: nodes.map(|node| NodeId(base + node)).collect(),
                most: 1,
            };
            profile.down.push(together(0..1));
            profile.down.push(together(1..Self::first_client()));
            profile
                .down
                .push(together(Self::first_client()..self.nodes_of_one()));
        }
        profile
    }

    fn run(&self, case: &Case) -> Result<Ran, String> {
        let mut world = self.world(case.seed);
        let mut load = Load::new(*self);
        run_to_rest(&mut world, &mut load, case, self.until, |_, load| {
            (!load.is_done()).then(|| format!("{} calls are open", load.open()))
        })?;
        load.judge()?;
        self.one_owner_each(&world)?;
        Ok(Ran {
            digest: world.digest(),
            moves: load.moves,
            cancelled: load.cancelled,
            followed: load.followed,
        })
    }

    /// At rest no slot has two owners or none, and no group has keys of slots that it does not own.
    fn one_owner_each(&self, world: &World<Groups>) -> Result<(), String> {
        let masters = [0, self.nodes_of_one()].map(|base| {
            let coordinator = world.core(NodeId(base))?.inside.coordinator()?;
            let master = coordinator.config()?.master.node;
            let server = world.core(NodeId(base + master.0))?.inside.server()?;
            server.served()
        });
        let [Some(one), Some(other)] = masters else {
            return Err("no master at rest".to_owned());
        };
        for number in 0..=SlotRange::ALL.last() {
            let slot = SlotRange::new(number, number).unwrap();
            if one.ownership().owns(slot) == other.ownership().owns(slot) {
                return Err(format!("slot {number} is owned by both groups or none"));
            }
        }
        let mut keys: Vec<u8> = one.inside().values.keys().copied().collect();
        keys.extend(other.inside().values.keys());
        keys.retain(|key| *key != PLANTED);
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        (keys.len() == count)
            .then_some(())
            .ok_or_else(|| "a key is in both groups".to_owned())
    }
}

#[test]
fn slots_that_move_to_and_fro_stay_linearizable_under_all_faults() {
    let setting = Moving::default();
    let profile = setting.profile();
    let topology = setting.topology();
    let (mut moves, mut cancelled, mut followed) = (0, 0, 0);
    let found = hunt(
        0..seeds(SEEDS),
        |seed| profile.draw(seed, &topology),
        |case| {
            let ran = setting.run(case)?;
            moves += ran.moves;
            cancelled += ran.cancelled;
            followed += ran.followed;
            Ok(ran.digest)
        },
    );
    if let Err(found) = found {
        panic!("{found}");
    }
    println!("{moves} moves, {cancelled} cancelled, {followed} answers that name another group");
    assert!(moves > 100, "slots have moved {moves} times");
    assert!(cancelled > 20, "{cancelled} moves were cancelled");
    assert!(followed > 100, "clients were told {followed} times");
}

/// Whose masters stop, and when: each of the two, with a backup that does not hear it or in bad weather.
fn plan(setting: &Moving, seed: u64, is_deaf: bool) -> Plan {
    let mut random = Random::stream(seed, &[0x510]);
    let mut text = String::new();
    for base in [0, setting.nodes_of_one()] {
        let at = 220_000 + random.below(100_000);
        let (master, backup) = (base + 1, base + 2);
        let then = at + 25_000;
        if is_deaf {
            text += &format!("{at}us+200ms part n{master} n{backup}; ");
        }
        text += &format!("{then}us+150ms crash n{master}; ");
    }
    if !is_deaf {
        text += "150ms+400ms loss *>* 200000ppm; 150ms+400ms duplicate *>* 300000ppm; \
                 150ms+400ms reorder *>* 200000ppm 8ms; ";
    }
    text.trim_end_matches("; ").parse().unwrap()
}

fn wrong(mutant: Option<i64>, seed: u64, is_deaf: bool) -> Option<String> {
    let setting = Moving {
        mutant,
        clients: 5,
        until: SimTime::from_millis(500),
        think: Nanos::from_micros(1_500),
        rests: Nanos::from_millis(8),
        ..Moving::default()
    };
    let plan = plan(&setting, seed, is_deaf);
    wrong_with(|| setting.run(&Case { seed, plan }))
}

#[track_caller]
fn is_found(mutant: SlotMutant, is_deaf: bool, known: u64) {
    let number = SlotMutant::ALL.iter().position(|one| *one == mutant);
    let number = i64::try_from(number.unwrap()).unwrap();
    let mut seeds = (known..DEFECT_SEEDS).chain(0..known);
    let found = seeds.find_map(|seed| Some((seed, wrong(Some(number), seed, is_deaf)?)));
    let Some((seed, why)) = found else {
        panic!("{mutant:?} was not found");
    };
    let first = why.lines().next().unwrap_or_default();
    println!("{mutant:?}: seed {seed}: {first}");
}

#[test]
fn without_a_defect_nothing_is_found_in_the_same_runs() {
    for seed in 0..seeds(8) {
        for is_deaf in [false, true] {
            assert_eq!(wrong(None, seed, is_deaf), None, "{seed} {is_deaf}");
        }
    }
}

#[test]
fn ownership_that_no_replay_looks_at_is_found() {
    is_found(SlotMutant::OwnershipInRefuses, false, 0);
}

#[test]
fn slots_that_both_groups_serve_are_found() {
    is_found(SlotMutant::GiveWithoutEffect, false, 0);
}

#[test]
fn an_answer_before_the_giving_of_slots_is_synced_is_found() {
    is_found(SlotMutant::GiveTouchesNothing, true, 0);
}

#[test]
fn slots_that_are_owned_before_their_last_piece_are_found() {
    is_found(SlotMutant::OwnBeforeLastPiece, false, 0);
}

#[test]
fn slots_that_come_back_once_their_target_may_own_them_are_found() {
    is_found(SlotMutant::CancelReleased, false, 0);
}

#[test]
fn an_answer_before_the_coming_back_of_slots_is_synced_is_found() {
    is_found(SlotMutant::CancelTouchesNothing, true, 296);
}
