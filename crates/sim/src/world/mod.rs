//! The loop: takes what happens next and lets it happen.
//!
//! What arrives at a busy node is stepped at once, with the time at which its turn will come: the
//! order is the same, and it takes one event instead of two. What the step sends, answers and
//! writes leaves the node when the CPU is done with it; a crash before that takes it back with
//! the core. So a core that is looked at may be ahead of virtual time by the line of its CPU, and
//! what a core notes down outside of itself may never have happened.

mod access;
mod faults;
mod options;
mod run;
mod step;

use std::collections::BTreeSet;

use manxdb_core::channel::Life;
use manxdb_core::{Actions, Core, NodeId};

use crate::clock::Clock;
use crate::counters::Counters;
use crate::driver::Shared;
use crate::explain::Steps;
use crate::fault::Fault;
use crate::network::Network;
use crate::node::Node;
use crate::pending::{Held, Pending};
use crate::streams::{self, Purpose};
use crate::system::System;
use crate::time::SimTime;
use crate::trace::Trace;

pub use options::{AfterPause, ClockOptions, WorldOptions};

/// A run went wrong: a core's own check failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {at} on node {}: {what}", node.0)]
pub struct Failure {
    /// When.
    pub at: SimTime,
    /// Where.
    pub node: NodeId,
    /// What is broken.
    pub what: String,
}

/// A cluster in virtual time.
pub struct World<S: System> {
    system: S,
    nodes: Vec<Node<S::Core>>,
    shared: Shared<S::Core>,
    network: Network<Held<<S::Core as Core>::Message>>,
    options: WorldOptions,
    /// Whether CPU time has a price at all.
    costs: bool,
    faults: Vec<Fault>,
    /// Those of them that are in effect.
    active: BTreeSet<usize>,
    counters: Counters,
    trace: Trace,
    /// The buffer of every step.
    actions: Actions<S::Core>,
    begun: bool,
    /// Numbers the steps of all nodes.
    steps_taken: u64,
}

impl<S: System> World<S> {
    /// A cluster whose nodes start at time zero.
    pub fn new(system: S, options: WorldOptions) -> Self {
        let seed = options.seed;
        if options.check {
            manxdb_core::check::enable_deep();
        }
        let mut costs = !options.cost.is_free();
        let nodes = options.topology.node_ids().map(|id| {
            let mut random = streams::of_node(seed, id, Purpose::Clock);
            let clock = options.clocks.draw(&mut random);
            let cost = system.cost(id).unwrap_or_else(|| options.cost.clone());
            costs |= !cost.is_free();
            let stream = |purpose| streams::of_node(seed, id, purpose);
            let streams = [stream(Purpose::Disk), stream(Purpose::Wakeup)];
            Node::new(clock, cost, streams)
        });
        let nodes = nodes.collect();
        let mut world = Self {
            nodes,
            shared: Shared::new(
                options.seed,
                options.client_delay,
                Steps::new(options.explain),
            ),
            network: Network::new(seed, options.topology.clone(), options.transport),
            costs,
            faults: Vec::new(),
            active: BTreeSet::new(),
            counters: Counters::default(),
            trace: Trace::new(options.record),
            actions: Actions::default(),
            begun: false,
            steps_taken: 0,
            system,
            options,
        };
        for index in 0..world.nodes.len() {
            world.place_core(index, Vec::new());
        }
        for node in world.topology().node_ids() {
            let pending = Pending::Start { node };
            world.shared.queue.push(SimTime::ZERO, pending);
        }
        world
    }

    /// Gives a node a core for its next life, which is yet to be told that it starts.
    fn place_core(&mut self, index: usize, disk: Vec<<S::Core as Core>::Record>) {
        let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
        let node = &mut self.nodes[index];
        node.life = Life(node.life.0 + 1);
        node.core = Some(self.system.start(id, node.life, disk));
    }

    /// Gives a node a CPU that takes no time, before the run begins: a client is not what is
    /// measured.
    pub fn make_cpu_free(&mut self, node: NodeId) {
        self.nodes[node.0 as usize].costs = false;
    }

    /// Replaces a node's clock, before the run begins.
    pub fn set_clock(&mut self, node: NodeId, clock: Clock) {
        self.nodes[node.0 as usize].clock = clock;
    }
}
