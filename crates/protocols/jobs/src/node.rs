//! One of the three roles, for drivers that run nodes of all kinds.

use manxdb_core::{Action, Actions, Core, Event, EventOf, LocalTime};

use crate::client::{Answer, Ask, Beat, Client};
use crate::control::{Control, Report, Tick};
use crate::message::Message;
use crate::record::Record;
use crate::worker::{BeatTimer, Given, SlotAsk, Worker};

/// A node of a pool.
#[derive(Debug)]
pub enum Node {
    /// The control plane.
    Control(Box<Control>),
    /// A worker.
    Worker(Box<Worker>),
    /// A database.
    Client(Box<Client>),
}

/// Requests to a node from outside.
#[derive(Debug, Clone)]
pub enum NodeAsk {
    /// To the control plane: the state of the pool.
    Report,
    /// Of a worker.
    Slot(SlotAsk),
    /// Of a database.
    Client(Ask),
}

/// Answers to requests.
#[derive(Debug, Clone)]
pub enum NodeAnswer {
    /// The control plane.
    Report(Box<Report>),
    /// A worker.
    Slot(Given),
    /// A database.
    Client(Answer),
}

/// A beat of any of the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeTimer;

impl Node {
    fn inner<C>(
        core: &mut C,
        now: LocalTime,
        event: EventOf<C>,
        out: &mut Actions<Node>,
        answer: impl Fn(C::Reply) -> NodeAnswer,
        record: impl Fn(C::Record) -> Option<Record>,
    ) where
        C: Core<Message = Message>,
    {
        let mut own = Actions::<C>::default();
        core.step(now, event, &mut own);
        out.work(own.take_work());
        for action in own.drain() {
            match action {
                Action::Send { to, body } => out.send(to, body),
                Action::SetTimer { after, .. } => out.set_timer(after, NodeTimer),
                Action::Persist { record: one, token } => {
                    let one = record(one);
                    assert!(one.is_some(), "who waits for a record has one to write");
                    if let Some(one) = one {
                        out.persist(one, token);
                    }
                }
                Action::Reply { id, body } => out.reply(id, answer(body)),
                Action::Mark { .. } | Action::Wait { .. } => {} // notes about transactions
            }
        }
    }
}

/// The event of a role, if it is one of its own.
fn of_role<T, Q>(
    event: EventOf<Node>,
    timer: T,
    ask: impl Fn(NodeAsk) -> Option<Q>,
) -> Option<Event<Message, T, Q>> {
    Some(match event {
        Event::Start => Event::Start,
        Event::Message { from, body } => Event::Message { from, body },
        Event::Timer(NodeTimer) => Event::Timer(timer),
        Event::Request { id, body } => Event::Request {
            id,
            body: ask(body)?,
        },
        Event::Persisted(token) => Event::Persisted(token),
    })
}

impl Core for Node {
    type Message = Message;
    type Timer = NodeTimer;
    type Request = NodeAsk;
    type Reply = NodeAnswer;
    type Record = Record;

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match self {
            Node::Control(control) => {
                let ask = |ask| matches!(ask, NodeAsk::Report).then_some(());
                if let Some(event) = of_role(event, Tick, ask) {
                    let answer = |report| NodeAnswer::Report(Box::new(report));
                    Self::inner(control.as_mut(), now, event, out, answer, Some);
                }
            }
            Node::Worker(worker) => {
                let ask = |ask| match ask {
                    NodeAsk::Slot(ask) => Some(ask),
                    NodeAsk::Report | NodeAsk::Client(_) => None,
                };
                if let Some(event) = of_role(event, BeatTimer, ask) {
                    Self::inner(worker.as_mut(), now, event, out, NodeAnswer::Slot, |()| {
                        None
                    });
                }
            }
            Node::Client(client) => {
                let ask = |ask| match ask {
                    NodeAsk::Client(ask) => Some(ask),
                    NodeAsk::Report | NodeAsk::Slot(_) => None,
                };
                if let Some(event) = of_role(event, Beat, ask) {
                    Self::inner(client.as_mut(), now, event, out, NodeAnswer::Client, |()| {
                        None
                    });
                }
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Node::Control(control) => control.check(),
            Node::Worker(worker) => worker.check(),
            Node::Client(client) => client.check(),
        }
    }

    fn digest(&self) -> u64 {
        match self {
            Node::Control(control) => control.digest(),
            Node::Worker(worker) => worker.digest(),
            Node::Client(client) => client.digest(),
        }
    }
}
