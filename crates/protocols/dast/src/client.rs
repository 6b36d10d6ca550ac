//! A client: it asks a replica of its home shard, and another one when that does not answer.

use std::collections::BTreeMap;

use manxdb_core::check::ensure;
use manxdb_core::{Digest, NodeId, RequestId};
use manxdb_txn::procedure::ShardId;

use crate::call::{Call, CallId, Level};
use crate::execution::Given;
use crate::message::DastMessage;
use crate::node::{DastTimer, Out};
use crate::replica::Shared;
use crate::timestamp::Timestamp;
use crate::waits::{ATTEMPT, wait};

/// What is asked of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The procedure's name.
    pub procedure: String,
    /// Its arguments.
    pub args: Vec<u8>,
    /// What the caller is promised.
    pub level: Level,
    /// Whose replicas coordinate it.
    pub home: ShardId,
}

/// What a cluster answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The call's identity.
    pub id: CallId,
    /// Its place in the order.
    pub at: Timestamp,
    /// What its pieces gave.
    pub given: Given,
    /// How often it was asked.
    pub attempts: u32,
}

#[derive(Debug)]
struct Asked {
    request: RequestId,
    call: Call,
    home: ShardId,
    after: Timestamp,
    attempts: u32,
}

/// One client with any number of calls under way.
pub struct Client {
    me: NodeId,
    shared: Shared,
    next: u64,
    asked: BTreeMap<u64, Asked>,
    /// The newest place in the order that an answer named.
    seen: Timestamp,
}

impl Client {
    /// Client `me`. Numbers of a later life do not meet those of an earlier one.
    #[must_use]
    pub fn new(me: NodeId, life: u64, shared: Shared) -> Self {
        Self {
            me,
            shared,
            next: life << 32,
            asked: BTreeMap::new(),
            seen: Timestamp::ZERO,
        }
    }

    pub(crate) fn ask(&mut self, request: RequestId, ask: Ask, out: &mut Out) {
        self.next += 1;
        let number = self.next;
        let ended_below = self.asked.keys().next().copied().unwrap_or(number);
        let call = Call {
            id: CallId {
                client: self.me,
                number,
            },
            procedure: ask.procedure,
            args: ask.args,
            level: ask.level,
            ended_below,
        };
        let after = match ask.level {
            Level::Serializable => Timestamp::ZERO,
            Level::Session | Level::Strict => self.seen,
        };
        let asked = Asked {
            request,
            call,
            home: ask.home,
            after,
            attempts: 0,
        };
        let before = self.asked.insert(number, asked);
        assert!(before.is_none(), "a number names one call of a client");
        self.submit(number, out);
    }

    fn submit(&mut self, number: u64, out: &mut Out) {
        let Some(asked) = self.asked.get_mut(&number) else {
            return;
        };
        let attempt = asked.attempts;
        asked.attempts += 1;
        let (call, after) = (asked.call.clone(), asked.after);
        let replicas: Vec<NodeId> = self.shared.topology.replicas(asked.home).collect();
        let turn = usize::try_from(number.wrapping_add(u64::from(attempt))).unwrap_or(0);
        let to = replicas[turn % replicas.len()];
        out.wait(call.id.for_traces(), Some(wait(ATTEMPT)));
        out.send(
            to,
            DastMessage::Submit {
                call: Box::new(call),
                after,
            },
        );
        let patience = self.shared.options.client_patience;
        out.set_timer(patience, DastTimer::Again { number, attempt });
    }

    pub(crate) fn on_timer(&mut self, timer: &DastTimer, out: &mut Out) {
        if let DastTimer::Again { number, attempt } = timer {
            let waits = self.asked.get(number).map(|asked| asked.attempts);
            if waits == Some(attempt + 1) {
                self.submit(*number, out);
            }
        }
    }

    pub(crate) fn on_message(&mut self, message: DastMessage, out: &mut Out) {
        let DastMessage::Outcome { id, at, given } = message else {
            return;
        };
        let Some(asked) = self.asked.remove(&id.number) else {
            return;
        };
        self.seen = self.seen.max(at);
        let answer = Answer {
            id,
            at,
            given,
            attempts: asked.attempts,
        };
        out.reply(asked.request, answer);
    }

    /// Calls that are not answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        for (number, asked) in &self.asked {
            ensure(*number <= self.next, || {
                format!("call {number} is asked and was never numbered")
            })?;
            let id = asked.call.id;
            ensure(id.number == *number && id.client == self.me, || {
                format!("call {number} is asked under the name of {id:?}")
            })?;
            ensure(asked.call.ended_below <= *number, || {
                format!("call {number} is asked and said to have ended")
            })?;
            ensure(asked.attempts > 0, || {
                format!("call {number} was never sent")
            })?;
        }
        Ok(())
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.next)
            .number(self.asked.len() as u64)
            .number(self.seen.micros);
        digest.value()
    }
}
