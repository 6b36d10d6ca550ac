//! Clusters that replicate Redis's keys or SQL's rows: what they consist of, and what they lack.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use manxdb::cluster::curp;
use manxdb::cluster::curp_status::{master, told_nodes};
use manxdb::cluster::file::{ClusterFile, ClusterProtocol, CurpShape, Distances, NAME, Node};
use manxdb::cluster::node::directory_of;
use manxdb::process::random_u64;
use manxdb_core::NodeId;
use manxdb_net::Status;

use manxdb::cli::TpccScale;

use super::children::NodeProcess;
use super::status::ask_all;
use crate::cli::CurpUp;
use crate::fault::Fault;

/// How long a witness may take to start, and the coordinator to replace one.
const WITNESS_PATIENCE: Duration = Duration::from_secs(30);
/// How long a node may take to answer.
const STATUS_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks whether something is so.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The cluster that a stopped one has left in the data directory, to go on with; none when there is
/// nothing to go on with, or a new one is asked for.
///
/// # Errors
/// It is another one than the flags describe, or cannot be read.
pub fn left(args: &CurpUp) -> Result<Option<ClusterFile>, Fault> {
    if args.new || !args.data.join(NAME).exists() {
        return Ok(None);
    }
    let (mut file, path) = ClusterFile::read(&args.data)?;
    let Some(shape) = file.curp.clone() else {
        return Ok(None);
    };
    let journal = |node: &Node| directory_of(&path, node.number).join("journal");
    if !file.nodes.iter().any(|node| journal(node).exists()) {
        return Ok(None);
    }
    let has = curp::durability(&file);
    let wants = args.durability.as_deref().unwrap_or(has);
    let differs = [
        ("--f", shape.faults.to_string(), args.faults.to_string()),
        ("--sql", shape.sql.to_string(), args.sql.to_string()),
        ("--durability", has.to_owned(), wants.to_owned()),
    ];
    if let Some((flag, has, asked)) = differs.iter().find(|(_, has, asked)| has != asked) {
        return Err(Fault::Other(format!(
            "{} holds a stopped cluster with {flag} {has}, not {asked}: start that one, choose another \
             directory with --data, or begin with nothing with --new",
            args.data.display()
        )));
    }
    file.process = std::process::id();
    for node in &mut file.nodes {
        node.process = 0;
    }
    Ok(Some(file))
}

