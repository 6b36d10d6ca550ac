//! Reports of the replicas, and the cuts made of them.
//!
//! Every replica reports once an interval, to one place, and that place tells every replica once
//! an interval what the slowest clock has passed: two messages a node and interval, where
//! exchanging clocks between all nodes (DAST §4.2) needs a message for every pair.

use std::collections::BTreeMap;

use manxdb_core::{LocalTime, NodeId};

use super::{Effect, Manager};
use crate::ledger::Entry;
use crate::message::{Cut, DastMessage, Report};
use crate::node::Out;
use crate::timestamp::Timestamp;
use crate::topology::Role;

/// How far ahead of the clocks cuts are reserved, in microseconds. A new leader gives timestamps
/// behind what its predecessor had reserved: so much later are its first ones at most.
const RESERVE_MICROS: u64 = 100_000;

/// Clocks that differ by less, in microseconds, are left alone.
const TOLERANCE_MICROS: u64 = 1_000;

/// The last report of a replica.
#[derive(Debug)]
struct Reported {
    clock: Timestamp,
    position: Timestamp,
    /// Its wall clock less this manager's, in microseconds; the way here is in it, for all alike.
    skew: i64,
    /// Corrections told, and made when it reported.
    told_corrections: u32,
    correction: i64,
    heard: LocalTime,
}

/// The clocks of a region, as its leading manager knows them.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    reported: BTreeMap<NodeId, Reported>,
    /// Counts that have changed since the last cut, by shard and coordinator.
    changed: BTreeMap<u32, BTreeMap<NodeId, u64>>,
    told: Timestamp,
}

impl Clocks {
    /// The last cut told.
    pub(super) fn told(&self) -> Timestamp {
        self.told
    }

    /// When a node was last heard.
    pub(super) fn heard(&self, node: NodeId) -> Option<LocalTime> {
        self.reported.get(&node).map(|reported| reported.heard)
    }

    /// A node does not count any more.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.reported.remove(&node);
        for counts in self.changed.values_mut() {
            counts.remove(&node);
        }
    }

    /// A node counts that will not stamp up to `past`.
    pub(super) fn expect(&mut self, node: NodeId, past: Timestamp, now: LocalTime) {
        let reported = Reported {
            clock: past,
            position: Timestamp::ZERO,
            skew: self.median_skew(),
            told_corrections: 0,
            correction: 0,
            heard: now,
        };
        self.reported.insert(node, reported);
    }

    fn take(&mut self, now: LocalTime, node: NodeId, report: Report) {
        for (shard, number) in report.stamped {
            self.changed.entry(shard).or_default().insert(node, number);
        }
        let reading = i64::try_from(report.reading).unwrap_or(i64::MAX);
        let own = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let before = self.reported.get(&node);
        let told_corrections = before.map_or(report.corrections, |before| before.told_corrections);
        let clock = before.map_or(report.clock, |before| before.clock.max(report.clock));
        let reported = Reported {
            clock,
            position: report.position,
            skew: reading.saturating_sub(own),
            told_corrections: told_corrections.max(report.corrections),
            correction: 0,
            heard: now,
        };
        let settled = reported.told_corrections == report.corrections;
        self.reported.insert(node, reported);
        if settled {
            self.consider_correction(node);
        }
    }

    /// The median of the clocks, which no minority can carry away.
    fn median_skew(&self) -> i64 {
        let mut skews: Vec<i64> = self
            .reported
            .values()
            .map(|reported| reported.skew)
            .collect();
        skews.sort_unstable();
        skews.get(skews.len() / 2).copied().unwrap_or(0)
    }

    fn consider_correction(&mut self, node: NodeId) {
        let median = self.median_skew();
        if let Some(reported) = self.reported.get_mut(&node) {
            let correction = median.saturating_sub(reported.skew);
            if correction.unsigned_abs() > TOLERANCE_MICROS {
                reported.correction = correction;
                reported.told_corrections += 1;
            }
        }
    }

    /// The region's time in microseconds.
    pub(super) fn reading(&self, now: LocalTime) -> u64 {
        now.as_micros().saturating_add_signed(self.median_skew())
    }

    /// What all of `nodes` have passed; none if one of them has not reported.
    fn slowest(&self, nodes: impl Iterator<Item = NodeId>) -> Option<(Timestamp, Timestamp)> {
        let mut slowest = (Timestamp::MAX, Timestamp::MAX);
        for node in nodes {
            let reported = self.reported.get(&node)?;
            slowest.0 = slowest.0.min(reported.clock);
            slowest.1 = slowest.1.min(reported.position);
        }
        Some(slowest)
    }
}

/// Which interval of reports a timestamp belongs to; stretched ones go by the time that passes.
fn round(at: Timestamp, interval_micros: u64) -> u64 {
    at.micros.max(at.stretch) / interval_micros.max(1)
}

