//! A cluster in the simulator, a workload, and what must be true at the end.
#![allow(dead_code)] // each test file uses a part of it

pub mod machine;
pub mod stored;

use std::collections::BTreeMap;

use manxdb_checker::linear::check;
use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::disk::CurpRecord;
use manxdb_curp::mutants::Mutant;
use manxdb_curp::{ClientAnswer, Completion, CurpNode, Durability, Options};
use manxdb_sim::fault::DownTogether;
use manxdb_sim::hunt::Case;
use manxdb_sim::{
    AfterPause, CostModel, Driver, Fault, Link, Outside, Plan, Ppm, Profile, SimTime, System,
    Topology, World, WorldOptions,
};

use self::machine::{Answer, Call, Command, KeyValue, OneKey, bytes, operations};
use self::stored::Home;

pub type Node = CurpNode<KeyValue>;

/// Configurations that the checker looks at for one key.
const STEPS_MAX: u64 = 3_000_000;

pub struct Cluster {
    pub options: Options,
    pub stores: Stores,
    homes: BTreeMap<NodeId, Home>,
}

impl Cluster {
    pub fn new(options: Options, stores: Stores) -> Self {
        Self {
            options,
            stores,
            homes: BTreeMap::new(),
        }
    }
}

/// Where servers keep their states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stores {
    /// In memory and in records.
    #[default]
    None,
    /// In stores of their own, which outlive processes.
    Own,
    /// The same, and each stop of a process is one of its machine's power.
    LosePower,
}

impl System for Cluster {
    type Core = Node;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<CurpRecord>) -> Node {
        let empty = if self.stores == Stores::None {
            KeyValue::default()
        } else {
            let home = self.homes.entry(node).or_default();
            if self.stores == Stores::LosePower {
                home.lock().unwrap().lose_power();
            }
            KeyValue::stored(home)
        };
        let opened = CurpNode::open_on(empty, node, life.0, self.options, 0x005E_C2E7, disk);
        opened.expect("a simulation gives each node its own disk")
    }
}

/// How big a cluster is, and how it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub faults: usize,
    pub spares: u32,
    pub clients: u32,
    pub keys: u8,
    /// Nobody asks after this.
    pub until: SimTime,
    /// Between an answer and the next question.
    pub think: Nanos,
    pub mutant: Option<Mutant>,
    pub after_pause: AfterPause,
    /// How long the first update of a batch waits for others.
    pub sync_after: Nanos,
    /// Whether clients ask for scripts and for several keys at once.
    pub scripts: bool,
    /// Whether clients ask for numbers that a stamp decides; only where no client crashes.
    pub draws: bool,
    /// Whether the first client only reads.
    pub reader: bool,
    pub outstanding: u32,
    pub durability: Durability,
    /// As [`Options::whole_after`].
    pub whole_after: u64,
    /// As [`Options::piece_bytes`].
    pub piece_bytes: usize,
    /// As [`Options::spares_follow`].
    pub spares_follow: bool,
    /// As [`Options::kept_bytes`].
    pub kept_bytes: usize,
    /// How long after the last question of the others the last reads begin.
    pub rest: Nanos,
    pub stores: Stores,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            faults: 1,
            spares: 1,
            clients: 3,
            keys: 4,
            until: SimTime::from_millis(2_500),
            think: Nanos::from_millis(12),
            mutant: None,
            after_pause: AfterPause::DueTimers,
            sync_after: Options::default().sync_after,
            scripts: true,
            draws: false,
            reader: false,
            outstanding: 1,
            durability: Durability::default(),
            whole_after: 2_000,
            piece_bytes: 64,
            spares_follow: true,
            kept_bytes: 20_000,
            rest: Nanos::from_millis(1),
            stores: Stores::None,
        }
    }
}

impl Setting {
    pub fn options(&self) -> Options {
        let faults = u32::try_from(self.faults).unwrap();
        Options {
            faults: self.faults,
            servers: faults + 1 + self.spares,
            witnesses: faults + self.spares,
            table: (16, 4),
            mutant: self.mutant,
            sync_after: self.sync_after,
            durability: self.durability,
            whole_after: self.whole_after,
            piece_bytes: self.piece_bytes,
            spares_follow: self.spares_follow,
            kept_bytes: self.kept_bytes,
            ..Options::default()
        }
    }

    pub fn client_ids(&self) -> std::ops::Range<u32> {
        let options = self.options();
        let first = 1 + options.servers + options.witnesses;
        first..first + self.clients
    }

    pub fn topology(&self) -> Topology {
        let link = Link::after(Nanos::from_micros(500)).with_jitter(Nanos::from_micros(100));
        Topology::single(self.client_ids().end, link)
    }

    pub fn world(&self, seed: u64) -> World<Cluster> {
        let options = self.options();
        let mut world_options = WorldOptions::new(seed, self.topology());
        world_options.after_pause = self.after_pause;
        world_options.cost = CostModel {
            sync: Nanos::from_millis(1),
            ..CostModel::free()
        };
        let cluster = Cluster::new(options, self.stores);
        World::new(cluster, world_options)
    }

