//! A pool in the simulator: databases that ask for compactions, workers that run them, and a
//! judge that knows what each answer may be.
#![allow(clippy::unwrap_used, clippy::panic, dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::channel::Life;
use manxdb_core::{Core, Nanos, NodeId, Random, RequestId};
use manxdb_jobs::client::{Answer, Ask, Client, ClientOptions};
use manxdb_jobs::job::{
    AttemptId, DatabaseId, Facts, FailureClass, Fingerprint, JobId, LocalReason, SessionId, Spec,
    WorkerId,
};
use manxdb_jobs::message::{Ability, Ended, OutputVerdict};
use manxdb_jobs::node::{Node, NodeAnswer, NodeAsk};
use manxdb_jobs::record::{Durable, Record};
use manxdb_jobs::worker::{Given, SlotAsk, Worker};
use manxdb_jobs::{Control, Options};
use manxdb_sim::hunt::Found;
use manxdb_sim::{Driver, Link, Outside, SimTime, System, Topology, Transport, WorldOptions};

/// How many of each.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub workers: u32,
    pub databases: u32,
    pub slots: u32,
}

pub const CONTROL: NodeId = NodeId(0);

impl Shape {
    pub fn worker(place: u32) -> NodeId {
        NodeId(1 + place)
    }

    pub fn database(self, place: u32) -> NodeId {
        NodeId(1 + self.workers + place)
    }

    pub fn nodes(self) -> u32 {
        1 + self.workers + self.databases
    }

    pub fn is_worker(self, node: NodeId) -> bool {
        (1..=self.workers).contains(&node.0)
    }

    pub fn is_database(self, node: NodeId) -> bool {
        node.0 > self.workers
    }

    /// All in one region, a millisecond apart, over datagrams: messages are lost and repeated
    /// as the plan says.
    pub fn world(self, seed: u64) -> WorldOptions {
        let topology = Topology::single(self.nodes(), Link::after(Nanos::from_millis(1)));
        let mut options = WorldOptions::new(seed, topology);
        options.transport = Transport::Datagram;
        options
    }
}

pub struct Pool {
    pub shape: Shape,
    pub options: Options,
    pub client: ClientOptions,
    pub seed: u64,
    /// A mutant: a database does not tell one time that it is open from another.
    pub same_sessions: bool,
}

impl Pool {
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self {
            shape,
            options: Options::default(),
            client: ClientOptions::default(),
            seed,
            same_sessions: false,
        }
    }

    /// A number drawn anew each time a node starts.
    pub fn drawn(&self, node: NodeId, life: Life) -> u64 {
        Random::stream(self.seed, &[u64::from(node.0), life.0]).next_bits()
    }
}

impl System for Pool {
    type Core = Node;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<Record>) -> Node {
        let drawn = self.drawn(node, life);
        if node == CONTROL {
            let durable = Durable::of(disk);
            return Node::Control(Box::new(Control::new(self.options, drawn, durable)));
        }
        if self.shape.is_worker(node) {
            let ability = Ability {
                fingerprints: vec![Fingerprint::default()],
                slots: self.shape.slots,
                bytes_second: 64 << 20,
                memory: 8 << 30,
                ..Ability::default()
            };
            let worker = Worker::new(WorkerId(drawn), CONTROL, self.options.beat, ability);
            return Node::Worker(Box::new(worker));
        }
        let database = DatabaseId(u64::from(node.0));
        let session = SessionId(if self.same_sessions { 1 } else { drawn });
        let client = Client::new(database, session, CONTROL, self.client);
        Node::Client(Box::new(client))
    }
}

/// A compaction that was asked for.
#[derive(Debug)]
pub struct Asked {
    pub node: NodeId,
    pub at: SimTime,
    pub spec: Spec,
    pub answer: Option<(SimTime, Answer)>,
    /// The database died: nobody waits.
    pub dropped: bool,
}

/// What a slot runs.
#[derive(Debug)]
struct Running {
    node: NodeId,
    attempt: AttemptId,
    watch: RequestId,
    input: Arc<[u8]>,
}

/// Whatever has workers and databases among its nodes.
pub trait Roles: System<Core: Core<Request = NodeAsk, Reply = NodeAnswer>> {}

impl<S> Roles for S
where
    S: System,
    S::Core: Core<Request = NodeAsk, Reply = NodeAnswer>,
{
}

/// Asks, runs and judges.
pub struct Load {
    pub shape: Shape,
    /// Between two jobs of a database, on average, in seconds.
    pub gap: f64,
    /// Jobs that a database waits for at a time.
    pub outstanding_max: usize,
    pub until: SimTime,
    /// Shares of attempts that fail, in percent, by class.
    pub transient_percent: u64,
    /// A database that asks for more than all workers can do.
    pub greedy: Option<NodeId>,
    /// A worker of which one output is refused.
    pub bad_worker: Option<NodeId>,
    pub asked: Vec<Asked>,
    open: BTreeMap<RequestId, usize>,
    running: BTreeMap<u64, Running>,
    watches: BTreeMap<RequestId, u64>,
    /// Attempts ever begun, and where: a second time would be two writers of one directory.
    begun: BTreeMap<AttemptId, NodeId>,
    runs: u64,
    pub done: u64,
    pub refused: u64,
    pub problems: Vec<String>,
}

