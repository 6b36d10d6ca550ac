//! What nodes of a cluster that replicates say of themselves: notes of their status, by name.

use manxdb_core::NodeId;
use manxdb_curp::ids::Member;
use manxdb_curp::{CurpNode, Execute};
use manxdb_curp_redis::RedisMachine;
use manxdb_curp_sql::SqlMachine;

use crate::cluster::node::STATE;

/// The note by which a coordinator says what keeps the cluster from going on.
pub const WAITS: &str = "waits for";
/// Says what a node is: one of these.
pub const COORDINATES: &str = "coordinates";
/// A server that decides what is executed.
pub const SERVES: &str = "is master";
/// A server that is not the master.
pub const FOLLOWS: &str = "follows";
/// A witness.
pub const WITNESSES: &str = "records";
/// A proxy that has a view.
pub const PASSES_ON: &str = "passes on";

/// A machine that says how many rows it has.
pub trait CountedRows: Execute {
    /// So many.
    fn count_rows(&self) -> usize;
}

impl CountedRows for RedisMachine {
    fn count_rows(&self) -> usize {
        self.inside().rows()
    }
}

impl CountedRows for SqlMachine {
    fn count_rows(&self) -> usize {
        usize::try_from(self.keys()).unwrap_or(usize::MAX)
    }
}

/// What servers lack of the master's log: the commands of each, or `copy` where its log is not known.
fn lacking(servers: &[(NodeId, Option<u64>)]) -> String {
    let lacking = servers.iter().map(|(server, commands)| {
        let commands = commands.map_or("copy".to_owned(), |commands| commands.to_string());
        format!("{}:{commands}", server.0)
    });
    lacking.collect::<Vec<_>>().join(" ")
}

/// What a node says of itself.
#[must_use]
pub fn notes<E: CountedRows>(core: &CurpNode<E>) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    let mut note = |name: &str, value: String| notes.push((name.to_owned(), value));
    if let Some(coordinator) = core.coordinator() {
        note(STATE, COORDINATES.to_owned());
        if let Some(what) = coordinator.waits_for() {
            note(WAITS, what);
        }
        let nodes = |members: &[Member]| {
            let nodes: Vec<_> = members
                .iter()
                .map(|member| member.node.0.to_string())
                .collect();
            nodes.join(" ")
        };
        note("spares", nodes(&coordinator.spares()));
        if let Some(config) = coordinator.config() {
            note(
                "view",
                format!("{}.{}", config.view.epoch.0, config.view.wlv.0),
            );
            note("master", config.master.node.0.to_string());
            note("backups", nodes(&config.backups));
            note("witnesses", nodes(&config.witnesses));
        }
    }
    if let Some(server) = core.server() {
        let is_master = server.serves().is_some();
        note(STATE, if is_master { SERVES } else { FOLLOWS }.to_owned());
        if let Some(counts) = server.counts() {
            note("fast", counts.fast.to_string());
            note("synced first", counts.synced_first.to_string());
            note("replayed", counts.replayed.to_string());
            note("clients forgotten", counts.expired.to_string());
            note("copied bytes", counts.copied_bytes.to_string());
            let uncollected = server.uncollected().unwrap_or(0);
            note("records not collected", uncollected.to_string());
        }
        if let (Some(not_synced), Some(backlog)) = (server.not_synced(), server.backlog()) {
            note("not synced", not_synced.to_string());
            note("backlog", lacking(&backlog));
        }
        if let Some(followers) = server.followers() {
            note("followers", lacking(&followers));
        }
        let (applied, state) = server.applied();
        note("applied", applied.to_string());
        let rows = server.served().unwrap_or(state).count_rows();
        note("rows", rows.to_string());
        note("not on disk", server.not_on_disk().to_string());
    }
    if let Some(witness) = core.witness() {
        note(STATE, WITNESSES.to_owned());
        note("carrier", witness.carrier().to_owned());
        note(
            "datagrams refused for their content",
            witness.refused().to_string(),
        );
    }
    if let Some(client) = core.client() {
        note(STATE, PASSES_ON.to_owned());
        note("waiting", client.waiting().to_string());
    }
    notes
}
