//! Clusters that replicate Redis's keys or SQL's rows: what they consist of, and what they lack.

use std::net::SocketAddr;
use std::path::Path;

use manxdb::cluster::curp::{self, SERVES, WAITS};
use manxdb::cluster::file::{ClusterFile, ClusterProtocol, CurpShape, Distances, NAME, Node};
use manxdb::cluster::node::{STATE, directory_of};
use manxdb::process::random_u64;
use manxdb_core::NodeId;
use manxdb_gateway::admin::HealthReport;
use manxdb_net::Status;

use manxdb::cli::TpccScale;

use super::status::note;
use crate::cli::CurpUp;
use crate::fault::Fault;

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
        witnesses: args.faults + args.spares,
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

/// What the coordinator says of a view, by name.
fn told<'a>(answers: &'a [Option<Status>], name: &str) -> Option<&'a str> {
    note(answers.first()?.as_ref()?, name)
}

/// Numbers of nodes.
fn numbers(text: &str) -> Vec<u32> {
    text.split(' ')
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// The node that is master, if one is.
fn master(answers: &[Option<Status>]) -> Option<u32> {
    let number: u32 = told(answers, "master")?.parse().ok()?;
    let status = answers.get(number as usize)?.as_ref()?;
    (note(status, STATE) == Some(SERVES)).then_some(number)
}

/// The nodes that do something at the moment, as `cluster kill` names it.
#[must_use]
pub fn doing(file: &ClusterFile, answers: &[Option<Status>], what: &str) -> Vec<u32> {
    match what {
        "master" => master(answers).into_iter().collect(),
        "backup" => told(answers, "backups").map(numbers).unwrap_or_default(),
        "witness" => told(answers, "witnesses").map(numbers).unwrap_or_default(),
        role => {
            let of_role = file.nodes.iter().filter(|node| node.role == role);
            of_role.map(|node| node.number).collect()
        }
    }
}

/// What the cluster lacks, the worst first; `answers` are what nodes say, in the order of the file.
#[must_use]
pub fn judge(file: &ClusterFile, answers: &[Option<Status>]) -> Vec<HealthReport> {
    let start = |number: usize| format!("start it again, with manxdb cluster node --node {number}");
    let mut found = Vec::new();
    if answers.first().is_some_and(Option::is_none) {
        found.push(HealthReport::degraded(
            "the coordinator does not answer: nobody is replaced, and reads end with the master's lease",
            start(0),
        ));
    } else if master(answers).is_none() {
        let waits = told(answers, WAITS);
        let waits = waits.map_or(String::new(), |what| {
            format!(", and the coordinator waits for {what}")
        });
        found.push(HealthReport::unavailable(
            format!("there is no master: no command is executed{waits}"),
            "wait for a moment; if it stays so, start the processes that are gone, those whose disk is lost \
             with an empty directory. A cluster whose master and witnesses have all ended, or all its \
             servers but one, goes on with what its disks have when all are stopped and started again: \
             manxdb cluster down, then up",
        ));
    }
    let gone = file.nodes.iter().zip(answers).skip(1);
    for (node, _) in gone.filter(|(_, answer)| answer.is_none()) {
        let what = format!("node {}, {}, does not answer", node.number, node.role);
        found.push(HealthReport::degraded(what, start(node.number as usize)));
    }
    found
}

/// Says how to use a cluster that is up.
pub fn announce(file: &ClusterFile, path: &Path) {
    let Some(shape) = &file.curp else {
        return;
    };
    println!(
        "cluster is up: {} servers and {} witnesses for f = {}, durability: {}",
        shape.servers,
        shape.witnesses,
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