/// The cluster that is asked for.
///
/// # Errors
/// Flags that do not go together.
pub fn describe(args: &CurpUp) -> Result<ClusterFile, Fault> {
    if !(50.0..=600_000.0).contains(&args.suspect_ms) {
        return Err(Fault::Other("--suspect-ms is 50 to 600000".to_owned()));
    }
    let carrier = args.carrier.kind();
    let shape = CurpShape {
        faults: args.faults,
        servers: args.faults + 1 + args.spares,
        witnesses: args.faults + args.spares + args.room,
        room: args.room,
        other_coordinators: Vec::new(),
        proxies: if args.sql { 0 } else { args.proxies },
        sql: args.sql,
        durability: args.durability.clone(),
        key_secret: format!("{:016x}{:016x}", random_u64()?, random_u64()?),
        carrier: carrier.is_in_kernel().then(|| carrier.name().to_owned()),
        interface: carrier.is_in_kernel().then(|| args.interface.clone()),
        carrier_fallback: args.fallback,
    };
    let mut file = ClusterFile {
        protocol: ClusterProtocol::Curp,
        id: super::up::new_id(),
        regions: 1,
        shards_per_region: 1,
        process: std::process::id(),
        distances: Distances {
            // As a round trip.
            lan_ms: f64::from(u32::try_from(args.lan_us).unwrap_or(u32::MAX)) / 500.0,
            wan_ms: 0.0,
            wan_jitter_ms: 0.0,
        },
        suspect_ms: args.suspect_ms,
        crossing: manxdb_dast::Crossing::Anticipated,
        survive: manxdb_dast::Survive::Zone,
        lead_ms: None,
        tpcc_scale: TpccScale::Tiny,
        curp: Some(shape.clone()),
        nodes: Vec::new(),
    };
    let first_proxy = 1 + shape.servers + shape.witnesses;
    for number in 0..curp::nodes(&shape) {
        // Proxies first, then servers.
        let redis = match number {
            _ if args.sql => None,
            0 => None,
            server if server <= shape.servers => Some(shape.proxies + server - 1),
            proxy if proxy >= first_proxy => Some(proxy - first_proxy),
            _ => None,
        };
        let at = |base, offset| port(base, offset).map(local);
        file.nodes.push(Node {
            number,
            role: curp::role(&file, NodeId(number)).to_owned(),
            region: 0,
            address: at(args.base_port, number)?,
            redis: redis
                .map(|offset| at(args.redis_port, offset))
                .transpose()?,
            mysql: (args.sql && (1..=shape.servers).contains(&number))
                .then(|| at(args.mysql_port, number - 1))
                .transpose()?,
            admin: None,
            process: 0,
        });
    }
    Ok(file)
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn port(base: u16, offset: u32) -> Result<u16, Fault> {
    u16::try_from(u32::from(base) + offset)
        .map_err(|_| Fault::Other(format!("port {base} leaves no room for {offset} more")))
}

/// The nodes that do something at the moment, as `cluster kill` names it.
#[must_use]
pub fn doing(file: &ClusterFile, answers: &[Option<Status>], what: &str) -> Vec<u32> {
    match what {
        "master" => master(answers).into_iter().collect(),
        "backup" => told_nodes(answers, "backups"),
        "witness" => told_nodes(answers, "witnesses"),
        role => {
            let of_role = file.nodes.iter().filter(|node| node.role == role);
            of_role.map(|node| node.number).collect()
        }
    }
}

/// Starts one more witness of a running cluster: in a place that it has room for, or of one that is gone.
/// With `replaces`, that one is ended then, and the coordinator's choice of another is waited for.
///
/// # Errors
/// There is no such place, or the witness does not start.
pub fn add_witness(cluster: &Path, replaces: Option<u32>) -> Result<ExitCode, Fault> {
    let (file, path) = ClusterFile::read(cluster)?;
    let answers = ask_all(&file);
    if file.protocol != ClusterProtocol::Curp {
        return Err(Fault::Other(
            "only clusters that manxdb cluster up curp starts have witnesses".to_owned(),
        ));
    }
    let is_witness = |node: &&Node| node.role == "witness";
    if let Some(number) = replaces {
        let mut witnesses = file.nodes.iter().filter(is_witness);
        if !witnesses.any(|node| node.number == number && !file.is_room(node)) {
            return Err(Fault::Other(format!(
                "node {number} is no witness, as manxdb cluster status shows them"
            )));
        }
    }
    let free = |node: &&Node| {
        let answers = answers
            .get(node.number as usize)
            .is_some_and(Option::is_some);
        is_witness(node) && !answers && Some(node.number) != replaces
    };
    let mut places = file.nodes.iter().filter(free);
    let room = file.nodes.iter().find(|node| file.is_room(node));
    let Some(place) = room.or_else(|| places.next()) else {
        return Err(Fault::Other(
            "every witness answers, and the cluster has no room for more: cluster up curp --room COUNT \
             makes it"
                .to_owned(),
        ));
    };
    let number = place.number;
    let process = NodeProcess::start_alone(&path, number)?;
    await_witness(&path, number, process)?;
    println!(
        "node {number} (process {process}) is a witness: a spare, until the coordinator needs it"
    );
    if let Some(number) = replaces {
        replace(&path, number)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Until it answers, and the coordinator knows it; then the cluster file has its process.
fn await_witness(path: &Path, number: u32, process: u32) -> Result<(), Fault> {
    let deadline = Instant::now() + WITNESS_PATIENCE;
    loop {
        // `cluster up` may have written it meanwhile.
        let (mut file, _) = ClusterFile::read(path)?;
        let mut nodes = file.nodes.iter();
        let Some(at) = nodes.position(|node| node.number == number) else {
            return Err(Fault::Other(format!("there is no node {number} any more")));
        };
        let status = manxdb_net::ask_status(file.nodes[at].address, STATUS_PATIENCE);
        let answers = status.is_ok_and(|status| status.process == process);
        if answers && is_known(&file, number) {
            file.nodes[at].process = process;
            return Ok(file.write(path)?);
        }
        if Instant::now() >= deadline {
            super::status::terminate(process);
            let log = manxdb::cluster::node::directory_of(path, number).join("log");
            return Err(Fault::Other(format!(
                "node {number} did not start (log: {})",
                log.display()
            )));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether the coordinator counts with a node, or is away: it will, when it is back.
fn is_known(file: &ClusterFile, number: u32) -> bool {
    let answers = ask_all(file);
    answers.first().is_none_or(Option::is_none)
        || ["witnesses", "spares"]
            .iter()
            .any(|role| told_nodes(&answers, role).contains(&number))
}

/// Ends a witness, and waits until no view has it.
fn replace(path: &Path, number: u32) -> Result<(), Fault> {
    let (file, _) = ClusterFile::read(path)?;
    let answers = ask_all(&file);
    if let Some(Some(status)) = answers.get(number as usize) {
        super::status::terminate(status.process);
    }
    let deadline = Instant::now() + WITNESS_PATIENCE;
    loop {
        let answers = ask_all(&file);
        let in_use = told_nodes(&answers, "witnesses");
        if master(&answers).is_some() && !in_use.is_empty() && !in_use.contains(&number) {
            println!("node {number} has ended; the witnesses in use are {in_use:?}");
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Fault::Other(format!(
                "node {number} has ended, but the coordinator has not replaced it after {} s: manxdb \
                 cluster status",
                WITNESS_PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Says how to use a cluster that is up.
pub fn announce(file: &ClusterFile, path: &Path) {
    let Some(shape) = &file.curp else {
        return;
    };
    println!(
        "cluster is up: {} servers and {} witnesses for f = {}, durability: {}",
        shape.servers,
        shape.witnesses - shape.room,
        shape.faults,
        curp::durability(file)
    );
    if let Some(carrier) = &shape.carrier {
        let interface = shape.interface.as_deref().unwrap_or_default();
        println!("witnesses:    {carrier} at {interface}");
    }
    println!("cluster file: {}", path.display());
    for node in &file.nodes {
        if let Some(redis) = node.redis {
            println!("Redis:        {redis} ({} {})", node.role, node.number);
        }
        if let Some(mysql) = node.mysql {
            println!("MySQL:        {mysql} ({} {})", node.role, node.number);
        }
    }
    println!(
        "how it is:    manxdb cluster status --cluster {}",
        path.display()
    );
    println!(
        "stop it:      Ctrl-C, or manxdb cluster down --cluster {}",
        path.display()
    );
}
