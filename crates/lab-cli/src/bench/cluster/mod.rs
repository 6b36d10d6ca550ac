//! `manxdb bench append`, `payment`, `tpca`, `tpcc`: closed loops of clients on a cluster.
//!
//! | file | |
//! |---|---|
//! | [`load`] | who asks when, and what is kept |
//! | [`judge`] | whether it was right |
//! | [`report`] | what is said of it |
//! | [`against`] | the same in the simulator, in one figure |

mod against;
mod judge;
mod load;
mod report;

use std::net::TcpListener;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId};
use manxdb_net::runtime::channel_options;
use manxdb_net::{Place, RegionId, Runtime, Settings};
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::{Calls, Workload, append, tpcc};

use self::load::{Client, Load, Plan, Survey};
use crate::bench::sql_tpcc;
use crate::cli::{AppendRun, ClusterLoad, PaymentRun, TpcaRun, TpccRun};
use crate::fault::Fault;
use manxdb::cluster::file::ClusterProtocol;
use manxdb::cluster::{ClusterFile, dast};
use manxdb::process::stop_signal;

/// Clients of one process.
const CLIENTS_MAX: u32 = 4_096;

/// Lists one call can read: the most operations a call has.
const LISTS_MAX: u32 = 64;

/// `manxdb bench append`.
///
/// # Errors
/// Arguments that make no sense, or a cluster that does not answer.
pub fn append(args: &AppendRun) -> Result<ExitCode, Fault> {
    if !(1..=LISTS_MAX).contains(&args.lists) {
        return Err(Fault::Other(format!("--lists is 1 to {LISTS_MAX}")));
    }
    let settings = append::Settings {
        lists_per_shard: args.lists,
        cross_region: share("--crt-percent", args.crt_percent)?,
        deferred: share("--deferred-percent", args.deferred_percent)?,
        ..append::Settings::default()
    };
    run(
        &args.load,
        Workload::Append(settings),
        Some(Survey::Lists(args.lists)),
    )
}

/// `manxdb bench tpca`.
///
/// # Errors
/// As [`append`].
pub fn tpca(args: &TpcaRun) -> Result<ExitCode, Fault> {
    let workload = Workload::Tpca {
        cross_region: share("--crt-percent", args.crt_percent)?,
        theta: crate::sim::theta(args.theta)?,
    };
    run(&args.load, workload, Some(Survey::Totals))
}

/// `manxdb bench tpcc`.
///
/// # Errors
/// As [`append`].
pub fn tpcc(args: &TpccRun) -> Result<ExitCode, Fault> {
    if let Some(address) = &args.server.mysql {
        return sql_tpcc::run(args, address);
    }
    let mut parameters = if args.standard {
        tpcc::Parameters::standard()
    } else {
        tpcc::Parameters::as_published()
    };
    if let Some(percent) = args.remote_payments {
        parameters.remote_payments = share("--remote-payments", percent)?;
    }
    run(&args.load, Workload::Tpcc(parameters), None)
}

/// `manxdb bench payment`.
///
/// # Errors
/// As [`append`].
pub fn payment(args: &PaymentRun) -> Result<ExitCode, Fault> {
    let cross_region = share("--crt-percent", args.crt_percent)?;
    run(&args.load, Workload::Payment { cross_region }, None)
}

/// A flag in percent as a share of one.
fn share(flag: &str, percent: f64) -> Result<f64, Fault> {
    if (0.0..=100.0).contains(&percent) {
        return Ok(percent / 100.0);
    }
    Err(Fault::Other(format!("{flag} is 0 to 100")))
}

