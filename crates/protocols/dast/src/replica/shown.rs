//! What a replica shows to people who watch it: the calls that it has not answered yet, what each of
//! them waits for here, and how far its clock is held back.

use manxdb_core::{LocalTime, Nanos, NodeId, Wait};

use super::Replica;
use super::coordination::Coordination;
use super::fences::EarlyCall;
use crate::call::CallId;

/// A call that a replica is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCall<'r> {
    /// Its identity.
    pub id: CallId,
    /// The procedure that it calls.
    pub procedure: &'r str,
    /// Whether all of it happens in the replica's region.
    pub is_local: bool,
}

impl Replica {
    /// The call with this number in traces ([`CallId::for_traces`]), if it is to be answered here.
    #[must_use]
    pub fn open_call(&self, trace: u64) -> Option<OpenCall<'_>> {
        // It has the client in the high half, and a client has few calls open.
        let client = NodeId(u32::try_from(trace >> 32).unwrap_or(u32::MAX));
        let of_client = CallId { client, number: 0 }..=CallId {
            client,
            number: u64::MAX,
        };
        let mut coordinating = self.coordinating.range(of_client);
        let found = coordinating.find(|(id, _)| id.for_traces() == trace);
        if let Some((id, coordination)) = found {
            return Some(self.coordinated(*id, coordination));
        }
        let mut early = self.early_calls.iter();
        let found = early.find(|early| early.call.id.for_traces() == trace);
        found.map(EarlyCall::shown)
    }

    /// All calls that are to be answered here, each with what it waits for in this replica; none: it is
    /// on its way between nodes, or at another one. The reasons are those of [`crate::waits`]. Takes
    /// time for each transaction that the replica knows.
    pub fn open_calls(&self) -> impl Iterator<Item = (OpenCall<'_>, Option<Wait>)> {
        let has_calls = !self.coordinating.is_empty() || !self.early_calls.is_empty();
        let waits = (has_calls && self.standing.has_state()).then(|| self.waits());
        self.all_open().map(move |call| {
            let wait = waits.as_ref().and_then(|waits| waits.get(&call.id));
            (call, wait.copied())
        })
    }

    fn all_open(&self) -> impl Iterator<Item = OpenCall<'_>> {
        let coordinating = self.coordinating.iter();
        let coordinating = coordinating.map(|(id, it)| self.coordinated(*id, it));
        coordinating.chain(self.early_calls.iter().map(EarlyCall::shown))
    }

    fn coordinated<'r>(&self, id: CallId, coordination: &'r Coordination) -> OpenCall<'r> {
        OpenCall {
            id,
            procedure: &coordination.planned.call.procedure,
            is_local: self.is_local(&coordination.planned),
        }
    }

    /// How far behind the time its next stamp would be: floors and the ceiling hold it back.
    #[must_use]
    pub fn stretch(&self, now: LocalTime) -> Nanos {
        let (reading, stamp) = (self.clock.reading(now), self.clock.peek(now));
        Nanos::from_micros(reading.saturating_sub(stamp.micros))
    }
}

impl EarlyCall {
    fn shown(&self) -> OpenCall<'_> {
        OpenCall {
            id: self.call.id,
            procedure: &self.call.procedure,
            is_local: self.is_local,
        }
    }
}
