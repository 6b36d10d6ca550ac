//! Starting a cluster and watching it.

use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use manxdb::cluster::dast;
use manxdb::cluster::file::{ClusterFile, ClusterProtocol, Distances, NAME, Node};
use manxdb::cluster::node::{directory_of, listen, other};
use manxdb::process::stop_signal;
use manxdb_core::NodeId;
use manxdb_dast::Crossing;
use manxdb_dast::options::lead_of_millis;
use manxdb_net::DataDirectory;

use super::children::{NodeProcess, stop_all};
use super::{curp, status};
use crate::cli::{ClusterUp, DastUp};
use crate::fault::Fault;

/// How long all nodes together may take to start.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How often processes are looked at, which is also the pause before one is started again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs a cluster until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting; nothing of it is left then.
pub fn run(args: &ClusterUp) -> Result<ExitCode, Fault> {
    match args {
        ClusterUp::Dast(args) => start((describe(args)?, false), &args.data, args.supervise),
        ClusterUp::Curp(args) => {
            let which = match curp::left(args)? {
                Some(file) => (file, true),
                None => (curp::describe(args)?, false),
            };
            start(which, &args.data, args.supervise)
        }
    }
}

/// Starts a cluster that begins empty, or one that was stopped and goes on.
fn start(
    (file, goes_on): (ClusterFile, bool),
    data: &Path,
    supervise: bool,
) -> Result<ExitCode, Fault> {
    let stop = stop_signal()?;
    stop.set_read_timeout(Some(LOOK_EVERY))
        .map_err(|error| Fault::io("cannot watch signals", error))?;
    let _directory = DataDirectory::open(data).map_err(|error| {
        Fault::Other(format!(
            "{error} (choose another with --data, or stop that cluster with `manxdb cluster down`)"
        ))
    })?;
    let mut cluster = Cluster {
        file,
        path: data.join(NAME),
        processes: Vec::new(),
        supervise,
        goes_on,
    };
    check_ports(&cluster.file)?;
    let result = cluster.start(&stop).and_then(|is_up| {
        if is_up {
            cluster.announce();
            cluster.watch(&stop)?;
        }
        Ok(ExitCode::SUCCESS)
    });
    println!("stopping");
    cluster.stop();
    result
}

struct Cluster {
    file: ClusterFile,
    path: PathBuf,
    processes: Vec<NodeProcess>,
    supervise: bool,
    /// Whether nodes begin with what their directories have.
    goes_on: bool,
}

