//! Failures made on purpose: a process that ends at once, or stands still.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use manxdb::cluster::file::{ClusterFile, ClusterProtocol, Node};
use rustix::process::{Pid, Signal, kill_process};

use super::{curp, status};
use crate::cli::ClusterTarget;
use crate::fault::Fault;

/// `manxdb cluster kill`.
///
/// # Errors
/// There is no such process.
pub fn kill(target: &ClusterTarget) -> Result<ExitCode, Fault> {
    let (number, process) = find(target)?;
    send(process, Signal::KILL)?;
    println!("node {number} (process {process}) was killed");
    Ok(ExitCode::SUCCESS)
}

/// `manxdb cluster pause`.
///
/// # Errors
/// There is no such process.
pub fn pause(target: &ClusterTarget, for_ms: Option<u64>) -> Result<ExitCode, Fault> {
    let (number, process) = find(target)?;
    send(process, Signal::STOP)?;
    println!("node {number} (process {process}) stands still");
    if let Some(millis) = for_ms {
        std::thread::sleep(Duration::from_millis(millis));
        send(process, Signal::CONT)?;
        println!("node {number} goes on after {millis} ms");
    }
    Ok(ExitCode::SUCCESS)
}

/// `manxdb cluster resume`.
///
/// # Errors
/// There is no such process.
pub fn resume(path: &Path, number: u32) -> Result<ExitCode, Fault> {
    let (file, _) = ClusterFile::read(path)?;
    let node = node(&file, number)?;
    send(node.process, Signal::CONT)?;
    println!("node {number} (process {}) goes on", node.process);
    Ok(ExitCode::SUCCESS)
}

fn node(file: &ClusterFile, number: u32) -> Result<&Node, Fault> {
    let last = file.nodes.len().saturating_sub(1);
    file.node(number)
        .ok_or_else(|| Fault::Other(format!("the cluster has nodes 0 to {last}, not {number}")))
}

/// The number and the process of whoever is meant. A process that answers says itself which it is; of
/// one that does not, the cluster file knows which `cluster up` started.
fn find(target: &ClusterTarget) -> Result<(u32, u32), Fault> {
    let (file, _) = ClusterFile::read(&target.cluster)?;
    let number = match target.node.parse() {
        Ok(number) => number,
        Err(_) if file.protocol == ClusterProtocol::Curp => {
            let answers = status::ask_all(&file);
            let doing = curp::doing(&file, &answers, &target.node);
            *doing.first().ok_or_else(|| {
                Fault::Other(format!("no process is {} at the moment", target.node))
            })?
        }
        Err(_) => {
            return Err(Fault::Other(format!(
                "'{}' is not the number of a node, as manxdb cluster status shows it",
                target.node
            )));
        }
    };
    let node = node(&file, number)?;
    let process = status::ask(&file, node).map_or(node.process, |status| status.process);
    Ok((number, process))
}

fn send(process: u32, signal: Signal) -> Result<(), Fault> {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    let Some(id) = id else {
        return Err(Fault::Other("the process is not known".to_owned()));
    };
    kill_process(id, signal).map_err(|error| Fault::Other(format!("process {process}: {error}")))
}
