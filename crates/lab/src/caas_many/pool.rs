//! The cores of the service as nodes of a simulated network.

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId, Random};
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::message::Ability;
use manxdb_jobs::node::Node;
use manxdb_jobs::record::{Durable, Record};
use manxdb_jobs::{Client, Control, DatabaseId, Fingerprint, Options, SessionId, Worker, WorkerId};
use manxdb_sim::{CostModel, Link, System, Topology, WorldOptions};

use super::Trial;

/// The control plane.
pub(super) const CONTROL: NodeId = NodeId(0);

/// One way within a machine room.
const LAN: Nanos = Nanos::from_micros(250);
/// Until the control plane's record is on disk.
const SYNC: Nanos = Nanos::from_millis(1);

/// A pool and its databases: node 0 is the control plane, then come workers, then databases.
pub(super) struct Pool {
    pub options: Options,
    seed: u64,
    workers: u32,
    slots: u32,
    slot_bytes: u64,
}

impl Pool {
    pub fn new(trial: &Trial, options: Options) -> Self {
        Self {
            options,
            seed: trial.seed,
            workers: trial.workers,
            slots: trial.slots,
            slot_bytes: u64::from(trial.slot_speed) << 20,
        }
    }

    fn ability(&self) -> Ability {
        Ability {
            fingerprints: vec![Fingerprint::default()],
            slots: self.slots,
            bytes_second: self.slot_bytes,
            memory: 64 << 30,
            ..Ability::default()
        }
    }
}

/// The node of a worker, numbered from 0.
pub(super) fn worker(place: u32) -> NodeId {
    NodeId(1 + place)
}

/// The node of a database, numbered from 0.
pub(super) fn database(trial: &Trial, place: usize) -> NodeId {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    NodeId(1 + trial.workers + place)
}

/// Nodes, links and prices of a trial.
pub(super) fn world(trial: &Trial) -> WorldOptions {
    let nodes = match trial.who.policy() {
        Some(_) => 1 + trial.workers + trial.databases,
        None => 1, // nobody has anything to say
    };
    let topology = Topology::single(nodes, Link::after(LAN));
    let mut options = WorldOptions::new(trial.seed, topology);
    options.cost = CostModel {
        sync: SYNC,
        ..CostModel::free()
    };
    // Looked at after each second.
    options.check = false;
    options
}

impl System for Pool {
    type Core = Node;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<Record>) -> Node {
        let drawn = Random::stream(self.seed, &[u64::from(node.0), life.0]).next_bits();
        if node == CONTROL {
            let durable = Durable::of(disk);
            return Node::Control(Box::new(Control::new(self.options, drawn, durable)));
        }
        if node.0 <= self.workers {
            let beat = self.options.beat;
            let worker = Worker::new(WorkerId(drawn), CONTROL, beat, self.ability());
            return Node::Worker(Box::new(worker));
        }
        let id = DatabaseId(u64::from(node.0));
        let options = ClientOptions::default();
        Node::Client(Box::new(Client::new(
            id,
            SessionId(drawn),
            CONTROL,
            options,
        )))
    }
}
