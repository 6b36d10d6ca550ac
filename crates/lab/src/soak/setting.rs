//! The cluster, the workload and the weather of a run.

use manxdb_core::{Nanos, Random};
use manxdb_dast::Level;
use manxdb_sim::{ClockOptions, CostModel, Link, SimTime};
use manxdb_workloads::Topology;
use manxdb_workloads::append::Settings;

use crate::dast::paper_links;

/// Names the stream of random numbers.
const STREAM: u64 = 0x5E77;

/// Everything about a run but its seed and its faults.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The cluster's shape.
    pub topology: Topology,
    /// Clients in the region of each shard.
    pub clients_per_shard: u32,
    /// Calls a client has under way at a time. Sessions and strict clients have one.
    pub outstanding: u32,
    /// What clients are promised.
    pub level: Level,
    /// What they read and append.
    pub lists: Settings,
    /// Inside a region.
    pub lan: Link,
    /// Between regions.
    pub wan: Link,
    /// How wrong clocks are at the start.
    pub clocks: ClockOptions,
    /// What work costs.
    pub cost: CostModel,
    /// How long a client waits before it asks again with the same identity.
    pub client_patience: Nanos,
    /// No call is made after this.
    pub load_until: SimTime,
    /// How long the cluster may take to come to rest once all is healed and nothing new is asked.
    pub rest_within: Nanos,
}

impl Setting {
    /// Two regions of a shard each, right clocks, even delays, free CPUs.
    #[must_use]
    pub fn small() -> Self {
        let (lan, wan) = paper_links();
        Self {
            topology: shape(2, 1),
            clients_per_shard: 2,
            outstanding: 1,
            level: Level::Serializable,
            lists: Settings::default(),
            lan,
            wan,
            clocks: ClockOptions::default(),
            cost: CostModel::free(),
            client_patience: Nanos::from_secs(2),
            load_until: SimTime::from_secs(3),
            rest_within: Nanos::from_secs(30),
        }
    }

    /// The setting of a seed: most are small, one in fifty has 27 replicas.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::stream(seed, &[STREAM]);
        let mut setting = Self::small();
        setting.topology = match random.below(50) {
            0 => shape(3, 3),
            1..=3 => shape(3, 1),
            4..=10 => shape(2, 2),
            _ => shape(2, 1),
        };
        setting.clients_per_shard = 3;
        setting.load_until = SimTime::from_secs(5);
        setting.level = match random.below(4) {
            0 => Level::Session,
            1 => Level::Strict,
            _ => Level::Serializable,
        };
        setting.lists = lists(&mut random);
        if setting.level == Level::Serializable {
            setting.outstanding = pick(&mut random, &[1, 1, 3]);
        }
        setting.draw_weather(&mut random);
        setting
    }

    fn draw_weather(&mut self, random: &mut Random) {
        let millis = |random: &mut Random, of: &[u64]| Nanos::from_millis(pick(random, of));
        self.lan.jitter = millis(random, &[0, 0, 1, 2]);
        self.wan.jitter = millis(random, &[0, 0, 5, 20, 80]);
        self.clocks = ClockOptions {
            offset_max: millis(random, &[0, 1, 5, 50, 500]),
            drift_max_ppm: pick(random, &[0, 0, 200]),
        };
        self.client_patience = millis(random, &[2_000, 2_000, 2_000, 400, 120]);
        self.cost = CostModel::default();
    }
}

fn shape(regions: u32, shards_per_region: u32) -> Topology {
    Topology {
        regions,
        shards_per_region,
    }
}

/// Mixed, or one thing only.
fn lists(random: &mut Random) -> Settings {
    let mixed = Settings::default();
    match random.below(6) {
        0 => Settings {
            lists_per_shard: 1,
            ..mixed
        },
        1 => Settings {
            cross_region: 0.9,
            ..mixed
        },
        2 => Settings {
            cross_region: 1.0,
            deferred: 1.0,
            ..mixed
        },
        3 => Settings {
            cross_region: 0.1,
            ..mixed
        },
        _ => mixed,
    }
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    let drawn = random.below(from.len() as u64);
    from[usize::try_from(drawn).unwrap_or(0)]
}
