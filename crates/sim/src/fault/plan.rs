//! Many faults: drawn from a seed, written on one line.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use manxdb_core::{Nanos, NodeId, Random};

use super::{Between, Fault, FaultKind, Group, TextError};
use crate::streams::{self, Purpose};
use crate::time::SimTime;
use crate::topology::{Ppm, RegionId, Topology};

/// Faults of one run, in no order that matters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The faults.
    pub faults: Vec<Fault>,
}

impl Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.faults.iter().map(Fault::to_string).collect();
        write!(formatter, "{}", faults.join("; "))
    }
}

impl FromStr for Plan {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let parts = text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let faults: Result<_, _> = parts.map(str::parse).collect();
        faults.map(|faults| Self { faults })
    }
}

/// A kind of fault that may be drawn, and how bad at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// [`FaultKind::Crash`], the disk kept.
    Crash,
    /// [`FaultKind::Crash`], the disk lost.
    Wipe,
    /// [`FaultKind::Pause`].
    Pause,
    /// [`FaultKind::Slow`], up to so many times.
    Slow(u32),
    /// [`FaultKind::ClockStep`], up to so far, either way.
    ClockStep(Nanos),
    /// [`FaultKind::ClockDrift`], up to so many millionths, either way.
    ClockDrift(u32),
    /// [`FaultKind::ClockFreeze`].
    ClockFreeze,
    /// [`FaultKind::DiskSlow`], up to so many times.
    DiskSlow(u32),
    /// [`FaultKind::DiskFull`].
    DiskFull,
    /// [`FaultKind::DiskFails`].
    DiskFails,
    /// [`FaultKind::Cut`]: one way, between two nodes, or from one node to all others or back.
    CutNode,
    /// [`FaultKind::Part`]: a node from all others.
    PartNode,
    /// [`FaultKind::Part`]: a region from another one or from all.
    PartRegion,
    /// [`FaultKind::Loss`], up to this share.
    Loss(Ppm),
    /// [`FaultKind::Duplicate`], up to this share.
    Duplicate(Ppm),
    /// [`FaultKind::Reorder`], up to this share and this long.
    Reorder(Ppm, Nanos),
    /// [`FaultKind::Flip`], up to this share. Not among [`Profile::all_choices`], since it means
    /// nothing where no message is a datagram.
    Flip(Ppm),
    /// [`FaultKind::Delay`], up to this long.
    Delay(Nanos),
}

/// Nodes of which only so many may be away at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownTogether {
    /// The nodes: the replicas of a shard, say.
    pub nodes: Vec<NodeId>,
    /// How many of them at most.
    pub most: usize,
}

/// What plans are drawn from.
#[derive(Debug, Clone)]
pub struct Profile {
    /// What may happen; a kind listed twice happens twice as often.
    pub choices: Vec<Choice>,
    /// How many faults there are.
    pub faults: RangeInclusive<usize>,
    /// No fault begins before.
    pub from: SimTime,
    /// Every fault is over by then.
    pub healed_by: SimTime,
    /// How long faults last.
    pub lasts: RangeInclusive<Nanos>,
    /// Which nodes may be away together. A node of no group never is.
    pub down: Vec<DownTogether>,
    /// After it is back a node counts as away for so long: it has to catch up.
    pub recovery: Nanos,
}

impl Profile {
    /// Everything that can go wrong on these machines and links, between one and eight faults in
    /// the first three quarters of `until`, and at most a minority of each region away.
    pub fn everything(topology: &Topology, until: SimTime) -> Self {
        let regions =
            (0..topology.regions()).map(|region| RegionId(u16::try_from(region).unwrap_or(0)));
        let down = regions.map(|region| {
            let ids = topology.node_ids();
            let nodes: Vec<_> = ids.filter(|id| topology.region(*id) == region).collect();
            let most = nodes.len().saturating_sub(1) / 2;
            DownTogether { nodes, most }
        });
        Self {
            choices: Self::all_choices(),
            faults: 1..=8,
            from: SimTime::ZERO,
            healed_by: SimTime(until.0 / 4 * 3),
            lasts: Nanos(until.0 / 1_000)..=Nanos(until.0 / 4),
            down: down.collect(),
            recovery: Nanos(until.0 / 20),
        }
    }

