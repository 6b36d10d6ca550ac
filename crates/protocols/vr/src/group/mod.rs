//! One member of a group.

mod invariants;
mod recovery;
mod view_change;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use manxdb_core::NodeId;

use crate::message::{Copy, GroupMessage};
use recovery::Recovery;

/// What a group agrees on: a state that entries change one after another.
pub trait State: Clone {
    /// A change.
    type Entry: Clone;

    /// Applies entry `number`. Deterministic: every member ends with the same state.
    fn apply(&mut self, number: u64, entry: &Self::Entry);
}

/// How patient a member is, in ticks of its owner.
#[derive(Debug, Clone, Copy)]
pub struct GroupOptions {
    /// Ticks between two signs of life of the leader.
    pub heartbeat_ticks: u32,
    /// Ticks of silence after which a member gives up its leader. Must be several heartbeats.
    pub patience_ticks: u32,
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self {
            heartbeat_ticks: 2,
            patience_ticks: 12,
        }
    }
}

/// What a member is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Following or leading its view.
    Normal,
    /// Looking for the leader of its view.
    ViewChange,
    /// Without memory, asking the others.
    Recovering,
}

/// Messages a member wants sent.
pub type Out<S> = Vec<(NodeId, GroupMessage<S, <S as State>::Entry>)>;

/// One member.
#[derive(Debug)]
pub struct Group<S: State> {
    me: usize,
    members: Vec<NodeId>,
    options: GroupOptions,
    status: Status,
    view: u64,
    last_normal: u64,
    /// With the first `committed` entries applied.
    state: S,
    committed: u64,
    /// Entries behind `committed`.
    log: VecDeque<S::Entry>,
    /// As leader: how much each member holds.
    held: Vec<u64>,
    /// Members that want the view this one wants.
    wanting: BTreeSet<usize>,
    /// As leader of a view that begins: what members know, by member.
    known: BTreeMap<usize, (u64, Copy<S, S::Entry>)>,
    recovery: Recovery<S>,
    /// Since the last sign of life, heard as follower or given as leader.
    quiet_ticks: u32,
}

impl<S: State> Group<S> {
    /// Member `members[me]` of a group that begins with `state`. `nonce` is `None` when the group
    /// itself begins, and else a number this node has not used before: it was a member, failed,
    /// and comes back without memory.
    ///
    /// # Panics
    /// When `me` is not a place in `members`: a defect of the caller.
    pub fn new(
        members: Vec<NodeId>,
        me: usize,
        state: S,
        nonce: Option<u64>,
        options: GroupOptions,
    ) -> Self {
        assert!(me < members.len(), "a member is one of the members");
        assert!(
            options.patience_ticks > options.heartbeat_ticks,
            "a leader says that it lives before its members lose patience"
        );
        let status = match nonce {
            None => Status::Normal,
            Some(_) => Status::Recovering,
        };
        Self {
            me,
            held: vec![0; members.len()],
            members,
            options,
            status,
            view: 0,
            last_normal: 0,
            state,
            committed: 0,
            log: VecDeque::new(),
            wanting: BTreeSet::new(),
            known: BTreeMap::new(),
            recovery: Recovery::new(nonce.unwrap_or(0)),
            quiet_ticks: 0,
        }
    }

    /// Whether this member may propose.
    pub fn leads(&self) -> bool {
        self.status == Status::Normal && self.leader_of(self.view) == self.me
    }

    /// The member that leads the newest view this one knows.
    pub fn leader(&self) -> NodeId {
        self.members[self.leader_of(self.view)]
    }

    /// The newest view this member knows.
    pub fn view(&self) -> u64 {
        self.view
    }

    /// What this member is doing.
    pub fn status(&self) -> Status {
        self.status
    }

    /// What is agreed on, as far as this member knows.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Entries agreed on, as far as this member knows.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Entries known and not yet agreed on.
    pub fn uncommitted(&self) -> impl Iterator<Item = &S::Entry> {
        self.log.iter()
    }

    fn leader_of(&self, view: u64) -> usize {
        // The remainder is below the number of members, which is a small usize.
        usize::try_from(view % self.members.len() as u64).unwrap_or(0)
    }

    fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    fn last(&self) -> u64 {
        self.committed + self.log.len() as u64
    }

