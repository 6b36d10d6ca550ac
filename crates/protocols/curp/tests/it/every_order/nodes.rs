//! Real nodes, named by what has happened to them.
//!
//! A core is deterministic: what it is, follows from the events that it got, in their order. So a node's
//! state is named by its history, each event runs once behind each history, and what came of it is kept:
//! everything that the exploration looks at is in a [`Past`].

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use manxdb_core::{Action, ActionOf, Actions, Core, Event, EventOf, LocalTime, NodeId, RequestId};
use manxdb_curp::ids::View;
use manxdb_curp::log::Change;
use manxdb_curp::message::{CurpMessage, Refusal};
use manxdb_curp::mutants::Mutant;
use manxdb_curp::options::PIECE_BYTES_MAX;
use manxdb_curp::wire::Op;
use manxdb_curp::{CurpTimer, Options};

use super::numbered::Numbered;
use super::past::{CLIENTS, COORDINATOR, FIRST, Happening, MessageId, NODES, Past, PastId};
use crate::common::Node;
use crate::common::machine::{Answer, Command, bytes};

/// No timer is compared with a clock, so it stands still.
const NOW: LocalTime = LocalTime(1_000_000_000);

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// In the cores.
    Core(Mutant),
    /// A backup is told what operations did, and not whose they were: a master made of it has the state and
    /// no completion records.
    CompletionsNotRestored,
}

pub struct Nodes {
    options: Options,
    loses_completions: bool,
    /// What each node got until there was a view and both clients had names.
    beginnings: Vec<Vec<EventOf<Node>>>,
    pasts: Vec<Past>,
    follows: HashMap<(PastId, Happening), PastId>,
    pub messages: Numbered<CurpMessage>,
    timers: Vec<CurpTimer>,
    pub commands: Numbered<Command>,
    pub answers: Numbered<Answer>,
    /// Events that ran on a core.
    pub events: usize,
}

fn options(defect: Option<Defect>) -> Options {
    let mutant = match defect {
        Some(Defect::Core(mutant)) => Some(mutant),
        _ => None,
    };
    let defaults = Options::default();
    Options {
        servers: 3,
        table: (1, 8),
        suspect_after: defaults.heartbeat_every,
        piece_bytes: PIECE_BYTES_MAX,
        mutant,
        ..defaults
    }
}

fn node_id(node: usize) -> NodeId {
    NodeId(u32::try_from(node).unwrap())
}

fn open(node: usize, life: u64, options: Options) -> Node {
    let opened = Node::open(node_id(node), life, options, 7, Vec::new());
    opened.expect("an empty disk")
}

/// One event, and what is on disk because of it.
fn feed(core: &mut Node, event: EventOf<Node>) -> Vec<ActionOf<Node>> {
    let mut done = Vec::new();
    let mut events = VecDeque::from([event]);
    while let Some(event) = events.pop_front() {
        let mut actions = Actions::default();
        core.step(NOW, event, &mut actions);
        for action in actions.drain() {
            match action {
                Action::Persist { token, .. } => events.push_back(Event::Persisted(token)),
                other => done.push(other),
            }
        }
    }
    done
}

impl Nodes {
    /// A cluster that serves its first view, of which both clients know and have names.
    pub fn new(defect: Option<Defect>) -> Self {
        let options = options(defect);
        let mut nodes = Self {
            options,
            loses_completions: defect == Some(Defect::CompletionsNotRestored),
            beginnings: vec![Vec::new(); NODES],
            pasts: Vec::new(),
            follows: HashMap::new(),
            messages: Numbered::new(),
            timers: Vec::new(),
            commands: Numbered::new(),
            answers: Numbered::new(),
            events: 0,
        };
        for node in 0..NODES {
            nodes.pasts.push(Past {
                node,
                core: Some(open(node, 1, options)),
                ..Past::default()
            });
        }
        for node in 0..NODES {
            nodes.begin(node, Event::Start);
        }
        nodes.begin(COORDINATOR, Event::Timer(CurpTimer::Coordinate));
        for client in CLIENTS {
            nodes.begin(client, Event::Timer(CurpTimer::LocateAgain(1)));
        }
        // The heartbeat of a master brings it a lease.
        nodes.begin(FIRST, Event::Timer(CurpTimer::Heartbeat));
        for node in 0..NODES {
            nodes.look(node);
        }
        let view = nodes.pasts[FIRST].view;
        assert!(view != View::default(), "there is a master");
        for client in CLIENTS {
            assert_eq!(nodes.pasts[client].view, view);
        }
        nodes
    }

