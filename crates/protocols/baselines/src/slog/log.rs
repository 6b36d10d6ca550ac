//! A log that three members agree on, as its leader has it: what goes in comes out, in order, once a
//! majority holds it.

use std::collections::VecDeque;
use std::sync::Arc;

use manxdb_common::{CallId, Planned};
use manxdb_core::NodeId;
use manxdb_core::check::ensure;
use manxdb_vr::{Group, GroupMessage, GroupOptions, State};

/// Transactions that go into a log together.
pub type Batch = Arc<[Arc<Planned>]>;

/// What a log has come to. Its transactions are with those that were sent them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogState {
    /// Transactions in it.
    pub length: u64,
    /// The last one.
    pub last: Option<CallId>,
}

impl State for LogState {
    type Entry = Batch;

    fn apply(&mut self, number: u64, entry: &Batch) {
        assert!(number > 0, "L2: entries are counted from 1");
        self.length += entry.len() as u64;
        self.last = entry.last().map(|planned| planned.id()).or(self.last);
    }
}

type Messages = Vec<(NodeId, GroupMessage<LogState, Batch>)>;

/// One member's side of a log. Members never fail here, so nobody counts ticks: the first one leads.
#[derive(Debug)]
pub(super) struct Log {
    group: Group<LogState>,
    /// As leader: what was proposed and is not agreed on.
    proposed: VecDeque<Batch>,
    /// Batches that came out.
    out_of: u64,
}

impl Log {
    pub fn new(members: Vec<NodeId>, me: usize) -> Self {
        let state = LogState::default();
        Self {
            group: Group::new(members, me, state, None, GroupOptions::default()),
            proposed: VecDeque::new(),
            out_of: 0,
        }
    }

    /// Proposes a batch, if this member leads.
    pub fn propose(&mut self, batch: Batch) -> Messages {
        let mut messages = Vec::new();
        assert!(!batch.is_empty(), "L3: a batch has something in it");
        if self
            .group
            .propose(Arc::clone(&batch), &mut messages)
            .is_some()
        {
            self.proposed.push_back(batch);
        }
        messages
    }

    /// Takes a message of another member: what is to be sent, and what is agreed on now.
    pub fn receive(
        &mut self,
        from: NodeId,
        message: GroupMessage<LogState, Batch>,
    ) -> (Messages, Vec<Batch>) {
        let mut messages = Vec::new();
        self.group.receive(from, message, &mut messages);
        let mut agreed = Vec::new();
        while self.out_of < self.group.committed() && self.group.leads() {
            let Some(batch) = self.proposed.pop_front() else {
                break;
            };
            self.out_of += 1;
            agreed.push(batch);
        }
        (messages, agreed)
    }

    /// Transactions agreed on, as far as this member knows.
    pub fn length(&self) -> u64 {
        self.group.state().length
    }

    pub fn check(&self) -> Result<(), String> {
        self.group.check()?;
        ensure(self.out_of <= self.group.committed(), || {
            format!(
                "L4: {} batches came out before they were agreed on",
                self.out_of
            )
        })?;
        ensure(self.group.leads() || self.proposed.is_empty(), || {
            "L5: a follower proposed something".into()
        })
    }
}
