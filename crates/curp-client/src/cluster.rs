//! What a client has to know of a cluster, and how it learns it.
//!
//! The coordinator tells it to whoever asks for its status, in one note of words:
//!
//! | word | what |
//! |---|---|
//! | `faults=F servers=S witnesses=W` | which numbers are whose (see `manxdb_curp::Options`) |
//! | `secret=H:L` | the secret of key hashes, hexadecimal |
//! | `lan=N race=N patience=N` | nanoseconds: the emulated way, and how long a client waits |
//! | `durability=memory\|fsync` | whether witnesses' records count; clients do not record with `fsync` |
//! | `A:P …` | where nodes listen, from node 0 on |
//! | `coordinator=A:P …` | where else the coordinator may be |
//!
//! A word that a client does not know is for another version, and refused.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use manxdb_core::channel::{ChannelOptions, Life};
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::hash::KeyHasher;
use manxdb_curp::{ClientAnswer, CurpNode, Durability, Execute, Options, Role};
use manxdb_net::runtime::{NetError, Notes};
use manxdb_net::{
    ClusterId, Delays, Directory, Driver, Outside, Place, RegionId, Runtime, Settings, ask_status,
};

/// The note in which the coordinator tells clients what they have to know.
pub const NOTE: &str = "for clients";
/// How long a coordinator may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// More nodes than a cluster has.
const NODES_MAX: u32 = 1_000;

/// Why a client does not know its cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No coordinator was named.
    #[error("no coordinator is named: give the address of the cluster's node 0")]
    NoAddress,
    /// None of those named answers, or none is a coordinator.
    #[error("no coordinator answers: {0}; give the address of the cluster's node 0")]
    NoCoordinator(String),
    /// What it tells makes no sense here.
    #[error(
        "the coordinator at {address} tells clients '{word}', which this version does not understand"
    )]
    Unknown {
        /// Who was asked.
        address: SocketAddr,
        /// The word.
        word: String,
    },
    /// Sockets or threads cannot be had.
    #[error("cannot start the client: {0}")]
    Start(String),
}

/// What a client has to know of a cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Tells it apart from others that had its ports before.
    pub id: ClusterId,
    /// Where its nodes are.
    pub directory: Directory,
    /// Emulated distances.
    pub delays: Delays,
    /// How its nodes behave.
    pub options: Options,
}

impl Cluster {
    /// Asks the coordinators one after the other, until one tells.
    ///
    /// # Errors
    /// [`ConnectError`]: none does.
    pub fn ask(coordinators: &[SocketAddr]) -> Result<Self, ConnectError> {
        let mut failed = Vec::new();
        for address in coordinators {
            match ask_status(*address, PATIENCE) {
                Err(error) => failed.push(error.to_string()),
                Ok(status) => {
                    let mut notes = status.nodes.iter().flat_map(|node| &node.notes);
                    let told = notes.find(|(name, _)| name == NOTE);
                    if let Some((_, told)) = told {
                        let read = Self::read(status.cluster, told);
                        return read.map_err(|word| ConnectError::Unknown {
                            address: *address,
                            word,
                        });
                    }
                    failed.push(format!("{address} is a node, but no coordinator"));
                }
            }
        }
        if failed.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        Err(ConnectError::NoCoordinator(failed.join(", ")))
    }

    /// What the coordinator tells clients.
    #[must_use]
    pub fn told(&self) -> String {
        let Options {
            faults,
            servers,
            witnesses,
            hasher,
            race_after,
            patience,
            durability,
            ..
        } = &self.options;
        let [high, low] = hasher.secret;
        let mut told = format!(
            "faults={faults} servers={servers} witnesses={witnesses} secret={high:x}:{low:x} lan={} \
             race={} patience={} durability={}",
            self.delays.lan.0,
            race_after.0,
            patience.0,
            if durability.trusts_witnesses() {
                "memory"
            } else {
                "fsync"
            },
        );
        let nodes = (0..).map(|number| self.directory.find(NodeId(number)));
        for (address, _) in nodes.map_while(|found| found) {
            told.push_str(&format!(" {address}"));
        }
        for other in self.directory.others(self.options.coordinator) {
            told.push_str(&format!(" coordinator={other}"));
        }
        told
    }

    /// Reads what the coordinator tells; the word that makes no sense.
    fn read(id: ClusterId, told: &str) -> Result<Self, String> {
        let mut this = Self {
            id,
            directory: Directory::default(),
            delays: Delays::default(),
            options: Options::default(),
        };
        let mut nodes = 0;
        for word in told.split(' ') {
            let understood = match word.split_once('=') {
                Some((name, value)) => this.set(name, value),
                None => word
                    .parse()
                    .ok()
                    .filter(|_| nodes < NODES_MAX)
                    .map(|address| {
                        let place = Place {
                            node: NodeId(nodes),
                            region: RegionId(0),
                        };
                        this.directory.add_server(place, address);
                        nodes += 1;
                    }),
            };
            understood.ok_or_else(|| word.to_owned())?;
        }
        let options = &this.options;
        let counted = options.servers.checked_add(options.witnesses);
        if counted.is_none_or(|counted| counted >= nodes) {
            return Err(format!("{nodes} addresses"));
        }
        Ok(this)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let number = || value.parse::<u64>().ok();
        let count = || value.parse::<u32>().ok();
        let options = &mut self.options;
        match name {
            "faults" => options.faults = count()? as usize,
            "servers" => options.servers = count()?,
            "witnesses" => options.witnesses = count()?,
            "coordinator" if self.directory.is_server(options.coordinator) => {
                let address = value.parse().ok()?;
                self.directory.add_other(options.coordinator, address);
            }
            "lan" => self.delays.lan = Nanos(number()?),
            "race" => options.race_after = Nanos(number()?),
            "patience" => options.patience = Nanos(number()?),
            "durability" => {
                options.durability = match value {
                    "memory" => Durability::Memory,
                    "fsync" => Durability::Fsync,
                    _ => return None,
                };
            }
            "secret" => {
                let (high, low) = value.split_once(':')?;
                let half = |text| u64::from_str_radix(text, 16).ok();
                options.hasher = KeyHasher {
                    secret: [half(high)?, half(low)?],
                };
            }
            _ => return None,
        }
        Some(())
    }

