//! Asking nodes how they are, and stopping them.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use manxdb_gateway::admin::HealthReport;
use manxdb_net::life::LifeError;
use manxdb_net::{DataDirectory, Status, StatusError};
use serde_json::json;

use manxdb::cluster::answers::{self, note};
use manxdb::cluster::curp_status;
use manxdb::cluster::dast;
use manxdb::cluster::dast_status::{self, Said};
use manxdb::cluster::file::{ClusterFile, ClusterProtocol, Node};
use manxdb::cluster::geo::measured::{MEASURED, Measured};

use crate::fault::Fault;

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a cluster may take to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// How a node is; a process of another cluster at its address is none of it.
///
/// # Errors
/// [`StatusError`].
pub fn ask(file: &ClusterFile, node: &Node) -> Result<Status, StatusError> {
    answers::ask(file, node, PATIENCE)
}

/// What all nodes say, in the order of the file, or why they do not.
pub fn ask_each(file: &ClusterFile) -> Vec<Result<Status, StatusError>> {
    answers::ask_each(file, PATIENCE)
}

/// What all nodes say, in the order of the file; nothing of those that do not answer.
pub fn ask_all(file: &ClusterFile) -> Vec<Option<Status>> {
    answers::ask_all(file, PATIENCE)
}

/// Whether every node answers and the cluster lacks nothing.
pub fn all_work(file: &ClusterFile) -> bool {
    if file.protocol == ClusterProtocol::Curp {
        return curp_status::judge(file, &ask_all(file)).is_empty();
    }
    let mut leaders = vec![false; file.regions as usize];
    for node in &file.nodes {
        let Ok(status) = ask(file, node) else {
            return false;
        };
        match note(&status, dast::STATE) {
            Some(dast::LEADS) => leaders[node.region as usize] = true,
            Some(dast::OUT) | None => return false,
            _ => {}
        }
    }
    leaders.into_iter().all(|leads| leads)
}

