//! Tells witnesses what they may forget, one datagram at a time to each.

use std::collections::VecDeque;

use crate::ids::{ClientId, Config, Member, RpcId};
use crate::message::CurpMessage;
use crate::node::Outbox;
use crate::wire::{Datagram, ENTRIES_MAX, GcEntry, Op, Status};

/// The way to one witness of a view.
#[derive(Debug)]
pub(crate) struct GcLink {
    pub(crate) witness: Member,
    /// What it may forget, oldest first. The first `sent` of them are under way.
    queue: VecDeque<GcEntry>,
    sent: usize,
    /// Names what is under way; an answer to an earlier one says nothing about it.
    round: u64,
}

impl GcLink {
    pub(crate) fn new(witness: Member) -> Self {
        Self {
            witness,
            queue: VecDeque::new(),
            sent: 0,
            round: 0,
        }
    }

    /// What is synced, so may go.
    pub(crate) fn add(&mut self, entry: GcEntry) {
        assert!(
            entry.rpc.client != ClientId(0),
            "a collection is of somebody's record"
        );
        self.queue.push_back(entry);
    }

    /// How many records the witness may have that are synced.
    pub(crate) fn waiting(&self) -> usize {
        assert!(self.sent <= self.queue.len(), "what is under way waits");
        self.queue.len()
    }

    /// Sends what waits, if nothing is under way.
    pub(crate) fn send(&mut self, config: &Config, out: &mut impl Outbox) {
        if self.sent == 0 && !self.queue.is_empty() {
            self.round += 1;
            self.sent = self.queue.len().min(ENTRIES_MAX);
            assert!(self.sent > 0, "an empty collection is not sent");
            self.send_again(config, out);
        }
    }

    /// Sends what is under way once more.
    pub(crate) fn send_again(&self, config: &Config, out: &mut impl Outbox) {
        if self.sent == 0 {
            return;
        }
        assert!(
            self.sent <= ENTRIES_MAX,
            "a collection fits into one packet"
        );
        let datagram = Datagram {
            op: Op::Gc,
            status: Status::None,
            view: config.view,
            asks: true,
            token: config.gc_token,
            rpc: RpcId {
                client: ClientId(0),
                seq: self.round,
            },
            hashes: Vec::new(),
            entries: self.queue.iter().take(self.sent).copied().collect(),
            request: None,
        };
        out.send(self.witness.node, CurpMessage::Datagram(datagram));
    }

    /// A witness has answered; whether it is about what is under way.
    pub(crate) fn answered(&mut self, datagram: &Datagram) -> bool {
        if self.sent == 0 || datagram.rpc.seq != self.round || datagram.status != Status::GcOk {
            return false;
        }
        assert!(
            self.sent <= self.queue.len(),
            "what is under way is at the front of the queue"
        );
        self.queue.drain(..self.sent);
        self.sent = 0;
        true
    }
}
