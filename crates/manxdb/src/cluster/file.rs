//! The cluster file: who is where, written by `cluster up`, read by everybody else.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use manxdb_core::{Nanos, NodeId};
use manxdb_curp::Durability;
use manxdb_dast::options::lead_of_millis;
use manxdb_dast::{Crossing, Survive};
use manxdb_net::{ClusterId, Delays, Directory, Place, RegionId};
use manxdb_witness::CarrierKind;
use serde::{Deserialize, Serialize};

use crate::cli::TpccScale;
use crate::fault::Fault;

/// Its name in the data directory.
pub const NAME: &str = "cluster.toml";

/// What the nodes of a cluster do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterProtocol {
    /// Transactions over several regions.
    Dast,
    /// Redis's keys, replicated in one round trip.
    Curp,
}

/// The shape of a cluster that replicates Redis's keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurpShape {
    /// Crashes survived: so many backups, and so many witnesses, are in use; 0 replicates nothing.
    pub faults: u32,
    /// Processes that can be master or backup.
    pub servers: u32,
    /// Processes that can be witnesses.
    pub witnesses: u32,
    /// Of those, so many at the end of their row are not started with the cluster: room for
    /// `manxdb cluster add-witness`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub room: u32,
    /// Proxies that are listed here.
    pub proxies: u32,
    /// Where else the coordinator may be: of several processes, whose state is in etcd, one at a time is
    /// node 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_coordinators: Vec<SocketAddr>,
    /// The secret of key hashes: 32 hexadecimal digits.
    pub key_secret: String,
    /// Whether servers replicate the rows of SQL, and serve MySQL clients, instead of Redis's keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sql: bool,
    /// What an acknowledgement says of disks: memory (when it is missing) or fsync. Not to be changed
    /// once the cluster has keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
    /// Who answers the datagrams of witnesses: user (when it is missing), xdp or xdp-generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    /// The network interface at which they come in, for xdp and xdp-generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Whether the next best carrier is taken when that one cannot be had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carrier_fallback: bool,
}

impl CurpShape {
    /// The secret as two numbers; `ClusterFile::read` has seen that it is one.
    #[must_use]
    pub fn secret(&self) -> [u64; 2] {
        let number = |range: std::ops::Range<usize>| {
            let digits = self.key_secret.get(range).unwrap_or_default();
            u64::from_str_radix(digits, 16).unwrap_or(0)
        };
        [number(0..16), number(16..32)]
    }

    /// Who answers the datagrams of witnesses.
    ///
    /// # Errors
    /// No carrier has that name.
    pub fn carrier(&self) -> Result<CarrierKind, String> {
        let carrier = self.carrier.as_deref();
        let kind = carrier.map_or(Ok(CarrierKind::User), str::parse);
        kind.map_err(|error: String| format!("curp.carrier: {error}"))
    }