    fn others(&self) -> impl Iterator<Item = NodeId> + '_ {
        let me = self.me;
        let others = self.members.iter().enumerate();
        others
            .filter(move |(place, _)| *place != me)
            .map(|(_, member)| *member)
    }

    fn to_others(&self, message: &GroupMessage<S, S::Entry>, out: &mut Out<S>)
    where
        S::Entry: Clone,
    {
        out.extend(self.others().map(|member| (member, message.clone())));
    }

    fn copy(&self) -> Copy<S, S::Entry> {
        Copy {
            state: self.state.clone(),
            committed: self.committed,
            log: self.log.iter().cloned().collect(),
        }
    }

    /// Asks the group to agree on `entry`; its place, if this member leads.
    pub fn propose(&mut self, entry: S::Entry, out: &mut Out<S>) -> Option<u64> {
        if !self.leads() {
            return None;
        }
        self.log.push_back(entry.clone());
        let number = self.last();
        assert!(number > self.committed, "a new entry is not agreed on yet");
        assert!(
            number > self.held[self.me],
            "a leader holds more with each entry"
        );
        self.held[self.me] = number;
        self.quiet_ticks = 0;
        let prepare = GroupMessage::Prepare {
            view: self.view,
            number,
            entry,
            committed: self.committed,
        };
        self.to_others(&prepare, out);
        self.commit_what_a_majority_holds();
        Some(number)
    }

    /// Takes note that some time has passed.
    pub fn tick(&mut self, out: &mut Out<S>) {
        self.quiet_ticks += 1;
        if self.leads() {
            if self.quiet_ticks >= self.options.heartbeat_ticks {
                self.quiet_ticks = 0;
                let (view, committed) = (self.view, self.committed);
                self.to_others(&GroupMessage::Commit { view, committed }, out);
            }
            return;
        }
        // Members lose patience one after another, so that they do not all want to lead at once.
        let patience = self.options.patience_ticks * (2 + u32::try_from(self.me).unwrap_or(0)) / 2;
        if self.quiet_ticks < patience {
            return;
        }
        self.quiet_ticks = 0;
        match self.status {
            Status::Recovering => self.ask(out),
            Status::Normal | Status::ViewChange => self.want(self.view + 1, out),
        }
    }

    /// To be called once after [`Group::new`].
    pub fn start(&mut self, out: &mut Out<S>) {
        if self.status == Status::Recovering {
            self.ask(out);
        }
    }

    fn commit_to(&mut self, number: u64) {
        while self.committed < number {
            let Some(entry) = self.log.pop_front() else {
                return;
            };
            self.committed += 1;
            self.state.apply(self.committed, &entry);
        }
    }

    fn commit_what_a_majority_holds(&mut self) {
        assert_eq!(
            self.held.len(),
            self.members.len(),
            "each member's entries are counted"
        );
        let mut held = self.held.clone();
        held.sort_unstable();
        let by_majority = held[self.members.len() - self.majority()];
        assert!(
            by_majority <= self.last(),
            "no member holds more than its leader"
        );
        self.commit_to(by_majority);
    }

    /// Takes a message of another member. What it leads to is seen in [`Group::state`].
    pub fn receive(&mut self, from: NodeId, message: GroupMessage<S, S::Entry>, out: &mut Out<S>) {
        // A member sends itself nothing: what claims to come from it is not of this group.
        let others = |member: &NodeId| *member == from && from != self.members[self.me];
        let Some(from) = self.members.iter().position(others) else {
            return;
        };
        match message {
            GroupMessage::Recovery { nonce } => self.on_recovery(from, nonce, out),
            GroupMessage::RecoveryResponse { view, nonce, copy } => {
                self.on_recovery_response(from, view, nonce, copy);
            }
            // A member without memory must not vote, whatever it is asked.
            _ if self.status == Status::Recovering => {}
            GroupMessage::Prepare {
                view,
                number,
                entry,
                committed,
            } => self.on_prepare(from, view, (number, entry), committed, out),
            GroupMessage::PrepareOk { view, number } => self.on_prepare_ok(from, view, number),
            GroupMessage::Commit { view, committed } => self.on_commit(from, view, committed, out),
            GroupMessage::StartViewChange { view } => self.on_start_view_change(from, view, out),
            GroupMessage::DoViewChange {
                view,
                last_normal,
                copy,
            } => self.on_do_view_change(from, view, last_normal, copy, out),
            GroupMessage::StartView { view, copy } => self.on_start_view(from, view, copy, out),
            GroupMessage::GetState { view } => {
                if view == self.view && self.leads() {
                    let copy = self.copy();
                    out.push((self.members[from], GroupMessage::StartView { view, copy }));
                }
            }
        }
    }

    /// Whether a leader's message is of the view this member follows. A later view asks its
    /// leader for all it knows.
    fn follows(&mut self, from: usize, view: u64, out: &mut Out<S>) -> bool {
        if view < self.view || self.leader_of(view) != from {
            return false;
        }
        if view == self.view && self.status == Status::Normal {
            self.quiet_ticks = 0;
            return true;
        }
        out.push((self.members[from], GroupMessage::GetState { view }));
        false
    }

    fn on_prepare(
        &mut self,
        from: usize,
        view: u64,
        (number, entry): (u64, S::Entry),
        committed: u64,
        out: &mut Out<S>,
    ) {
        if !self.follows(from, view, out) {
            return;
        }
        if number > self.last() + 1 {
            out.push((self.members[from], GroupMessage::GetState { view }));
            return;
        }
        if number == self.last() + 1 {
            self.log.push_back(entry);
        }
        self.commit_to(committed);
        let number = self.last();
        out.push((self.members[from], GroupMessage::PrepareOk { view, number }));
    }

    fn on_prepare_ok(&mut self, from: usize, view: u64, number: u64) {
        if view != self.view || !self.leads() {
            return;
        }
        // A member never holds more than its leader gave it.
        self.held[from] = self.held[from].max(number.min(self.last()));
        assert_ne!(from, self.me, "a leader does not acknowledge itself");
        self.commit_what_a_majority_holds();
    }

    fn on_commit(&mut self, from: usize, view: u64, committed: u64, out: &mut Out<S>) {
        if !self.follows(from, view, out) {
            return;
        }
        if committed > self.last() {
            out.push((self.members[from], GroupMessage::GetState { view }));
            return;
        }
        self.commit_to(committed);
    }
}
