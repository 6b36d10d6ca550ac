//! Stepping cores and doing what they ask for.

use std::net::SocketAddr;

use manxdb_core::channel::{Frame, Reliable};
use manxdb_core::{Action, Core, Event, EventOf, Message, Nanos, NodeId, Token};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::agenda::Item;
use super::{NetError, Runtime, wall};
use crate::driver::Driver;
use crate::frame;
use crate::packet::Packet;
use crate::tenure::Tenure;

/// Items of the agenda done in one round, so that sockets are read in between.
const DUE_MAX: usize = 4_096;

impl<C, D> Runtime<C, D>
where
    C: Core,
    C::Record: Serialize + DeserializeOwned,
    C::Message: Serialize + DeserializeOwned,
    D: Driver<C>,
{
    pub(super) fn start(&mut self) {
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.step(node, Event::Start);
        }
        self.outside.now = self.now();
        self.driver.begin(&mut self.outside);
        self.serve_driver();
    }

    /// One event of one node.
    pub(super) fn step(&mut self, node: NodeId, event: EventOf<Reliable<C>>) {
        if self.tenure.as_ref().is_some_and(Tenure::is_over) {
            self.failure.get_or_insert(NetError::TenureOver);
            return;
        }
        let Some(hosted) = self.nodes.get_mut(&node) else {
            self.counters.unknown += 1;
            return;
        };
        let mut actions = std::mem::take(&mut self.actions);
        hosted.core.step(wall(), event, &mut actions);
        let _ = actions.take_work();
        for action in actions.drain() {
            match action {
                Action::Send { to, body } => self.send(node, to, body),
                Action::SetTimer { after, timer } => {
                    let at = self.now() + after;
                    self.agenda.add(at, Item::Timer { node, timer });
                }
                Action::Reply { id, body } => self.replies.push_back((node, id, body)),
                Action::Persist { record, token } => self.persist(node, &record, token),
                Action::Mark { txn, phase } => self.pass_on_mark(node, txn, phase),
                Action::Wait { .. } => {}
            }
        }
        self.actions = actions;
    }

    fn pass_on_mark(&mut self, node: NodeId, txn: u64, phase: &'static str) {
        self.outside.now = self.now();
        if let Some(hosted) = self.nodes.get(&node) {
            let core = hosted.core.core();
            self.driver.marked(&mut self.outside, core, txn, phase);
        }
    }

    fn persist(&mut self, node: NodeId, record: &C::Record, token: Token) {
        let hosted = self.nodes.get(&node);
        let journal = hosted.and_then(|hosted| Some((hosted.journal.as_ref()?, hosted.supersedes)));
        let written = match journal {
            Some((journal, supersedes)) => journal.write(record, token, supersedes(record)),
            None => Err(format!("node {} has none", node.0)),
        };
        // A core that waits for ever looks like one that works: the process ends instead.
        if let Err(why) = written {
            self.failure = Some(NetError::Journal(why));
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, body: Frame<C::Message>) {
        let now = self.now();
        if from == to {
            self.agenda.add(now, Item::Arrival { from, to, body });
            return;
        }
        if body.is_datagram() && !self.nodes.contains_key(&to) {
            return self.send_datagram(from, to, &body);
        }
        let origin = self.nodes.get(&from).map(|hosted| hosted.region);
        let (Some(origin), Some((address, region))) = (origin, self.settings.directory.find(to))
        else {
            self.counters.unknown += 1;
            return;
        };
        if self.nodes.contains_key(&to) && !self.holds_hosted {
            self.agenda.add(now, Item::Arrival { from, to, body });
            return;
        }
        let due = self.holder.due(now, (from, origin), (to, region));
        if self.nodes.contains_key(&to) {
            self.agenda.add(due, Item::Arrival { from, to, body });
            return;
        }
        *self.counters.sent.entry(body.label()).or_default() += 1;
        let frame = match frame::encode(&Packet::Message { from, to, body }) {
            Ok(frame) => frame,
            Err(error) => {
                self.counters.dropped += 1;
                tracing::error!(from = from.0, to = to.0, %error, "a message cannot be sent");
                return;
            }
        };
        for other in self.settings.directory.others(to).to_vec() {
            self.dispatch(due, other, frame.clone());
        }
        self.dispatch(due, address, frame);
    }

    /// Sends a frame now, or has it held until it is due.
    fn dispatch(&mut self, due: Nanos, to: SocketAddr, frame: Vec<u8>) {
        let now = self.now();
        // Nothing that is to leave before it is held still.
        if due <= now && self.agenda.first().is_none_or(|first| first > now) {
            self.depart(to, &frame);
        } else {
            self.agenda.add(due, Item::Departure { to, frame });
        }
    }

    /// Does what is due, in order.
    pub(super) fn do_due(&mut self) {
        let now = self.now();
        for _ in 0..DUE_MAX {
            let Some(item) = self.agenda.take_due(now) else {
                break;
            };
            match item {
                Item::Timer { node, timer } => self.step(node, Event::Timer(timer)),
                Item::Arrival { from, to, body } => self.step(to, Event::Message { from, body }),
                Item::Departure { to, frame } => self.depart(to, &frame),
                Item::DatagramDeparture { node, to, bytes } => {
                    self.depart_datagram(node, to, &bytes);
                }
                Item::DatagramArrival { from, node, body } => self.arrive(from, node, body),
                Item::Wake { key } => {
                    self.outside.now = self.now();
                    self.driver.wake(&mut self.outside, key);
                }
            }
            self.serve_driver();
        }
    }

    /// The driver has seen all that this round brought.
    pub(super) fn end_round(&mut self) {
        self.outside.now = self.now();
        for (node, hosted) in &self.nodes {
            self.driver
                .look(&mut self.outside, *node, hosted.core.core());
        }
        self.driver.round_ends(&mut self.outside);
        self.serve_driver();
    }

    /// Sockets of the driver's own are ready.
    pub(super) fn rouse_driver(&mut self) {
        self.outside.now = self.now();
        self.driver.ready(&mut self.outside);
        self.serve_driver();
    }

    /// Hands replies to the driver and does what it asks for, until there is no more of either.
    pub(super) fn serve_driver(&mut self) {
        loop {
            for (after, key) in std::mem::take(&mut self.outside.wakes) {
                let at = self.now() + after;
                self.agenda.add(at, Item::Wake { key });
            }
            if let Some((node, id, body)) = self.replies.pop_front() {
                self.outside.now = self.now();
                self.driver.reply(&mut self.outside, node, id, body);
            }
            let asked = std::mem::take(&mut self.outside.asked);
            if asked.is_empty() && self.replies.is_empty() && self.outside.wakes.is_empty() {
                return;
            }
            for (node, id, body) in asked {
                self.step(node, Event::Request { id, body });
            }
        }
    }
}