const WAKE_ASK: u64 = 1 << 62;

impl Load {
    pub fn new(shape: Shape, until: SimTime) -> Self {
        Self {
            shape,
            gap: 0.4,
            outstanding_max: 4,
            until,
            transient_percent: 0,
            greedy: None,
            bad_worker: None,
            asked: Vec::new(),
            open: BTreeMap::new(),
            running: BTreeMap::new(),
            watches: BTreeMap::new(),
            begun: BTreeMap::new(),
            runs: 0,
            done: 0,
            refused: 0,
            problems: Vec::new(),
        }
    }

    pub fn locals(&self, reason: LocalReason) -> usize {
        let is = |asked: &&Asked| matches!(&asked.answer, Some((_, Answer::Local(why))) if *why == reason);
        self.asked.iter().filter(is).count()
    }

    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// How long all but the greedy one waited, the longest last, and how often they were sent
    /// home.
    pub fn others(&self) -> (Vec<Nanos>, usize) {
        let others = self
            .asked
            .iter()
            .filter(|one| self.greedy != Some(one.node));
        let answered = others.filter_map(|one| Some((one.at, one.answer.as_ref()?)));
        let (mut waits, mut sent_home) = (Vec::new(), 0);
        for (at, (then, answer)) in answered {
            waits.push(then.since(at));
            sent_home += usize::from(matches!(answer, Answer::Local(_)));
        }
        waits.sort_unstable();
        (waits, sent_home)
    }

    /// Longest time that anybody waited.
    pub fn longest(&self) -> Nanos {
        let waits = self.asked.iter().filter_map(|asked| {
            let (at, _) = asked.answer.as_ref()?;
            Some(at.since(asked.at))
        });
        waits.max().unwrap_or(Nanos::ZERO)
    }

    /// What is wrong after a run whose faults were over at 40 s. `left` are the jobs that the control
    /// plane still has.
    pub fn judge(&self, client: ClientOptions, left: &[JobId]) -> Result<(), String> {
        if let Some(problem) = self.problems.first() {
            return Err(problem.clone());
        }
        if self.open() > 0 {
            let asked = &mut self.asked.iter();
            let lost = asked.find(|one| one.answer.is_none() && !one.dropped);
            return Err(format!("{} jobs never ended: {lost:?}", self.open()));
        }
        // Clocks may stand still or jump by up to 10 s, nodes may pause for 10 s, and where there
        // are several control planes, a lease has to run out.
        let bound = client.deadline + client.away + Nanos::from_secs(30);
        if self.longest() > bound {
            return Err(format!("a job took {:?}", self.longest()));
        }
        if !left.is_empty() {
            return Err(format!("jobs are left: {left:?}"));
        }
        let asked = self.asked.iter();
        let late = asked.filter(|one| one.at > SimTime::from_secs(43));
        let local = late.filter(|one| matches!(&one.answer, Some((_, Answer::Local(_)))));
        if local.count() > 6 {
            return Err("the pool did not come back after the faults".to_owned());
        }
        Ok(())
    }

    fn ask_later<S: Roles>(&self, outside: &mut Outside<'_, S>, node: NodeId) {
        let share = if self.greedy == Some(node) {
            600.0
        } else {
            1.0
        };
        let gap = outside.random().exponential(self.gap / share);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let gap = Nanos((gap * 1e9) as u64);
        outside.wake_at(outside.now() + gap, WAKE_ASK | u64::from(node.0));
    }

    fn ask<S: Roles>(&mut self, outside: &mut Outside<'_, S>, node: NodeId) {
        if outside.now() >= self.until {
            return;
        }
        let open = self.open.values();
        let waits = open
            .filter(|place| self.asked[**place].node == node)
            .count();
        let most = if self.greedy == Some(node) {
            usize::MAX
        } else {
            self.outstanding_max
        };
        if waits < most && outside.is_up(node) {
            let place = self.asked.len();
            let facts = Facts {
                start_level: u8::try_from(outside.random().below(3)).unwrap(),
                bytes: (1 << 20) + outside.random().below(64 << 20),
                ..Facts::default()
            };
            let input = (place as u64).to_be_bytes().to_vec().into();
            self.submit(outside, node, Spec { facts, input });
        }
        self.ask_later(outside, node);
    }

    pub fn submit<S: Roles>(&mut self, outside: &mut Outside<'_, S>, node: NodeId, spec: Spec) {
        let body = NodeAsk::Client(Ask::Compact(spec.clone()));
        let request = outside.request(node, body);
        self.open.insert(request, self.asked.len());
        self.asked.push(Asked {
            node,
            at: outside.now(),
            spec,
            answer: None,
            dropped: false,
        });
    }

    fn offer_slots<S: Roles>(&self, outside: &mut Outside<'_, S>, node: NodeId) {
        for _ in 0..self.shape.slots {
            outside.request(node, NodeAsk::Slot(SlotAsk::Next));
        }
    }

