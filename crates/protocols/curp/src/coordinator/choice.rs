//! Which view comes next: of living processes, or from the disks of those that are gone.

use super::{Coordinator, Way};
use crate::ids::{Config, Epoch, Member, View, Wlv};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::options::Role;

impl Coordinator {
    /// The server that begins again when all processes that had what was acknowledged are gone: the one
    /// with the longest log of those that lack nothing (`Holding::rank`).
    ///
    /// In `fsync` mode any one of them will do: what is acknowledged is on the disks of the master and of
    /// all backups, and while one of these has started again, the others acknowledge nothing. In `memory`
    /// mode a process that is only out of reach has more than any disk. So all servers of the view have
    /// to be there in later lives, which shows that their memory is gone; one whose disk is lost takes
    /// part with an empty one.
    fn restorable(&self, old: &Config) -> Option<Member> {
        let mut servers = std::iter::once(&old.master).chain(&old.backups);
        let has_restarted = |member: &Member| {
            let life = self.seen.get(&member.node).map_or(0, |seen| seen.life);
            let node = member.node;
            life > member.life && self.is_alive(Member { node, life })
        };
        let waits = self.options.durability.trusts_witnesses();
        #[cfg(feature = "mutants")]
        let waits = waits && !self.options.has(Mutant::RestoresEarly);
        if waits && !servers.all(has_restarted) {
            return None;
        }
        let ranked = self.alive(Role::Server).filter_map(|member| {
            let holds = self.seen.get(&member.node)?.holds?;
            let rank = holds.rank(old, member);
            #[cfg(feature = "mutants")]
            let rank = if self.options.has(Mutant::AnyStore) {
                rank.or(Some((View::default(), holds.last)))
            } else {
                rank
            };
            Some((rank?, member))
        });
        #[cfg(feature = "mutants")]
        if self.options.has(Mutant::ShortestLog) {
            return ranked.min().map(|(_, member)| member);
        }
        ranked.max().map(|(_, member)| member)
    }

    /// With a planted defect, those that followed the log may go before the backups.
    #[cfg(feature = "mutants")]
    fn near_before<'a>(&'a self, backups: &mut dyn Iterator<Item = &'a Member>) -> Vec<&'a Member> {
        let near = self.near.iter();
        let near = near.filter(|_| self.options.has(Mutant::FollowerTakesOver));
        near.chain(backups).collect()
    }

    /// Whether servers obey a master of which this coordinator's disk knows nothing: it is not the disk
    /// that the cluster was led with, and would begin an empty cluster.
    fn is_outdated(&self) -> bool {
        let mut seen = self.seen.values();
        seen.any(|seen| seen.epoch > self.durable.reserved.epoch)
    }

