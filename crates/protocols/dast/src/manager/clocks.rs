//! Reports of the replicas, and the cuts made of them.
//!
//! Every replica reports once an interval, to one place, and that place tells every replica once
//! an interval what the slowest clock has passed: two messages a node and interval, where
//! exchanging clocks between all nodes (DAST §4.2) needs a message for every pair.

use std::collections::BTreeMap;

use manxdb_core::{LocalTime, NodeId};

use super::slowest::Slowest;
use super::{Effect, Manager};
use crate::ledger::{Entry, Membership};
use crate::message::{Cut, DastMessage, Report};
use crate::node::Out;
use crate::timestamp::Timestamp;
use crate::topology::Role;

/// How far ahead of the clocks cuts are reserved, in microseconds. A new leader gives timestamps
/// behind what its predecessor had reserved: so much later are its first ones at most.
const RESERVE_MICROS: u64 = 100_000;

/// Clocks that differ by less, in microseconds, are left alone.
const TOLERANCE_MICROS: u64 = 1_000;

/// A node whose report this leader does not have any more can lie back this far, in microseconds,
/// when the region's time is told: longer, and it is the leader's own clock that leaps.
const SINCE_MAX_MICROS: u64 = 50_000;

/// The last report of a replica.
#[derive(Debug)]
struct Reported {
    clock: Timestamp,
    position: Timestamp,
    /// What its wall clock showed, in microseconds; the way here is in it, for all alike.
    reading: u64,
    /// What this manager's showed then.
    heard: LocalTime,
    /// And how often the manager's timer had fired.
    heard_tick: u64,
    /// Corrections it had made when it reported, and corrections told.
    corrections: u32,
    told_corrections: u32,
    /// How far it was from the others at the last cut, if too far.
    deviation: i64,
}

impl Reported {
    /// Its wall clock less this manager's, in microseconds.
    fn skew(&self) -> i64 {
        signed(self.reading).saturating_sub(signed(self.heard.as_micros()))
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// The clocks of a region, as its leading manager knows them.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The number of the region's first replica; the others follow it.
    first: u32,
    reported: Vec<Option<Reported>>,
    /// Clocks of those that count.
    slowest: Slowest,
    /// Who counted when that was last made: the epoch, and how many are being closed.
    counted_at: Option<(u64, usize)>,
    /// Counts that have changed since the last cut, by shard and coordinator.
    changed: BTreeMap<u32, BTreeMap<NodeId, u64>>,
    told: Timestamp,
    /// How often the manager's timer has fired: time that nobody can set.
    ticks: u64,
}

impl Clocks {
    /// Clocks of these nodes, whose numbers follow each other, before any of them has reported.
    pub(super) fn new(nodes: impl Iterator<Item = NodeId>) -> Self {
        let nodes: Vec<NodeId> = nodes.collect();
        Self {
            first: nodes.first().map_or(0, |node| node.0),
            reported: nodes.iter().map(|_| None).collect(),
            slowest: Slowest::new(nodes.len()),
            counted_at: None,
            changed: BTreeMap::new(),
            told: Timestamp::ZERO,
            ticks: 0,
        }
    }

    fn place(&self, node: NodeId) -> usize {
        node.0.wrapping_sub(self.first) as usize
    }

    fn reported(&self, node: NodeId) -> Option<&Reported> {
        self.reported.get(self.place(node))?.as_ref()
    }

    /// The last cut told.
    pub(super) fn told(&self) -> Timestamp {
        self.told
    }

    /// The manager's timer fires.
    pub(super) fn tick(&mut self) {
        self.ticks += 1;
    }

    /// How often it has fired.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Since how many ticks a node has been silent.
    pub(super) fn silent_ticks(&self, node: NodeId) -> u64 {
        let heard = self.reported(node);
        self.ticks - heard.map_or(0, |reported| reported.heard_tick)
    }

    /// A node does not count any more.
    pub(super) fn forget(&mut self, node: NodeId) {
        let place = self.place(node);
        if let Some(reported) = self.reported.get_mut(place) {
            *reported = None;
        }
        self.counted_at = None;
        for counts in self.changed.values_mut() {
            counts.remove(&node);
        }
    }

