//! The coordinator of a cluster that replicates Redis's keys or SQL's rows, as a process: alone over a
//! file, or as one of several over etcd.
//!
//! Over etcd, the process that leads is node 0, in a life that has the number of its term, and listens at
//! its own of the coordinator's addresses; the others listen nowhere. So a change of leaders is to the
//! protocol what a coordinator is that starts again: it finds the decisions of all before it, and grants
//! its first lease to itself, behind the last one that another may have granted. For that, two things
//! have to hold:
//!
//! - etcd keeps no decision of a leader whose term is over ([`state`]), and no message about a decision is
//!   sent before etcd has kept it (as with a file).
//! - A leader grants no lease to a master when its own lease at etcd may be over: the loop steps the
//!   coordinator during its tenure alone (`manxdb_net::tenure`), which ends a fifth of the lease before
//!   etcd's, counted from when the lease was asked for.

mod state;

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use manxdb_core::channel::Life;
use manxdb_core::last_failure::LastFailure;
use manxdb_core::{Nanos, NodeId};
use manxdb_curp::disk::CurpRecord;
use manxdb_curp_client::CoordinatorDriver;
use manxdb_etcd::fence::{Renewer, Won};
use manxdb_jobs::Lease;
use manxdb_net::tenure::Tenure;
use manxdb_net::{DataDirectory, Runtime};

use self::state::{EtcdState, StateError};
use super::file::{ClusterFile, Node};
use super::{curp, node};
use crate::cli::CoordinatorArgs;
use crate::etcd;
use crate::fault::Fault;
use crate::process::{random_u64, start_log_of_environment, stop_signal};

/// Whether a coordinator with a file is the only one.
///
/// # Errors
/// The cluster file lists others.
pub fn check_alone(file: &ClusterFile) -> Result<(), Fault> {
    if file.other_coordinators().is_empty() {
        return Ok(());
    }
    Err(Fault::Config(
        "the cluster file lists several coordinators (curp.other_coordinators), which cannot share the \
         file of one: name their etcd with manxdb coordinator --etcd"
            .to_owned(),
    ))
}

/// Runs the only coordinator of a cluster, whose decisions are in a file, until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, or a disk that fails.
pub fn run_alone(
    file: &ClusterFile,
    node: &Node,
    data: &DataDirectory,
    life: Life,
    listener: TcpListener,
    stop: &UnixStream,
) -> Result<(), Fault> {
    let path = data.path().join("journal");
    let (journal, disk) = curp::journal(data, life)?;
    tracing::warn!(
        file = %path.display(),
        "the coordinator is a single point of failure: who is master is written in this file alone, and \
         nobody is replaced while this process is down; with --etcd several coordinators share a state"
    );
    let mut runtime = runtime(file, life, listener)?;
    let core = curp::core(
        curp::options(file),
        NodeId(node.number),
        life,
        random_u64()?,
        disk,
    )?;
    runtime
        .add_with_journal(node.place(), life, core, (journal, CurpRecord::supersedes))
        .map_err(node::other)?;
    curp::up(file, node, life);
    runtime.run(Some(stop)).map_err(node::other)
}

fn runtime(
    file: &ClusterFile,
    life: Life,
    listener: TcpListener,
) -> Result<Runtime<curp::Node, CoordinatorDriver>, Fault> {
    let settings = curp::settings(file, life.0, true);
    let driver = CoordinatorDriver::new(&curp::cluster(file));
    Runtime::new(settings, listener, driver).map_err(node::other)
}

/// Runs one of several coordinators, whose decisions are in etcd, until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting or from leading.
pub fn run_over_etcd(
    file: &ClusterFile,
    node: &Node,
    args: &CoordinatorArgs,
) -> Result<ExitCode, Fault> {
    start_log_of_environment("info")?;
    let stop = stop_signal()?;
    let address = own_address(file, node, args.listen)?;
    let node = Node {
        address,
        ..node.clone()
    };
    // An address that cannot be had is told now, not when the others are gone.
    drop(node::listen(&node)?);
    let span = Duration::from_secs(args.etcd.etcd_lease.into());
    let prefix = format!("{}/{}", args.etcd_prefix.trim_end_matches('/'), file.id);
    let state = EtcdState::open(etcd::address(&args.etcd)?, &prefix, span);
    let state = state.map_err(node::other)?;
    tracing::info!(
        etcd = args.etcd.etcd.join(","),
        prefix,
        "who is master is written in etcd; other coordinators may share it"
    );
    let contender = Contender {
        file,
        node,
        state,
        lease: Lease::of(Nanos::from_secs(args.etcd.etcd_lease.into())),
        stop: &stop,
    };
    contender.run()?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Which of the coordinator's addresses is this process's.
fn own_address(
    file: &ClusterFile,
    node: &Node,
    asked: Option<SocketAddr>,
) -> Result<SocketAddr, Fault> {
    let asked = asked.unwrap_or(node.address);
    let known = file.addresses_of(node);
    if known.contains(&asked) {
        return Ok(asked);
    }
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    Err(Fault::Config(format!(
        "--listen {asked} is none of the addresses at which others look for the coordinator: {}; add it \
         to curp.other_coordinators in the cluster file of every process",
        known.join(", ")
    )))
}

/// One of several coordinators.
struct Contender<'a> {
    file: &'a ClusterFile,
    /// Node 0, at this process's address.
    node: Node,
    state: EtcdState,
    lease: Lease,
    stop: &'a UnixStream,
}

