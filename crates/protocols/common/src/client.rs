//! The calls of one client: how they are numbered, which are under way, and who is asked.

use std::collections::BTreeMap;

use manxdb_core::check::ensure;
use manxdb_core::{Digest, NodeId, RequestId};
use manxdb_txn::procedure::ShardId;

use crate::call::{Answer, Ask, Call, CallId, Given};
use crate::topology::Topology;

/// A call that is not answered; `S` is what its protocol keeps of it.
#[derive(Debug)]
pub struct OpenCall<S> {
    /// To be named in the answer.
    pub request: RequestId,
    /// The call.
    pub call: Call,
    /// Whose replicas coordinate it.
    pub home: ShardId,
    /// How often it was sent.
    pub attempts: u32,
    /// What the protocol keeps of it.
    pub state: S,
}

impl<S> OpenCall<S> {
    /// The answer that ends it.
    pub fn answer(&self, given: Given) -> Answer {
        assert!(self.attempts > 0, "what was never sent is not answered");
        Answer {
            id: self.call.id,
            given,
            attempts: self.attempts,
        }
    }
}

/// The calls of one client that are under way.
#[derive(Debug)]
pub struct OpenCalls<S> {
    me: NodeId,
    next: u64,
    open: BTreeMap<u64, OpenCall<S>>,
}

impl<S> OpenCalls<S> {
    /// Those of client `me`. Numbers of a later life do not meet those of an earlier one.
    #[must_use]
    pub fn new(me: NodeId, life: u64) -> Self {
        Self {
            me,
            next: life << 32,
            open: BTreeMap::new(),
        }
    }

    /// Begins a call, which is sent by [`Self::attempt`]. Its number.
    pub fn ask(&mut self, request: RequestId, ask: Ask, state: S) -> u64 {
        self.next += 1;
        let number = self.next;
        let ended_below = self.open.keys().next().copied().unwrap_or(number);
        assert!(ended_below <= number, "the call that begins has not ended");
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
        let open = OpenCall {
            request,
            call,
            home: ask.home,
            attempts: 0,
            state,
        };
        let before = self.open.insert(number, open);
        assert!(before.is_none(), "a number names one call of a client");
        number
    }

    /// Counts one more attempt of a call: the call, and the replica of its home shard that is to
    /// coordinate it, another one each time.
    pub fn attempt(&mut self, number: u64, topology: Topology) -> Option<(NodeId, &OpenCall<S>)> {
        let open = self.open.get_mut(&number)?;
        let attempt = open.attempts;
        open.attempts += 1;
        let replicas: Vec<NodeId> = topology.replicas(open.home).collect();
        let turn = usize::try_from(number.wrapping_add(u64::from(attempt))).unwrap_or(0);
        let to = replicas[turn % replicas.len()];
        assert!(open.attempts > attempt, "attempts are counted");
        Some((to, open))
    }

    /// Whether a call is under way and its last attempt was the one of this number, from 0.
    #[must_use]
    pub fn is_last_attempt(&self, number: u64, attempt: u32) -> bool {
        let attempts = self.open.get(&number).map(|open| open.attempts);
        attempts == Some(attempt + 1)
    }

    /// A call under way.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&OpenCall<S>> {
        self.open.get(&number)
    }

    /// A call under way, to be changed.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut OpenCall<S>> {
        self.open.get_mut(&number)
    }

    /// The calls under way, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &OpenCall<S>)> {
        self.open.iter().map(|(number, open)| (*number, open))
    }

    /// Ends a call, if it is one of this client's that is under way.
    pub fn end(&mut self, id: CallId) -> Option<OpenCall<S>> {
        if id.client != self.me {
            return None;
        }
        let open = self.open.remove(&id.number)?;
        assert!(open.call.id == id, "a call is kept under its number");
        Some(open)
    }

    /// Calls under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no call is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Checks what holds between any two steps.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        for (number, open) in &self.open {
            ensure(*number <= self.next, || {
                format!("call {number} is asked and was never numbered")
            })?;
            let id = open.call.id;
            ensure(id.number == *number && id.client == self.me, || {
                format!("call {number} is asked under the name of {id:?}")
            })?;
            ensure(open.call.ended_below <= *number, || {
                format!("call {number} is asked and said to have ended")
            })?;
            ensure(open.attempts > 0, || {
                format!("call {number} was never sent")
            })?;
        }
        Ok(())
    }

    /// Adds what is equal for clients with equal histories.
    pub fn digest_into(&self, digest: &mut Digest) {
        digest.number(self.next).number(self.open.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Level;

    const TOPOLOGY: Topology = Topology {
        regions: 2,
        shards_per_region: 1,
    };

    fn ask() -> Ask {
        Ask {
            procedure: "p".into(),
            args: Vec::new(),
            level: Level::Serializable,
            home: ShardId(1),
        }
    }

    #[test]
    fn every_attempt_asks_another_replica_of_the_home_shard() {
        let mut calls = OpenCalls::new(NodeId(12), 0);
        let number = calls.ask(RequestId(7), ask(), ());
        let mut asked = Vec::new();
        for attempt in 0..3 {
            let (to, open) = calls.attempt(number, TOPOLOGY).expect("it is under way");
            assert_eq!(open.attempts, attempt + 1);
            asked.push(to);
            assert!(calls.is_last_attempt(number, attempt));
        }
        asked.sort_unstable();
        assert_eq!(asked, TOPOLOGY.replicas(ShardId(1)).collect::<Vec<_>>());
        assert!(!calls.is_last_attempt(number, 0), "an older attempt");
    }

    #[test]
    fn what_ended_is_told_with_the_next_call() {
        let mut calls = OpenCalls::new(NodeId(12), 3);
        let first = calls.ask(RequestId(1), ask(), ());
        let second = calls.ask(RequestId(2), ask(), ());
        assert_eq!(second, first + 1);
        assert_eq!(calls.get(second).map(|it| it.call.ended_below), Some(first));
        calls.attempt(first, TOPOLOGY);
        let other = CallId {
            client: NodeId(13),
            number: first,
        };
        assert!(calls.end(other).is_none(), "another client's call");
        let id = CallId {
            client: NodeId(12),
            number: first,
        };
        let ended = calls.end(id).expect("it was under way");
        assert_eq!(ended.answer(Ok(Vec::new())).attempts, 1);
        let third = calls.ask(RequestId(3), ask(), ());
        assert_eq!(calls.get(third).map(|it| it.call.ended_below), Some(second));
        assert!(calls.check().is_err(), "two calls were never sent");
        calls.attempt(second, TOPOLOGY);
        calls.attempt(third, TOPOLOGY);
        assert_eq!(calls.check(), Ok(()));
    }
}
