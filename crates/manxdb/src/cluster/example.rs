//! A cluster that tests look at, which runs nowhere.

use std::net::SocketAddr;

use manxdb_core::NodeId;
use manxdb_dast::{Crossing, Survive, Topology};

use super::dast;
use super::file::{ClusterFile, ClusterProtocol, Distances, Node};
use crate::cli::TpccScale;

/// A cluster over regions, ordered ahead.
pub fn over_regions(regions: u32, shards_per_region: u32) -> ClusterFile {
    let topology = Topology {
        regions,
        shards_per_region,
    };
    let at = |port: u32| SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap_or(1)));
    let node = |number| {
        let (role, region) = dast::role(topology, NodeId(number));
        Node {
            number,
            role,
            region,
            address: at(7400 + number),
            redis: None,
            mysql: None,
            admin: Some(at(8400 + number)),
            process: 1,
        }
    };
    ClusterFile {
        protocol: ClusterProtocol::Dast,
        id: "c0ffee".into(),
        regions,
        shards_per_region,
        process: 7,
        distances: Distances {
            lan_ms: 5.0,
            wan_ms: 100.0,
            wan_jitter_ms: 0.0,
        },
        suspect_ms: 500.0,
        crossing: Crossing::Ahead,
        survive: Survive::Zone,
        lead_ms: None,
        tpcc_scale: TpccScale::Tiny,
        curp: None,
        nodes: (0..topology.servers()).map(node).collect(),
    }
}