    fn run<S: Roles>(
        &mut self,
        outside: &mut Outside<'_, S>,
        node: NodeId,
        attempt: AttemptId,
        spec: Spec,
    ) {
        if self.begun.insert(attempt, node).is_some() {
            self.problems
                .push(format!("attempt {attempt} was begun twice"));
        }
        self.runs += 1;
        let watch = outside.request(node, NodeAsk::Slot(SlotAsk::Watch(attempt)));
        self.watches.insert(watch, self.runs);
        let running = Running {
            node,
            attempt,
            watch,
            input: spec.input,
        };
        self.running.insert(self.runs, running);
        let takes = Nanos::from_micros(spec.facts.bytes / 64);
        outside.wake_at(outside.now() + takes, self.runs);
    }

    fn end<S: Roles>(&mut self, outside: &mut Outside<'_, S>, run: u64) {
        let Some(running) = self.running.remove(&run) else {
            return; // stopped, or its worker died
        };
        self.watches.remove(&running.watch);
        let fails = outside.random().below(100) < self.transient_percent;
        let end = if fails {
            Ended::Failed(FailureClass::Transient)
        } else {
            Ended::Finished(running.input)
        };
        let ask = |ask| NodeAsk::Slot(ask);
        outside.request(running.node, ask(SlotAsk::Ended(running.attempt, end)));
        outside.request(running.node, ask(SlotAsk::Next));
    }

    fn slot<S: Roles>(
        &mut self,
        outside: &mut Outside<'_, S>,
        node: NodeId,
        id: RequestId,
        given: Given,
    ) {
        match given {
            Given::Run(attempt, spec) => self.run(outside, node, attempt, spec),
            Given::Stop => {
                let run = self.watches.remove(&id);
                if run.is_some_and(|run| self.running.remove(&run).is_some()) {
                    outside.request(node, NodeAsk::Slot(SlotAsk::Next));
                }
            }
            Given::Over | Given::Drained => {}
        }
    }

    fn answer<S: Roles>(&mut self, outside: &mut Outside<'_, S>, id: RequestId, answer: Answer) {
        let Some(place) = self.open.remove(&id) else {
            self.problems.push(format!("{answer:?} for nobody"));
            return;
        };
        let asked = &mut self.asked[place];
        if let Answer::Done { attempt, result } = &answer {
            self.done += 1;
            if attempt.job.database != DatabaseId(u64::from(asked.node.0)) {
                self.problems
                    .push(format!("{attempt} went to {:?}", asked.node));
            }
            if *result != asked.spec.input {
                self.problems
                    .push(format!("{attempt} has another job's result"));
            }
            let ran = self.begun.get(attempt).copied();
            let verdict = if ran.is_some() && ran == self.bad_worker && self.refused == 0 {
                self.refused += 1;
                OutputVerdict::Refused
            } else {
                OutputVerdict::Installed
            };
            let settled = Ask::Settled {
                attempt: *attempt,
                verdict,
            };
            outside.request(asked.node, NodeAsk::Client(settled));
        }
        asked.answer = Some((outside.now(), answer));
    }

    fn forget_slots(&mut self, node: NodeId) {
        self.running.retain(|_, running| running.node != node);
        let running = &self.running;
        self.watches.retain(|_, run| running.contains_key(run));
    }
}

/// What a hunt has found, with as few faults as it needs.
pub fn why(hunted: Result<u64, Box<Found>>) -> String {
    let Err(found) = hunted else {
        panic!("nothing was wrong");
    };
    assert!(found.case.plan.faults.len() <= 4, "{found}");
    found.why
}

impl<S: Roles> Driver<S> for Load {
    fn begin(&mut self, outside: &mut Outside<'_, S>) {
        for place in 0..self.shape.workers {
            self.offer_slots(outside, Shape::worker(place));
        }
        for place in 0..self.shape.databases {
            self.ask_later(outside, self.shape.database(place));
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, S>,
        node: NodeId,
        id: RequestId,
        body: NodeAnswer,
    ) {
        match body {
            NodeAnswer::Slot(given) => self.slot(outside, node, id, given),
            NodeAnswer::Client(answer) => self.answer(outside, id, answer),
            NodeAnswer::Report(_) => {}
        }
    }

    fn wake(&mut self, outside: &mut Outside<'_, S>, key: u64) {
        if key & WAKE_ASK == 0 {
            self.end(outside, key);
        } else {
            self.ask(outside, NodeId(u32::try_from(key & !WAKE_ASK).unwrap()));
        }
    }

    fn crashed(&mut self, _: &mut Outside<'_, S>, node: NodeId) {
        self.forget_slots(node);
        let asked = &mut self.asked;
        self.open.retain(|_, place| {
            let keeps = asked[*place].node != node;
            asked[*place].dropped |= !keeps;
            keeps
        });
    }

    fn restarted(&mut self, outside: &mut Outside<'_, S>, node: NodeId) {
        if self.shape.is_worker(node) {
            self.offer_slots(outside, node);
        }
    }
}