    /// What it waits for, if it has decided for no view that works and cannot.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        if self.is_outdated() {
            return Some(
                "its own journal: servers have obeyed a later master than this one names"
                    .to_owned(),
            );
        }
        let old = self.durable.config.as_ref()?;
        if self.attempt.is_some() || self.is_alive(old.master) || self.next_view().is_some() {
            return None;
        }
        let mut gone: Vec<String> = Vec::new();
        for member in std::iter::once(&old.master).chain(&old.backups) {
            let life = self.seen.get(&member.node).map_or(0, |seen| seen.life);
            let node = member.node;
            if !self.is_alive(Member { node, life }) {
                gone.push(node.0.to_string());
            }
        }
        Some(if gone.is_empty() {
            "more servers and witnesses, or a disk with the log of the last view".to_owned()
        } else {
            format!("servers {} of the last view", gone.join(" "))
        })
    }

    /// The living processes that the view in use does not have: the next one may.
    #[must_use]
    pub fn spares(&self) -> Vec<Member> {
        let used = |member: &Member| {
            self.config().is_some_and(|config| {
                config.master == *member
                    || config.backups.contains(member)
                    || config.witnesses.contains(member)
            })
        };
        let living = [Role::Server, Role::Witness].map(|role| self.alive(role));
        let living = living.into_iter().flatten();
        living.filter(|member| !used(member)).collect()
    }

    /// The spare servers that are to follow the log: as many as may have to be replaced, those that
    /// follow it already before others.
    pub(super) fn followers(&self) -> Vec<Member> {
        if !self.options.spares_follow {
            return Vec::new();
        }
        let is_server = |member: &Member| self.options.role(member.node) == Role::Server;
        let mut spares = self.spares();
        spares.retain(is_server);
        self.sort_near_first(&mut spares);
        spares.truncate(self.options.faults);
        assert!(
            self.config()
                .is_none_or(|config| !spares.contains(&config.master)),
            "who is in use follows nobody"
        );
        spares
    }

    /// Spares that lack little of the log go before others.
    fn sort_near_first(&self, spares: &mut [Member]) {
        spares.sort_by_key(|spare| !self.near.contains(spare));
    }

    /// A view of living processes, as near to the one in use as can be; and how to get there.
    pub(super) fn next_view(&self) -> Option<(Config, Way)> {
        if self.is_outdated() {
            return None;
        }
        let (reserved, old) = (self.durable.reserved, self.durable.config.as_ref());
        let old_master = old.map(|old| old.master);
        let kept = old_master.filter(|master| self.is_alive(*master));
        let old_backups = old.map_or(&[][..], |old| &old.backups);
        let old_witnesses = old.map_or(&[][..], |old| &old.witnesses);
        let mut backups = old_backups.iter();
        #[cfg(feature = "mutants")]
        let mut backups = self.near_before(&mut backups).into_iter();
        let backup = backups.find(|member| self.is_alive(**member));
        let (master, way) = match (kept, old, backup) {
            (Some(master), _, _) => (master, Way::Reconfigure),
            (None, None, _) => (self.alive(Role::Server).next()?, Way::Recover),
            // Only a backup of the view has all that was synced in it.
            (None, Some(_), Some(backup)) => (*backup, Way::Recover),
            (None, Some(old), None) => (self.restorable(old)?, Way::Restore),
        };
        assert!(
            way != Way::Restore || old.is_none_or(|old| !old.backups.contains(&master)),
            "who begins again from its disk is no member any more"
        );
        assert!(self.is_alive(master), "a master is chosen of the living");
        let faults = self.options.faults;
        let choose = |role, preferred: &[Member]| {
            let has_ended = |member: &Member| {
                let mut lives = preferred.iter();
                lives.any(|old| old.node == member.node && old.life != member.life)
            };
            let mut chosen: Vec<Member> = preferred.to_vec();
            chosen.retain(|member| self.is_alive(*member));
            // A spare goes before the next life of a member that has just ended: an operator may have
            // ended it to be rid of it, and a process that ends again and again would end each view.
            let (ended, mut spares): (Vec<_>, Vec<_>) = self.alive(role).partition(has_ended);
            self.sort_near_first(&mut spares);
            for member in spares.into_iter().chain(ended) {
                if !chosen.contains(&member) {
                    chosen.push(member);
                }
            }
            chosen.retain(|member| *member != master);
            chosen.truncate(faults);
            (chosen.len() == faults).then_some(chosen)
        };
        let backups = choose(Role::Server, old_backups)?;
        let witnesses = choose(Role::Witness, old_witnesses)?;
        let was_tried = old.is_none_or(|old| reserved.epoch > old.view.epoch);
        let recovers = way != Way::Reconfigure;
        let view = View {
            // Backups may have obeyed a master that never opened.
            epoch: Epoch(reserved.epoch.0 + u64::from(recovers || was_tried)),
            wlv: Wlv(reserved.wlv.0 + 1),
        };
        assert!(view > reserved, "no name is used twice");
        let new = Config {
            view,
            master,
            backups,
            witnesses,
            record_token: self.token(view, 1),
            gc_token: self.token(view, 2),
        };
        assert!(
            new.backups.len() == faults && new.witnesses.len() == faults,
            "a view survives what it should"
        );
        assert!(
            !new.backups.contains(&new.master),
            "a master is not its own backup"
        );
        assert_ne!(
            new.record_token, new.gc_token,
            "clients cannot collect what they did not sync"
        );
        Some((new, way))
    }
}
