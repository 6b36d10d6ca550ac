//! All orders of messages of a small cluster (f = 1, two clients, two keys), and a crash in each state.
//!
//! Time stands still while two operations are under way: every message to a server or witness may be the next to
//! arrive, whatever was sent before it. Clients hear at once, since an operation that is complete earlier binds
//! more of what comes later. Nodes share nothing, so a state is what each node was given, in which order; each
//! is visited once. In each, the run is also ended in ways that the simulator's seeds draw by chance: at once,
//! with the master or the witness dead, and with datagrams that arrive after the recovery. From there on
//! messages arrive in order and timers run, both keys are read, and the history has to be linearizable.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash as _, Hasher as _};

use manxdb_checker::linear::check;
use manxdb_core::{Action, Actions, Core as _, Event, LocalTime, Nanos, NodeId, RequestId};
use manxdb_curp::coordinator::CoordinatorRecord;
use manxdb_curp::message::CurpMessage;
use manxdb_curp::mutants::Mutant;
use manxdb_curp::{CurpTimer, Options};

use crate::common::Node;
use crate::common::machine::{Answer, Call, Command, OneKey, bytes, operations};

/// Coordinator 0, servers 1 to 3, the witness 4, clients 5 and 6.
const WITNESS: u32 = 4;
const CLIENTS: [u32; 2] = [5, 6];
const KEYS: u8 = 2;
/// How long a message is under way when time runs.
const WAY: u64 = 500_000;
/// When a datagram arrives that is later than a recovery.
const LATE: u64 = 400_000_000;
/// A run that takes longer does not come to rest.
const REST: u64 = 3_000_000_000;
/// Configurations that the checker looks at for one key.
const STEPS_MAX: u64 = 100_000;

/// A message under way.
#[derive(Debug, Clone)]
struct Flight {
    from: u32,
    to: u32,
    body: CurpMessage,
    at: u64,
}

/// How a run ends from a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    AtOnce,
    MasterDies,
    /// And datagrams of clients that are under way arrive when all is over.
    MasterDiesLateRecords,
    WitnessDies,
}

const ENDINGS: [Ending; 4] = [
    Ending::AtOnce,
    Ending::MasterDies,
    Ending::MasterDiesLateRecords,
    Ending::WitnessDies,
];

struct Small {
    options: Options,
    nodes: BTreeMap<u32, Node>,
    dead: BTreeSet<u32>,
    disk: Vec<CoordinatorRecord>,
    now: u64,
    flights: Vec<Flight>,
    timers: BTreeMap<(u64, u64), (u32, CurpTimer)>,
    /// Numbers events, and requests.
    count: u64,
    /// What each node was given since time stands still; nothing while it runs.
    given: Option<BTreeMap<u32, u64>>,
    calls: Vec<Call>,
    open: BTreeMap<RequestId, usize>,
}

impl Small {
    /// Until both clients have a view and a name.
    fn start(mutant: Option<Mutant>) -> Self {
        let options = Options {
            servers: 3,
            witnesses: 1,
            table: (4, 4),
            // At once: then no timer decides when.
            sync_after: Nanos::ZERO,
            mutant,
            ..Options::default()
        };
        let mut this = Self {
            options,
            nodes: BTreeMap::new(),
            dead: BTreeSet::new(),
            disk: Vec::new(),
            now: 0,
            flights: Vec::new(),
            timers: BTreeMap::new(),
            count: 0,
            given: None,
            calls: Vec::new(),
            open: BTreeMap::new(),
        };
        for number in 0..=CLIENTS[1] {
            let node = Node::new(NodeId(number), 1, options, 0x5EC2E7, Vec::new());
            this.nodes.insert(number, node);
        }
        for number in 0..=CLIENTS[1] {
            this.give(number, Event::Start);
        }
        // A first update of each, which needs view, name and witness.
        for client in CLIENTS {
            let key = u8::try_from(client - CLIENTS[0]).unwrap();
            this.ask(client, Command::Set(key, 10));
        }
        this.rest();
        this
    }