impl Manager {
    pub(super) fn on_hello(
        &mut self,
        now: LocalTime,
        from: NodeId,
        view: u64,
        report: Report,
        out: &mut Out,
    ) {
        if self.group.view() == view {
            self.on_report(now, from, report, out);
        }
    }

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

    /// How far the region is: closed, and run by all.
    pub(super) fn progress(&self) -> Option<(Timestamp, Timestamp)> {
        let lead = self.lead.as_ref()?;
        let live = self.ledger().members.live.iter().copied();
        let (_, position) = lead.clocks.slowest(live)?;
        Some((lead.clocks.told, position))
    }

    /// Tells a cut, if all clocks have passed into a new interval, or past a transaction that
    /// waits for it.
    fn cut(&mut self, now: LocalTime, out: &mut Out) {
        let members = &self.group.state().members;
        let counted = members.live.union(&members.closing).copied();
        let reserved = self.group.state().reserved;
        let interval = self.shared.options.report_every.as_micros();
        let Some(lead) = &mut self.lead else {
            return;
        };
        let Some((slowest, _)) = lead.clocks.slowest(counted) else {
            return;
        };
        let mut upto = slowest.min(reserved);
        if let Some(first) = lead.untold.values().min()
            && upto >= *first
        {
            upto = just_before(*first);
        }
        let told = lead.clocks.told;
        let somebody_waits = lead.waiting.first().is_some_and(|first| *first <= upto);
        let is_new_round =
            round(upto, interval) > round(told, interval) || upto.micros > told.micros + interval;
        if upto <= told || !(somebody_waits || is_new_round) {
            return;
        }
        lead.clocks.told = upto;
        while lead.waiting.first().is_some_and(|first| *first <= upto) {
            lead.waiting.pop_first();
        }
        self.tell_cut(now, upto, out);
        self.notice_what_has_run(out);
    }

    fn tell_cut(&mut self, now: LocalTime, upto: Timestamp, out: &mut Out) {
        let listeners = self.listeners();
        let (closed, everywhere) = self.everywhere();
        let position = self
            .progress()
            .map_or(Timestamp::ZERO, |(_, position)| position);
        let topology = self.shared.topology;
        let Some(lead) = &mut self.lead else {
            return;
        };
        let reading = lead.clocks.reading(now);
        for node in listeners {
            let Role::Replica(shard) = topology.role(node) else {
                continue;
            };
            let counts = lead.clocks.changed.get(&shard.0);
            let stamped = counts
                .into_iter()
                .flatten()
                .map(|(node, number)| (*node, *number));
            let reported = lead.clocks.reported.get_mut(&node);
            let cut = Cut {
                upto,
                stamped: stamped.collect(),
                reading,
                correction: reported.map_or(0, |reported| std::mem::take(&mut reported.correction)),
                position,
                everywhere,
                closed,
            };
            out.send(node, DastMessage::Cut(cut));
        }
        lead.clocks.changed.clear();
    }

    /// What all regions have closed, and what all their replicas have run.
    fn everywhere(&self) -> (Timestamp, Timestamp) {
        let nothing = (Timestamp::ZERO, Timestamp::ZERO);
        let (mut closed, mut position) = self.progress().unwrap_or(nothing);
        let Some(lead) = &self.lead else {
            return nothing;
        };
        for region in self.shared.topology.all_regions() {
            if region == self.region {
                continue;
            }
            let (theirs, run) = lead.regions.get(&region).copied().unwrap_or(nothing);
            closed = closed.min(theirs);
            position = position.min(run);
        }
        (closed, position)
    }

    pub(super) fn tell_progress(&mut self, out: &mut Out) {
        let Some((closed, position)) = self.progress() else {
            return;
        };
        let topology = self.shared.topology;
        for region in topology
            .all_regions()
            .filter(|region| *region != self.region)
        {
            // To all of them: so each knows who speaks for this region, and a leader that has
            // just begun is heard without being known.
            for manager in topology.managers(region) {
                let progress = DastMessage::Progress {
                    region: self.region,
                    closed,
                    position,
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

    fn report(clock: u64, reading: u64) -> Report {
        Report {
            clock: Timestamp::at(clock, 1),
            reading,
            corrections: 0,
            stamped: Vec::new(),
            position: Timestamp::ZERO,
        }
    }

    #[test]
    fn a_clock_far_from_the_median_is_corrected_once() {
        let mut clocks = Clocks::default();
        let now = LocalTime(1_000_000_000);
        for node in 1..=4 {
            clocks.take(now, NodeId(node), report(5, 1_000_000));
        }
        clocks.take(now, NodeId(5), report(5, 1_500_000));
        assert_eq!(clocks.reported[&NodeId(5)].correction, -500_000);
        assert_eq!(clocks.reported[&NodeId(1)].correction, 0);
        clocks.take(now, NodeId(5), report(6, 1_500_000));
        assert_eq!(
            clocks.reported[&NodeId(5)].correction,
            0,
            "it is told already"
        );
        assert_eq!(clocks.reading(now), 1_000_000);
    }

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
