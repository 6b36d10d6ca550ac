//! Two control planes, a linearizable store with leases, databases and workers, in the simulator.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use manxdb_core::channel::Life;
use manxdb_core::{Action, Actions, Core, Event, EventOf, LocalTime, Nanos, NodeId};
use manxdb_jobs::contender::{Contender, PlaneAnswer, PlaneAsk, When, Word};
use manxdb_jobs::election::{FromStore, Term, ToStore};
use manxdb_jobs::node::{Node, NodeAnswer, NodeAsk, NodeTimer};
use manxdb_jobs::record::Durable;
use manxdb_jobs::{Lease, Message};
use manxdb_sim::{Link, System, Topology, Transport, WorldOptions};

use crate::common::{self, Pool, Shape};

pub const SHAPE: Shape = Shape {
    workers: 3,
    databases: 3,
    slots: 2,
};

/// Node 0 of the shape is one of the control planes; the other one and the store come last.
const OTHER: NodeId = NodeId(SHAPE.workers + SHAPE.databases + 1);
pub const STORE: NodeId = NodeId(OTHER.0 + 1);
const CONTROLS: [NodeId; 2] = [common::CONTROL, OTHER];

pub const LEASE: Lease = Lease::of(Nanos::from_secs(5));

/// What members that agree keep: no crash of one of them loses it.
#[derive(Debug, Default)]
pub struct Kept {
    /// Who leads, since which term, until when.
    leader: Option<(NodeId, Term, LocalTime)>,
    pub elections: u64,
    /// Records of this term that are in `durable`.
    written: u64,
    pub durable: Durable,
    /// When whoever leads was elected: what the judge goes by.
    pub elected: Vec<(LocalTime, Term)>,
    /// Words of control planes to databases and workers, by their own clocks.
    pub said: Vec<(LocalTime, Term)>,
    pub problems: Vec<String>,
}

/// A linearizable store with leases.
#[derive(Debug)]
pub struct Store {
    kept: Rc<RefCell<Kept>>,
    /// A mutant: it takes writes of any term.
    takes_all: bool,
}

impl Store {
    fn hear(&self, now: LocalTime, from: NodeId, word: ToStore) -> Option<FromStore> {
        let mut kept = self.kept.borrow_mut();
        if kept.leader.is_some_and(|(_, _, until)| until <= now) {
            kept.leader = None;
        }
        match word {
            ToStore::Campaign { number } => Some(campaign(&mut kept, now, from, number)),
            ToStore::Renew { number, term } => Some(match &mut kept.leader {
                Some((_, present, until)) if *present == term => {
                    *until = now + LEASE.span;
                    FromStore::Renewed { number, term }
                }
                _ => FromStore::Deposed { term },
            }),
            ToStore::Write {
                term,
                first,
                records,
            } => self.write(&mut kept, term, first, &records),
            ToStore::Resign { term, .. } => {
                kept.leader = kept.leader.filter(|(_, present, _)| *present != term);
                None
            }
        }
    }

    fn write(
        &self,
        kept: &mut Kept,
        term: Term,
        first: u64,
        records: &[manxdb_jobs::Record],
    ) -> Option<FromStore> {
        let leads = kept.leader.is_some_and(|(_, present, _)| present == term);
        if !leads && !self.takes_all {
            return Some(FromStore::Deposed { term });
        }
        if first > kept.written + 1 {
            return None; // some before it are missing
        }
        let known = usize::try_from(kept.written + 1 - first).unwrap();
        for record in records.iter().skip(known) {
            kept.written += 1;
            kept.durable.apply(record.clone());
            // What a store says of itself proves nothing: the judge looks who was elected last.
            if kept.elected.last().map(|last| last.1) != Some(term) {
                kept.problems.push(format!("{term:?} wrote {record:?}"));
            }
        }
        let through = kept.written;
        Some(FromStore::Written { term, through })
    }
}

fn campaign(kept: &mut Kept, now: LocalTime, from: NodeId, number: u64) -> FromStore {
    if let Some((leader, _, _)) = kept.leader {
        let leader = format!("n{}", leader.0);
        return FromStore::Taken { number, leader };
    }
    kept.elections += 1;
    let term = Term(kept.elections);
    kept.leader = Some((from, term, now + LEASE.span));
    kept.elected.push((now, term));
    kept.written = 0;
    let durable = Arc::new(kept.durable.clone());
    FromStore::Elected {
        number,
        term,
        durable,
    }
}

/// A database or a worker with its way to the control planes: one of them at a time.
#[derive(Debug)]
pub struct Peer {
    node: Box<Node>,
    at: usize,
    heard: LocalTime,
}

/// Silence after which another control plane is tried.
const SILENCE: Nanos = Nanos::from_secs(3);

impl Peer {
    fn hear(&mut self, now: LocalTime, from: NodeId, body: Word) -> Option<EventOf<Node>> {
        if from != CONTROLS[self.at] {
            return None; // that connection is closed
        }
        self.heard = now;
        match body {
            Word::Pool(Message::NotLeader { .. }) => {
                self.at = 1 - self.at;
                None
            }
            Word::Pool(body) => {
                let from = common::CONTROL;
                Some(Event::Message { from, body })
            }
            Word::ToStore(_) | Word::FromStore(_) => panic!("{body:?} for a database"),
        }
    }