/// `manxdb cluster status`: a line for each node, then one for whatever the cluster lacks. Success
/// means that it lacks nothing.
///
/// # Errors
/// A cluster file that cannot be read.
pub fn run(path: &Path, as_json: bool) -> Result<ExitCode, Fault> {
    let (file, _) = ClusterFile::read(path)?;
    let answers = ask_each(&file);
    let lacking = match file.protocol {
        ClusterProtocol::Dast => dast_status::judge(&file, |node| {
            let answer = answers.get(node.number as usize)?;
            answer.as_ref().ok().map(Said::of)
        }),
        ClusterProtocol::Curp => {
            let answers = answers.iter().map(|answer| answer.as_ref().ok().cloned());
            curp_status::judge(&file, &answers.collect::<Vec<_>>())
        }
    };
    if as_json {
        let nodes = file.nodes.iter().zip(&answers);
        let nodes: Vec<_> = nodes.map(|(node, answer)| to_json(node, answer)).collect();
        let lacking: Vec<_> = lacking.iter().map(HealthReport::json).collect();
        println!(
            "{}",
            json!({ "id": file.id, "nodes": nodes, "lacking": lacking })
        );
    } else {
        println!(
            "{:>4}  {:21} {:15} {:>8} {:>5}  {:10} {:>9} {:>10} {:>8}  admin",
            "node",
            "role",
            "address",
            "process",
            "life",
            "state",
            "received",
            "reconnects",
            "refused"
        );
        let nodes = file.nodes.iter().zip(&answers);
        for (node, answer) in nodes.filter(|(node, _)| !file.is_room(node)) {
            println!("{}", to_line(node, answer));
        }
        for report in &lacking {
            println!("{report}");
        }
    }
    Ok(if lacking.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn counter(status: &Status, name: &str) -> u64 {
    let found = status.counters.iter().find(|(known, _)| known == name);
    found.map_or(0, |(_, count)| *count)
}

/// Where the admin listener of a node is: as it says itself, or as the file has it.
fn admin(node: &Node, answer: &Result<Status, StatusError>) -> Option<String> {
    let told = answer
        .as_ref()
        .ok()
        .and_then(|status| note(status, MEASURED));
    let told = told.and_then(|text| Measured::of_note(text).admin);
    told.or_else(|| node.admin.map(|address| format!("http://{address}")))
}

fn to_line(node: &Node, answer: &Result<Status, StatusError>) -> String {
    let who = format!("{:>4}  {:21} {:15}", node.number, node.role, node.address);
    match answer {
        Ok(status) => format!(
            "{who} {:>8} {:>5}  {:10} {:>9} {:>10} {:>8}  {}",
            status.process,
            status.nodes.first().map_or(0, |node| node.life),
            note(status, dast::STATE).unwrap_or("?"),
            counter(status, "received"),
            counter(status, "reconnects"),
            counter(status, "connections refused"),
            admin(node, answer).unwrap_or_else(|| "-".to_owned()),
        ),
        Err(error) => format!("{who} {:>8} {:>5}  does not answer: {error}", "-", "-"),
    }
}

fn to_json(node: &Node, answer: &Result<Status, StatusError>) -> serde_json::Value {
    let mut value = json!({
        "number": node.number,
        "role": node.role,
        "region": node.region,
        "address": node.address.to_string(),
        "redis": node.redis.map(|address| address.to_string()),
        "admin": admin(node, answer),
    });
    value["answer"] = match answer {
        Ok(status) => {
            let own = status.nodes.first();
            let notes = own.map(|own| own.notes.iter().cloned());
            let notes = notes.into_iter().flatten();
            json!({
                "process": status.process,
                "uptime_ms": status.uptime_ms,
                "life": own.map(|own| own.life),
                "notes": notes.map(|(name, text)| (name.clone(), note_json(&name, text)))
                    .collect::<serde_json::Map<_, _>>(),
                "counters": status.counters.iter().cloned()
                    .map(|(name, count)| (name, json!(count))).collect::<serde_json::Map<_, _>>(),
            })
        }
        Err(error) => json!({ "error": error.to_string() }),
    };
    value
}

/// A note as JSON: what a node has measured is some already.
fn note_json(name: &str, text: String) -> serde_json::Value {
    let measured = (name == MEASURED).then(|| serde_json::from_str(&text).ok());
    measured.flatten().unwrap_or_else(|| json!(text))
}

/// `manxdb cluster down`.
///
/// # Errors
/// A cluster file that cannot be read, or a process that does not end.
pub fn down(path: &Path) -> Result<ExitCode, Fault> {
    let (file, path) = ClusterFile::read(path)?;
    let answering = |file: &ClusterFile| ask_all(file).iter().any(Option::is_some);
    if !answering(&file) {
        println!("no node of the cluster answers: it is down");
        return Ok(ExitCode::SUCCESS);
    }
    // `cluster up` ends the nodes in order. While it has the directory, its number is its own.
    let directory = path.parent().unwrap_or(Path::new("."));
    let is_watched = matches!(DataDirectory::open(directory), Err(LifeError::InUse(_)));
    if is_watched {
        terminate(file.process);
    } else {
        stop_nodes_that_answer(&file);
    }
    let deadline = Instant::now() + STOP_PATIENCE;
    while answering(&file) {
        if Instant::now() >= deadline {
            return Err(Fault::Other(format!(
                "some nodes still run after {} s (manxdb cluster status)",
                STOP_PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("the cluster is down");
    Ok(ExitCode::SUCCESS)
}

/// Ends nodes that still answer, by the process ids they name themselves.
pub fn stop_nodes_that_answer(file: &ClusterFile) {
    for status in ask_all(file).into_iter().flatten() {
        terminate(status.process);
    }
}

/// SIGTERM; a process that is gone already is none.
pub fn terminate(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(process) = process {
        let _ = kill_process(process, Signal::TERM);
    }
}
