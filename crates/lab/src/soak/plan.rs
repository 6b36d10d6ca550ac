//! Faults of a run, drawn from its seed.
//!
//! The cluster survives one replica of each shard and one manager of each region at a time. So
//! what takes a node away, or makes its region believe so, happens to one region after another
//! with time to come back in between: those are *failures*. Everything else, *troubles* such as
//! wrong clocks and a bad wide network, happens at any time.

use manxdb_core::{Nanos, NodeId, Random};
use manxdb_dast::topology::COPIES;
use manxdb_dast::{RegionId, Topology};
use manxdb_sim::{Between, Fault, FaultKind, Group, Plan, Ppm, SimTime};
use manxdb_txn::procedure::ShardId;

use super::Setting;

/// Names the stream of random numbers.
const STREAM: u64 = 0xFA17;

/// No fault before: a cluster that has done nothing has nothing to lose.
const FROM: SimTime = SimTime::from_millis(300);

/// The longest fault of a random plan.
const LASTS_MAX_MICROS: u64 = 900_000;

/// Between two failures of a region: who was away comes back.
const RECOVERY: Nanos = Nanos::from_millis(1_200);

/// The faults of a seed for a cluster of this setting.
#[must_use]
pub fn draw(seed: u64, setting: &Setting) -> Plan {
    let mut draw = Draw {
        random: Random::stream(seed, &[STREAM]),
        topology: Topology {
            regions: setting.topology.regions,
            shards_per_region: setting.topology.shards_per_region,
        },
        clients: setting.topology.shards() * setting.clients_per_shard,
        until: setting.load_until,
        faults: Vec::new(),
    };
    for region in draw.topology.all_regions() {
        draw.failures(region);
    }
    for _ in 0..draw.random.below(6) {
        draw.trouble();
    }
    draw.faults.sort_by_key(|fault| fault.at);
    Plan {
        faults: draw.faults,
    }
}

struct Draw {
    random: Random,
    topology: Topology,
    clients: u32,
    until: SimTime,
    faults: Vec<Fault>,
}

impl Draw {
    fn below(&mut self, bound: u32) -> u32 {
        // Below a bound that is a u32.
        u32::try_from(self.random.below(bound.into())).unwrap_or(0)
    }

    fn share(&mut self, percent_max: u32) -> Ppm {
        Ppm::percent(1 + self.below(percent_max))
    }

    fn millis(&mut self, most: u32) -> Nanos {
        Nanos::from_millis(1 + u64::from(self.below(most)))
    }

    /// Short ones are as likely as long ones.
    fn lasts(&mut self) -> Nanos {
        let most = LASTS_MAX_MICROS >> self.random.below(6);
        Nanos::from_micros(1 + self.random.below(most))
    }

    fn add(&mut self, at: SimTime, lasts: Nanos, kind: FaultKind) {
        // Whole microseconds, which read better.
        let at = SimTime(at.0 / 1_000 * 1_000);
        self.faults.push(Fault { at, lasts, kind });
    }

