//! A client: it asks a replica of its home shard, and another one when that does not answer.

use manxdb_common::OpenCalls;
use manxdb_core::{Digest, NodeId, RequestId};

use crate::call::{Ask, Level};
use crate::message::{DastMessage, Seen};
use crate::options::Shared;
use crate::waits::{ATTEMPT, wait};
use crate::wanted::{DastTimer, Out};

/// One client with any number of calls under way.
pub struct Client {
    shared: Shared,
    /// Each with the places in the order that it must come behind.
    calls: OpenCalls<Seen>,
    /// The newest places that answers named.
    seen: Seen,
}

impl Client {
    /// Client `me`. Numbers of a later life do not meet those of an earlier one.
    #[must_use]
    pub fn new(me: NodeId, life: u64, shared: Shared) -> Self {
        Self {
            shared,
            calls: OpenCalls::new(me, life),
            seen: Seen::default(),
        }
    }

    pub(crate) fn ask(&mut self, request: RequestId, ask: Ask, out: &mut Out) {
        let after = match ask.level {
            Level::Serializable => Seen::default(),
            Level::Session | Level::Strict => self.seen.clone(),
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
                after: open.state.clone(),
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

    pub(crate) fn on_message(&mut self, from: NodeId, message: DastMessage, out: &mut Out) {
        let DastMessage::Outcome { id, at, given } = message else {
            return;
        };
        let Some(open) = self.calls.end(id) else {
            return;
        };
        if let Some(region) = self.shared.topology.region_of_node(from) {
            self.seen.note(region, at);
        }
        out.reply(open.request, open.answer(given));
    }

    /// Calls that are not answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.seen.check()?;
        self.calls.check()
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.calls.digest_into(&mut digest);
        digest.number(self.seen.newest().micros);
        digest.value()
    }
}
