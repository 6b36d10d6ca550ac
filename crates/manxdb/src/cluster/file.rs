//! The cluster file: who is where, written by `cluster up`, read by everybody else.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use manxdb_core::{Nanos, NodeId};
use manxdb_net::{ClusterId, Delays, Directory, Place, RegionId};
use serde::{Deserialize, Serialize};

use crate::cli::{ProtocolChoice, TpccScale};
use crate::fault::Fault;

/// Its name in the data directory.
pub const NAME: &str = "cluster.toml";

/// A cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// What orders the transactions.
    pub protocol: ProtocolChoice,
    /// Tells it apart from others that had its ports before; hexadecimal.
    pub id: String,
    /// How many regions.
    pub regions: u32,
    /// How many shards in each.
    pub shards_per_region: u32,
    /// The process that started it.
    pub process: u32,
    /// Distances, as round trips.
    pub distances: Distances,
    /// A replica that is silent for so long is put out.
    pub suspect_ms: f64,
    /// The warehouse of TPC-C that every shard begins with.
    pub tpcc_scale: TpccScale,
    /// Every node, by number.
    #[serde(rename = "node")]
    pub nodes: Vec<Node>,
}

/// How far apart nodes are, there and back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names)] // keys of the file name their unit
pub struct Distances {
    /// Within a region.
    pub lan_ms: f64,
    /// Between regions.
    pub wan_ms: f64,
    /// Up to so much more or less, for each message between regions.
    pub wan_jitter_ms: f64,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// What it is, for people.
    pub role: String,
    /// Where it is.
    pub region: u32,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, when `cluster up` last started it; 0 before that.
    pub process: u32,
}

impl ClusterFile {
    /// Reads the file at `path`, or in the directory `path`; its path as well.
    ///
    /// # Errors
    /// [`Fault::Config`] that says what is wrong and what to do.
    pub fn read(path: &Path) -> Result<(Self, PathBuf), Fault> {
        let path = if path.is_dir() {
            path.join(NAME)
        } else {
            path.to_owned()
        };
        let text = fs::read_to_string(&path).map_err(|error| {
            Fault::Config(match error.kind() {
                std::io::ErrorKind::NotFound => format!(
                    "there is no cluster file {}: start a cluster with `manxdb cluster up`, or \
                     name its file with --cluster",
                    path.display()
                ),
                _ => format!("{}: {error}", path.display()),
            })
        })?;
        let wrong = |what: String| Fault::Config(format!("{}: {what}", path.display()));
        let file: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        file.check().map_err(wrong)?;
        Ok((file, path))
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=32).contains(&self.regions) || !(1..=64).contains(&self.shards_per_region) {
            return Err("regions are 1 to 32, shards_per_region 1 to 64".to_owned());
        }
        let expected = super::dast::topology(self).servers();
        let numbers = self.nodes.iter().map(|node| node.number);
        if !numbers.eq(0..expected) {
            return Err(format!("nodes must be 0 to {}, in order", expected - 1));
        }
        if let Some(node) = self.nodes.iter().find(|node| node.region >= self.regions) {
            return Err(format!(
                "node {} is in region {}, of which there are {}",
                node.number, node.region, self.regions
            ));
        }
        self.cluster_id().map(|_| ())
    }

    /// Writes it, all or nothing.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&self, path: &Path) -> Result<(), Fault> {
        let text = toml::to_string(self)
            .map_err(|error| Fault::Other(format!("cannot describe the cluster: {error}")))?;
        let next = path.with_extension("toml.next");
        let io = |error| Fault::io(format!("cannot write {}", path.display()), error);
        fs::write(&next, text).map_err(io)?;
        fs::rename(&next, path).map_err(io)
    }

    fn cluster_id(&self) -> Result<ClusterId, String> {
        let id = u64::from_str_radix(&self.id, 16);
        id.map(ClusterId)
            .map_err(|_| format!("id = \"{}\" is not a hexadecimal number", self.id))
    }

    /// Which cluster.
    pub fn id(&self) -> ClusterId {
        // `check` has read it when the file was.
        self.cluster_id().unwrap_or(ClusterId(0))
    }

    /// Where the nodes are.
    pub fn directory(&self) -> Directory {
        let mut directory = Directory::default();
        for node in &self.nodes {
            directory.add_server(node.place(), node.address);
        }
        directory
    }

    /// How far apart.
    pub fn delays(&self) -> Delays {
        let one_way = |round_trip: f64| nanos(round_trip / 2.0);
        Delays {
            lan: one_way(self.distances.lan_ms),
            wan: one_way(self.distances.wan_ms),
            wan_jitter: nanos(self.distances.wan_jitter_ms),
            ..Delays::default()
        }
    }
}

impl Node {
    /// The node and its region.
    pub fn place(&self) -> Place {
        Place {
            node: NodeId(self.number),
            region: RegionId(self.region),
        }
    }
}

/// Milliseconds as time; nothing below 0, at most an hour.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // held within bounds
pub fn nanos(millis: f64) -> Nanos {
    Nanos((millis.clamp(0.0, 3_600_000.0) * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> ClusterFile {
        let node = |number| Node {
            number,
            role: "replica".into(),
            region: 0,
            address: SocketAddr::from(([127, 0, 0, 1], 7400)),
            process: 1,
        };
        ClusterFile {
            protocol: ProtocolChoice::Dast,
            id: "c0ffee".into(),
            regions: 1,
            shards_per_region: 1,
            process: 7,
            distances: Distances {
                lan_ms: 5.0,
                wan_ms: 100.0,
                wan_jitter_ms: 0.0,
            },
            suspect_ms: 500.0,
            tpcc_scale: TpccScale::Tiny,
            nodes: (0..6).map(node).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        file().write(&directory.path().join(NAME)).unwrap();
        let (read, path) = ClusterFile::read(directory.path()).unwrap();
        assert_eq!(read, file());
        assert_eq!(path, directory.path().join(NAME));
        assert_eq!(read.id(), ClusterId(0x00C0_FFEE));
        assert_eq!(read.delays().wan, Nanos::from_millis(50));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        let error = |file: Option<ClusterFile>| {
            if let Some(file) = file {
                file.write(&path).unwrap();
            }
            ClusterFile::read(&path).unwrap_err().to_string()
        };
        assert!(error(None).contains("manxdb cluster up"));
        let mut fewer = file();
        fewer.nodes.pop();
        assert!(error(Some(fewer)).contains("nodes must be 0 to 5"));
        let mut unnamed = file();
        unnamed.id = "xyz".into();
        assert!(error(Some(unnamed)).contains("\"xyz\""));
    }
}