    /// Everything that may go wrong with at most as many processes away as are survived.
    pub fn profile(&self) -> Profile {
        let options = self.options();
        let servers = 1..=options.servers + options.witnesses;
        let mut profile = Profile::everything(&self.topology(), self.until);
        profile.choices = choices();
        profile.from = SimTime::from_millis(200);
        profile.healed_by = self.until;
        profile.lasts = Nanos::from_millis(1)..=Nanos::from_millis(500);
        profile.recovery = Nanos::from_millis(500);
        profile.down = vec![
            DownTogether {
                nodes: servers.map(NodeId).collect(),
                most: self.faults,
            },
            DownTogether {
                nodes: vec![NodeId(0)],
                most: 1,
            },
            DownTogether {
                nodes: self.client_ids().map(NodeId).collect(),
                most: 1,
            },
        ];
        profile
    }

    /// A run of a case, judged.
    pub fn run(&self, case: &Case) -> Result<Ran, String> {
        let mut world = self.world(case.seed);
        let mut load = Load::new(*self);
        run_to_rest(&mut world, &mut load, case, self.until, |world, load| {
            let view = || world.core(NodeId(0))?.coordinator()?.config().cloned();
            let open = || format!("{} calls are open, view {:?}", load.open.len(), view());
            (!load.is_done()).then(open)
        })?;
        load.judge()?;
        agree(&world)?;
        Ok(Ran {
            digest: world.digest(),
            fast: load
                .completions
                .get(&Completion::Fast)
                .copied()
                .unwrap_or(0),
            calls: load.calls.len(),
            unknown: load
                .calls
                .iter()
                .filter(|call| call.answered.is_none())
                .count(),
        })
    }
}

/// Runs a case until a load is at rest, which `busy` says what keeps from.
///
/// # Errors
/// A core's check failed, or there is no rest 20 s behind the last fault.
pub fn run_to_rest<S: System, L: Driver<S>>(
    world: &mut World<S>,
    load: &mut L,
    case: &Case,
    until: SimTime,
    busy: impl Fn(&World<S>, &L) -> Option<String>,
) -> Result<(), String> {
    world.schedule_all(&case.plan);
    let ends = case.plan.faults.iter().map(Fault::ends);
    let healed = ends.max().unwrap_or_default().max(until);
    let mut until = healed;
    loop {
        let run = world.run_until(load, until);
        run.map_err(|failure| failure.to_string())?;
        let Some(why) = busy(world, load) else {
            return Ok(());
        };
        if until > healed + Nanos::from_secs(20) {
            return Err(format!("no rest: {why}"));
        }
        until = until + Nanos::from_millis(50);
    }
}

/// What a run says is wrong; a failed assertion counts as that too.
pub fn wrong_with<T>(
    run: impl FnOnce() -> Result<T, String> + std::panic::UnwindSafe,
) -> Option<String> {
    let ended = std::panic::catch_unwind(run);
    ended.unwrap_or_else(|_| Err("panic".to_owned())).err()
}

#[derive(Debug, Clone, Copy)]
pub struct Ran {
    pub digest: u64,
    pub fast: usize,
    pub calls: usize,
    pub unknown: usize,
}

pub fn choices() -> Vec<manxdb_sim::fault::Choice> {
    use manxdb_sim::fault::Choice;
    let few = Ppm::percent(30);
    vec![
        Choice::Crash,
        Choice::Crash,
        Choice::Crash,
        Choice::Crash,
        Choice::Pause,
        Choice::Pause,
        Choice::ClockStep(Nanos::from_secs(10)),
        Choice::ClockDrift(200),
        Choice::ClockFreeze,
        Choice::DiskSlow(100),
        Choice::DiskFails,
        Choice::CutNode,
        Choice::CutNode,
        Choice::PartNode,
        Choice::PartNode,
        Choice::Loss(few),
        Choice::Duplicate(few),
        Choice::Reorder(few, Nanos::from_millis(100)),
        Choice::Flip(few),
        Choice::Delay(Nanos::from_millis(20)),
    ]
}

/// All backups of a cluster at rest have what its master has.
fn agree(world: &World<Cluster>) -> Result<(), String> {
    let coordinator = world.core(NodeId(0)).and_then(|node| node.coordinator());
    let config = coordinator.and_then(|coordinator| coordinator.config());
    let Some(config) = config else {
        return Err("no view at rest".to_owned());
    };
    let server = |node| world.core(node).and_then(|node| node.server());
    let Some(served) = server(config.master.node).and_then(|server| server.served()) else {
        return Err("no master at rest".to_owned());
    };
    for backup in &config.backups {
        let Some(backup) = server(backup.node) else {
            return Err("no backup at rest".to_owned());
        };
        if backup.applied().1 != served {
            let (at, applied) = backup.applied();
            return Err(format!(
                "a backup has {applied:?} at {at}, the master {served:?}"
            ));
        }
    }
    Ok(())
}

