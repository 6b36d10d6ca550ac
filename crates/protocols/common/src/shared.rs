//! What every node of a cluster is given.

use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_txn::procedure::{Placement, Registry};

use crate::call::{Call, Planned};
use crate::topology::Topology;

/// What all nodes of a cluster have in common; `O` are the options of its protocol.
#[derive(Clone)]
pub struct Shared<O> {
    /// The cluster's shape.
    pub topology: Topology,
    /// How it behaves.
    pub options: O,
    /// The procedures it knows.
    pub procedures: Arc<Registry>,
    /// Where keys live.
    pub placement: Arc<dyn Placement>,
}

impl<O> Shared<O> {
    /// A call cut into pieces, for `coordinator` to see to.
    ///
    /// # Errors
    /// Why it cannot be, in words: the procedure is not known, its arguments make no sense, its
    /// pieces wait for each other, or it has none.
    pub fn plan(&self, call: Call, coordinator: NodeId) -> Result<Arc<Planned>, String> {
        let procedure = self.procedures.find(&call.procedure);
        let procedure = procedure.map_err(|failure| failure.to_string())?;
        let pieces = procedure.plan(&call.args, self.placement.as_ref());
        let pieces = pieces.map_err(|failure| failure.to_string())?;
        if pieces.is_empty() {
            return Err(format!("{} has nothing to do", call.procedure));
        }
        let shards = self.topology.shards();
        if let Some(piece) = pieces.iter().find(|piece| piece.shard.0 >= shards) {
            let shard = piece.shard.0;
            return Err(format!("there is no shard {shard}: {shards} in all"));
        }
        let planned = Planned::new(call, coordinator, pieces, self.topology);
        planned.map_err(|failure| failure.to_string())
    }
}
