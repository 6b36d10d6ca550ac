//! A member without memory: it asks the others, and counts again once the leader of the newest view
//! has told it all.

use std::collections::BTreeMap;

use super::{Group, Out, State, Status};
use crate::message::{Copy, GroupMessage};

/// What a member without memory has been told.
#[derive(Debug)]
pub(super) struct Recovery<S: State> {
    /// Tells answers to this question from those to an earlier one.
    nonce: u64,
    /// The view of each member that has answered.
    answers: BTreeMap<usize, u64>,
    /// What a leader told, and of which view.
    newest: Option<(u64, Copy<S, S::Entry>)>,
}

impl<S: State> Recovery<S> {
    pub(super) fn new(nonce: u64) -> Self {
        Self {
            nonce,
            answers: BTreeMap::new(),
            newest: None,
        }
    }
}

impl<S: State> Group<S> {
    /// Asks all others for what they know.
    pub(super) fn ask(&mut self, out: &mut Out<S>) {
        let nonce = self.recovery.nonce;
        self.to_others(&GroupMessage::Recovery { nonce }, out);
    }

    pub(super) fn on_recovery(&mut self, from: usize, nonce: u64, out: &mut Out<S>) {
        if self.status != Status::Normal {
            return;
        }
        let copy = self.leads().then(|| self.copy());
        let view = self.view;
        let answer = GroupMessage::RecoveryResponse { view, nonce, copy };
        out.push((self.members[from], answer));
    }

    pub(super) fn on_recovery_response(
        &mut self,
        from: usize,
        view: u64,
        nonce: u64,
        copy: Option<Copy<S, S::Entry>>,
    ) {
        if self.status != Status::Recovering || nonce != self.recovery.nonce {
            return;
        }
        assert_ne!(from, self.me, "a member without memory does not ask itself");
        self.recovery.answers.insert(from, view);
        assert!(
            self.recovery.answers.len() < self.members.len(),
            "each other member answers once"
        );
        // Only the leader of a view knows all of it.
        if let Some(copy) = copy.filter(|_| self.leader_of(view) == from) {
            let newer = |(known, _): &(u64, Copy<S, S::Entry>)| *known <= view;
            if self.recovery.newest.as_ref().is_none_or(newer) {
                self.recovery.newest = Some((view, copy));
            }
        }
        let newest_view = self.recovery.answers.values().max().copied();
        let told_by_its_leader =
            self.recovery.newest.as_ref().map(|(view, _)| *view) == newest_view;
        if self.recovery.answers.len() < self.majority() || !told_by_its_leader {
            return;
        }
        if let Some((view, copy)) = self.recovery.newest.take() {
            assert!(view >= self.view, "a member comes back to no earlier view");
            self.install(copy);
            self.view = view;
            self.last_normal = view;
            self.status = Status::Normal;
            self.quiet_ticks = 0;
        }
    }
}
