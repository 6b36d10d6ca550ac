//! What a client does when an operation is refused, or not answered.

use manxdb_core::Nanos;

use super::{Client, ClientAnswer, Operation};
use crate::ids::{Config, RpcId, View};
use crate::message::{CurpMessage, Refusal};
use crate::node::{CurpTimer, Outbox};
use crate::wire::{Datagram, Op, RecordedRequest, Status};

/// How often the time is doubled after which an operation is tried again that nothing is heard of.
const AGAIN_DOUBLED: u32 = 5;

impl Operation {
    /// After which time it is tried again. Nothing is lost on the way to a master: one that says nothing
    /// has most often not got to it, and would be sent large commands faster than it can take them.
    pub(super) fn wait(&mut self, patience: Nanos) -> Nanos {
        let wait = Nanos(patience.0 << self.silent.min(AGAIN_DOUBLED));
        self.silent += 1;
        assert!(wait >= patience, "waiting grows");
        assert!(
            self.silent <= self.attempt,
            "who was silent in a view was asked in it"
        );
        wait
    }
}

impl Client {
    pub(crate) fn on_timer(&mut self, timer: &CurpTimer, out: &mut impl Outbox) {
        match timer {
            CurpTimer::Race { seq, attempt } if self.is_at(*seq, *attempt) => {
                // Records may be lost: they go out again, and a sync races them.
                self.record_again(*seq, out);
                self.ask_sync(*seq, out);
            }
            CurpTimer::Again { seq, attempt } if self.is_at(*seq, *attempt) => {
                self.submit(*seq, out);
                if !self.locating {
                    self.locate(out);
                }
            }
            CurpTimer::LocateAgain(asked) if *asked == self.asked => {
                let idle = self.id.is_some() && self.config.is_some();
                if self.locating || !idle {
                    self.locate(out);
                }
            }
            _ => {}
        }
    }

    fn is_at(&self, seq: u64, attempt: u32) -> bool {
        let operation = self.operations.get(&seq);
        operation.is_some_and(|operation| operation.attempt == attempt)
    }

    fn record_again(&self, seq: u64, out: &mut impl Outbox) {
        let (Some(client), Some(config)) = (self.id, &self.config) else {
            return;
        };
        let Some(operation) = self.operations.get(&seq) else {
            return;
        };
        if operation.view != config.view {
            return;
        }
        if let Some(datagram) = record(operation, config, RpcId { client, seq }) {
            for witness in &config.witnesses {
                if !operation.accepted.contains(&witness.node) {
                    out.send(witness.node, CurpMessage::Datagram(datagram.clone()));
                }
            }
        }
    }

    /// The master is there and does not serve yet: what it refused is tried again as soon as at first.
    fn hear_again(&mut self, view: View, seq: u64, out: &mut impl Outbox) {
        let operation = self.operations.get_mut(&seq);
        if let Some(operation) = operation.filter(|operation| operation.view == view) {
            assert!(operation.attempt > 0, "only what was asked is refused");
            let has_waited = operation.silent > 1;
            operation.silent = 0;
            if has_waited {
                let attempt = operation.attempt;
                out.set_timer(self.options.patience, CurpTimer::Again { seq, attempt });
            }
        }
    }

    pub(super) fn not_done(&mut self, view: View, rpc: RpcId, why: Refusal, out: &mut impl Outbox) {
        match why {
            Refusal::WrongView => {
                let known = self.config.as_ref().map(|config| config.view);
                self.hear_again(view, rpc.seq, out);
                if known == Some(view) && !self.locating {
                    self.locate(out);
                }
            }
            Refusal::Expired if self.operations.contains_key(&rpc.seq) => {
                // Nobody can say any more what became of its operations.
                for (_, operation) in std::mem::take(&mut self.operations) {
                    let answer = ClientAnswer {
                        answer: None,
                        attempts: operation.attempt,
                    };
                    out.reply(operation.request, answer);
                }
                self.id = None;
                self.nonce += 1;
                self.open(out);
                self.locate(out);
            }
            Refusal::Expired => {}
        }
    }
}

/// The record of an operation, for witnesses of a view.
pub(super) fn record(operation: &Operation, config: &Config, rpc: RpcId) -> Option<Datagram> {
    Some(Datagram {
        op: Op::Record,
        status: Status::None,
        view: config.view,
        asks: true,
        token: config.record_token,
        rpc,
        hashes: operation.hashes.clone()?,
        entries: Vec::new(),
        request: Some(RecordedRequest {
            stamp: operation.stamp,
            command: operation.command.clone(),
        }),
    })
}
