//! Cuts: what the slowest clock of a region has passed, told to its replicas, and how far the
//! regions are.
//!
//! Every replica reports once an interval, to one place, and that place tells every replica once
//! an interval what the slowest clock has passed: two messages a node and interval, where
//! exchanging clocks between all nodes (DAST §4.2) needs a message for every pair.

use manxdb_core::{LocalTime, NodeId};

use super::{Effect, Manager};
use crate::ledger::Entry;
use crate::message::{Cut, DastMessage, Heard, Report};
use crate::timestamp::Timestamp;
use crate::topology::Role;
use crate::wanted::Out;

/// How far ahead of the clocks cuts are reserved, in microseconds. A new leader gives timestamps
/// behind what its predecessor had reserved: so much later are its first ones at most.
const RESERVE_MICROS: u64 = 100_000;

impl Manager {
    /// A report that says whom its sender takes for the leader.
    pub(super) fn on_hello(
        &mut self,
        now: LocalTime,
        from: NodeId,
        view: u64,
        (report, heard): (Report, &Heard),
        out: &mut Out,
    ) {
        if self.group.view() == view {
            if self.ledger().members.live.contains(&from) {
                self.on_heard(from, heard, out);
            }
            self.on_report(now, from, report, out);
        }
    }

    /// What a replica that counts says of its clock may make the next cut.
    pub(super) fn on_report(
        &mut self,
        now: LocalTime,
        from: NodeId,
        report: Report,
        out: &mut Out,
    ) {
        if !self.ledger().members.live.contains(&from) {
            self.tell_if_out(from, out);
            return;
        }
        if let Some(lead) = &mut self.lead {
            lead.clocks.take(now, from, report);
            self.cut(now, out);
        }
    }

    /// How far the region is: closed, and run by all. While a node is being let in that stands where
    /// it was at its admission (M3): the node may ask for values of what comes behind.
    pub(super) fn progress(&self) -> Option<(Timestamp, Timestamp)> {
        let lead = self.lead.as_ref()?;
        let mut position = self.run_by_all()?;
        if self.ledger().members.joining.is_some() && !self.passes_joining() {
            position = position.min(lead.changing.position());
        }
        Some((lead.clocks.told(), position))
    }

    /// What all replicas that count have run; none if one of them has not reported.
    pub(super) fn run_by_all(&self) -> Option<Timestamp> {
        let lead = self.lead.as_ref()?;
        let live = self.ledger().members.live.iter().copied();
        lead.clocks.position(live)
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn passes_joining(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::PassesJoining) {
            return true;
        }
        false
    }

    /// Tells a cut, if all clocks have passed into a new interval, or past a transaction that
    /// waits for it.
    fn cut(&mut self, now: LocalTime, out: &mut Out) {
        let members = &self.group.state().members;
        let reserved = self.group.state().reserved;
        let interval = self.shared.options.report_every.as_micros();
        let Some(lead) = &mut self.lead else {
            return;
        };
        lead.clocks.count(members);
        let passed = lead.clocks.passed();
        let mut upto = self.below_bound(passed).min(reserved);
        let Some(lead) = &mut self.lead else {
            return;
        };
        if let Some(first) = lead.untold.values().min()
            && upto >= *first
        {
            upto = just_before(*first);
        }
        let told = lead.clocks.told();
        let somebody_waits = lead.waiting.first().is_some_and(|first| *first <= upto);
        let is_new_round =
            round(upto, interval) > round(told, interval) || upto.micros > told.micros + interval;
        if upto <= told || !(somebody_waits || is_new_round) {
            return;
        }
        let first = lead.untold.values().min();
        assert!(
            first.is_none_or(|first| upto < *first),
            "no cut passes a timestamp not told yet"
        );
        lead.clocks.tell(upto);
        let mut crossed = Vec::new();
        while let Some(first) = lead.waiting.first().copied().filter(|at| *at <= upto) {
            lead.waiting.pop_first();
            crossed.push(first);
        }
        if lead.ahead.is_none() {
            // Each replica has been told of each by itself.
            crossed.clear();
        }
        self.tell_cut(now, upto, &crossed, out);
        self.notice_what_has_run(out);
    }

