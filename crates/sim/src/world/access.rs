//! What can be seen of a world between runs.

use manxdb_core::channel::Life;
use manxdb_core::{Core, Digest, LocalTime, Nanos, NodeId};

use super::World;
use crate::counters::Counters;
use crate::driver::Outside;
use crate::explain::Step;
use crate::node::Node;
use crate::system::{RecordOf, System};
use crate::time::SimTime;
use crate::topology::Topology;
use crate::trace::Trace;

impl<S: System> World<S> {
    /// The world as the workload has it, for scripts without a driver.
    pub fn outside(&mut self) -> Outside<'_, S> {
        Outside {
            nodes: &self.nodes,
            shared: &mut self.shared,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> SimTime {
        self.shared.now
    }

    /// Where nodes are.
    pub fn topology(&self) -> &Topology {
        self.network.topology()
    }

    fn node(&self, node: NodeId) -> &Node<S::Core> {
        &self.nodes[node.0 as usize]
    }

    /// A node's core, unless the node is down.
    pub fn core(&self, node: NodeId) -> Option<&S::Core> {
        self.node(node).core.as_ref()
    }

    /// The cores of all nodes that are up.
    pub fn cores(&self) -> impl Iterator<Item = (NodeId, &S::Core)> {
        let ids = self.topology().node_ids();
        ids.filter_map(|id| self.core(id).map(|core| (id, core)))
    }

    /// How many times a node has started.
    pub fn life(&self, node: NodeId) -> Life {
        self.node(node).life
    }

    /// What a node's clock shows.
    pub fn local_time(&self, node: NodeId) -> LocalTime {
        self.node(node).clock.read(self.shared.now)
    }

    /// The records that are safe on a node's disk.
    pub fn disk(&self, node: NodeId) -> &[RecordOf<S>] {
        self.node(node).disk.records()
    }

    /// CPU time that a node has spent, or is bound to spend on what has arrived.
    pub fn cpu_busy(&self, node: NodeId) -> Nanos {
        let node = self.node(node);
        node.cpu.busy() + node.report_cpu.busy()
    }

    /// The system that makes the cores.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// The same, to change it.
    pub fn system_mut(&mut self) -> &mut S {
        &mut self.system
    }

    /// What happened, counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What was recorded.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Steps about transactions that nobody took, if they are kept.
    pub fn steps(&self) -> impl Iterator<Item = (u64, &[Step])> {
        self.shared.steps.all()
    }

    /// Events that wait.
    pub fn waiting(&self) -> usize {
        self.shared.queue.len()
    }

    /// Equal for equal histories of a node.
    pub fn node_digest(&self, id: NodeId) -> u64 {
        let node = self.node(id);
        let mut digest = node.digest;
        digest.number(node.life.0);
        digest.number(node.core.as_ref().map_or(0, Core::digest));
        digest.value()
    }

    /// Equal for equal runs.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.counters.events);
        for id in self.topology().node_ids() {
            digest.number(self.node_digest(id));
        }
        digest.value()
    }

    /// Checks all cores that are up.
    ///
    /// # Errors
    /// What is broken, in words.
    pub fn check(&self) -> Result<(), super::Failure> {
        for (node, core) in self.cores() {
            core.check().map_err(|what| super::Failure {
                at: self.now(),
                node,
                what,
            })?;
        }
        Ok(())
    }
}
