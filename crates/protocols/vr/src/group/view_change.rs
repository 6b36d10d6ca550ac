//! From one view to the next: a majority gives up its leader, and the next one begins with the most
//! that any of them knows.

use super::{Group, Out, State, Status};
use crate::message::{Copy, GroupMessage};

impl<S: State> Group<S> {
    /// Gives up the view for a later one.
    pub(super) fn want(&mut self, view: u64, out: &mut Out<S>) {
        assert!(view >= self.view, "views only grow");
        assert!(
            view > self.view || self.status == Status::ViewChange,
            "a view that is normal is given up for a later one only"
        );
        if view > self.view {
            self.wanting.clear();
            self.known.clear();
        }
        self.view = view;
        self.status = Status::ViewChange;
        self.quiet_ticks = 0;
        self.wanting.insert(self.me);
        self.to_others(&GroupMessage::StartViewChange { view }, out);
        self.tell_new_leader(out);
    }

    /// Once a majority wants the view, its leader is told what this member knows.
    fn tell_new_leader(&mut self, out: &mut Out<S>) {
        if self.wanting.len() < self.majority() {
            return;
        }
        let leader = self.leader_of(self.view);
        if leader == self.me {
            self.known.insert(self.me, (self.last_normal, self.copy()));
            self.begin_view(out);
            return;
        }
        let message = GroupMessage::DoViewChange {
            view: self.view,
            last_normal: self.last_normal,
            copy: self.copy(),
        };
        out.push((self.members[leader], message));
    }

    /// As the new leader: begins once a majority has told what it knows.
    fn begin_view(&mut self, out: &mut Out<S>) {
        if self.known.len() < self.majority() || self.status != Status::ViewChange {
            return;
        }
        let committed = self.known.values().map(|(_, copy)| copy.committed).max();
        let best = |(last_normal, copy): &(u64, Copy<S, S::Entry>)| (*last_normal, copy.last());
        let Some((_, best)) = std::mem::take(&mut self.known)
            .into_values()
            .max_by_key(best)
        else {
            return;
        };
        assert_eq!(
            self.leader_of(self.view),
            self.me,
            "a view is begun by its leader"
        );
        assert!(
            self.wanting.contains(&self.me),
            "a leader wants the view that it begins"
        );
        self.install(best);
        self.last_normal = self.view;
        self.status = Status::Normal;
        self.quiet_ticks = 0;
        self.held = vec![0; self.members.len()];
        self.held[self.me] = self.last();
        self.commit_to(committed.unwrap_or(0));
        let (view, copy) = (self.view, self.copy());
        self.to_others(&GroupMessage::StartView { view, copy }, out);
        self.commit_what_a_majority_holds();
    }

    /// Takes over what another member knows. What is committed here stays committed.
    pub(super) fn install(&mut self, copy: Copy<S, S::Entry>) {
        let before = self.committed;
        if copy.committed >= self.committed {
            self.state = copy.state;
            self.committed = copy.committed;
            self.log = copy.log.into();
            assert!(
                self.committed >= before,
                "what is agreed on stays agreed on"
            );
            return;
        }
        let known_here = self.committed - copy.committed;
        let known_here = usize::try_from(known_here).unwrap_or(usize::MAX);
        self.log = copy.log.into_iter().skip(known_here).collect();
    }

    pub(super) fn on_start_view_change(&mut self, from: usize, view: u64, out: &mut Out<S>) {
        if view < self.view {
            return;
        }
        if view == self.view && self.status == Status::Normal {
            return;
        }
        if view > self.view {
            self.want(view, out);
        }
        if self.wanting.insert(from) {
            self.tell_new_leader(out);
        }
    }

    pub(super) fn on_do_view_change(
        &mut self,
        from: usize,
        view: u64,
        last_normal: u64,
        copy: Copy<S, S::Entry>,
        out: &mut Out<S>,
    ) {
        if view < self.view || self.leader_of(view) != self.me {
            return;
        }
        if view == self.view && self.status == Status::Normal {
            return;
        }
        if view > self.view {
            self.want(view, out);
        }
        // That it sends this says that a majority wants the view.
        self.wanting.insert(from);
        self.known.insert(from, (last_normal, copy));
        self.known.insert(self.me, (self.last_normal, self.copy()));
        self.begin_view(out);
    }

    pub(super) fn on_start_view(
        &mut self,
        from: usize,
        view: u64,
        copy: Copy<S, S::Entry>,
        out: &mut Out<S>,
    ) {
        if view < self.view || self.leader_of(view) != from || from == self.me {
            return;
        }
        let known_to_be_committed = copy.committed;
        self.install(copy);
        self.view = view;
        self.last_normal = view;
        self.status = Status::Normal;
        self.quiet_ticks = 0;
        self.commit_to(known_to_be_committed);
        let number = self.last();
        out.push((self.members[from], GroupMessage::PrepareOk { view, number }));
    }
}