    /// A cut to every replica, with what has changed for its shard.
    fn tell_cut(&mut self, now: LocalTime, upto: Timestamp, crossed: &[Timestamp], out: &mut Out) {
        let bound = self.bound();
        assert!(upto < bound, "A3: a cut is below the bound");
        self.note_bound_told(bound);
        let listeners = self.listeners();
        let own = self.progress().unwrap_or_default();
        let (_, position) = own;
        let (closed, everywhere) = self.everywhere(own);
        let topology = self.shared.topology;
        let Some(lead) = &mut self.lead else {
            return;
        };
        let (reading, skew) = (lead.clocks.reading(now), lead.clocks.median_skew());
        for node in listeners {
            let Role::Replica(shard) = topology.role(node) else {
                continue;
            };
            let stamped = lead.clocks.changed(shard.0).collect();
            let cut = Cut {
                upto,
                stamped,
                reading,
                correction: lead.clocks.correction(node, skew),
                position,
                everywhere,
                closed,
                bound,
                crossed: crossed.to_vec(),
            };
            out.send(node, DastMessage::Cut(Box::new(cut)));
        }
        lead.clocks.forget_changes();
    }

    /// What all regions have closed, and what all their replicas have run, given this one's. Nobody
    /// waits for what a fenced one has run.
    pub(super) fn everywhere(
        &self,
        (mut closed, mut position): (Timestamp, Timestamp),
    ) -> (Timestamp, Timestamp) {
        let nothing = (Timestamp::ZERO, Timestamp::ZERO);
        let fenced = self.fenced();
        let Some(lead) = &self.lead else {
            return nothing;
        };
        for region in self.shared.topology.all_regions() {
            if region == self.region {
                continue;
            }
            let (theirs, run) = lead.regions.get(&region).copied().unwrap_or(nothing);
            closed = closed.min(theirs);
            if fenced != Some(region) {
                position = position.min(run);
            }
        }
        (closed, position)
    }

    /// Tells the managers of other regions how far this one is.
    pub(super) fn tell_progress(&mut self, out: &mut Out) {
        let Some((closed, position)) = self.progress() else {
            return;
        };
        let topology = self.shared.topology;
        self.tell_backups_progress(closed, position, out);
        for region in topology
            .all_regions()
            .filter(|region| *region != self.region)
        {
            // To all of them: so each knows who speaks for this region, and a leader that has
            // just begun is heard without being known.
            for manager in topology.managers(region) {
                let progress = DastMessage::Progress {
                    region: self.region,
                    closed: self.told_of(region, closed),
                    position: self.told_of(region, position),
                };
                out.send(manager, progress);
            }
        }
    }

    /// Sees to it that cuts can go on: no cut passes what the ledger reserves.
    pub(super) fn reserve(&mut self, now: LocalTime, out: &mut Out) {
        let reserved = self.ledger().reserved;
        let Some(lead) = &mut self.lead else {
            return;
        };
        let reading = lead.clocks.reading(now);
        if reserved.micros > reading + RESERVE_MICROS / 2 || lead.reserving {
            return;
        }
        lead.reserving = true;
        let upto = Timestamp::at(reading + RESERVE_MICROS, 0);
        self.propose(Entry::Reserve { upto }, Effect::NoteReserved, out);
    }
}

/// Which interval of reports a timestamp belongs to; stretched ones go by the time that passes.
fn round(at: Timestamp, interval_micros: u64) -> u64 {
    at.micros.max(at.stretch) / interval_micros.max(1)
}

/// The last timestamp of the microsecond before `at`'s.
fn just_before(at: Timestamp) -> Timestamp {
    Timestamp {
        micros: at.micros.saturating_sub(1),
        stretch: u64::MAX,
        site: u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretched_clock_still_moves_from_round_to_round() {
        let free = Timestamp::at(10_000, 1);
        let stretched = Timestamp {
            micros: 9_999,
            stretch: 12_600,
            site: 1,
        };
        assert!(round(stretched, 2_500) > round(free, 2_500));
    }
}