    /// Lets something happen before the exploration, with all that follows from it.
    fn begin(&mut self, node: usize, event: EventOf<Node>) {
        let mut open = VecDeque::from([(node, event)]);
        while let Some((node, event)) = open.pop_front() {
            self.beginnings[node].push(event.clone());
            let core = self.pasts[node].core.as_mut().unwrap();
            for action in feed(core, event) {
                match action {
                    Action::Send { to, body } => {
                        let from = node_id(node);
                        open.push_back((to.0 as usize, Event::Message { from, body }));
                    }
                    // What was executed so far is synced before anything is explored.
                    Action::SetTimer { timer, .. } if matches!(timer, CurpTimer::SyncDue(_)) => {
                        open.push_back((node, Event::Timer(timer)));
                    }
                    Action::SetTimer { timer, .. } => self.set_timer(node, timer),
                    _ => {}
                }
            }
        }
    }

    pub fn past(&self, id: PastId) -> &Past {
        &self.pasts[id as usize]
    }

    pub fn core(&mut self, id: PastId) -> &Node {
        if self.past(id).core.is_none() {
            let core = self.again(id);
            self.pasts[id as usize].core = Some(core);
        }
        self.pasts[id as usize].core.as_ref().unwrap()
    }

    pub fn timer(&self, number: u32) -> &CurpTimer {
        &self.timers[number as usize]
    }

    /// The last timer of a kind that a node has set.
    pub fn timer_of(&self, past: PastId, kind: impl Fn(&CurpTimer) -> bool) -> Option<u32> {
        let mut timers = self.past(past).timers.iter().rev();
        timers.find(|timer| kind(self.timer(**timer))).copied()
    }

    pub fn number_timer(&mut self, timer: CurpTimer) -> u32 {
        let known = self.timers.iter().position(|known| *known == timer);
        let number = known.unwrap_or(self.timers.len());
        if known.is_none() {
            self.timers.push(timer);
        }
        u32::try_from(number).unwrap()
    }

    /// Keeps the timers that the exploration fires, the newest of each attempt.
    fn set_timer(&mut self, past: usize, timer: CurpTimer) {
        if let CurpTimer::Race { seq, attempt } | CurpTimer::Again { seq, attempt } = &timer {
            self.drop_timers(past, *seq, *attempt);
        }
        let is_kept = matches!(
            timer,
            CurpTimer::SyncDue(_)
                | CurpTimer::LeaseEnds(_)
                | CurpTimer::LeaseOver(_)
                | CurpTimer::Race { .. }
                | CurpTimer::Again { .. }
        );
        if is_kept {
            let number = self.number_timer(timer);
            self.pasts[past].timers.push(number);
        }
    }

    /// Drops the timers of an operation's attempts before this one.
    fn drop_timers(&mut self, past: usize, operation: u64, before: u32) {
        let timers = &self.timers;
        let kept = |number: &u32| match &timers[*number as usize] {
            CurpTimer::Race { seq, attempt } | CurpTimer::Again { seq, attempt } => {
                *seq != operation || *attempt >= before
            }
            _ => true,
        };
        self.pasts[past].timers.retain(kept);
    }