    /// What an acknowledgement says of disks.
    ///
    /// # Errors
    /// No durability mode has that name.
    pub fn durability(&self) -> Result<Durability, String> {
        match self.durability.as_deref() {
            None | Some("memory") => Ok(Durability::Memory),
            Some("fsync") => Ok(Durability::Fsync),
            Some(other) => Err(format!(
                "curp.durability: '{other}' is no durability mode: memory, fsync"
            )),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.durability()?;
        if self.carrier()?.is_in_kernel() && self.interface.is_none() {
            return Err(
                "curp.carrier is in the kernel, so curp.interface has to name a network interface"
                    .to_owned(),
            );
        }
        let faults = self.faults;
        if faults > 3 {
            return Err(format!("curp.faults is 0 to 3, not {faults}"));
        }
        if self.sql && self.proxies > 0 {
            return Err("curp.proxies is 0 where curp.sql is true: proxies are Redis's".to_owned());
        }
        if self.servers <= faults || self.servers > 64 {
            return Err(format!("curp.servers is {} to 64", faults + 1));
        }
        let started = self.witnesses.checked_sub(self.room);
        if started.is_none_or(|started| started < faults) {
            return Err(format!(
                "curp.witnesses is {} and curp.room {}: {faults} at least are started",
                self.witnesses, self.room
            ));
        }
        if self.witnesses > 64 || self.proxies > 1_000 {
            return Err(format!(
                "curp.witnesses is {faults} to 64, curp.proxies at most 1000"
            ));
        }
        let is_secret = self.key_secret.len() == 32
            && self.key_secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_secret {
            return Err("curp.key_secret is not 32 hexadecimal digits".to_owned());
        }
        Ok(())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// What its nodes do.
    pub protocol: ClusterProtocol,
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
    /// How cross-region transactions get their places.
    #[serde(default)]
    pub crossing: Crossing,
    /// What it survives the loss of.
    #[serde(default)]
    pub survive: Survive,
    /// How far ahead of its clock a region tells another one marks at first, in milliseconds; without
    /// it, what the distance says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_ms: Option<f64>,
    /// The warehouse of TPC-C that every shard begins with.
    pub tpcc_scale: TpccScale,
    /// The shape of a cluster that replicates Redis's keys; `regions` and `shards_per_region` are 1
    /// there, and `tpcc_scale` says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curp: Option<CurpShape>,
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
    /// Where Redis clients connect to it, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<SocketAddr>,
    /// Where MySQL clients connect to it, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mysql: Option<SocketAddr>,
    /// Where its admin listener is, if it has one: of nodes over regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<SocketAddr>,
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

    /// The node of that number.
    #[must_use]
    pub fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.number == number)
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=32).contains(&self.regions) || !(1..=64).contains(&self.shards_per_region) {
            return Err("regions are 1 to 32, shards_per_region 1 to 64".to_owned());
        }
        let expected = match (self.protocol, &self.curp) {
            (ClusterProtocol::Dast, None) => super::dast::topology(self).servers(),
            (ClusterProtocol::Curp, Some(shape)) => {
                shape.check()?;
                super::curp::nodes(shape)
            }
            (ClusterProtocol::Dast, Some(_)) => {
                return Err("[curp] is of clusters with protocol = \"curp\"".to_owned());
            }
            (ClusterProtocol::Curp, None) => {
                return Err("[curp] is missing: it tells how many servers there are".to_owned());
            }
        };
        if let Some(millis) = self.lead_ms {
            let lead = lead_of_millis(millis);
            lead.map_err(|wrong| format!("lead_ms: {wrong}"))?;
        }
        let can = self.survive.with(self.crossing, self.regions);
        can.map_err(|wrong| format!("survive: {wrong}"))?;
        let numbers = self.nodes.iter().map(|node| node.number);
        if !numbers.eq(0..expected) {
            return Err(format!("nodes must be 0 to {}, in order", expected - 1));
        }
        self.check_other_coordinators()?;
        if let Some(node) = self.nodes.iter().find(|node| node.region >= self.regions) {
            return Err(format!(
                "node {} is in region {}, of which there are {}",
                node.number, node.region, self.regions
            ));
        }
        self.cluster_id().map(|_| ())
    }

    fn check_other_coordinators(&self) -> Result<(), String> {
        let others = self.other_coordinators();
        for (place, other) in others.iter().enumerate() {
            let is_taken = self.nodes.iter().any(|node| node.address == *other);
            if is_taken || others[..place].contains(other) {
                return Err(format!(
                    "curp.other_coordinators has {other}, which is in the file already"
                ));
            }
        }
        Ok(())
    }

    /// Where else the coordinator may be than at the address of node 0.
    #[must_use]
    pub fn other_coordinators(&self) -> &[SocketAddr] {
        let shape = self.curp.as_ref();
        shape.map_or(&[], |shape| &shape.other_coordinators)
    }

    /// Where a node may be: in one place, unless it is a coordinator of several.
    #[must_use]
    pub fn addresses_of(&self, node: &Node) -> Vec<SocketAddr> {
        let mut addresses = vec![node.address];
        if node.number == 0 {
            addresses.extend(self.other_coordinators());
        }
        addresses
    }

    /// Whether a node is a place for a witness that nobody has started yet.
    #[must_use]
    pub fn is_room(&self, node: &Node) -> bool {
        self.curp.as_ref().is_some_and(|shape| {
            let end = 1 + shape.servers + shape.witnesses;
            let first = end.saturating_sub(shape.room);
            (first..end).contains(&node.number) && node.process == 0
        })
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
        for other in self.other_coordinators() {
            directory.add_other(NodeId(0), *other);
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
    use super::super::example::over_regions;
    use super::*;

    fn file() -> ClusterFile {
        ClusterFile {
            lead_ms: Some(60.0),
            ..over_regions(1, 1)
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
        let mut hasty = file();
        hasty.lead_ms = Some(0.0);
        assert!(error(Some(hasty)).contains("lead_ms: 0 ms is no lead"));
        let mut shapeless = file();
        shapeless.protocol = ClusterProtocol::Curp;
        assert!(error(Some(shapeless.clone())).contains("[curp] is missing"));
        shapeless.curp = Some(CurpShape {
            faults: 1,
            servers: 1,
            ..CurpShape::default()
        });
        assert!(error(Some(shapeless.clone())).contains("curp.servers is 2 to 64"));
        let shape = shapeless.curp.as_mut().unwrap();
        shape.other_coordinators = vec![SocketAddr::from(([127, 0, 0, 1], 7400))];
        shape.servers = 2;
        shape.witnesses = 3;
        shape.key_secret = "00".repeat(16);
        assert!(error(Some(shapeless.clone())).contains("7400, which is in the file already"));
        let shape = shapeless.curp.as_mut().unwrap();
        shape.carrier = Some("nic".into());
        assert!(error(Some(shapeless.clone())).contains("'nic' is no carrier: user, xdp"));
        let shape = shapeless.curp.as_mut().unwrap();
        shape.durability = Some("paper".into());
        assert!(error(Some(shapeless.clone())).contains("memory, fsync"));
        let shape = shapeless.curp.as_mut().unwrap();
        shape.durability = None;
        shape.carrier = Some("xdp".into());
        assert!(error(Some(shapeless)).contains("curp.interface has to name"));
    }
}