    /// One of these nodes.
    fn one_of(&mut self, nodes: impl Iterator<Item = NodeId>) -> NodeId {
        let nodes: Vec<NodeId> = nodes.collect();
        let drawn = self.below(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        nodes.get(drawn as usize).copied().unwrap_or_default()
    }

    /// What takes nodes of a region away, one after another.
    fn failures(&mut self, region: RegionId) {
        let mut at = FROM + Nanos(self.random.below(self.until.0));
        while at < self.until {
            let lasts = self.lasts();
            self.failure(region, at, lasts);
            at = at + lasts + RECOVERY + Nanos(self.random.below(self.until.0));
        }
    }

    fn failure(&mut self, region: RegionId, at: SimTime, lasts: Nanos) {
        let topology = self.topology;
        let all = topology.nodes(region).chain(topology.managers(region));
        let node = self.one_of(all);
        let alone = || Group::Nodes(vec![node]);
        let kind = match self.below(13) {
            0..=1 => wipe(node),
            2 => return self.fail_lonely(region, at, lasts),
            3 => return self.fail_one_of_each(region, at, lasts),
            4 => FaultKind::Pause { node },
            5 => FaultKind::Part {
                one: alone(),
                other: Group::All,
            },
            6 => FaultKind::Cut {
                from: alone(),
                to: Group::All,
            },
            7 => FaultKind::Cut {
                from: Group::All,
                to: alone(),
            },
            8 => {
                let other = self.one_of(topology.nodes(region));
                FaultKind::Part {
                    one: alone(),
                    other: Group::Nodes(vec![other]),
                }
            }
            9 => FaultKind::Slow {
                node,
                times: 2 + self.below(19),
            },
            _ => self.weather_within(region),
        };
        self.add(at, lasts, kind);
    }

    /// A replica loses its peers and then everything: what only it knew is gone.
    fn fail_lonely(&mut self, region: RegionId, at: SimTime, lasts: Nanos) {
        let node = self.one_of(self.topology.nodes(region));
        let shard = ShardId(node.0 / COPIES);
        let peers = self.topology.replicas(shard);
        let apart = FaultKind::Part {
            one: Group::Nodes(vec![node]),
            other: Group::Nodes(peers.filter(|peer| *peer != node).collect()),
        };
        let alone = self.millis(100);
        self.add(at, alone, apart);
        self.add(at + alone, lasts, wipe(node));
    }

    /// As many as may fail: one replica of each shard, and a manager.
    fn fail_one_of_each(&mut self, region: RegionId, at: SimTime, lasts: Nanos) {
        let topology = self.topology;
        let mut nodes = vec![self.one_of(topology.managers(region))];
        for shard in topology.shards_of(region) {
            nodes.push(self.one_of(topology.replicas(shard)));
        }
        for node in nodes {
            self.add(at, lasts, wipe(node));
        }
    }

    /// Inside a region: makes nodes look dead that are not.
    fn weather_within(&mut self, region: RegionId) -> FaultKind {
        let between = between(region, region);
        match self.below(4) {
            0 => FaultKind::Loss {
                between,
                share: self.share(10),
            },
            1 => FaultKind::Duplicate {
                between,
                share: self.share(50),
            },
            2 => FaultKind::Reorder {
                between,
                share: self.share(20),
                by: self.millis(30),
            },
            _ => FaultKind::Delay {
                between,
                extra: self.millis(40),
            },
        }
    }

    fn trouble(&mut self) {
        let at = FROM + Nanos(self.random.below(self.until.0));
        let lasts = self.lasts();
        let server = NodeId(self.below(self.topology.servers()));
        let kind = match self.below(12) {
            0 | 1 => return self.clock_steps(at),
            2 => FaultKind::ClockDrift {
                node: server,
                ppm: i64::from(self.below(401)) - 200,
            },
            3 => FaultKind::ClockFreeze { node: server },
            4 => {
                let client = NodeId(self.topology.servers() + self.below(self.clients));
                FaultKind::Part {
                    one: Group::Nodes(vec![client]),
                    other: Group::All,
                }
            }
            _ => return self.wide_trouble(at, lasts),
        };
        self.add(at, lasts, kind);
    }

    /// Clocks are set one after another, as somebody does who tries to get them right.
    fn clock_steps(&mut self, mut at: SimTime) {
        for _ in 0..=self.below(6) {
            let node = NodeId(self.below(self.topology.servers()));
            let most = [40, 500, 500, 10_000][self.below(4) as usize];
            let millis = i64::from(1 + self.below(most));
            let sign = if self.below(2) == 0 { 1 } else { -1 };
            let by = sign * millis * 1_000_000;
            self.add(at, Nanos::ZERO, FaultKind::ClockStep { node, by });
            at = at + self.millis(150);
        }
    }

    /// Between regions, often one way only; sometimes for so long that calls are given up.
    fn wide_trouble(&mut self, at: SimTime, lasts: Nanos) {
        let regions = self.topology.regions;
        let one = self.below(regions);
        let other = (one + 1 + self.below(regions - 1)) % regions;
        let (one, other) = (RegionId(one), RegionId(other));
        let between = between(one, other);
        let lasts = Nanos(lasts.0 << self.below(3));
        let kind = match self.below(6) {
            0 => FaultKind::Part {
                one: group(one),
                other: group(other),
            },
            1 => FaultKind::Cut {
                from: group(one),
                to: group(other),
            },
            2 => FaultKind::Loss {
                between,
                share: self.share(30),
            },
            3 => FaultKind::Duplicate {
                between,
                share: self.share(50),
            },
            4 => FaultKind::Reorder {
                between,
                share: self.share(30),
                by: self.millis(300),
            },
            _ => FaultKind::Delay {
                between,
                extra: self.millis(80),
            },
        };
        self.add(at, lasts, kind);
    }
}

/// Nothing is on disk, so every crash is a total one.
fn wipe(node: NodeId) -> FaultKind {
    FaultKind::Crash {
        node,
        disk_lost: true,
    }
}

fn in_sim(region: RegionId) -> manxdb_sim::RegionId {
    manxdb_sim::RegionId(u16::try_from(region.0).unwrap_or(u16::MAX))
}

fn group(region: RegionId) -> Group {
    Group::Region(in_sim(region))
}

fn between(from: RegionId, to: RegionId) -> Between {
    Between {
        from: Some(in_sim(from)),
        to: Some(in_sim(to)),
    }
}