    fn event(&self, happening: Happening) -> EventOf<Node> {
        match happening {
            Happening::Letter { from, message, .. } | Happening::Datagram { from, message } => {
                let from = NodeId(from.into());
                let body = self.messages.get(message).clone();
                Event::Message { from, body }
            }
            Happening::Timer(timer) => Event::Timer(self.timer(timer).clone()),
            Happening::Asked(command) => Event::Request {
                id: RequestId(command.into()),
                body: bytes(self.commands.get(command)),
            },
            Happening::Restarted => Event::Start,
        }
    }

    /// A core that has the history of a past, from its beginning.
    fn again(&self, id: PastId) -> Node {
        let node = self.past(id).node;
        let mut happenings = Vec::new();
        let mut at = id;
        while let Some(happening) = self.past(at).happening {
            happenings.push(happening);
            at = self.past(at).parent;
        }
        let mut core = open(node, 1, self.options);
        for event in self.beginnings[node].clone() {
            feed(&mut core, event);
        }
        for happening in happenings.into_iter().rev() {
            if happening == Happening::Restarted {
                core = open(node, 2, self.options);
            }
            feed(&mut core, self.event(happening));
        }
        core
    }

    /// Whether two things that happened make the same of a node in either order, and this is the order
    /// that is taken for both: records of different keys, at a table that has room for all.
    fn is_in_order(&self, one: Happening, other: Happening) -> bool {
        let record = |happening: Happening| match happening {
            Happening::Datagram { message, .. } => match self.messages.get(message) {
                CurpMessage::Datagram(asked) if asked.op == Op::Record && asked.asks => {
                    Some((message, asked))
                }
                _ => None,
            },
            _ => None,
        };
        match (record(one), record(other)) {
            (Some(one), Some(other)) => {
                one.0 < other.0
                    && one
                        .1
                        .hashes
                        .iter()
                        .all(|hash| !other.1.hashes.contains(hash))
            }
            _ => false,
        }
    }

    /// A node after one more thing has happened to it.
    pub fn after(&mut self, id: PastId, happening: Happening) -> PastId {
        if let Some(next) = self.follows.get(&(id, happening)) {
            return *next;
        }
        if let Some(last) = self.past(id).happening
            && self.is_in_order(happening, last)
        {
            let middle = self.after(self.past(id).parent, happening);
            let next = self.after(middle, last);
            self.follows.insert((id, happening), next);
            return next;
        }
        let core = self.pasts[id as usize].core.take();
        let mut core = core.unwrap_or_else(|| self.again(id));
        let past = self.past(id);
        let mut next = Past {
            node: past.node,
            parent: id,
            happening: Some(happening),
            letters: past.letters.clone(),
            datagrams: past.datagrams.clone(),
            taken: past.taken,
            got: past.got.clone(),
            timers: past.timers.clone(),
            answers: past.answers.clone(),
            repeats: past.repeats,
            asked: past.asked,
            ..Past::default()
        };
        let node = past.node;
        match happening {
            Happening::Letter { from, taken, .. } => next.taken[usize::from(from)] = taken,
            Happening::Datagram { message, .. } if next.got.contains(&message) => next.repeats += 1,
            Happening::Datagram { message, .. } => next.got.push(message),
            Happening::Timer(timer) => {
                next.timers.retain(|other| *other != timer);
                let timer = self.timer(timer);
                let is_impatient =
                    matches!(timer, CurpTimer::Again { .. } | CurpTimer::Race { .. });
                next.repeats += u8::from(is_impatient);
            }
            Happening::Asked(_) => next.asked += 1,
            Happening::Restarted => core = open(node, 2, self.options),
        }
        let number = self.pasts.len();
        self.pasts.push(next);
        let event = self.event(happening);
        self.events += 1;
        match catch_unwind(AssertUnwindSafe(|| feed(&mut core, event))) {
            Ok(actions) => self.take_in(number, actions),
            Err(_) => self.pasts[number].wrong = Some("an assertion failed".to_owned()),
        }
        self.pasts[number].core = Some(core);
        if self.pasts[number].wrong.is_none() {
            self.look(number);
        }
        let number = PastId::try_from(number).unwrap();
        self.follows.insert((id, happening), number);
        number
    }

