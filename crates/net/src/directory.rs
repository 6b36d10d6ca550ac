//! Who has which address: servers as the cluster was made, clients as they say themselves.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use manxdb_core::NodeId;

use crate::packet::{Hello, Place, RegionId};

/// Clients one process may know at a time.
const CLIENTS_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    address: SocketAddr,
    region: RegionId,
    is_server: bool,
}

/// Addresses and regions of nodes.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    nodes: BTreeMap<NodeId, Known>,
}

impl Directory {
    /// Adds a server. Nobody can take its place.
    pub fn add_server(&mut self, place: Place, address: SocketAddr) {
        let known = Known {
            address,
            region: place.region,
            is_server: true,
        };
        self.nodes.insert(place.node, known);
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
            };
            match self.nodes.get(&place.node) {
                Some(known) if known.is_server => {
                    if (known.address, known.region) != (said.address, said.region) {
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

    /// Forgets the clients at an address: those that were there.
    pub fn forget(&mut self, address: SocketAddr) -> Vec<NodeId> {
        let gone = |known: &Known| known.address == address && !known.is_server;
        let nodes = self.nodes.iter();
        let gone: Vec<NodeId> = nodes
            .filter(|(_, known)| gone(known))
            .map(|(node, _)| *node)
            .collect();
        for node in &gone {
            self.nodes.remove(node);
        }
        gone
    }

    /// Whether a server listens at an address.
    #[must_use]
    pub fn has_server_at(&self, address: SocketAddr) -> bool {
        let mut nodes = self.nodes.values();
        nodes.any(|known| known.is_server && known.address == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ClusterId;

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
        assert!(directory.learn(&hello(5, 2)).is_ok());
        assert!(directory.learn(&hello(5, 3)).is_ok());
        let client = SocketAddr::from(([127, 0, 0, 1], 3));
        assert_eq!(directory.find(NodeId(5)), Some((client, RegionId(0))));
        assert_eq!(directory.forget(client), [NodeId(5)]);
        assert_eq!(directory.find(NodeId(5)), None);
        assert!(directory.forget(server).is_empty());
        assert!(directory.has_server_at(server) && !directory.has_server_at(client));
    }
}
