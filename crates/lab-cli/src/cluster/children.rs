//! The processes that `cluster up` has started.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use manxdb::cluster::node::directory_of;
use manxdb::process::program_beside;

use crate::fault::Fault;

/// How long a node may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A node's process.
#[derive(Debug)]
pub struct NodeProcess {
    /// The node.
    pub number: u32,
    child: Child,
    /// What it ended with was said.
    is_gone: bool,
}

impl NodeProcess {
    /// Starts a node that ends with this process. What it logs goes into its data directory.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(cluster_file: &Path, number: u32) -> Result<Self, Fault> {
        let parent = std::process::id().to_string();
        Ok(Self {
            number,
            child: spawn(cluster_file, number, &["--parent", &parent])?,
            is_gone: false,
        })
    }

    /// Starts a node that goes on without this process; its process id.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start_alone(cluster_file: &Path, number: u32) -> Result<u32, Fault> {
        Ok(spawn(cluster_file, number, &[])?.id())
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, the first time it is asked after it has.
    pub fn ended(&mut self) -> Option<String> {
        if self.is_gone {
            return None;
        }
        let status = self.child.try_wait().ok().flatten()?;
        self.is_gone = true;
        Some(status.to_string())
    }
}

fn spawn(cluster_file: &Path, number: u32, more: &[&str]) -> Result<Child, Fault> {
    let io = |error| Fault::io(format!("cannot start node {number}"), error);
    let directory = directory_of(cluster_file, number);
    std::fs::create_dir_all(&directory).map_err(io)?;
    let log = File::options()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .map_err(io)?;
    let mut command = Command::new(program_beside(super::SERVER).map_err(io)?);
    command
        .args(["cluster", "node", "--cluster"])
        .arg(cluster_file)
        .args(["--node", &number.to_string()])
        .args(more)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(io)?)
        .stderr(log);
    // A terminal's interrupt is for `cluster up`, which ends the nodes in order.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(io)
}

/// Ends all of them: asks first, and kills what does not listen.
pub fn stop_all(processes: &mut [NodeProcess]) {
    for process in processes.iter().filter(|process| !process.is_gone) {
        super::status::terminate(process.id());
    }
    let deadline = Instant::now() + GRACE;
    for process in processes {
        while process.ended().is_none() && !process.is_gone {
            if Instant::now() >= deadline {
                let _ = process.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
