//! What a cluster that replicates is like now, and what it lacks, out of what its nodes say.

use std::net::SocketAddr;

use manxdb_gateway::admin::HealthReport;
use manxdb_net::Status;

use super::answers::note;
use super::curp::{SERVES, WAITS};
use super::file::ClusterFile;
use super::node::STATE;

/// What the coordinator says of a view, by name. `answers` are what nodes say, in the order of the file,
/// here and below.
#[must_use]
pub fn told<'a>(answers: &'a [Option<Status>], name: &str) -> Option<&'a str> {
    note(answers.first()?.as_ref()?, name)
}

/// The nodes that the coordinator names, by what they do.
#[must_use]
pub fn told_nodes(answers: &[Option<Status>], name: &str) -> Vec<u32> {
    let numbers = told(answers, name).unwrap_or_default().split(' ');
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// The node that is master, if one is.
#[must_use]
pub fn master(answers: &[Option<Status>]) -> Option<u32> {
    let number: u32 = told(answers, "master")?.parse().ok()?;
    let status = answers.get(number as usize)?.as_ref()?;
    (note(status, STATE) == Some(SERVES)).then_some(number)
}

/// What the cluster lacks, the worst first.
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
    let gone = gone.filter(|(node, answer)| answer.is_none() && !file.is_room(node));
    for (node, _) in gone {
        let what = format!("node {}, {}, does not answer", node.number, node.role);
        found.push(HealthReport::degraded(what, start(node.number as usize)));
    }
    found
}

/// A cluster as its nodes describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// Epoch, and number of the list of witnesses in it, of the view that the coordinator has chosen.
    pub view: Option<(u64, u64)>,
    /// Commands that the master has executed and that not all backups have.
    pub not_synced: Option<u64>,
    /// Commands whose records some witness may still have.
    pub not_collected: Option<u64>,
    /// Updates that the master answered before they were synced, and those that it synced first.
    pub updates: Option<(u64, u64)>,
    /// The nodes, without places that no process has.
    pub nodes: Vec<NodeOverview>,
}

/// A node as it describes itself, and as coordinator and master see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOverview {
    /// Its number.
    pub number: u32,
    /// What it is in the cluster file.
    pub role: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it does now: master, backup, witness, spare, or what it says; nothing when it does not answer.
    pub state: Option<String>,
    /// So many commands of the log a server that is not the master has applied; all backups have them.
    pub applied: Option<u64>,
    /// So many commands of the master's log a backup does not have, or a spare that follows the log, as the
    /// master knows.
    pub backlog: Option<u64>,
    /// So many log records, and commands to be written down, a server's disk does not have.
    pub not_on_disk: Option<u64>,
}

impl Overview {
    /// What the answers say.
    #[must_use]
    pub fn of(file: &ClusterFile, answers: &[Option<Status>]) -> Self {
        let master = master(answers);
        let at_master = |name: &str| {
            let status = answers.get(master? as usize)?.as_ref()?;
            note(status, name)
        };
        let count = |name: &str| at_master(name)?.parse().ok();
        let backlog =
            ["backlog", "followers"].map(|name| backlog(at_master(name).unwrap_or_default()));
        let backlog = backlog.concat();
        let nodes = file.nodes.iter().zip(answers);
        let nodes = nodes.filter(|(node, answer)| answer.is_some() || !file.is_room(node));
        let nodes = nodes.map(|(node, answer)| {
            let number = |name: &str| -> Option<u64> { note(answer.as_ref()?, name)?.parse().ok() };
            let of_node = backlog.iter().find(|(backup, _)| *backup == node.number);
            NodeOverview {
                number: node.number,
                role: node.role.clone(),
                address: node.address,
                state: answer.as_ref().map(|status| {
                    let says = note(status, STATE).unwrap_or_default();
                    does(answers, node.number).unwrap_or(says).to_owned()
                }),
                // A master's own is of the time before it became that.
                applied: number("applied").filter(|_| master != Some(node.number)),
                backlog: of_node.map(|(_, commands)| *commands),
                not_on_disk: number("not on disk"),
            }
        });
        Self {
            view: told(answers, "view").and_then(|view| {
                let (epoch, list) = view.split_once('.')?;
                Some((epoch.parse().ok()?, list.parse().ok()?))
            }),
            not_synced: count("not synced"),
            not_collected: count("records not collected"),
            updates: count("fast").zip(count("synced first")),
            nodes: nodes.collect(),
        }
    }
}

/// What a node does in the view that the coordinator has chosen.
fn does(answers: &[Option<Status>], number: u32) -> Option<&'static str> {
    if master(answers) == Some(number) {
        return Some("master");
    }
    let names = [
        ("backups", "backup"),
        ("witnesses", "witness"),
        ("spares", "spare"),
    ];
    let mut names = names.into_iter();
    let named = names.find(|(name, _)| told_nodes(answers, name).contains(&number))?;
    Some(named.1)
}

/// Backups or spares with the number of commands that each does not have, as the master's note says;
/// without those that get a copy.
fn backlog(note: &str) -> Vec<(u32, u64)> {
    let of_backup = |word: &str| {
        let (backup, commands) = word.split_once(':')?;
        Some((backup.parse().ok()?, commands.parse().ok()?))
    };
    note.split(' ').filter_map(of_backup).collect()
}
