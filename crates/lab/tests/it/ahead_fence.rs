//! A region that is silent is fenced by the others, and taken in again: what the others notice, what
//! histories say, managers that fail in between, and planted defects, which the judges must find.
#![allow(clippy::unwrap_used, clippy::panic)]

mod around_return;
mod coming_back;
mod lost_region;

use crate::common::{Increments, run_to_rest};
use manxdb_checker::append::check;
use manxdb_core::{Nanos, Random};
use manxdb_dast::mutants::Mutant;
use manxdb_dast::{Crossing, Level, Options, RegionId, Survive};
use manxdb_lab::append::{AppendLoad, history, promise, shared};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Generator, Job, Load, LoadOptions, Made, percentile};
use manxdb_lab::soak::{Setting, plan};
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{SimTime, World, WorldOptions};
use manxdb_test_harness::seeds;
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::Topology;
use manxdb_workloads::append::Settings;

/// Replicas n0 to n8, three a region, and managers n9 to n17, three a region.
const THREE: Topology = Topology {
    regions: 3,
    shards_per_region: 1,
};

/// The servers of region 0 apart from those of the others: clients reach all.
const SERVERS_APART: &str = "part n0,n1,n2,n9,n10,n11 n3,n4,n5,n6,n7,n8,n12,n13,n14,n15,n16,n17";

fn options(mutant: Option<Mutant>) -> Options {
    Options {
        crossing: Crossing::Ahead,
        survive: Survive::Region,
        keeps_order: true,
        mutant,
        ..Options::default()
    }
}

/// Clients whose calls are at home in another region each time: sessions that move.
struct Moving {
    lists: AppendLoad,
    turns: Vec<u32>,
}

impl Generator for Moving {
    fn next(&mut self, client: u32, home: ShardId, random: &mut Random) -> Option<Job> {
        let place = client as usize;
        if self.turns.len() <= place {
            self.turns.resize(place + 1, 0);
        }
        let turn = self.turns[place];
        self.turns[place] += 1;
        let there = ShardId((home.0 + turn) % THREE.shards());
        // Another stream of elements in each region.
        self.lists.next(client + 100 * there.0, there, random)
    }
}

/// By then the region that was cut off in a [`Run`] has been taken in again.
const HEALED: SimTime = SimTime::from_millis(3_000);

/// What came of a run.
struct Ran {
    /// What is wrong.
    found: Vec<String>,
    /// Changes of who is fenced, as the leaders of regions know of them.
    epochs: Vec<u64>,
}

struct Run {
    seed: u64,
    level: Level,
    jitter: Nanos,
    mutant: Option<Mutant>,
    /// Lists of each shard, and how many calls cross regions.
    lists: (u32, f64),
    faults: String,
    until: SimTime,
    ends: SimTime,
}

impl Run {
    fn of(seed: u64, level: Level, faults: &str) -> Self {
        Self {
            seed,
            level,
            jitter: Nanos::from_millis(10),
            mutant: None,
            lists: (4, 0.4),
            faults: faults.to_owned(),
            until: SimTime::from_millis(2_100),
            ends: SimTime::from_secs(5),
        }
    }