/// Clients that ask one thing after another.
pub struct Load {
    setting: Setting,
    pub calls: Vec<Call>,
    pub open: BTreeMap<RequestId, (usize, u32)>,
    pub completions: BTreeMap<Completion, usize>,
    /// The last reads, once nothing else is asked.
    finals: Option<u8>,
    pushed: u64,
}

impl Load {
    pub fn new(setting: Setting) -> Self {
        Self {
            setting,
            calls: Vec::new(),
            open: BTreeMap::new(),
            completions: BTreeMap::new(),
            finals: None,
            pushed: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.finals == Some(self.setting.keys) && self.open.is_empty()
    }

    fn command(&mut self, outside: &mut Outside<'_, Cluster>, client: u32) -> Command {
        let keys = u64::from(self.setting.keys);
        let mut below = |bound: u64| u8::try_from(outside.random().below(bound)).unwrap();
        let key = below(keys);
        let kind = below(20);
        if self.setting.reader && client == self.setting.client_ids().start {
            return Command::Get(key);
        }
        // Half of the keys are counters and lists only, so that their counts can be judged.
        match (key % 4, kind) {
            (_, 0..=3) => Command::Get(key),
            (0, 4..=6) => Command::Set(key, i64::from(below(100))),
            (0, 7) => Command::Del(key),
            (0, 8..=14) if self.setting.draws => Command::Draw(key),
            (1, _) => {
                self.pushed += 1;
                Command::Push(key, self.pushed)
            }
            (2, 4..=7) if self.setting.scripts && keys > 3 => Command::Script(2, 3),
            (2 | 3, 8..=9) if self.setting.scripts && keys > 3 => Command::IncrAll(vec![2, 3]),
            _ => Command::Incr(key),
        }
    }

    pub fn ask(&mut self, outside: &mut Outside<'_, Cluster>, client: u32, command: Command) {
        let request = outside.request(NodeId(client), bytes(&command));
        self.open.insert(request, (self.calls.len(), client));
        self.calls.push(Call {
            client,
            command,
            invoked: outside.now().0,
            answered: None,
        });
    }

    fn judge(&self) -> Result<(), String> {
        let named = self.calls.iter().enumerate();
        let history: Vec<_> = named
            .flat_map(|(name, call)| operations(name as u64, call))
            .collect();
        let verdict = check(&OneKey, &history, STEPS_MAX);
        if verdict.is_linearizable() {
            Ok(())
        } else {
            Err(verdict.to_string())
        }
    }
}

impl Driver<Cluster> for Load {
    fn begin(&mut self, outside: &mut Outside<'_, Cluster>) {
        for client in self.setting.client_ids() {
            for _ in 0..self.setting.outstanding {
                let offset = outside.random().below(10_000_000);
                outside.wake_at(SimTime(100_000_000 + offset), client.into());
            }
        }
        outside.wake_at(self.setting.until + self.setting.rest, u64::MAX);
    }

    fn wake(&mut self, outside: &mut Outside<'_, Cluster>, key: u64) {
        if key == u64::MAX {
            // The last reads begin when all else has ended: each sees all that took effect.
            let others_open = self.finals.is_none() && !self.open.is_empty();
            if self.finals != Some(self.setting.keys) {
                let again = outside.now() + Nanos::from_millis(5);
                outside.wake_at(again, u64::MAX);
            }
            if others_open || (self.finals.is_some() && !self.open.is_empty()) {
                return;
            }
            let next = self.finals.unwrap_or(0);
            if next < self.setting.keys {
                self.finals = Some(next + 1);
                let client = self.setting.client_ids().start;
                self.ask(outside, client, Command::Get(next));
            }
            return;
        }
        let client = u32::try_from(key).unwrap();
        if outside.now() < self.setting.until && outside.is_up(NodeId(client)) {
            let command = self.command(outside, client);
            self.ask(outside, client, command);
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Cluster>,
        node: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        let Some((call, _)) = self.open.remove(&id) else {
            return;
        };
        if let Some((answer, completion)) = body.answer {
            let answer: Answer = postcard::from_bytes(&answer).unwrap();
            self.calls[call].answered = Some((outside.now().0, answer));
            *self.completions.entry(completion).or_default() += 1;
        }
        let think = outside.random().below(2 * self.setting.think.0 + 1);
        let next = outside.now() + Nanos(think);
        outside.wake_at(next, node.0.into());
    }

    fn crashed(&mut self, _: &mut Outside<'_, Cluster>, node: NodeId) {
        // What it asked is unknown for ever.
        self.open.retain(|_, (_, client)| *client != node.0);
    }

    fn restarted(&mut self, outside: &mut Outside<'_, Cluster>, node: NodeId) {
        if self.setting.client_ids().contains(&node.0) {
            outside.wake_at(outside.now() + Nanos::from_millis(1), node.0.into());
        }
    }
}

pub fn plan(text: &str) -> Plan {
    text.parse().unwrap()
}