fn run(args: &ClusterLoad, workload: Workload, survey: Option<Survey>) -> Result<ExitCode, Fault> {
    check(args)?;
    let (file, _) = ClusterFile::read(&args.cluster)?;
    if file.protocol != ClusterProtocol::Dast {
        return Err(Fault::Other(
            "this load calls procedures, and the cluster serves Redis clients: use redis-benchmark"
                .to_owned(),
        ));
    }
    against::check(args, &file)?;
    look_around(&file)?;
    let topology = dast::placement(&file);
    let homes = homes(args.clients, topology.shards());
    let calls = Calls::new(workload, topology, file.tpcc_scale.scale(), args.seed);
    let plan = Plan {
        warm_up: seconds(args.warm_up),
        measured: seconds(args.seconds),
        patience: seconds(args.patience),
        survey: survey.filter(|_| args.check),
        shards: topology.shards(),
    };
    let clients = homes.iter().map(|(node, home)| Client::new(*node, *home));
    let load = Load::new(calls, clients.collect(), plan);
    let before = against::Machine::now(&file);
    let load = drive(&file, load, &homes)?;
    let mut findings = Vec::new();
    if args.check {
        findings = judge::judge(&load, &file);
    }
    if let Some(directory) = &args.against_sim {
        let measured = against::Measured {
            args,
            file: &file,
            workload,
            load: &load,
            findings: &findings,
            before: &before,
        };
        against::write(directory, &measured)?;
    }
    let outcome = report::Outcome::new(args, &load, findings);
    println!("{}", outcome.text());
    if let Some(path) = &args.json {
        std::fs::write(path, outcome.json())
            .map_err(|error| Fault::io(format!("cannot write {}", path.display()), error))?;
    }
    Ok(if outcome.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Warns of nodes that do not answer; at least one must.
fn look_around(file: &ClusterFile) -> Result<(), Fault> {
    let mut silent = Vec::new();
    for (node, answer) in file.nodes.iter().zip(crate::cluster::ask_each(file)) {
        if let Err(error) = answer {
            silent.push(format!("node {} ({}): {error}", node.number, node.role));
        }
    }
    if silent.len() == file.nodes.len() {
        return Err(Fault::Other(
            "no node of the cluster answers: it is down (manxdb cluster up)".to_owned(),
        ));
    }
    for warning in silent {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

fn check(args: &ClusterLoad) -> Result<(), Fault> {
    if !(1..=CLIENTS_MAX).contains(&args.clients) {
        return Err(Fault::Other(format!("--clients is 1 to {CLIENTS_MAX}")));
    }
    for (name, value) in [
        ("--seconds", args.seconds),
        ("--warm-up", args.warm_up),
        ("--patience", args.patience),
    ] {
        if !(0.0..=86_400.0).contains(&value) {
            return Err(Fault::Other(format!("{name} is 0 to 86400")));
        }
    }
    Ok(())
}

/// Numbers that no other process of clients has, at least not at the same time, and the shards
/// whose neighbours they are.
fn homes(clients: u32, shards: u32) -> Vec<(NodeId, ShardId)> {
    // Processes have numbers below 2^22; servers are fewer than 2^16.
    let first = (1 << 16) + (std::process::id() % (1 << 19)) * CLIENTS_MAX;
    let client = |number| (NodeId(first + number), ShardId(number % shards));
    (0..clients).map(client).collect()
}

fn seconds(seconds: f64) -> Nanos {
    manxdb::cluster::file::nanos(seconds * 1_000.0)
}

/// Runs the clients until they have what they want or the process is told to stop.
fn drive(file: &ClusterFile, load: Load, homes: &[(NodeId, ShardId)]) -> Result<Load, Fault> {
    let stop = stop_signal()?;
    let shared = dast::shared(file);
    let delays = file.delays();
    let settings = Settings {
        cluster: file.id(),
        directory: file.directory(),
        channel: channel_options(&delays),
        holds_datagrams: true,
        delays,
        seed: u64::from(std::process::id()),
        notes: dast::notes,
    };
    let other = |error: &dyn std::fmt::Display| Fault::Other(error.to_string());
    let listener = TcpListener::bind("127.0.0.1:0")
        .map_err(|error| Fault::io("cannot listen for answers", error))?;
    let mut runtime = Runtime::new(settings, listener, load).map_err(|error| other(&error))?;
    // A process that has the number of an earlier one is a later life of its clients.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let life = Life(since.map_or(1, |since| since.as_secs().max(1)));
    for (node, home) in homes {
        let region = shared.topology.region_of(*home);
        let place = Place {
            node: *node,
            region: RegionId(region.0),
        };
        runtime.add(place, life, dast::node(file, *node, life.0, &shared));
    }
    runtime.run(Some(&stop)).map_err(|error| other(&error))?;
    Ok(runtime.into_driver())
}