    fn take_in(&mut self, past: usize, actions: Vec<ActionOf<Node>>) {
        for action in actions {
            match action {
                Action::Send { to, body } => self.sent(past, to.0 as usize, body),
                Action::SetTimer { timer, .. } => self.set_timer(past, timer),
                Action::Reply { body, .. } => match body.answer {
                    Some((answer, completion)) => {
                        let answer = postcard::from_bytes(&answer).unwrap();
                        let answer = self.answers.number(answer);
                        let past_of = &mut self.pasts[past];
                        past_of.answers.push((answer, completion));
                        let seq = past_of.answers.len() as u64;
                        self.drop_timers(past, seq, u32::MAX);
                    }
                    None => self.pasts[past].wrong = Some("a client was forgotten".to_owned()),
                },
                _ => {}
            }
        }
    }

    fn sent(&mut self, past: usize, to: usize, mut body: CurpMessage) {
        // The coordinator's part in these is played by the exploration.
        let is_played = matches!(
            body,
            CurpMessage::Heartbeat { .. } | CurpMessage::Lease { .. } | CurpMessage::Locate
        );
        if is_played {
            return;
        }
        if self.loses_completions
            && let CurpMessage::Append { entries, .. } = &mut body
        {
            for entry in entries {
                if let Change::Executed { rpc, .. } = &mut entry.change {
                    rpc.seq += 1_000; // nobody asks for that
                }
            }
        }
        let is_datagram = matches!(body, CurpMessage::Datagram(_));
        let number = self.messages.number(body);
        let past = &mut self.pasts[past];
        if !is_datagram {
            past.letters[to].push(number);
        } else if !past.datagrams[to].contains(&number) {
            past.datagrams[to].push(number);
        }
    }

    /// Notes what a core shows.
    fn look(&mut self, past: usize) {
        let core = self.pasts[past].core.as_ref().unwrap();
        let wrong = core.check().err();
        let server = core.server();
        let known = core.client().and_then(|client| client.config());
        let view = known.map(|config| config.view);
        let view = view.or_else(|| server?.serves()).unwrap_or_default();
        let values = server.and_then(|server| server.served()).cloned();
        let counts = server.and_then(manxdb_curp::server::Server::counts);
        let served = values.map(|state| {
            let all = (0..2u8).map(|key| (key, state.values.get(&key).cloned()));
            self.answers.number(all.collect())
        });
        let past = &mut self.pasts[past];
        (past.wrong, past.view, past.served) = (wrong, view, served);
        past.replayed = counts.map_or(0, |counts| counts.replayed);
    }

    /// Whether a node does nothing with a message, now and for ever.
    pub fn ignores(&self, past: &Past, message: MessageId) -> bool {
        let is_over = |seq: u64| seq <= past.answers.len() as u64;
        match self.messages.get(message) {
            CurpMessage::Ran { view, rpc, .. } => *view != past.view || is_over(rpc.seq),
            CurpMessage::Refused { why, .. } => *why == Refusal::WrongView,
            CurpMessage::Run { view, .. } | CurpMessage::Sync { view, .. } => *view != past.view,
            CurpMessage::Datagram(datagram) if datagram.op == Op::Record && !datagram.asks => {
                datagram.view != past.view || is_over(datagram.rpc.seq)
            }
            _ => false,
        }
    }

    /// What happened to a node, for messages.
    pub fn tell(&self, from: PastId, to: PastId) -> Vec<String> {
        let mut told = Vec::new();
        let mut at = to;
        while at != from {
            let past = self.past(at);
            let Some(happening) = past.happening else {
                break;
            };
            let event = self.event(happening);
            told.push(format!("n{} {happening:?} {event:?}", past.node));
            at = past.parent;
        }
        told.reverse();
        told
    }
}