    /// A node counts that will not stamp up to `past`.
    pub(super) fn expect(&mut self, node: NodeId, past: Timestamp, now: LocalTime) {
        let (reading, heard_tick) = (self.reading(now), self.ticks);
        let place = self.place(node);
        if let Some(reported) = self.reported.get_mut(place) {
            *reported = Some(Reported {
                clock: past,
                position: Timestamp::ZERO,
                reading,
                heard: now,
                heard_tick,
                corrections: 0,
                told_corrections: 0,
                deviation: 0,
            });
        }
        self.counted_at = None;
    }

    fn take(&mut self, now: LocalTime, node: NodeId, report: Report) {
        for (shard, number) in report.stamped {
            self.changed.entry(shard).or_default().insert(node, number);
        }
        let (place, heard_tick) = (self.place(node), self.ticks);
        let Some(reported) = self.reported.get_mut(place) else {
            return;
        };
        let before = reported.as_ref();
        let clock = before.map_or(report.clock, |before| before.clock.max(report.clock));
        let told = before.map_or(0, |before| before.told_corrections);
        *reported = Some(Reported {
            clock,
            position: report.position,
            reading: report.reading,
            heard: now,
            heard_tick,
            corrections: report.corrections,
            told_corrections: told.max(report.corrections),
            deviation: before.map_or(0, |before| before.deviation),
        });
        self.slowest.set(place, clock);
    }

    /// Sees to it that exactly these nodes count.
    fn count(&mut self, members: &Membership) {
        let now = Some((members.epoch, members.closing.len()));
        if self.counted_at == now {
            return;
        }
        self.counted_at = now;
        for place in 0..self.reported.len() {
            let node = NodeId(self.first + u32::try_from(place).unwrap_or(u32::MAX));
            let counts = members.live.contains(&node) || members.closing.contains(&node);
            let known = self.reported[place].as_ref();
            let clock = known.map_or(Timestamp::ZERO, |reported| reported.clock);
            let clock = if counts { clock } else { Timestamp::MAX };
            self.slowest.set(place, clock);
        }
    }

    /// The correction to tell a node with a cut, in microseconds. One that is far from the others
    /// at two cuts in a row is corrected: at one, it may be this manager's clock that was set
    /// while they reported.
    fn correction(&mut self, node: NodeId, median_skew: i64) -> i64 {
        let place = self.place(node);
        let Some(Some(reported)) = self.reported.get_mut(place) else {
            return 0;
        };
        let deviation = median_skew.saturating_sub(reported.skew());
        let is_far = deviation.unsigned_abs() > TOLERANCE_MICROS;
        let before = std::mem::replace(&mut reported.deviation, if is_far { deviation } else { 0 });
        let agrees = before.abs_diff(deviation) <= TOLERANCE_MICROS;
        if !is_far || !agrees || reported.told_corrections != reported.corrections {
            return 0;
        }
        reported.told_corrections += 1;
        deviation
    }

    /// The median of the clocks less this manager's, which no minority can carry away.
    fn median_skew(&self) -> i64 {
        let skews = self.reported.iter().flatten().map(Reported::skew);
        median(skews.collect()).unwrap_or(0)
    }

    /// The region's time in microseconds: the median of what nodes have reported and what has
    /// passed since.
    pub(super) fn reading(&self, now: LocalTime) -> u64 {
        let readings = self.reported.iter().flatten().map(|reported| {
            let since = now.since(reported.heard).as_micros();
            reported.reading + since.min(SINCE_MAX_MICROS)
        });
        median(readings.collect()).unwrap_or(now.as_micros())
    }

