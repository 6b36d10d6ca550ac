//! What holds of a member between any two steps ("Viewstamped Replication Revisited", §4).

use manxdb_core::check::ensure;

use super::{Group, State, Status};

impl<S: State> Group<S> {
    /// Checks the invariants of this member.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        let members = self.members.len();
        ensure(self.last_normal <= self.view, || {
            let (normal, view) = (self.last_normal, self.view);
            format!("a member was normal in view {normal}, and knows of view {view} only")
        })?;
        ensure(
            self.status != Status::Normal || self.last_normal == self.view,
            || format!("a member is normal in view {} and does not know", self.view),
        )?;
        ensure(self.held.len() == members, || {
            "a member counts entries of others than its members".to_owned()
        })?;
        let is_member = |place: &usize| *place < members;
        ensure(
            self.wanting.iter().all(is_member) && self.known.keys().all(is_member),
            || "a view change counts one that is no member".to_owned(),
        )?;
        match self.status {
            Status::Normal => self.check_normal(),
            Status::ViewChange => ensure(self.wanting.contains(&self.me), || {
                format!(
                    "a member changes to view {} that it does not want",
                    self.view
                )
            }),
            Status::Recovering => ensure(self.committed == 0 && self.log.is_empty(), || {
                "a member without memory has entries".to_owned()
            }),
        }
    }

    fn check_normal(&self) -> Result<(), String> {
        if !self.leads() {
            return Ok(());
        }
        let last = self.last();
        ensure(self.held[self.me] == last, || {
            format!(
                "a leader counts {} of its own {last} entries",
                self.held[self.me]
            )
        })?;
        ensure(self.held.iter().all(|held| *held <= last), || {
            format!("a member holds more than the {last} entries of its leader")
        })
    }
}

#[cfg(test)]
mod tests {
    use manxdb_core::NodeId;

    use super::*;
    use crate::{GroupOptions, Out};

    #[derive(Debug, Clone, Default)]
    struct Sum(u64);

    impl State for Sum {
        type Entry = u64;

        fn apply(&mut self, _number: u64, entry: &u64) {
            self.0 += entry;
        }
    }

    fn leader() -> Group<Sum> {
        let members = (0..3).map(NodeId).collect();
        let mut group = Group::new(members, 0, Sum::default(), None, GroupOptions::default());
        group.propose(7, &mut Out::<Sum>::new());
        group
    }

    /// What the check says of a leader whose state a defect has changed.
    fn broken(defect: impl FnOnce(&mut Group<Sum>)) -> String {
        let mut group = leader();
        assert_eq!(group.check(), Ok(()));
        defect(&mut group);
        group.check().expect_err("the defect is found")
    }

    #[test]
    fn each_defect_of_the_state_is_found() {
        assert!(broken(|group| group.view = 3).contains("does not know"));
        assert!(broken(|group| group.last_normal = 1).contains("knows of view 0 only"));
        assert!(broken(|group| group.log.clear()).contains("of its own 0 entries"));
        assert!(broken(|group| group.held[2] = 9).contains("holds more than the 1 entries"));
        assert!(broken(|group| group.held.push(0)).contains("others than its members"));
        assert!(broken(|group| group.status = Status::ViewChange).contains("does not want"));
        assert!(broken(|group| group.status = Status::Recovering).contains("has entries"));
        let stranger = |group: &mut Group<Sum>| {
            group.wanting.insert(4);
        };
        assert!(broken(stranger).contains("no member"));
    }

    #[test]
    #[should_panic(expected = "no member holds more than its leader")]
    fn entries_that_the_leader_does_not_hold_are_never_agreed_on() {
        let mut group = leader();
        group.held = vec![1, 9, 9];
        group.commit_what_a_majority_holds();
    }
}
