//! Who has which address: servers as the cluster was made, clients as they say themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use manxdb_core::{Nanos, NodeId};

use crate::datagrams::UNKNOWN_SENDER;
use crate::packet::{Hello, Place, RegionId};

/// Clients one process may know at a time.
const CLIENTS_MAX: usize = 100_000;
/// How long the process of a client may be without a connection.
const ABSENCE_MAX: Nanos = Nanos::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    address: SocketAddr,
    region: RegionId,
    is_server: bool,
    /// Of a client: since when its process has no connection here.
    absent_since: Option<Nanos>,
}

/// Addresses and regions of nodes.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    nodes: BTreeMap<NodeId, Known>,
    servers: BTreeMap<SocketAddr, NodeId>,
    /// Where else a server may be: of the processes at its addresses, one at a time acts for it.
    others: BTreeMap<NodeId, Vec<SocketAddr>>,
}

impl Directory {
    /// Adds a server. Nobody can take its place.
    pub fn add_server(&mut self, place: Place, address: SocketAddr) {
        let known = Known {
            address,
            region: place.region,
            is_server: true,
            absent_since: None,
        };
        self.nodes.insert(place.node, known);
        self.servers.insert(address, place.node);
    }

    /// Adds an address at which another process may act for a server. What is sent to the server goes to
    /// all of its addresses, because nobody knows which process that is at the moment.
    ///
    /// # Panics
    /// The server has not been added.
    pub fn add_other(&mut self, node: NodeId, address: SocketAddr) {
        assert!(self.is_server(node), "a server has a first address");
        self.servers.insert(address, node);
        self.others.entry(node).or_default().push(address);
    }

    /// Where else a server may be.
    #[must_use]
    pub fn others(&self, node: NodeId) -> &[SocketAddr] {
        self.others.get(&node).map_or(&[], Vec::as_slice)
    }

    /// All servers, at each of their addresses.
    pub fn servers(&self) -> impl Iterator<Item = (SocketAddr, NodeId)> + '_ {
        self.servers.iter().map(|(address, node)| (*address, *node))
    }

    /// The server that listens at an address, and its region.
    #[must_use]
    pub fn server_at(&self, address: SocketAddr) -> Option<(NodeId, RegionId)> {
        let node = self.servers.get(&address)?;
        Some((*node, self.nodes.get(node)?.region))
    }

    /// Whether a node is one of the servers.
    #[must_use]
    pub fn is_server(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|known| known.is_server)
    }

    /// Where a node listens, and its region.
    #[must_use]
    pub fn find(&self, node: NodeId) -> Option<(SocketAddr, RegionId)> {
        let known = self.nodes.get(&node)?;
        Some((known.address, known.region))
    }

    /// Takes in who speaks on a connection.
    ///
    /// # Errors
    /// What is wrong with it: a server somewhere else than it should be, or too many clients.
    pub fn learn(&mut self, hello: &Hello) -> Result<(), String> {
        for place in &hello.places {
            let said = Known {
                address: hello.address,
                region: place.region,
                is_server: false,
                absent_since: None,
            };
            match self.nodes.get(&place.node) {
                _ if place.node == UNKNOWN_SENDER => {
                    return Err(format!("no node has the number {}", place.node.0));
                }
                Some(known) if known.is_server => {
                    let is_there = known.address == said.address
                        || self.others(place.node).contains(&said.address);
                    if !is_there || known.region != said.region {
                        return Err(format!(
                            "node {} is at {}, not at {}",
                            place.node.0, known.address, said.address
                        ));
                    }
                }
                None if self.nodes.len() >= CLIENTS_MAX => {
                    return Err(format!("more than {CLIENTS_MAX} nodes"));
                }
                _ => {
                    self.nodes.insert(place.node, said);
                }
            }
        }
        Ok(())
    }

    /// Forgets clients whose process has had no connection here for [`ABSENCE_MAX`]; `present` are
    /// the addresses of those that have one. A client that comes back says again who it is. Clients of
    /// this process, which is at `own`, stay: it has no connection to itself.
    pub fn forget_absent(
        &mut self,
        now: Nanos,
        own: SocketAddr,
        present: &BTreeSet<SocketAddr>,
    ) -> Vec<NodeId> {
        let mut gone = Vec::new();
        self.nodes.retain(|node, known| {
            let is_here = known.address == own || present.contains(&known.address);
            if known.is_server || is_here {
                known.absent_since = None;
                return true;
            }
            let since = *known.absent_since.get_or_insert(now);
            let stays = now.saturating_sub(since) < ABSENCE_MAX;
            if !stays {
                gone.push(*node);
            }
            stays
        });
        gone
    }

    /// Addresses of all nodes.
    #[must_use]
    pub fn addresses(&self) -> BTreeSet<SocketAddr> {
        let nodes = self.nodes.values().map(|known| known.address);
        nodes.chain(self.servers.keys().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_id::ClusterId;

    fn hello(node: u32, port: u16) -> Hello {
        Hello {
            cluster: ClusterId(1),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            places: vec![place(node)],
        }
    }

    fn place(node: u32) -> Place {
        Place {
            node: NodeId(node),
            region: RegionId(0),
        }
    }

    #[test]
    fn clients_come_and_go_and_servers_stay() {
        let mut directory = Directory::default();
        let server = SocketAddr::from(([127, 0, 0, 1], 1));
        directory.add_server(place(0), server);
        assert!(directory.learn(&hello(0, 1)).is_ok());
        assert!(directory.learn(&hello(0, 2)).is_err());
        assert!(directory.learn(&hello(u32::MAX, 2)).is_err(), "nobody's");
        assert_eq!(directory.server_at(server), Some((NodeId(0), RegionId(0))));
        assert!(directory.learn(&hello(5, 2)).is_ok());
        assert!(directory.learn(&hello(5, 3)).is_ok());
        let client = SocketAddr::from(([127, 0, 0, 1], 3));
        assert_eq!(directory.find(NodeId(5)), Some((client, RegionId(0))));
        assert!(directory.learn(&hello(6, 4)).is_ok());
        let own = SocketAddr::from(([127, 0, 0, 1], 4));
        let mut forget = |secs, present: &[SocketAddr]| {
            let present = present.iter().copied().collect();
            directory.forget_absent(Nanos::from_secs(secs), own, &present)
        };
        assert_eq!(forget(1, &[]), []);
        assert_eq!(forget(50, &[client]), []);
        assert_eq!(forget(70, &[]), []);
        assert_eq!(forget(129, &[]), []);
        assert_eq!(forget(130, &[]), [NodeId(5)]);
        assert_eq!(directory.find(NodeId(5)), None);
        let of_this_process = directory.find(NodeId(6));
        assert_eq!(of_this_process, Some((own, RegionId(0))), "it needs none");
        assert_eq!(directory.addresses(), BTreeSet::from([server, own]));
    }

    #[test]
    fn a_server_may_be_at_each_of_its_addresses_and_nowhere_else() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let mut directory = Directory::default();
        directory.add_server(place(0), at(1));
        assert!(directory.learn(&hello(0, 2)).is_err());
        directory.add_other(NodeId(0), at(2));
        for port in [1, 2] {
            assert!(directory.learn(&hello(0, port)).is_ok());
            let found = directory.server_at(at(port));
            assert_eq!(found, Some((NodeId(0), RegionId(0))));
        }
        assert!(directory.learn(&hello(0, 3)).is_err());
        assert_eq!(directory.others(NodeId(0)), [at(2)]);
        assert_eq!(directory.others(NodeId(1)), []);
        assert_eq!(directory.addresses(), BTreeSet::from([at(1), at(2)]));
    }
}