    /// Every choice with bounds that a protocol should live with.
    pub fn all_choices() -> Vec<Choice> {
        vec![
            Choice::Crash,
            Choice::Wipe,
            Choice::Pause,
            Choice::Slow(20),
            Choice::ClockStep(Nanos::from_secs(10)),
            Choice::ClockStep(Nanos::from_millis(500)),
            Choice::ClockDrift(200),
            Choice::ClockFreeze,
            Choice::DiskSlow(100),
            Choice::DiskFull,
            Choice::DiskFails,
            Choice::CutNode,
            Choice::PartNode,
            Choice::PartRegion,
            Choice::Loss(Ppm::percent(30)),
            Choice::Duplicate(Ppm::percent(50)),
            Choice::Reorder(Ppm::percent(30), Nanos::from_millis(300)),
            Choice::Delay(Nanos::from_millis(80)),
        ]
    }

    /// The plan of a seed.
    pub fn draw(&self, seed: u64, topology: &Topology) -> Plan {
        let mut random = streams::of_run(seed, Purpose::Plan);
        let (least, most) = (*self.faults.start() as u64, *self.faults.end() as u64);
        let count = least + random.below(most.saturating_sub(least) + 1);
        let mut plan = Plan::default();
        for _ in 0..count {
            // Not every draw is allowed: too many nodes may be away.
            let allowed = (0..20).find_map(|_| {
                let fault = self.fault(&mut random, topology)?;
                self.allows(&plan, &fault).then_some(fault)
            });
            plan.faults.extend(allowed);
        }
        plan
    }

    fn fault(&self, random: &mut Random, topology: &Topology) -> Option<Fault> {
        let choice = *pick(&self.choices, random)?;
        let kind = kind(choice, random, topology)?;
        let lasts = between(self.lasts.start().0, self.lasts.end().0, random);
        let room = self.healed_by.since(self.from).saturating_sub(Nanos(lasts));
        let at = self.from + Nanos(random.below(room.0 + 1));
        // Whole microseconds read better and are as good.
        Some(Fault {
            at: SimTime(at.0 / 1_000 * 1_000),
            lasts: Nanos((lasts / 1_000 * 1_000).max(1_000)),
            kind,
        })
    }

    /// Whether a fault leaves enough nodes up beside the others of a plan.
    fn allows(&self, plan: &Plan, fault: &Fault) -> bool {
        let Some(node) = fault.kind.node().filter(|_| fault.kind.takes_node_down()) else {
            return true;
        };
        let groups: Vec<_> = self
            .down
            .iter()
            .filter(|group| group.nodes.contains(&node))
            .collect();
        let away: Vec<NodeId> = plan
            .faults
            .iter()
            .filter(|other| other.kind.takes_node_down())
            .filter(|other| other.at <= fault.ends() + self.recovery)
            .filter(|other| fault.at <= other.ends() + self.recovery)
            .filter_map(|other| other.kind.node())
            .collect();
        let fits = |group: &&DownTogether| {
            let others = group.nodes.iter().filter(|other| **other != node);
            others.filter(|other| away.contains(other)).count() < group.most
        };
        !groups.is_empty() && groups.iter().all(fits)
    }
}

fn between(least: u64, most: u64, random: &mut Random) -> u64 {
    least + random.below(most.saturating_sub(least) + 1)
}

fn pick<'a, T>(from: &'a [T], random: &mut Random) -> Option<&'a T> {
    let index = usize::try_from(random.below(from.len() as u64)).ok()?;
    from.get(index)
}

