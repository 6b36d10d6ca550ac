//! Holds messages about a change until its record is on disk.

use std::collections::VecDeque;

use manxdb_core::{Actions, NodeId, Token};

use super::Control;
use crate::message::Message;
use crate::record::Record;

/// Records on their way to disk, and the messages that wait for them.
///
/// A step's messages wait for its last record. Messages of a step without records go at once,
/// unless others wait: those to one node stay in their order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Of this step.
    records: Vec<Record>,
    messages: Vec<(NodeId, Message)>,
    held: VecDeque<(Token, Vec<(NodeId, Message)>)>,
    tokens: u64,
}

impl Outbox {
    pub(super) fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        self.messages.push((to, message));
    }

    /// A record and all before it are on disk: what waited for them goes.
    pub(super) fn persisted(&mut self, token: Token, out: &mut Actions<Control>) {
        while self.held.front().is_some_and(|(held, _)| *held <= token) {
            for (to, message) in self.held.pop_front().into_iter().flat_map(|held| held.1) {
                out.send(to, message);
            }
        }
    }

    /// Ends a step.
    pub(super) fn flush(&mut self, out: &mut Actions<Control>) {
        let free = self.records.is_empty() && self.held.is_empty();
        if free {
            for (to, message) in self.messages.drain(..) {
                out.send(to, message);
            }
            return;
        }
        for record in self.records.drain(..) {
            self.tokens += 1;
            out.persist(record, Token(self.tokens));
        }
        let messages = std::mem::take(&mut self.messages);
        self.held.push_back((Token(self.tokens), messages));
    }
}