/// How a leadership ended.
enum Ended {
    /// The process is told to stop.
    Stopped,
    /// Another process may lead, because of this.
    Deposed(String),
}

impl Contender<'_> {
    /// Campaigns, leads, and campaigns again, until it is told to stop.
    fn run(&self) -> Result<(), Fault> {
        let mut last = LastFailure::default();
        // That it leads in between does not make the same failure news: elections are logged as they come.
        let mut say = |what: String| {
            if let Some(news) = last.failed(what) {
                tracing::warn!("{news}");
            }
        };
        loop {
            let asked = Instant::now();
            match self.state.campaign(&self.node.address.to_string()) {
                Ok(Won::Term(term)) => {
                    tracing::info!(term, "this coordinator leads");
                    let ended = self.lead(term, asked);
                    self.state.resign(term);
                    match ended? {
                        Ended::Stopped => return Ok(()),
                        Ended::Deposed(why) => {
                            say(format!("this coordinator does not lead any more: {why}"));
                        }
                    }
                }
                Ok(Won::Taken(leader)) => {
                    say(format!("{leader} leads; this coordinator stands by"));
                }
                Err(error) => say(format!("nobody knows who leads: {error}")),
            }
            if self.stops_within(duration(self.lease.every))? {
                return Ok(());
            }
        }
    }

    /// Waits; whether it is told to stop meanwhile.
    fn stops_within(&self, wait: Duration) -> Result<bool, Fault> {
        let io = |error| Fault::io("cannot wait for signals", error);
        self.stop.set_read_timeout(Some(wait)).map_err(io)?;
        let mut stop = self.stop;
        match stop.read_exact(&mut [0]) {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                std::io::ErrorKind::UnexpectedEof => Ok(true),
                std::io::ErrorKind::WouldBlock
                | std::io::ErrorKind::TimedOut
                | std::io::ErrorKind::Interrupted => Ok(false),
                _ => Err(io(error)),
            },
        }
    }

    /// Is the coordinator in this term, which was asked for at this time.
    fn lead(&self, term: u64, asked: Instant) -> Result<Ended, Fault> {
        let tenure = Tenure::until(asked + duration(self.lease.serves()));
        let renewer = self.state.renewer().map_err(node::other)?;
        let (done, ends) = channel();
        std::thread::scope(|scope| {
            let (lease, shared) = (self.lease, tenure.clone());
            scope.spawn(move || renew(renewer, term, lease, &shared, &ends));
            let ended = self.coordinate(term, &tenure);
            // Now, so that a decision on its way to etcd is not waited for.
            tenure.end();
            drop(done);
            ended
        })
    }

    fn coordinate(&self, term: u64, tenure: &Tenure) -> Result<Ended, Fault> {
        let disk = match self.state.read() {
            Ok(record) => record.into_iter().collect(),
            Err(StateError::Etcd(error)) => return Ok(Ended::Deposed(error.to_string())),
            Err(error) => return Err(node::other(error)),
        };
        // Terms rise, and no two processes have the same one, as lives do.
        let life = Life(term);
        let id = NodeId(self.node.number);
        let mut runtime = runtime(self.file, life, node::listen(&self.node)?)?;
        runtime.act_during(tenure.clone());
        let options = curp::options(self.file);
        let core = curp::core(options, id, life, random_u64()?, disk)?;
        let writer = self.state.writer(term, tenure.clone());
        runtime
            .add_with_journal(
                self.node.place(),
                life,
                core,
                (writer, CurpRecord::supersedes),
            )
            .map_err(node::other)?;
        curp::up(self.file, &self.node, life);
        let ran = runtime.run(Some(self.stop));
        let is_over = tenure.is_over();
        tenure.end();
        match ran {
            Ok(()) => Ok(Ended::Stopped),
            // A decision that etcd did not keep ends the loop too.
            Err(error) if is_over => Ok(Ended::Deposed(error.to_string())),
            Err(error) => Err(node::other(error)),
        }
    }
}

/// Renews the lease of a term while it lasts, until the other end of `ends` is gone.
fn renew(mut renewer: Renewer, term: u64, lease: Lease, tenure: &Tenure, ends: &Receiver<()>) {
    while ends.recv_timeout(duration(lease.every)) == Err(RecvTimeoutError::Timeout) {
        // etcd cannot have begun the lease earlier.
        let asked = Instant::now();
        match renewer.renew(term) {
            Ok(true) => tenure.extend(asked + duration(lease.serves())),
            Ok(false) => return tenure.end(),
            Err(error) => {
                tracing::warn!(%error, "the lease could not be renewed; it is tried again");
            }
        }
    }
}

fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}