    fn run(&self) -> Ran {
        let (lan, wan) = paper_links();
        let (lan, wan) = (
            lan.with_jitter(Nanos::from_millis(1)),
            wan.with_jitter(self.jitter),
        );
        let shared = shared(THREE, options(self.mutant));
        let topology = shared.topology;
        let (places, clients) = place(topology, 4, lan, wan);
        let mut world_options = WorldOptions::new(self.seed, places);
        world_options.clocks.offset_max = Nanos::from_millis(self.seed % 3 * 10);
        let mut world = World::new(DastSystem::new(shared), world_options);
        world.schedule_all(&self.faults.parse().unwrap());
        let options = LoadOptions {
            clients,
            outstanding: 1,
            until: self.until,
            explain: false,
        };
        let settings = Settings {
            lists_per_shard: self.lists.0,
            cross_region: self.lists.1,
            ..Settings::default()
        };
        let lists = AppendLoad::new(THREE, settings, self.level, self.seed);
        let turns = Vec::new();
        let mut load = Load::new(Moving { lists, turns }, options);
        let mut found = Vec::new();
        let span = (HEALED, self.ends);
        if let Err(failure) = run_to_rest(&mut world, &mut load, topology, span) {
            found.push(failure.to_string());
        }
        if load.open() > 0 {
            found.push(format!("{} calls never ended", load.open()));
        }
        let verdict = check(&history(load.made()).unwrap(), promise(self.level));
        let violations = verdict.violations().iter();
        found.extend(violations.map(|violation| format!("{violation:?}")));
        for shard in (0..topology.shards()).map(ShardId) {
            let replicas = topology.replicas(shard);
            let look = |node| world.core(node).and_then(|core| core.replica());
            let replicas: Vec<_> = replicas.filter_map(look).collect();
            let is_equal = |pair: &[&manxdb_dast::replica::Replica]| {
                let [one, other] = [pair[0].execution(), pair[1].execution()];
                one.order() == other.order() && one.digest() == other.digest()
            };
            if !replicas.windows(2).all(is_equal) {
                found.push(format!("replicas of {shard:?} differ"));
            }
        }
        let leaders = topology.all_regions().map(|region| {
            let managers = topology.managers(region);
            let managers = managers.filter_map(|node| world.core(node)?.manager());
            managers.map(|it| it.ledger().fences.epoch()).max().unwrap()
        });
        Ran {
            epochs: leaders.collect(),
            found,
        }
    }
}

const LEVELS: [Level; 3] = [Level::Serializable, Level::Session, Level::Strict];

/// Whole regions are cut off, or only their servers, so that sessions go on moving.
#[test]
fn histories_with_a_fence_and_a_return_are_as_their_level_promises() {
    let whole = "600ms+1200ms part r0 *".to_owned();
    let servers = format!("600ms+1200ms {SERVERS_APART}");
    // Six seeds are each level with each of the two.
    for seed in 0..seeds(6) {
        let level = LEVELS[usize::try_from(seed % 3).unwrap()];
        let faults = [&servers, &whole][usize::try_from(seed % 2).unwrap()];
        let ran = Run::of(seed, level, faults).run();
        let found = &ran.found;
        let case = format!("{level:?}, seed {seed}, {faults}");
        assert!(found.is_empty(), "{case}: {found:#?}");
        assert!(ran.epochs.iter().all(|it| *it >= 2), "{:?}", ran.epochs);
    }
}

/// Whether a defect is found within so many seeds, in histories of this level; without it all is well.
fn is_found(mutant: Mutant, level: Level, faults: &str, within: u64) -> bool {
    is_found_with((4, 0.4), mutant, level, faults, within)
}

fn is_found_with(
    lists: (u32, f64),
    mutant: Mutant,
    level: Level,
    faults: &str,
    within: u64,
) -> bool {
    let found = |seed: u64, mutant| {
        let case = Run {
            mutant,
            lists,
            ..Run::of(seed, level, faults)
        };
        let run = std::panic::catch_unwind(move || case.run().found);
        run.unwrap_or_else(|_| vec!["an assertion failed".to_owned()])
    };
    let seed = (0..within).find(|seed| !found(*seed, Some(mutant)).is_empty());
    seed.is_some_and(|seed| {
        let found = found(seed, None);
        assert!(found.is_empty(), "seed {seed}, {faults}: {found:#?}");
        true
    })
}

/// What region 0 says does not reach region 1 while region 2 still hears it.
const HEARD_BY_ONE: &str = "600ms+1300ms cut r0 r1; 640ms+1260ms part r0 *";

#[test]
fn a_fence_without_exchange_is_found() {
    let mutant = Mutant::FenceWithoutExchange;
    assert!(is_found(mutant, Level::Serializable, HEARD_BY_ONE, 6));
}

#[test]
fn a_fence_at_the_lowest_mark_is_found() {
    let mutant = Mutant::FenceAtLowestMark;
    assert!(is_found(mutant, Level::Serializable, HEARD_BY_ONE, 6));
}

/// Region 0 hears marks of the others that they do not know it has.
#[test]
fn what_runs_behind_the_fence_is_found() {
    let mutant = Mutant::RunsBehindTheFence;
    let faults = "600ms+1300ms cut r0 *; 800ms+1100ms part r0 *";
    let level = Level::Serializable;
    assert!(is_found_with((1, 0.8), mutant, level, faults, 20));
}