fn kind(choice: Choice, random: &mut Random, topology: &Topology) -> Option<FaultKind> {
    let node = NodeId(u32::try_from(random.below(topology.nodes() as u64)).ok()?);
    let links = links(random, topology)?;
    let share = |most: Ppm, random: &mut Random| {
        let drawn = between(1, u64::from(most.0).max(1), random);
        Ppm(u32::try_from(drawn).unwrap_or(most.0))
    };
    let times = |most: u32, random: &mut Random| {
        let drawn = between(2, u64::from(most).max(2), random);
        u32::try_from(drawn).unwrap_or(most)
    };
    let either_way = |most: u64, random: &mut Random| {
        let size = between(1, most.max(1), random).cast_signed();
        if random.below(2) == 0 { size } else { -size }
    };
    let span = |most: Nanos, random: &mut Random| Nanos(between(1, most.0 / 1_000, random) * 1_000);
    Some(match choice {
        Choice::Crash | Choice::Wipe => FaultKind::Crash {
            node,
            disk_lost: choice == Choice::Wipe,
        },
        Choice::Pause => FaultKind::Pause { node },
        Choice::Slow(most) => FaultKind::Slow {
            node,
            times: times(most, random),
        },
        Choice::ClockStep(most) => FaultKind::ClockStep {
            node,
            by: either_way(most.0 / 1_000_000, random) * 1_000_000,
        },
        Choice::ClockDrift(most) => FaultKind::ClockDrift {
            node,
            ppm: either_way(u64::from(most), random),
        },
        Choice::ClockFreeze => FaultKind::ClockFreeze { node },
        Choice::DiskSlow(most) => FaultKind::DiskSlow {
            node,
            times: times(most, random),
        },
        Choice::DiskFull => FaultKind::DiskFull { node },
        Choice::DiskFails => FaultKind::DiskFails { node },
        Choice::CutNode => cut(node, random, topology)?,
        Choice::PartNode => FaultKind::Part {
            one: Group::Nodes(vec![node]),
            other: Group::All,
        },
        Choice::PartRegion => part_region(random, topology)?,
        Choice::Loss(most) => FaultKind::Loss {
            between: links,
            share: share(most, random),
        },
        Choice::Duplicate(most) => FaultKind::Duplicate {
            between: links,
            share: share(most, random),
        },
        Choice::Flip(most) => FaultKind::Flip {
            between: links,
            share: share(most, random),
        },
        Choice::Reorder(most, longest) => FaultKind::Reorder {
            between: links,
            share: share(most, random),
            by: span(longest, random),
        },
        Choice::Delay(most) => FaultKind::Delay {
            between: links,
            extra: span(most, random),
        },
    })
}

/// One node hears, or is heard, by nobody; or by one other only.
fn cut(node: NodeId, random: &mut Random, topology: &Topology) -> Option<FaultKind> {
    let other = NodeId(u32::try_from(random.below(topology.nodes() as u64)).ok()?);
    let (one, other) = (Group::Nodes(vec![node]), Group::Nodes(vec![other]));
    let (from, to) = match random.below(3) {
        0 => (one, other),
        1 => (one, Group::All),
        _ => (Group::All, one),
    };
    Some(FaultKind::Cut { from, to })
}

/// `None` when there is only one region.
fn part_region(random: &mut Random, topology: &Topology) -> Option<FaultKind> {
    let regions = topology.regions() as u64;
    let one = random.below(regions);
    let other = (one + 1 + random.below(regions.saturating_sub(1))) % regions;
    let all = random.below(2) == 0;
    let group = |region| {
        u16::try_from(region)
            .ok()
            .map(|region| Group::Region(RegionId(region)))
    };
    let kind = FaultKind::Part {
        one: group(one)?,
        other: if all { Group::All } else { group(other)? },
    };
    (one != other).then_some(kind)
}

fn links(random: &mut Random, topology: &Topology) -> Option<Between> {
    let mut side = || {
        let drawn = random.below(topology.regions() as u64 + 1);
        u16::try_from(drawn).ok().map(|region| {
            let region = RegionId(region);
            (usize::from(region.0) < topology.regions()).then_some(region)
        })
    };
    let (from, to) = (side()?, side()?);
    Some(Between { from, to })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
