//! Holds messages about a change until its record is on disk.

use manxdb_core::check::ensure;
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
    /// Records that are on disk.
    persisted: u64,
}

impl Outbox {
    pub(super) fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        self.messages.push((to, message));
    }

    /// Records written so far: the token of the last.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// What is true between two steps: what waits does so for records that were written.
    pub(super) fn check(&self) -> Result<(), String> {
        ensure(self.records.is_empty() && self.messages.is_empty(), || {
            "a step ends with nothing left to write or to send".to_owned()
        })?;
        let tokens: Vec<u64> = self.held.iter().map(|(token, _)| token.0).collect();
        ensure(tokens.is_sorted(), || {
            format!("messages wait in the order of records: {tokens:?}")
        })?;
        ensure(
            tokens.first().is_none_or(|first| *first > self.persisted),
            || {
                format!(
                    "messages wait for what is on disk: {tokens:?}, {}",
                    self.persisted
                )
            },
        )?;
        ensure(
            tokens.last().is_none_or(|last| *last <= self.tokens),
            || format!("messages wait for {} records", self.tokens),
        )
    }

    /// A record and all before it are on disk: what waited for them goes.
    pub(super) fn persisted(&mut self, token: Token, out: &mut Actions<Control>) {
        assert!(
            token.0 <= self.tokens,
            "a record that is on disk was written: {} of {}",
            token.0,
            self.tokens
        );
        self.persisted = self.persisted.max(token.0);
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
        assert!(self.tokens > 0, "messages that are held wait for a record");
        assert!(
            self.held
                .back()
                .is_none_or(|(held, _)| held.0 <= self.tokens),
            "messages go in the order of the steps that made them"
        );
        let messages = std::mem::take(&mut self.messages);
        self.held.push_back((Token(self.tokens), messages));
    }
}
