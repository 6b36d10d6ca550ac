//! A client: it asks a replica of its home shard, and another one when that does not answer.

use manxdb_common::OpenCalls;
use manxdb_core::{Digest, NodeId, RequestId};

use crate::call::{Ask, Level};
use crate::message::DastMessage;
use crate::node::{DastTimer, Out};
use crate::replica::Shared;
use crate::timestamp::Timestamp;
use crate::waits::{ATTEMPT, wait};

/// One client with any number of calls under way.
pub struct Client {
    shared: Shared,
    /// Each with the place in the order that it must come behind.
    calls: OpenCalls<Timestamp>,
    /// The newest place in the order that an answer named.
    seen: Timestamp,
}

impl Client {
    /// Client `me`. Numbers of a later life do not meet those of an earlier one.
    #[must_use]
    pub fn new(me: NodeId, life: u64, shared: Shared) -> Self {
        Self {
            shared,
            calls: OpenCalls::new(me, life),
            seen: Timestamp::ZERO,
        }
    }

    pub(crate) fn ask(&mut self, request: RequestId, ask: Ask, out: &mut Out) {
        let after = match ask.level {
            Level::Serializable => Timestamp::ZERO,
            Level::Session | Level::Strict => self.seen,
        };
        let number = self.calls.ask(request, ask, after);
        self.submit(number, out);
    }

    fn submit(&mut self, number: u64, out: &mut Out) {
        let Some((to, open)) = self.calls.attempt(number, self.shared.topology) else {
            return;
        };
        let attempt = open.attempts - 1;
        out.wait(open.call.id.for_traces(), Some(wait(ATTEMPT)));
        out.send(
            to,
            DastMessage::Submit {
                call: Box::new(open.call.clone()),
                after: open.state,
            },
        );
        let patience = self.shared.options.client_patience;
        out.set_timer(patience, DastTimer::Again { number, attempt });
    }

    pub(crate) fn on_timer(&mut self, timer: &DastTimer, out: &mut Out) {
        if let DastTimer::Again { number, attempt } = timer
            && self.calls.is_last_attempt(*number, *attempt)
        {
            self.submit(*number, out);
        }
    }

    pub(crate) fn on_message(&mut self, message: DastMessage, out: &mut Out) {
        let DastMessage::Outcome { id, at, given } = message else {
            return;
        };
        let Some(open) = self.calls.end(id) else {
            return;
        };
        self.seen = self.seen.max(at);
        out.reply(open.request, open.answer(given));
    }

    /// Calls that are not answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.calls.check()
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.calls.digest_into(&mut digest);
        digest.number(self.seen.micros);
        digest.value()
    }
}