    /// How a process of this cluster takes part in it.
    #[must_use]
    pub fn settings<E: Execute>(
        &self,
        seed: u64,
        holds_datagrams: bool,
        notes: Notes<CurpNode<E>>,
    ) -> Settings<CurpNode<E>> {
        Settings {
            cluster: self.id,
            directory: self.directory.clone(),
            // The core asks again for whatever is lost.
            channel: ChannelOptions {
                is_numbered: false,
                ..ChannelOptions::default()
            },
            delays: self.delays.clone(),
            holds_datagrams,
            seed,
            notes,
        }
    }

    /// A process with a client in its `life`th life, and whoever asks it.
    ///
    /// # Errors
    /// Sockets cannot be had.
    pub fn host<E: Execute, D: Driver<CurpNode<E>>>(
        &self,
        place: Place,
        life: Life,
        listener: TcpListener,
        driver: D,
        notes: Notes<CurpNode<E>>,
    ) -> Result<Runtime<CurpNode<E>, D>, NetError> {
        assert!(
            self.options.role(place.node) == Role::Client,
            "a client has a number behind those of servers and witnesses"
        );
        let seed = u64::from(place.node.0) << 32 | life.0;
        let settings = self.settings(seed, true, notes);
        let mut runtime = Runtime::new(settings, listener, driver)?;
        let core = CurpNode::open(place.node, life.0, self.options, 0, Vec::new());
        let core = core.map_err(|error| NetError::Io {
            what: "begin as a client without a journal",
            source: std::io::Error::other(error),
        })?;
        runtime.add(place, life, core);
        runtime.open_datagrams(place.node)?;
        Ok(runtime)
    }
}

/// Who drives a coordinator's process: nobody asks there, and whoever wants to know the cluster finds it in
/// what the process says of itself.
pub struct CoordinatorDriver {
    told: String,
}

impl CoordinatorDriver {
    /// Of the coordinator of `cluster`.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            told: cluster.told(),
        }
    }
}

impl<E: Execute> Driver<CurpNode<E>> for CoordinatorDriver {
    fn reply(&mut self, _: &mut Outside<CurpNode<E>>, _: NodeId, _: RequestId, _: ClientAnswer) {}

    fn notes(&self) -> Vec<(String, String)> {
        vec![(NOTE.to_owned(), self.told.clone())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let mut directory = Directory::default();
        for number in 0..4 {
            let place = Place {
                node: NodeId(number),
                region: RegionId(0),
            };
            let port = 7_400 + u16::try_from(number).unwrap();
            directory.add_server(place, SocketAddr::from(([127, 0, 0, 1], port)));
        }
        Cluster {
            id: ClusterId(7),
            directory,
            delays: Delays {
                lan: Nanos::from_micros(250),
                ..Delays::default()
            },
            options: Options {
                hasher: KeyHasher {
                    secret: [u64::MAX, 3],
                },
                race_after: Nanos::from_millis(6),
                ..Options::default()
            },
        }
    }

    #[test]
    fn what_is_told_is_understood() {
        let told = cluster().told();
        let understood = Cluster::read(ClusterId(7), &told).unwrap();
        assert_eq!(understood.told(), told);
        assert_eq!(understood.delays.lan, Nanos::from_micros(250));
        assert_eq!(understood.options.hasher.secret, [u64::MAX, 3]);
        assert!(told.ends_with("127.0.0.1:7403"), "{told}");
        let fsync = told.replace("durability=memory", "durability=fsync");
        let understood = Cluster::read(ClusterId(7), &fsync).unwrap();
        assert_eq!(understood.options.durability, Durability::Fsync);
        assert_eq!(understood.told(), fsync);
        let several = format!("{told} coordinator=127.0.0.1:7500 coordinator=127.0.0.1:7501");
        let understood = Cluster::read(ClusterId(7), &several).unwrap();
        assert_eq!(understood.told(), several);
        assert_eq!(understood.directory.others(NodeId(0)).len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_the_word() {
        let told = cluster().told();
        let word = |told: &str| Cluster::read(ClusterId(7), told).unwrap_err();
        assert_eq!(word(&format!("{told} nonsense")), "nonsense");
        assert_eq!(word(&format!("later=1 {told}")), "later=1");
        assert_eq!(
            word(&told.replace("servers=2", "servers=two")),
            "servers=two"
        );
        assert_eq!(word(&told.replace("=memory", "=never")), "durability=never");
        assert_eq!(word(&told.replace("servers=2", "servers=9")), "4 addresses");
        assert_eq!(
            word(&told.replace("servers=2", "servers=4294967295")),
            "4 addresses"
        );
        for wrong in ["coordinator=127.0.0.1:7500 ", "coordinator=nowhere "] {
            let told = format!("{wrong}{told}");
            assert_eq!(word(&told), wrong.trim(), "before the first address");
        }
        assert_eq!(
            word(&format!("{told} coordinator=nowhere")),
            "coordinator=nowhere"
        );
        assert_eq!(word(""), "");
    }

    #[test]
    fn who_does_not_answer_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = Cluster::ask(&[address]).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()), "{error}");
        assert!(matches!(Cluster::ask(&[]), Err(ConnectError::NoAddress)));
    }
}
