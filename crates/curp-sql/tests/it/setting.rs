//! How big a cluster is, what happens to it, and how a run is judged.

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId};
use manxdb_curp::disk::CurpRecord;
use manxdb_curp::{CurpNode, Durability, Execute as _, Options};
use manxdb_curp_sql::SqlMachine;
use manxdb_curp_sql::primary::CommitCounts;
use manxdb_sim::hunt::Case;
use manxdb_sim::{
    CostModel, Fault, Link, Plan, RegionId, SimTime, System, Topology, World, WorldOptions,
};

use tempfile::TempDir;

use crate::bank::Bank;
use crate::stored::home;

type Node = CurpNode<SqlMachine>;

pub struct Cluster {
    pub options: Options,
    /// Where servers keep their rows, unless in memory: a directory for each.
    rows: Option<TempDir>,
}

impl Cluster {
    pub fn new(options: Options, rows: Rows) -> Self {
        let rows = (rows == Rows::OnDisk).then(|| tempfile::tempdir().unwrap());
        Self { options, rows }
    }
}

/// Where servers keep their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rows {
    #[default]
    InMemory,
    /// As processes do.
    OnDisk,
}

impl System for Cluster {
    type Core = Node;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<CurpRecord>) -> Node {
        let empty = self.rows.as_ref().map_or_else(SqlMachine::empty, |rows| {
            let data = rows.path().join(node.0.to_string());
            std::fs::create_dir_all(&data).unwrap();
            SqlMachine::stored(&home(&data))
        });
        let opened = CurpNode::open_on(empty, node, life.0, self.options, 0x005E_C2E7, disk);
        opened.expect("a simulation gives each node its own disk")
    }
}

/// Planted defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Defect {
    #[default]
    None,
    /// A group is shown before it is confirmed.
    PublishedUnconfirmed,
    /// A group is shown when it is confirmed, although one before it is not.
    PublishedOutOfOrder,
    /// Reads ask for no lease.
    NoLease,
}

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub faults: usize,
    pub accounts: u64,
    pub sessions: u64,
    pub until: SimTime,
    pub think: Nanos,
    pub sync_after: Nanos,
    /// One transfer in so many begins with a look at the whole state.
    pub looks: u64,
    pub defect: Defect,
    pub rows: Rows,
    pub durability: Durability,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            faults: 1,
            accounts: 24,
            sessions: 4,
            until: SimTime::from_millis(700),
            think: Nanos::from_millis(6),
            sync_after: Options::default().sync_after,
            looks: 4,
            defect: Defect::None,
            rows: Rows::default(),
            durability: Durability::default(),
        }
    }
}

impl Setting {
    pub fn options(&self) -> Options {
        let faults = u32::try_from(self.faults).unwrap();
        Options {
            faults: self.faults,
            servers: faults + 2,
            witnesses: faults + 1,
            table: (64, 4),
            sync_after: self.sync_after,
            durability: self.durability,
            // Short, so that records of the whole log and pieces fall between faults.
            whole_after: 20_000,
            piece_bytes: 1_000,
            ..Options::default()
        }
    }

    /// The client node in the process of a server.
    pub fn client_of(&self, server: u32) -> u32 {
        let options = self.options();
        options.servers + options.witnesses + server
    }

    /// Each server is a machine of its own, with its client.
    pub fn topology(&self, link: Link) -> Topology {
        let options = self.options();
        let own = |server: u32| RegionId(u16::try_from(server).unwrap());
        let mut regions = vec![RegionId(0)];
        regions.extend((1..=options.servers).map(own));
        let others = u16::try_from(options.servers).unwrap();
        let witnesses = u16::try_from(options.witnesses).unwrap();
        regions.extend((0..witnesses).map(|witness| RegionId(others + 1 + witness)));
        regions.extend((1..=options.servers).map(own));
        Topology::new(regions, Link::after(Nanos::ZERO), link)
    }

    pub fn far(&self) -> Topology {
        self.topology(Link::after(Nanos::from_micros(500)).with_jitter(Nanos::from_micros(100)))
    }

    pub fn world(&self, seed: u64) -> World<Cluster> {
        let mut options = WorldOptions::new(seed, self.far());
        options.cost = CostModel {
            sync: Nanos::from_millis(1),
            ..CostModel::free()
        };
        let cluster = Cluster::new(self.options(), self.rows);
        World::new(cluster, options)
    }

    /// A run of a case, judged.
    pub fn run(&self, case: &Case) -> Result<Ran, String> {
        self.run_plan(case.seed, &case.plan)
    }

    pub fn run_plan(&self, seed: u64, plan: &Plan) -> Result<Ran, String> {
        let mut world = self.world(seed);
        world.schedule_all(plan);
        let mut bank = Bank::new(*self);
        let healed = plan.faults.iter().map(Fault::ends).max();
        let healed = healed.unwrap_or_default().max(self.until);
        let mut until = healed;
        while !bank.is_judged() {
            world
                .run_until(&mut bank, until)
                .map_err(|failure| failure.to_string())?;
            bank.wrong().map_or(Ok(()), Err)?;
            if until > healed + Nanos::from_secs(20) {
                return Err("no primary at rest".to_owned());
            }
            until = until + Nanos::from_millis(50);
        }
        Ok(bank.ran(world.digest()))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Ran {
    pub digest: u64,
    pub acknowledged: usize,
    pub unknown: usize,
    pub reigns: u64,
    pub counts: CommitCounts,
}