    fn look(&mut self, now: LocalTime) {
        if now.since(self.heard) > SILENCE {
            self.at = 1 - self.at;
            self.heard = now;
        }
    }
}

#[derive(Debug)]
pub enum Role {
    Plane(Box<Contender>, Rc<RefCell<Kept>>),
    Store(Store),
    Peer(Peer),
}

#[derive(Debug, Clone, Copy)]
pub enum Timer {
    Plane(When),
    Node,
}

impl Role {
    fn step_plane(
        plane: &mut Contender,
        kept: &RefCell<Kept>,
        now: LocalTime,
        event: EventOf<Contender>,
        out: &mut Actions<Role>,
    ) {
        let mut own = Actions::<Contender>::default();
        plane.step(now, event, &mut own);
        let term = plane.standing().term;
        for action in own.drain() {
            match action {
                Action::Send { to, body } => {
                    let refuses = matches!(body, Word::Pool(Message::NotLeader { .. }));
                    if matches!(body, Word::Pool(_)) && !refuses {
                        kept.borrow_mut().said.push((now, term));
                    }
                    out.send(to, body);
                }
                Action::SetTimer { after, timer } => out.set_timer(after, Timer::Plane(timer)),
                Action::Reply { id, body } => {
                    if let PlaneAnswer::Report(report) = body {
                        out.reply(id, NodeAnswer::Report(report));
                    }
                }
                other => panic!("{other:?} of a contender"),
            }
        }
    }

    fn step_peer(peer: &mut Peer, now: LocalTime, event: EventOf<Node>, out: &mut Actions<Role>) {
        let mut own = Actions::<Node>::default();
        peer.node.step(now, event, &mut own);
        for action in own.drain() {
            match action {
                Action::Send { body, .. } => out.send(CONTROLS[peer.at], Word::Pool(body)),
                Action::SetTimer { after, .. } => out.set_timer(after, Timer::Node),
                Action::Reply { id, body } => out.reply(id, body),
                other => panic!("{other:?} of a database or a worker"),
            }
        }
    }
}

impl Core for Role {
    type Message = Word;
    type Timer = Timer;
    type Request = NodeAsk;
    type Reply = NodeAnswer;
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match self {
            Role::Plane(plane, kept) => {
                let event = match event {
                    Event::Start => Event::Start,
                    Event::Message { from, body } => Event::Message { from, body },
                    Event::Timer(Timer::Plane(when)) => Event::Timer(when),
                    Event::Request { id, .. } => {
                        let body = PlaneAsk::Report;
                        Event::Request { id, body }
                    }
                    Event::Timer(Timer::Node) | Event::Persisted(_) => return,
                };
                Self::step_plane(plane, kept, now, event, out);
            }
            Role::Store(store) => {
                if let Event::Message {
                    from,
                    body: Word::ToStore(word),
                } = event
                    && let Some(answer) = store.hear(now, from, word)
                {
                    out.send(from, Word::FromStore(answer));
                }
            }
            Role::Peer(peer) => {
                let event = match event {
                    Event::Start => {
                        peer.heard = now;
                        Some(Event::Start)
                    }
                    Event::Message { from, body } => peer.hear(now, from, body),
                    Event::Timer(_) => {
                        peer.look(now);
                        Some(Event::Timer(NodeTimer))
                    }
                    Event::Request { id, body } => Some(Event::Request { id, body }),
                    Event::Persisted(_) => None,
                };
                if let Some(event) = event {
                    Self::step_peer(peer, now, event, out);
                }
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Role::Plane(plane, _) => plane.check(),
            Role::Store(_) => Ok(()),
            Role::Peer(peer) => peer.node.check(),
        }
    }

    fn digest(&self) -> u64 {
        match self {
            Role::Plane(plane, _) => plane.digest(),
            Role::Store(store) => store.kept.borrow().written,
            Role::Peer(peer) => peer.node.digest(),
        }
    }
}

/// The pool of the other tests, with two control planes.
pub struct Pair {
    pub pool: Pool,
    pub kept: Rc<RefCell<Kept>>,
    pub takes_all: bool,
}

impl Pair {
    pub fn new(seed: u64) -> Self {
        Self {
            pool: Pool::new(SHAPE, seed),
            kept: Rc::default(),
            takes_all: false,
        }
    }
}

impl System for Pair {
    type Core = Role;

    fn start(&mut self, node: NodeId, life: Life, _: Vec<()>) -> Role {
        let kept = Rc::clone(&self.kept);
        if node == STORE {
            // Members that agree on who leads anew begin all leases anew.
            let takes_all = self.takes_all;
            return Role::Store(Store { kept, takes_all });
        }
        if CONTROLS.contains(&node) {
            let name = format!("n{}", node.0);
            let seed = self.pool.drawn(node, life);
            let plane = Contender::several(self.pool.options, LEASE, name, STORE, seed);
            return Role::Plane(Box::new(plane), kept);
        }
        let node = Box::new(self.pool.start(node, life, Vec::new()));
        Role::Peer(Peer {
            node,
            at: 0,
            heard: LocalTime::default(),
        })
    }
}

pub fn world(seed: u64) -> WorldOptions {
    let topology = Topology::single(STORE.0 + 1, Link::after(Nanos::from_millis(1)));
    let mut options = WorldOptions::new(seed, topology);
    options.transport = Transport::Datagram;
    options
}
