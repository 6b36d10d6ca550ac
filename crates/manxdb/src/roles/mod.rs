//! `manxdb cluster node` and `manxdb coordinator|replica|witness|proxy`: one node of a cluster as a
//! process, by its number or by its role.

mod node;

use std::process::ExitCode;

use crate::cli::{
    ClusterCommand, ClusterNode, CoordinatorArgs, CurpNodeArgs, CurpProxyArgs, WitnessArgs,
};
use crate::cluster::file::{ClusterFile, ClusterProtocol, Node};
use crate::cluster::{coordinator, curp, proxy_admin};
use crate::fault::Fault;
use crate::process::{start_log_of_environment, stop_signal};

/// A role that a process can be started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurpRole {
    /// Decides who does what.
    Coordinator,
    /// Master, backup or spare, as the coordinator decides.
    Replica,
    /// Keeps commands until they are synced.
    Witness,
}

impl CurpRole {
    /// As the cluster file names it.
    fn in_file(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Replica => "server",
            Self::Witness => "witness",
        }
    }

    /// The node that is meant when none is named.
    fn first(self, file: &ClusterFile) -> Option<&Node> {
        let mut of_role = file.nodes.iter();
        of_role.find(|node| node.role == self.in_file())
    }
}

/// Runs a node of a cluster, whatever its role is.
///
/// # Errors
/// What is in the way, in one line.
pub fn run_node(command: &ClusterCommand) -> Result<ExitCode, Fault> {
    let ClusterCommand::Node(args) = command;
    node::run(args)
}

/// Runs a node until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(role: CurpRole, args: &CurpNodeArgs) -> Result<ExitCode, Fault> {
    let file = read(&args.cluster)?;
    let number = number_of(role, &file, args.node)?;
    node::run(&ClusterNode::new(args.cluster.clone(), number))
}

/// Runs a coordinator until it is told to stop: the only one, or one of several over etcd.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run_coordinator(args: &CoordinatorArgs) -> Result<ExitCode, Fault> {
    if args.etcd.etcd.is_empty() {
        return run(CurpRole::Coordinator, &args.node);
    }
    let file = read(&args.node.cluster)?;
    let number = number_of(CurpRole::Coordinator, &file, args.node.node)?;
    let node = file.node(number);
    let node = node.ok_or_else(|| Fault::Config(format!("there is no node {number}")))?;
    coordinator::run_over_etcd(&file, node, args)
}

/// The number of the node that is meant.
fn number_of(role: CurpRole, file: &ClusterFile, asked: Option<u32>) -> Result<u32, Fault> {
    let wanted = role.in_file();
    let number = match asked {
        Some(number) => number,
        None => role.first(file).map(|node| node.number).ok_or_else(|| {
            Fault::Config(format!("the cluster file lists no {wanted} to be that"))
        })?,
    };
    match file.node(number) {
        Some(node) if node.role == wanted => {}
        Some(node) => {
            return Err(Fault::Config(format!(
                "node {number} is a {} in the cluster file, not a {wanted}",
                node.role
            )));
        }
        None => {}
    }
    Ok(number)
}

/// Runs a witness until it is told to stop, or takes away what it has left in the kernel: one of a cluster,
/// or one that its flags tell of what it is a witness.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run_witness(args: &WitnessArgs) -> Result<ExitCode, Fault> {
    let Some(path) = args.cluster.clone() else {
        return crate::witness::run(args);
    };
    let file = read(&path)?;
    let number = number_of(CurpRole::Witness, &file, args.node)?;
    let mut carrier = curp::carrier(&file, true)?;
    if let Some(choice) = args.carrier {
        carrier.kind = choice.kind();
    }
    carrier.interface = args.interface.clone().or(carrier.interface);
    carrier.fallback |= args.fallback;
    carrier.bpffs.clone_from(&args.bpffs);
    if args.remove {
        let node = file.node(number);
        let address = node.map(|node| node.address);
        let address = address.ok_or_else(|| Fault::Config(format!("there is no node {number}")))?;
        let place = carrier.place(address, file.id().0, 0)?;
        return crate::witness::remove(carrier.kind, &place);
    }
    node::run_with(&ClusterNode::new(path, number), Some(carrier))
}

/// Runs a proxy until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run_proxy(args: &CurpProxyArgs) -> Result<ExitCode, Fault> {
    let file = read(&args.cluster)?;
    if let Some(number) = args.node {
        let is_proxy = |node: &Node| node.number == number && node.role == "proxy";
        if !file.nodes.iter().any(is_proxy) {
            return Err(Fault::Config(format!(
                "node {number} is no proxy of the cluster file; without --node a proxy needs no line there"
            )));
        }
        return node::run(&ClusterNode::new(args.cluster.clone(), number));
    }
    start_log_of_environment("info")?;
    let stop = stop_signal()?;
    let show = |meter| {
        let admin = args.admin_listen;
        let admin = admin.map(|address| proxy_admin::serve(address, &file, meter));
        admin.transpose()
    };
    curp::run_unlisted_proxy(&file, args.listen, !args.no_follow, show, &stop)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &std::path::Path) -> Result<ClusterFile, Fault> {
    let (file, path) = ClusterFile::read(path)?;
    if file.protocol == ClusterProtocol::Curp {
        return Ok(file);
    }
    Err(Fault::Config(format!(
        "{} describes a cluster of another kind: protocol is not \"curp\"",
        path.display()
    )))
}
