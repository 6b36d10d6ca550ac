//! One node of a cluster, as a process.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_net::runtime::channel_options;
use manxdb_net::{DataDirectory, Runtime, Settings};

use crate::cli::ClusterNode;
use crate::cluster::file::{ClusterFile, ClusterProtocol, Node};
use crate::cluster::geo::GeoCluster;
use crate::cluster::geo::admin::Admin;
use crate::cluster::geo::meter::Meter;
use crate::cluster::geo::pulse::Pulse;
use crate::cluster::node::{begin_life, directory_of, listen, other};
use crate::cluster::{curp, dast};
use crate::fault::Fault;
use crate::process::{start_log_of_environment, stop_signal};
use crate::witness::CarrierWish;

/// Runs it until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(args: &ClusterNode) -> Result<ExitCode, Fault> {
    run_with(args, None)
}

/// Runs it with a carrier of its witness that the cluster file does not name.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run_with(args: &ClusterNode, carrier: Option<CarrierWish>) -> Result<ExitCode, Fault> {
    let number = args.node;
    if let Some(parent) = args.parent {
        end_with(parent)?;
    }
    let (file, path) = ClusterFile::read(&args.cluster)?;
    if file.protocol == ClusterProtocol::Curp && (args.admin_listen.is_some() || args.admin_tls) {
        return Err(Fault::Config(
            "--admin-listen and --admin-tls are for nodes of a cluster over regions: of one that replicates, \
             servers of SQL have an admin listener without them, and manxdb proxy has its own"
                .to_owned(),
        ));
    }
    if let Ok(server) = curp::sql_server(&file, number) {
        return serve_sql(server, &path);
    }
    start_log_of_environment("info")?;
    let stop = stop_signal()?;
    let Some(node) = file.node(number) else {
        return Err(Fault::Other(format!(
            "the cluster has nodes 0 to {}, not {number}",
            file.nodes.len() - 1
        )));
    };
    let data = DataDirectory::open(&directory_of(&path, number)).map_err(other)?;
    if file.protocol == ClusterProtocol::Curp {
        let life = begin_life(&data)?;
        let carrier = match carrier {
            Some(carrier) => carrier,
            // Nobody takes up what a cluster leaves that was stopped as a whole.
            None => curp::carrier(&file, args.parent.is_none())?,
        };
        curp::run(&file, node, &data, life, &carrier, &stop)?;
        tracing::info!(node = number, "stopped");
        return Ok(ExitCode::SUCCESS);
    }
    run_dast(args, (&file, node), &data, &stop)?;
    tracing::info!(node = number, "stopped");
    Ok(ExitCode::SUCCESS)
}

/// Runs a node of a cluster over regions.
fn run_dast(
    args: &ClusterNode,
    (file, node): (&ClusterFile, &Node),
    data: &DataDirectory,
    stop: &UnixStream,
) -> Result<(), Fault> {
    let number = node.number;
    let listener = listen(node)?;
    let admin = args.admin_listen.or(node.admin);
    if admin.is_none() && args.admin_tls {
        return Err(Fault::Config(
            "--admin-tls is for an admin listener: say where with --admin-listen".to_owned(),
        ));
    }
    let admin = admin
        .map(|address| Admin::listen(address, args, data.path()))
        .transpose()?;
    let life = begin_life(data)?;
    let delays = file.delays();
    let settings = Settings {
        cluster: file.id(),
        directory: file.directory(),
        channel: channel_options(&delays),
        holds_datagrams: true,
        delays,
        seed: u64::from(number) << 32 | life.0,
        notes: dast::notes,
    };
    let pulse = Arc::new(Pulse::default());
    let url = admin.as_ref().map(Admin::url);
    let meter = Meter::new(url.clone(), Arc::clone(&pulse));
    let mut runtime = Runtime::new(settings, listener, meter).map_err(other)?;
    let core = dast::node(file, NodeId(number), life.0, &dast::shared(file));
    runtime.add(node.place(), life, core);
    let shown = admin.map(|admin| {
        let cluster = GeoCluster::new(file.clone(), number);
        admin.serve(cluster, pulse)
    });
    let _shown = shown.transpose()?;
    let admin = url.as_deref().unwrap_or("none");
    tracing::info!(node = number, role = node.role, address = %node.address, admin, life = life.0, "up");
    runtime.run(Some(stop)).map_err(other)
}

/// As `manxdb serve --commit-path curp` with the addresses of the cluster file; root has no password, as
/// nothing else in a cluster on one machine has.
fn serve_sql(server: &Node, file: &Path) -> Result<ExitCode, Fault> {
    let Some(mysql) = server.mysql else {
        return Err(Fault::Config(format!(
            "node {} of the cluster file has no `mysql` address",
            server.number
        )));
    };
    let arguments = [
        "manxdb".into(),
        "serve".into(),
        "--commit-path=curp".into(),
        "--insecure=true".into(),
        "--admin-listen=127.0.0.1:0".into(),
        format!("--curp-node={}", server.number).into(),
        format!("--mysql-listen={mysql}").into(),
        "--curp-cluster".into(),
        file.as_os_str().to_owned(),
        "--data".into(),
        directory_of(file, server.number).into_os_string(),
    ];
    crate::serve::run_as(arguments)
}

/// No node outlives the `cluster up` that started it, however that ends.
fn end_with(parent: i32) -> Result<(), Fault> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let io = |error: rustix::io::Errno| Fault::io("cannot watch `cluster up`", error.into());
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(io)?;
    // It may have ended before that.
    let actual = getppid().map(rustix::process::Pid::as_raw_pid);
    if actual == Some(parent) {
        return Ok(());
    }
    Err(Fault::Other("`cluster up` has ended".to_owned()))
}
