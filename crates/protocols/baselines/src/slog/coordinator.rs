//! What a replica coordinates: it has a transaction ordered, collects what its shards gave and
//! answers the client.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::{Call, CallId, Given, Planned};
use manxdb_core::NodeId;
use manxdb_core::check::ensure;
use manxdb_txn::procedure::ShardId;

use super::message::SlogMessage;
use super::{Crossing, Out, SlogShared, global_members, leader_of};

#[derive(Debug)]
struct Coordinated {
    planned: Arc<Planned>,
    /// By shard: what the first replica that ran it said.
    given: BTreeMap<u32, Given>,
}

/// Transactions that a replica coordinates and that are not answered.
pub(super) struct Coordinator {
    me: NodeId,
    shared: Arc<SlogShared>,
    open: BTreeMap<CallId, Coordinated>,
}

impl Coordinator {
    pub fn new(me: NodeId, shared: Arc<SlogShared>) -> Self {
        Self {
            me,
            shared,
            open: BTreeMap::new(),
        }
    }

    pub fn submit(&mut self, call: Call, out: &mut Out) {
        let id = call.id;
        if self.open.contains_key(&id) {
            return;
        }
        let planned = match self.shared.plan(call, self.me) {
            Ok(planned) => planned,
            Err(failure) => {
                let given = Err(failure);
                return out.send(id.client, SlogMessage::Outcome { id, given });
            }
        };
        let to = self.logs_of(&planned);
        assert!(!to.is_empty(), "L9: every region has a log");
        let coordinated = Coordinated {
            planned: Arc::clone(&planned),
            given: BTreeMap::new(),
        };
        self.open.insert(id, coordinated);
        for leader in to {
            let planned = Arc::clone(&planned);
            out.send(leader, SlogMessage::Order { planned });
        }
    }

    /// The leaders of the logs that a transaction has to go into.
    fn logs_of(&self, planned: &Planned) -> Vec<NodeId> {
        let topology = self.shared.topology;
        if planned.crosses_regions && self.shared.options.crossing == Crossing::GlobalLog {
            return global_members(topology).into_iter().take(1).collect();
        }
        let regions = topology.regions_of(planned).into_iter();
        regions
            .filter_map(|region| leader_of(topology, region))
            .collect()
    }

    pub fn output(&mut self, id: CallId, shard: u32, given: Given, out: &mut Out) {
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        if !open.planned.touches(ShardId(shard)) {
            return;
        }
        open.given.entry(shard).or_insert(given);
        if open.given.len() < open.planned.shards.len() {
            return;
        }
        if let Some(over) = self.open.remove(&id) {
            if self.shared.options.crossing == Crossing::Graph {
                for leader in self.logs_of(&over.planned) {
                    out.send(leader, SlogMessage::Over { id });
                }
            }
            let given = all_given(over.given.into_values());
            out.send(id.client, SlogMessage::Outcome { id, given });
        }
    }

    pub fn check(&self) -> Result<(), String> {
        for (id, open) in &self.open {
            ensure(open.planned.id() == *id, || {
                format!("L10: {id:?} is kept under another name")
            })?;
            ensure(open.given.len() < open.planned.shards.len(), || {
                format!("L11: {id:?} has run everywhere and is not answered")
            })?;
        }
        Ok(())
    }
}

/// The values of all shards, or why the first of them failed.
fn all_given(all: impl Iterator<Item = Given>) -> Given {
    let mut values = Vec::new();
    for given in all {
        values.extend(given?);
    }
    Ok(values)
}