    /// What all of `nodes` have run; none if one of them has not reported.
    fn position(&self, mut nodes: impl Iterator<Item = NodeId>) -> Option<Timestamp> {
        nodes.try_fold(Timestamp::MAX, |position, node| {
            let reported = self.reported(node)?;
            Some(position.min(reported.position))
        })
    }
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable(middle).1)
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
        let position = lead.clocks.position(live)?;
        Some((lead.clocks.told, position))
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
        let mut upto = lead.clocks.slowest.smallest().min(reserved);
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
            let counts = lead.clocks.changed.get(&shard.0);
            let stamped = counts
                .into_iter()
                .flatten()
                .map(|(node, number)| (*node, *number));
            let stamped = stamped.collect();
            let cut = Cut {
                upto,
                stamped,
                reading,
                correction: lead.clocks.correction(node, skew),
                position,
                everywhere,
                closed,
            };
            out.send(node, DastMessage::Cut(Box::new(cut)));
        }
        lead.clocks.changed.clear();
    }

    /// What all regions have closed, and what all their replicas have run, given this one's.
    fn everywhere(
        &self,
        (mut closed, mut position): (Timestamp, Timestamp),
    ) -> (Timestamp, Timestamp) {
        let nothing = (Timestamp::ZERO, Timestamp::ZERO);
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

    fn clocks(count: u32) -> Clocks {
        Clocks::new((0..count).map(NodeId))
    }

    /// All report, one of them half a second ahead, and are told corrections.
    fn round(clocks: &mut Clocks, now: LocalTime, corrections: u32) -> Vec<i64> {
        let reading = 1_000_000;
        for node in 0..4 {
            clocks.take(now, NodeId(node), report(5, reading));
        }
        let ahead = Report {
            corrections,
            ..report(5, reading + 500_000)
        };
        clocks.take(now, NodeId(4), ahead);
        let skew = clocks.median_skew();
        (0..5)
            .map(|node| clocks.correction(NodeId(node), skew))
            .collect()
    }

    #[test]
    fn a_clock_far_from_the_median_is_corrected_once() {
        let mut clocks = clocks(5);
        let now = LocalTime(1_000_000_000);
        assert_eq!(
            round(&mut clocks, now, 0),
            [0; 5],
            "at one cut, perhaps not"
        );
        assert_eq!(round(&mut clocks, now, 0), [0, 0, 0, 0, -500_000]);
        assert_eq!(round(&mut clocks, now, 0), [0; 5], "it is told already");
        assert_eq!(clocks.reading(now), 1_000_000);
    }

    #[test]
    fn a_managers_own_leap_corrects_nobody_and_hardly_moves_the_regions_time() {
        let mut clocks = clocks(5);
        let now = LocalTime(1_000_000_000);
        for node in 0..5 {
            clocks.take(now, NodeId(node), report(5, 1_000_000));
        }
        let leapt = now + manxdb_core::Nanos::from_secs(10);
        assert_eq!(clocks.reading(leapt), 1_000_000 + SINCE_MAX_MICROS);
        for node in 0..2 {
            clocks.take(leapt, NodeId(node), report(6, 1_000_000));
        }
        let skew = clocks.median_skew();
        let told = |clocks: &mut Clocks, skew| {
            let all = (0..5).map(|node| clocks.correction(NodeId(node), skew));
            all.collect::<Vec<i64>>()
        };
        assert_eq!(told(&mut clocks, skew), [0; 5]);
        for node in 0..5 {
            clocks.take(leapt, NodeId(node), report(7, 1_002_500));
        }
        let skew = clocks.median_skew();
        assert_eq!(told(&mut clocks, skew), [0; 5]);
    }

    #[test]
    fn the_slowest_of_those_that_count_is_what_all_have_passed() {
        let mut clocks = clocks(3);
        let mut members = Membership {
            live: (0..3).map(NodeId).collect(),
            ..Membership::default()
        };
        clocks.count(&members);
        let now = LocalTime(0);
        for node in 0..2 {
            clocks.take(now, NodeId(node), report(10 + u64::from(node), 0));
        }
        assert_eq!(clocks.slowest.smallest(), Timestamp::ZERO, "one is missing");
        members.live.remove(&NodeId(2));
        members.epoch += 1;
        clocks.count(&members);
        assert_eq!(clocks.slowest.smallest(), Timestamp::at(10, 1));
    }

    #[test]
    fn a_stretched_clock_still_moves_from_round_to_round() {
        let free = Timestamp::at(10_000, 1);
        let stretched = Timestamp {
            micros: 9_999,
            stretch: 12_600,
            site: 1,
        };
        assert!(super::round(stretched, 2_500) > super::round(free, 2_500));
    }
}