#[test]
fn moved_transactions_in_another_order_are_found() {
    let faults = "600ms+1300ms cut r0 *; 800ms+1100ms part r0 *";
    let mutant = Mutant::MovedOutOfOrder;
    assert!(is_found(mutant, Level::Serializable, faults, 6));
}

/// Region 0 is heard again by region 1 alone, once that has said up to where it follows.
#[test]
fn a_region_that_follows_a_frozen_stream_is_found() {
    let faults = "600ms+1300ms part r0 r2; 600ms+360ms part r0 r1; 1200ms+700ms part r0 r1";
    let mutant = Mutant::FollowsFrozenStream;
    assert!(is_found(mutant, Level::Serializable, faults, 12));
}

#[test]
fn a_session_that_forgets_which_region_has_shown_it_something_is_found() {
    let faults = format!("600ms+1300ms {SERVERS_APART}");
    let mutant = Mutant::SessionForgetsRegion;
    assert!(is_found(mutant, Level::Session, &faults, 12));
}

/// Increments of rows in three regions of which the first is cut off at 600 ms.
fn cut_off(for_millis: u64, until: u64) -> (Load<Increments>, Vec<u64>) {
    let topology = manxdb_dast::Topology {
        regions: 3,
        shards_per_region: 1,
    };
    let (lan, wan) = paper_links();
    let (places, clients) = place(topology, 8, lan, wan);
    let shared = crate::common::shared(topology, options(None));
    let mut world = World::new(DastSystem::new(shared), WorldOptions::new(5, places));
    let faults = format!("600ms+{for_millis}ms part r0 *");
    world.schedule_all(&faults.parse().unwrap());
    let generator = Increments {
        topology,
        crt_percent: 3,
        level: Level::Serializable,
    };
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_millis(until),
        explain: false,
    };
    let mut load = Load::new(generator, options);
    let healed = SimTime::from_millis(until.max(600 + for_millis) + 1_000);
    let ends = healed + Nanos::from_secs(2);
    run_to_rest(&mut world, &mut load, topology, (healed, ends)).unwrap();
    let epochs = topology.all_regions().map(|region| {
        let managers = topology.managers(region);
        let managers = managers.filter_map(|node| world.core(node)?.manager());
        managers.map(|it| it.ledger().fences.epoch()).max().unwrap()
    });
    let epochs = epochs.collect();
    (load, epochs)
}

/// Whether a call of [`cut_off`] touches a region.
fn touches(made: &Made, region: RegionId) -> bool {
    let args = made.job.ask.args.chunks(2);
    args.into_iter().any(|pair| u32::from(pair[0]) == region.0)
}

#[test]
fn the_others_go_on_while_a_region_is_cut_off_for_one_to_thirty_seconds() {
    let gone = RegionId(0);
    for seconds in [1, 3, 10, 30] {
        let until = 600 + seconds.min(3) * 1_000;
        let (load, epochs) = cut_off(seconds * 1_000, until);
        assert_eq!(load.open(), 0, "every call ends");
        assert_eq!(epochs, [2, 2, 2], "a fence and a return");
        let cut = SimTime::from_millis(600);
        let (from, until) = (cut, SimTime::from_millis(until));
        let local = load.latencies(false, from, until);
        let tail = percentile(&local, 99);
        assert!(local.len() > 200, "{} local calls", local.len());
        assert!(tail <= Nanos::from_micros(15_001), "{seconds} s: {tail:?}");
        let made = load
            .made()
            .iter()
            .filter(|it| it.asked >= cut && it.job.crosses_regions);
        let (with, without): (Vec<&Made>, Vec<&Made>) = made.partition(|it| touches(it, gone));
        let first = without
            .iter()
            .filter_map(|it| Some(it.answered.as_ref()?.0))
            .min()
            .unwrap();
        let back = first.since(cut);
        assert!(back <= Nanos::from_secs(1), "{seconds} s: {back:?}");
        let later = without
            .iter()
            .filter(|it| it.asked > cut + Nanos::from_secs(1));
        let longest = later.filter_map(|it| it.latency()).max();
        // While it is taken in marks may stand still for a moment.
        assert!(
            longest <= Some(Nanos::from_millis(250)),
            "{seconds} s: {longest:?}"
        );
        let heals = cut + Nanos::from_secs(seconds);
        let refused = with
            .iter()
            .filter_map(|it| it.answered.as_ref()?.1.given.as_ref().err());
        let refused: Vec<&String> = refused.collect();
        assert!(
            refused.iter().all(|it| it.contains("region 0 is cut off")),
            "{refused:?}"
        );
        assert!(
            !refused.is_empty() || heals < first + Nanos::from_millis(100),
            "{seconds} s"
        );
    }
}

