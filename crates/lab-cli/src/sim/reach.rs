//! Whether a fault can happen to a cluster: its nodes and regions are there.

use manxdb_common::Topology;
use manxdb_core::NodeId;
use manxdb_sim::{Between, FaultKind, Group, RegionId};

/// Says what of a fault the cluster does not have.
///
/// # Errors
/// What is not there, and what is.
pub fn within(kind: &FaultKind, shape: Topology) -> Result<(), String> {
    if let Some(found) = kind.node() {
        node(found, shape)?;
    }
    match kind {
        FaultKind::Cut { from, to } => group(from, shape).and_then(|()| group(to, shape)),
        FaultKind::Part { one, other } => group(one, shape).and_then(|()| group(other, shape)),
        FaultKind::Loss { between, .. }
        | FaultKind::Duplicate { between, .. }
        | FaultKind::Reorder { between, .. }
        | FaultKind::Flip { between, .. }
        | FaultKind::Delay { between, .. } => links(*between, shape),
        FaultKind::DiskSlow { .. } | FaultKind::DiskFull { .. } | FaultKind::DiskFails { .. } => {
            Err("nodes of these systems write nothing to disk".to_owned())
        }
        _ => Ok(()),
    }
}

fn node(node: NodeId, shape: Topology) -> Result<(), String> {
    let servers = shape.servers();
    if node.0 < servers {
        return Ok(());
    }
    let replicas = servers - shape.regions * manxdb_common::topology::COPIES;
    Err(format!(
        "there is no server n{}; replicas are n0 to n{}, managers n{replicas} to n{}",
        node.0,
        replicas - 1,
        servers - 1
    ))
}

fn region(region: RegionId, shape: Topology) -> Result<(), String> {
    if u32::from(region.0) < shape.regions {
        return Ok(());
    }
    let last = shape.regions - 1;
    Err(format!(
        "there is no region r{}; they are r0 to r{last}",
        region.0
    ))
}

fn group(group: &Group, shape: Topology) -> Result<(), String> {
    match group {
        Group::All => Ok(()),
        Group::Region(of) => region(*of, shape),
        Group::Nodes(nodes) => nodes.iter().try_for_each(|of| node(*of, shape)),
    }
}

fn links(between: Between, shape: Topology) -> Result<(), String> {
    let mut ends = between.from.into_iter().chain(between.to);
    ends.try_for_each(|of| region(of, shape))
}
