//! Reports of the replicas: their clocks, and how far each is from the others.

use std::collections::BTreeMap;

use manxdb_core::check::ensure;
use manxdb_core::{LocalTime, NodeId};

use super::slowest::Slowest;
use crate::ledger::Membership;
use crate::message::Report;
use crate::timestamp::Timestamp;

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

    /// A cut is told.
    pub(super) fn tell(&mut self, upto: Timestamp) {
        assert!(upto > self.told, "cuts of one leader only grow");
        self.told = upto;
    }

    /// What all that count have passed.
    pub(super) fn passed(&self) -> Timestamp {
        self.slowest.smallest()
    }

    /// Counts of a shard that have changed since the last cut, by coordinator.
    pub(super) fn changed(&self, shard: u32) -> impl Iterator<Item = (NodeId, u64)> {
        let counts = self.changed.get(&shard).into_iter().flatten();
        counts.map(|(node, number)| (*node, *number))
    }

    /// All that has changed is told.
    pub(super) fn forget_changes(&mut self) {
        self.changed.clear();
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
        assert!(
            place < self.reported.len(),
            "a node that is put out is one of the region's"
        );
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
        assert!(
            place < self.reported.len(),
            "a node that is let in is one of the region's"
        );
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

    /// A node has reported.
    pub(super) fn take(&mut self, now: LocalTime, node: NodeId, report: Report) {
        for (shard, number) in report.stamped {
            self.changed.entry(shard).or_default().insert(node, number);
        }
        let (place, heard_tick) = (self.place(node), self.ticks);
        let Some(reported) = self.reported.get_mut(place) else {
            return;
        };
        let before = reported.as_ref();
        let clock = before.map_or(report.clock, |before| before.clock.max(report.clock));
        assert!(
            before.is_none_or(|before| before.heard_tick <= heard_tick),
            "the manager's own ticks only grow"
        );
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
    pub(super) fn count(&mut self, members: &Membership) {
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
    pub(super) fn correction(&mut self, node: NodeId, median_skew: i64) -> i64 {
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
    pub(super) fn median_skew(&self) -> i64 {
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

    /// What is true of clocks between any two steps.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_own = |node: &NodeId| self.place(*node) < self.reported.len();
        ensure(
            self.changed.values().flat_map(BTreeMap::keys).all(is_own),
            || {
                format!(
                    "K3: nodes of other regions have stamped: {:?}",
                    self.changed
                )
            },
        )?;
        for (place, reported) in self.reported.iter().enumerate() {
            let clock = reported.as_ref().map_or(Timestamp::ZERO, |it| it.clock);
            let counted = self.slowest.at(place);
            let is_same = counted == clock || counted == Timestamp::MAX;
            ensure(is_same || self.counted_at.is_none(), || {
                format!("K4: node {place} has reported {clock:?}, and {counted:?} counts")
            })?;
            let Some(reported) = reported else {
                continue;
            };
            ensure(reported.heard_tick <= self.ticks, || {
                let (heard, ticks) = (reported.heard_tick, self.ticks);
                format!("K5: node {place} was heard at tick {heard} of {ticks}")
            })?;
            let deviation = reported.deviation.unsigned_abs();
            ensure(deviation == 0 || deviation > TOLERANCE_MICROS, || {
                format!("K6: node {place} is {deviation} µs from the others, which is not far")
            })?;
        }
        self.slowest.check()
    }

    /// What all of `nodes` have run; none if one of them has not reported.
    pub(super) fn position(&self, mut nodes: impl Iterator<Item = NodeId>) -> Option<Timestamp> {
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
}