    fn give(&mut self, to: u32, event: Event<CurpMessage, CurpTimer, Vec<u8>>) {
        let Some(node) = self.nodes.get_mut(&to) else {
            return;
        };
        if let Some(given) = &mut self.given {
            let mut hasher = DefaultHasher::new();
            (given.get(&to), format!("{event:?}")).hash(&mut hasher);
            given.insert(to, hasher.finish());
        }
        let mut actions = Actions::default();
        node.step(LocalTime(1_000_000_000 + self.now), event, &mut actions);
        node.check().unwrap();
        let actions: Vec<_> = actions.drain().collect();
        for action in actions {
            self.count += 1;
            match action {
                Action::Send { to: next, body } => self.flights.push(Flight {
                    from: to,
                    to: next.0,
                    body,
                    at: self.now + WAY,
                }),
                Action::SetTimer { after, timer } => {
                    let at = (self.now + after.0, self.count);
                    self.timers.insert(at, (to, timer));
                }
                Action::Persist { record, token } => {
                    self.disk.push(record);
                    self.give(to, Event::Persisted(token));
                }
                Action::Reply { id, body } => self.answered(id, body.answer),
                Action::Mark { .. } | Action::Wait { .. } => {}
            }
        }
    }

    fn answered<C>(&mut self, id: RequestId, answer: Option<(Vec<u8>, C)>) {
        let call = self.open.remove(&id).unwrap();
        self.count += 1;
        let (answer, _) = answer.expect("no client is forgotten");
        let answer: Answer = postcard::from_bytes(&answer).unwrap();
        self.calls[call].answered = Some((self.count, answer));
    }

    fn ask(&mut self, client: u32, command: Command) {
        self.count += 1;
        let id = RequestId(self.count);
        let body = bytes(&command);
        self.open.insert(id, self.calls.len());
        self.calls.push(Call {
            client,
            command,
            invoked: self.count,
            answered: None,
        });
        self.give(client, Event::Request { id, body });
    }

    /// The message at a place arrives.
    fn deliver(&mut self, place: usize) {
        let Flight { from, to, body, .. } = self.flights.remove(place);
        let from = NodeId(from);
        self.give(to, Event::Message { from, body });
    }

    fn crash(&mut self, node: u32) {
        self.nodes.remove(&node);
        self.dead.insert(node);
        self.flights.retain(|flight| flight.to != node);
        self.timers.retain(|_, (of, _)| *of != node);
    }

    /// The next thing that happens when time runs.
    fn next(&mut self) {
        let flight = self.flights.iter().enumerate();
        let flight = flight.min_by_key(|(place, flight)| (flight.at, *place));
        let flight = flight.map(|(place, flight)| (flight.at, place));
        let timer = self.timers.keys().next().copied();
        match (flight, timer) {
            (Some((at, place)), timer) if timer.is_none_or(|(due, _)| at <= due) => {
                self.now = self.now.max(at);
                self.deliver(place);
            }
            (_, Some(timer)) => {
                self.now = self.now.max(timer.0);
                let (node, timer) = self.timers.remove(&timer).unwrap();
                self.give(node, Event::Timer(timer));
            }
            _ => unreachable!("heartbeats never end"),
        }
    }

    /// Until everything is answered, and what it has sent has arrived.
    fn rest(&mut self) {
        let until = self.now + REST;
        while !self.open.is_empty() {
            assert!(self.now < until, "no rest: {:?}", self.calls);
            self.next();
        }
        let quiet = self.now + 40 * WAY;
        while self.now < quiet {
            self.next();
        }
    }

    fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.given.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a message may be the next, so that heartbeats and leases stay out of the way.
    fn is_about_operations(flight: &Flight) -> bool {
        flight.from != 0 && flight.to != 0
    }

