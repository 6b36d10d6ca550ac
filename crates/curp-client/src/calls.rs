//! Commands under way: asked of the client's core in this process, and completed once each.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::{ClientAnswer, CurpNode, Execute};
use manxdb_net::Outside;

use crate::counts::ClientMeter;

/// How often a client without commands shows the master that it is there: far more often than the
/// master forgets clients, and with them what became of their commands.
pub const SHOW_EVERY: Nanos = Nanos::from_secs(2);

#[derive(Debug)]
struct UnderWay<T> {
    for_whom: T,
    /// Whether it changes nothing.
    is_read: bool,
    /// When it was asked.
    since: Nanos,
}

/// Commands under way, with what each is for.
#[derive(Debug)]
pub struct Calls<T> {
    node: NodeId,
    under_way: BTreeMap<RequestId, UnderWay<T>>,
    meter: Arc<ClientMeter>,
    asked_since_shown: bool,
}

impl<T> Calls<T> {
    /// Of the CURP client `node`, which this process has to run.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            under_way: BTreeMap::new(),
            meter: Arc::default(),
            asked_since_shown: false,
        }
    }

    /// How commands are completed, for other threads.
    #[must_use]
    pub fn meter(&self) -> Arc<ClientMeter> {
        Arc::clone(&self.meter)
    }

    /// How many are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Asks for a command.
    pub fn ask<E: Execute>(
        &mut self,
        for_whom: T,
        command: Vec<u8>,
        outside: &mut Outside<CurpNode<E>>,
    ) -> RequestId {
        self.asked_since_shown = true;
        let is_read = E::declare(&command).is_some_and(|declared| declared.reads_only);
        let request = outside.request(self.node, command);
        let under_way = UnderWay {
            for_whom,
            is_read,
            since: outside.now(),
        };
        let earlier = self.under_way.insert(request, under_way);
        assert!(earlier.is_none(), "a request has a number of its own");
        request
    }

    /// What an answered command was for; nothing for one that nobody waits for.
    pub fn answered(&mut self, id: RequestId, answer: &ClientAnswer) -> Option<T> {
        let call = self.under_way.remove(&id)?;
        self.meter.count(answer, call.is_read);
        Some(call.for_whom)
    }

    /// Gives up waiting for commands that are not answered for so long, and says of each whether it changes
    /// nothing. The client's core goes on with them, and their answers are nobody's: one that changes
    /// something may still happen.
    pub fn give_up(&mut self, now: Nanos, after: Nanos) -> Vec<(T, bool)> {
        let is_silent =
            |_: &RequestId, call: &mut UnderWay<T>| now.saturating_sub(call.since) >= after;
        let silent = self.under_way.extract_if(.., is_silent);
        silent
            .map(|(_, call)| (call.for_whom, call.is_read))
            .collect()
    }

    /// Shows the master that this client is there, unless a command has since the last time: to be
    /// called every [`SHOW_EVERY`]. `nothing` is a command that changes nothing.
    pub fn show<E: Execute>(&mut self, nothing: Vec<u8>, outside: &mut Outside<CurpNode<E>>) {
        if !std::mem::take(&mut self.asked_since_shown) {
            outside.request(self.node, nothing);
        }
    }
}