impl Cluster {
    /// Starts every node and waits until all answer; `false` when it was told to stop.
    fn start(&mut self, stop: &UnixStream) -> Result<bool, Fault> {
        for node in self.file.nodes.iter().filter(|_| !self.goes_on) {
            let directory = directory_of(&self.path, node.number);
            begin_afresh(&directory)?;
            if self.file.protocol == ClusterProtocol::Dast {
                // One that finds no such directory when it is started again has lost its memory.
                let made = DataDirectory::open(&directory).and_then(|it| it.expect_first_life());
                made.map_err(other)?;
            }
        }
        self.file.write(&self.path)?;
        for node in &self.file.nodes {
            if !self.file.is_room(node) {
                let process = NodeProcess::start(&self.path, node.number)?;
                self.processes.push(process);
            }
        }
        self.write_down()?;
        let deadline = Instant::now() + START_PATIENCE;
        while !status::all_work(&self.file) {
            for process in &mut self.processes {
                if let Some(how) = process.ended() {
                    return Err(did_not_start(&self.path, process.number, &how));
                }
            }
            if Instant::now() >= deadline {
                return Err(Fault::Other(format!(
                    "the cluster is not up after {} s; the logs are in {}/node-*/log",
                    START_PATIENCE.as_secs(),
                    self.path.parent().unwrap_or(&self.path).display()
                )));
            }
            if is_told(stop) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn announce(&self) {
        if self.file.protocol == ClusterProtocol::Curp {
            return curp::announce(&self.file, &self.path);
        }
        let replicas =
            self.file.regions * self.file.shards_per_region * manxdb_dast::topology::COPIES;
        println!(
            "cluster is up: {replicas} replicas and {} managers in {} regions, {} ms and {} ms apart",
            self.file.nodes.len() - replicas as usize,
            self.file.regions,
            self.file.distances.lan_ms,
            self.file.distances.wan_ms
        );
        println!("cluster file: {}", self.path.display());
        let admin = self.file.nodes.iter().filter_map(|node| node.admin);
        let admin: Vec<_> = admin.collect();
        if let (Some(first), Some(last)) = (admin.first(), admin.last()) {
            println!(
                "watch it:     http://{first}/ (by node 0; by the others at the ports behind it, to {})",
                last.port()
            );
        }
        println!(
            "load it:      manxdb bench append --check --cluster {}",
            self.path.display()
        );
        println!(
            "stop it:      Ctrl-C, or manxdb cluster down --cluster {}",
            self.path.display()
        );
    }

    /// Waits until it is told to stop, and says which nodes die.
    fn watch(&mut self, stop: &UnixStream) -> Result<(), Fault> {
        while !is_told(stop) {
            let mut changed = false;
            for process in &mut self.processes {
                let Some(how) = process.ended() else {
                    continue;
                };
                let node = &self.file.nodes[process.number as usize];
                println!("node {} ({}) ended: {how}", node.number, node.role);
                if self.supervise {
                    *process = NodeProcess::start(&self.path, process.number)?;
                    println!("node {} started again", process.number);
                    changed = true;
                }
            }
            if changed {
                self.write_down()?;
            }
        }
        Ok(())
    }

    /// Writes the processes into the cluster file.
    fn write_down(&mut self) -> Result<(), Fault> {
        // What was started in the room for more is in the file alone.
        let written = ClusterFile::read(&self.path).map(|(file, _)| file.nodes);
        for (node, known) in self.file.nodes.iter_mut().zip(written.unwrap_or_default()) {
            node.process = known.process;
        }
        for process in &self.processes {
            if let Some(node) = self.file.nodes.get_mut(process.number as usize) {
                node.process = process.id();
            }
        }
        Ok(self.file.write(&self.path)?)
    }

    /// Ends all nodes, those too that somebody else started again.
    fn stop(&mut self) {
        stop_all(&mut self.processes);
        status::stop_nodes_that_answer(&self.file);
    }
}

/// The cluster that is asked for.
pub fn describe(args: &DastUp) -> Result<ClusterFile, Fault> {
    let distances = [args.lan_ms, args.wan_ms, args.wan_jitter_ms];
    if !distances.iter().all(|ms| (0.0..=60_000.0).contains(ms)) {
        return Err(Fault::Other(
            "--lan-ms, --wan-ms and --wan-jitter-ms are 0 to 60000".to_owned(),
        ));
    }
    if !(10.0..=600_000.0).contains(&args.suspect_ms) {
        return Err(Fault::Other("--suspect-ms is 10 to 600000".to_owned()));
    }
    if let Some(millis) = args.lead_ms {
        if args.crossing != Crossing::Ahead {
            return Err(Fault::Other(
                "--lead-ms is for --crossing ahead: anticipated timestamps have no lead".to_owned(),
            ));
        }
        let lead = lead_of_millis(millis);
        lead.map_err(|wrong| Fault::Other(format!("--lead-ms: {wrong}")))?;
    }
    let can = args.survive.with(args.crossing, args.regions);
    can.map_err(|wrong| Fault::Other(format!("--survive {}: {wrong}", args.survive.name())))?;
    let mut file = ClusterFile {
        protocol: ClusterProtocol::Dast,
        id: new_id(),
        regions: args.regions,
        shards_per_region: args.shards,
        process: std::process::id(),
        distances: Distances {
            lan_ms: args.lan_ms,
            wan_ms: args.wan_ms,
            wan_jitter_ms: args.wan_jitter_ms,
        },
        suspect_ms: args.suspect_ms,
        crossing: args.crossing,
        survive: args.survive,
        lead_ms: args.lead_ms,
        tpcc_scale: args.tpcc_scale,
        curp: None,
        nodes: Vec::new(),
    };
    let topology = dast::topology(&file);
    let nodes = topology.servers();
    let behind = || port("--base-port", args.base_port, nodes);
    let admin_port = args.admin_port.map_or_else(behind, Ok)?;
    for number in 0..nodes {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let address = port("--base-port", args.base_port, number).map(local)?;
        let admin = port("--admin-port", admin_port, number).map(local)?;
        let (role, region) = dast::role(topology, NodeId(number));
        file.nodes.push(Node {
            number,
            role,
            region,
            address,
            redis: None,
            mysql: None,
            admin: Some(admin),
            process: 0,
        });
    }
    Ok(file)
}

/// The port `offset` behind one that a flag gives.
fn port(flag: &str, base: u16, offset: u32) -> Result<u16, Fault> {
    u16::try_from(u32::from(base) + offset).map_err(|_| {
        Fault::Other(format!(
            "{flag} {base} leaves no room for the ports behind it"
        ))
    })
}

/// A name that no other cluster had on these ports.
pub fn new_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let id = now.map_or(0, |now| now.as_nanos()) ^ u128::from(std::process::id()) << 32;
    format!("{:x}", id & u128::from(u64::MAX))
}

/// Says which port is taken before anything is started.
fn check_ports(file: &ClusterFile) -> Result<(), Fault> {
    for node in &file.nodes {
        listen(node)?;
        let clients = [
            (node.redis, "Redis clients", "--redis-port"),
            (node.mysql, "MySQL clients", "--mysql-port"),
            (node.admin, "the admin listener of a node", "--admin-port"),
        ];
        for (address, whose, flag) in clients {
            let Some(address) = address else {
                continue;
            };
            std::net::TcpListener::bind(address).map_err(|error| {
                Fault::Other(format!(
                    "{address} is not free for {whose} ({error}): see {flag}"
                ))
            })?;
        }
    }
    Ok(())
}

/// Removes what nodes of an earlier cluster have left, so this is the first life of each.
fn begin_afresh(directory: &Path) -> Result<(), Fault> {
    for name in ["life", "log", "journal", "journal.next"] {
        let path = directory.join(name);
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Fault::io(
                    format!("cannot remove {}", path.display()),
                    error,
                ));
            }
        }
    }
    Ok(())
}

fn did_not_start(path: &Path, number: u32, how: &str) -> Fault {
    let log = directory_of(path, number).join("log");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let last = text.lines().last().unwrap_or("it logged nothing");
    Fault::Other(format!(
        "node {number} did not start ({how}): {last} (log: {})",
        log.display()
    ))
}

/// Waits for a moment; whether the process was told to stop.
fn is_told(mut stop: &UnixStream) -> bool {
    matches!(stop.read(&mut [0; 16]), Ok(count) if count > 0)
}