/// A region that is heard is not fenced, whoever does not hear it.
#[test]
fn nobody_is_fenced_while_one_other_region_hears_it() {
    for faults in [
        "600ms+1200ms part r0 r1",
        "600ms+1200ms cut * r0",
        "600ms+1200ms cut r0 r1",
    ] {
        let ran = Run::of(1, Level::Serializable, faults).run();
        assert!(ran.found.is_empty(), "{faults}: {:#?}", ran.found);
        assert_eq!(ran.epochs, [0, 0, 0], "{faults}");
    }
}

/// A region that hears the others and is not heard knows that it is fenced, and waits.
#[test]
fn a_region_that_is_not_heard_is_fenced_and_taken_in_once_it_is() {
    let ran = Run::of(2, Level::Strict, "600ms+1200ms cut r0 *").run();
    assert!(ran.found.is_empty(), "{:#?}", ran.found);
    assert!(ran.epochs.iter().all(|it| *it >= 2), "{:?}", ran.epochs);
}

/// Three regions of one shard on a network that loses messages, judged at rest.
fn survives(seed: u64, level: Level, faults: &str) {
    if let Err(wrong) = run_lossy(seed, level, faults, None) {
        panic!("{level:?}, seed {seed}, {faults}: {wrong}");
    }
}

fn run_lossy(seed: u64, level: Level, faults: &str, mutant: Option<Mutant>) -> Result<(), String> {
    let mut setting = Setting::small();
    setting.topology = THREE;
    setting.level = level;
    setting.lists.cross_region = 0.5;
    let plan = faults.parse().unwrap();
    setting
        .run(&Case { seed, plan }, options(mutant))
        .map(|_| ())
}

/// Settings that are drawn but for the three regions, and for clocks that are far off: a node of a region
/// whose clocks are far ahead of the others' is not taken in again, for whole streams are told the marks
/// of the nearest region.
fn setting(seed: u64) -> Setting {
    let mut setting = Setting::of_seed(seed);
    setting.topology = THREE;
    let offset = setting.clocks.offset_max;
    setting.clocks.offset_max = offset.min(Nanos::from_millis(20));
    setting
}

/// Random faults, of which some last long enough for a fence.
#[test]
fn random_faults_of_three_regions_are_survived() {
    let draw = |seed| plan::draw(seed, &setting(seed));
    let run = |case: &Case| {
        let ran = setting(case.seed).run(case, options(None));
        ran.map(|ran| ran.digest)
    };
    if let Err(found) = hunt(0..seeds(2), draw, run) {
        let test = "cargo test -p manxdb-lab --test it ahead_fence::random_faults_of_three_regions_are_survived";
        panic!("{found}\n{}", found.command(test));
    }
}

/// While the others agree on the fence, and while region 0 is taken in, a manager that leads a region
/// loses its memory: n9, n12 or n15.
#[test]
fn a_manager_that_leads_fails_in_each_step() {
    let steps = [(1_080, 60), (2_020, 60)];
    for (first, every) in steps {
        // More seeds are more steps, and each step with each of them.
        for step in 0..seeds(3) {
            let at = first + step % 6 * every;
            let node = [12, 15, 9][usize::try_from((step + step / 6) % 3).unwrap()];
            let faults = format!("800ms+1200ms part r0 *; {at}ms+300ms wipe n{node}");
            survives(step, Level::Serializable, &faults);
        }
    }
}

/// Fenced again while it is taken in, and again.
#[test]
fn a_region_that_comes_and_goes_is_fenced_each_time() {
    let again = "600ms+600ms part r0 *; 1400ms+500ms part r0 *; 2050ms+600ms part r0 *";
    let others = "600ms+600ms part r0 *; 1450ms+600ms part r1 *; 2300ms+500ms part r2 *";
    for seed in 0..seeds(2) {
        let level = LEVELS[usize::try_from(seed % 3).unwrap()];
        let faults = [again, others][usize::try_from(seed % 2).unwrap()];
        survives(seed, level, faults);
    }
}
