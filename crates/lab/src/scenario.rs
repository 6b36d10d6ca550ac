//! One cluster under one workload: everything that decides a run in virtual time.

use std::sync::Arc;

use manxdb_common::{Ask, Level};
use manxdb_core::{Nanos, Random};
use manxdb_dast::{Crossing, Survive};
use manxdb_sim::{ClockOptions, CostModel, Fault, Link, SimTime, WorldOptions};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::{NoRows, Rows};
use manxdb_workloads::tpcc::{PaymentSums, Scale, Template, Warehouses};
use manxdb_workloads::{Calls, Topology, Workload, procedures};

use crate::candidate::{Cluster, FirstRows};
use crate::dast::paper_links;
use crate::load::{Generator, Job};
use crate::systems::SystemName;

/// Decides the rows of TPC-C at the start: the same for every run and every node.
const ROWS_SEED: u64 = 1;

/// A run in virtual time. Equal scenarios make equal runs.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What orders the transactions.
    pub system: SystemName,
    /// How DAST orders cross-region transactions.
    pub crossing: Crossing,
    /// What DAST survives.
    pub survive: Survive,
    /// How far ahead of their clocks regions tell marks at first, if it is not what the distance
    /// says.
    pub lead: Option<Nanos>,
    /// The cluster's shape.
    pub topology: Topology,
    /// What is asked.
    pub workload: Workload,
    /// How large the warehouses of TPC-C are.
    pub scale: Scale,
    /// Which sums their payments add to.
    pub payment_sums: PaymentSums,
    /// What clients are promised.
    pub level: Level,
    /// Clients in the region of each shard.
    pub clients_per_shard: u32,
    /// Calls a client has under way at a time.
    pub outstanding: u32,
    /// Inside a region, one way.
    pub lan: Link,
    /// Between regions, one way.
    pub wan: Link,
    /// How wrong clocks are at the start.
    pub clocks: ClockOptions,
    /// What work costs the CPUs of replicas and managers; clients' are free.
    pub cost: CostModel,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Before measuring.
    pub warm_up: Nanos,
    /// Measured.
    pub measured: Nanos,
    /// Whether each latency is split by what it went into.
    pub explain: bool,
    /// Decides everything random.
    pub seed: u64,
}

impl Scenario {
    /// A workload at the distances of the paper's experiments, with right clocks and free CPUs:
    /// message delays alone.
    #[must_use]
    pub fn new(topology: Topology, workload: Workload) -> Self {
        let (lan, wan) = paper_links();
        Self {
            system: SystemName::Dast,
            crossing: Crossing::Anticipated,
            survive: Survive::Zone,
            lead: None,
            topology,
            workload,
            scale: Scale::tiny(),
            payment_sums: PaymentSums::default(),
            level: Level::Serializable,
            clients_per_shard: 1,
            outstanding: 1,
            lan,
            wan,
            clocks: ClockOptions::default(),
            cost: CostModel::free(),
            faults: Vec::new(),
            warm_up: Nanos::from_secs(1),
            measured: Nanos::from_secs(10),
            explain: true,
            seed: 1,
        }
    }

    /// From when to when it is measured.
    #[must_use]
    pub fn span(&self) -> (SimTime, SimTime) {
        let from = SimTime::ZERO + self.warm_up;
        (from, from + self.measured)
    }

    /// The cluster's shape as protocols have it.
    #[must_use]
    pub fn shape(&self) -> manxdb_common::Topology {
        manxdb_common::Topology {
            regions: self.topology.regions,
            shards_per_region: self.topology.shards_per_region,
        }
    }

    /// What its system is given.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        let known = Registry::default();
        for procedure in procedures() {
            known.register(procedure);
        }
        Cluster {
            topology: self.topology,
            procedures: Arc::new(known),
            rows: self.rows(),
            round_trip: Some(self.wan.delay * 2),
            explains: self.explain,
            keeps_order: true,
            seed: self.seed,
            crossing: self.crossing,
            survive: self.survive,
            lead: self.lead,
        }
    }

    fn rows(&self) -> FirstRows {
        if !self.workload.has_warehouses() {
            return Box::new(|_| Rows::new(Arc::new(NoRows)));
        }
        let template = Arc::new(Template::new(self.scale, ROWS_SEED));
        let (topology, count) = (self.topology, self.topology.shards());
        Box::new(move |shard| {
            let template = Arc::clone(&template);
            Rows::new(Arc::new(Warehouses::of_shard(
                template, topology, count, shard,
            )))
        })
    }

    /// The world of its nodes, which are at these places.
    pub(crate) fn world_options(&self, places: manxdb_sim::Topology) -> WorldOptions {
        let mut options = WorldOptions::new(self.seed, places);
        options.clocks = self.clocks;
        options.cost = self.cost.clone();
        options.explain = self.explain;
        options
    }
}

/// What the clients of a scenario ask.
pub struct Asks {
    calls: Calls,
    level: Level,
    /// Dates need only differ.
    date: u64,
}

impl Asks {
    /// Of the scenario's clients.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let (topology, scale, seed) = (scenario.topology, scenario.scale, scenario.seed);
        Self {
            calls: Calls::new(scenario.workload, topology, scale, seed)
                .paying_into(scenario.payment_sums),
            level: scenario.level,
            date: 0,
        }
    }
}

impl Generator for Asks {
    fn next(&mut self, client: u32, home: ShardId, _random: &mut Random) -> Option<Job> {
        self.date += 1;
        // Elements of lists bear the client's number, and 0 is the initial state's.
        let request = self
            .calls
            .next(client as usize, client + 1, home, self.date);
        Some(Job {
            crosses_regions: !request.reach.is_local(),
            ask: Ask {
                procedure: request.procedure.into(),
                args: request.args,
                level: self.level,
                home,
            },
        })
    }
}