    fn end(mut self, ending: Ending) -> Result<(), String> {
        self.given = None;
        let config = self.nodes[&0].coordinator().and_then(|one| one.config());
        let master = config.unwrap().master.node.0;
        match ending {
            Ending::AtOnce => {}
            Ending::MasterDies => self.crash(master),
            Ending::MasterDiesLateRecords => {
                self.crash(master);
                for flight in &mut self.flights {
                    if flight.to == WITNESS && CLIENTS.contains(&flight.from) {
                        flight.at = self.now + LATE;
                    }
                }
            }
            Ending::WitnessDies => {
                self.crash(WITNESS);
                // It comes back with nothing; there is no other.
                let node = Node::new(NodeId(WITNESS), 2, self.options, 0, Vec::new());
                self.dead.remove(&WITNESS);
                self.nodes.insert(WITNESS, node);
                self.give(WITNESS, Event::Start);
            }
        }
        self.rest();
        if ending == Ending::MasterDiesLateRecords {
            let late = self.now + LATE;
            while self.now < late {
                self.next();
            }
        }
        for key in 0..KEYS {
            self.ask(CLIENTS[0], Command::Get(key));
            self.rest();
        }
        let named = (0..).zip(&self.calls);
        let history: Vec<_> = named
            .flat_map(|(name, call)| operations(name, call))
            .collect();
        let verdict = check(&OneKey, &history, STEPS_MAX);
        if verdict.is_linearizable() {
            return Ok(());
        }
        Err(format!("{ending:?}: {verdict}"))
    }
}

/// What both clients ask, one after the other.
type Script = [&'static [Command]; 2];

/// A run up to a state: which message was the next, each time.
fn replay(mutant: Option<Mutant>, script: Script, path: &[usize]) -> Small {
    let mut small = Small::start(mutant);
    small.given = Some(BTreeMap::new());
    for (client, commands) in CLIENTS.into_iter().zip(script) {
        for command in commands {
            small.ask(client, command.clone());
        }
    }
    for place in path {
        small.deliver(*place);
        let is_to_client = |flight: &Flight| CLIENTS.contains(&flight.to) && flight.from != 0;
        while let Some(place) = small.flights.iter().position(is_to_client) {
            small.deliver(place);
        }
    }
    small
}

/// Visits every state; how many there are.
fn explore(mutant: Option<Mutant>, script: Script) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut paths: Vec<Vec<usize>> = vec![Vec::new()];
    while let Some(path) = paths.pop() {
        let small = replay(mutant, script, &path);
        if !seen.insert(small.state()) {
            continue;
        }
        for place in 0..small.flights.len() {
            if Small::is_about_operations(&small.flights[place]) {
                paths.push(path.iter().copied().chain([place]).collect());
            }
        }
        for ending in ENDINGS {
            let small = replay(mutant, script, &path);
            small
                .end(ending)
                .map_err(|why| format!("{path:?}: {why}"))?;
        }
    }
    Ok(seen.len())
}

const SAME: Script = [&[Command::Incr(0)], &[Command::Incr(0)]];
const OTHER: Script = [&[Command::Incr(0)], &[Command::Incr(1)]];
const READ: Script = [&[Command::Incr(0)], &[Command::Get(0)]];

#[test]
fn every_order_of_messages_and_a_crash_in_each_state_stay_linearizable() {
    for script in [SAME, OTHER, READ] {
        match explore(None, script) {
            Ok(states) => {
                println!("{script:?}: {states} states");
                assert!(states > 50, "{states} states are not all orders");
            }
            Err(why) => panic!("{script:?}: {why}"),
        }
    }
}

#[test]
fn planted_defects_are_found_in_some_order() {
    for mutant in [
        Mutant::NoReplay,
        Mutant::GcBeforeSync,
        Mutant::QuorumInsteadOfAll,
        Mutant::NoConflictCheck,
        Mutant::NoFreeze,
        Mutant::ReadsUnsynced,
    ] {
        let found = [SAME, OTHER, READ]
            .into_iter()
            .find_map(|script| explore(Some(mutant), script).err());
        println!("{mutant:?}: {found:?}");
        assert!(found.is_some(), "{mutant:?} passes in every order");
    }
}
