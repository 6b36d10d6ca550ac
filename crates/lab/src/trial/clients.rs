//! Closed loops of terminals that keep numbers, not answers.

use std::collections::BTreeMap;

use manxdb_common::Answer;
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_sim::{Driver, Latencies, Outside, SimTime};
use manxdb_txn::procedure::ShardId;

use crate::candidate::Candidate;
use crate::dast::ask;
use crate::requests::Requests;

/// What is answered in the span that is measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub local: Latencies,
    pub cross_region: Latencies,
    /// Those of them that carry a value from one region to another.
    pub dependent: Latencies,
    /// Of the latencies kept, how many are of calls that were given up.
    pub local_given_up: u64,
    pub cross_region_given_up: u64,
    /// Tries of calls that did not commit.
    pub aborts: u64,
    /// Calls that failed otherwise, in the whole run, and why the first one did.
    pub refused: u64,
    pub refusal: Option<String>,
    /// Of the latencies kept, what lies before the span.
    pub before: Nanos,
    /// Answers of the whole run.
    pub answered: u64,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    terminal: u32,
    asked: SimTime,
    is_local: bool,
    is_dependent: bool,
}

/// Every terminal asks, and asks again when it is answered.
pub(super) struct Clients {
    requests: Requests,
    /// Client nodes with their home shards.
    nodes: Vec<(NodeId, ShardId)>,
    /// Terminals of each.
    outstanding: u32,
    from: SimTime,
    open: BTreeMap<RequestId, Open>,
    pub measured: Measured,
}

impl Clients {
    pub fn new(
        requests: Requests,
        nodes: Vec<(NodeId, ShardId)>,
        outstanding: u32,
        from: SimTime,
    ) -> Self {
        Self {
            requests,
            nodes,
            outstanding,
            from,
            open: BTreeMap::new(),
            measured: Measured::default(),
        }
    }

    /// When the longest open call was asked.
    pub fn oldest(&self) -> Option<SimTime> {
        self.open.values().map(|open| open.asked).min()
    }

    /// Milliseconds of each client that the latencies leave out of the span up to `until`, less what
    /// they have from before it.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn left_out_ms(&self, until: SimTime) -> f64 {
        let open = self.open.values();
        let open = open.map(|open| until.since(open.asked.max(self.from)));
        let open = open.fold(Nanos::ZERO, |sum, span| sum + span);
        let clients = self.nodes.len() * self.outstanding as usize;
        let spans = open.as_millis_f64() - self.measured.before.as_millis_f64();
        spans / clients.max(1) as f64
    }

    fn ask<S: Candidate>(&mut self, outside: &mut Outside<'_, S>, terminal: u32) {
        let Some((node, home)) = self.nodes.get((terminal / self.outstanding) as usize) else {
            return;
        };
        let request = self.requests.next(terminal, *home);
        let open = Open {
            terminal,
            asked: outside.now(),
            is_local: request.reach.is_local(),
            is_dependent: request.waits_across_regions,
        };
        let id = outside.request(*node, ask(request, *home));
        self.open.insert(id, open);
    }
}

impl<S: Candidate> Driver<S> for Clients {
    fn begin(&mut self, outside: &mut Outside<'_, S>) {
        let terminals = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX) * self.outstanding;
        for terminal in 0..terminals {
            self.ask(outside, terminal);
        }
    }

    fn reply(&mut self, outside: &mut Outside<'_, S>, _node: NodeId, id: RequestId, reply: Answer) {
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        let measured = &mut self.measured;
        measured.answered += 1;
        if outside.now() >= self.from && (reply.given.is_ok() || reply.gave_up()) {
            let latency = outside.now().since(open.asked);
            let given_up = u64::from(reply.gave_up());
            measured.before += self.from.since(open.asked);
            if open.is_local {
                measured.local.add(latency);
                measured.local_given_up += given_up;
            } else {
                measured.cross_region.add(latency);
                measured.cross_region_given_up += given_up;
            }
            if open.is_dependent {
                measured.dependent.add(latency);
            }
            measured.aborts += u64::from(reply.attempts) + given_up - 1;
        }
        if let (false, Err(refusal)) = (reply.gave_up(), reply.given) {
            measured.refused += 1;
            measured.refusal.get_or_insert(refusal);
        }
        self.ask(outside, open.terminal);
    }
}
