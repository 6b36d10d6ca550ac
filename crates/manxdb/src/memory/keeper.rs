//! The keeper of a memory server: a process of its own, because one that clings to memory when it is
//! shut out is killed, and a memory server must not be.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use manxdb_rack::disk::Directory;
use manxdb_rack::keeper::Keeper;
use manxdb_rack::memory::SharedWay;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::MemoryKeeperArgs;
use crate::compactor::drawn;
use crate::config::DiskSettings;
use crate::fault::Fault;
use crate::serve::start_log;

/// Between two looks at whether it lives, and before it is started again.
const LOOK: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_secs(1);
/// How long it may take to end: longer than it waits for the disk.
const LAST: Duration = Duration::from_secs(15);

/// A keeper that is started again when it ends.
pub struct Kept {
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Kept {
    /// Starts it.
    ///
    /// # Errors
    /// The system has no thread, or does not know this program.
    pub fn start(directory: &Path, disk: &DiskSettings, log: &str) -> Result<Self, Fault> {
        let io = |error| Fault::io("cannot start the keeper", error);
        let program = std::env::current_exe().map_err(io)?;
        let mut command = Command::new(program);
        command.arg("memory-keeper");
        command.arg("--directory").arg(directory);
        command.arg("--disk").arg(&disk.directory);
        let bytes = disk.checkpoint_bytes.to_string();
        command.args(["--checkpoint-bytes", &bytes, "--log", log]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let watcher = thread::Builder::new().name("keeper".to_owned());
        let watcher = watcher.spawn(move || watch(&mut command, &stopped));
        Ok(Self {
            stop,
            watcher: Some(watcher.map_err(io)?),
        })
    }

    /// Ends it when all that is committed is on disk, or it takes too long.
    pub fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join(); // one that panicked has nothing left to do
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(command: &mut Command, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match command.spawn() {
            Ok(mut child) => {
                let ended = attend(&mut child, stop);
                if let Some(status) = ended {
                    tracing::warn!(%status, "the keeper has ended, and is started again");
                }
            }
            Err(error) => tracing::warn!(%error, "the keeper cannot be started"),
        }
        let until = Instant::now() + PAUSE;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
    }
}

/// Waits for the end of a keeper; none: it was told to end.
fn attend(child: &mut Child, stop: &AtomicBool) -> Option<String> {
    while !stop.load(Ordering::Relaxed) {
        match child.try_wait() {
            Ok(None) => thread::sleep(LOOK),
            Ok(Some(status)) => return Some(status.to_string()),
            Err(error) => return Some(error.to_string()),
        }
    }
    drop(child.stdin.take()); // by which it knows
    let until = Instant::now() + LAST;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > until {
            tracing::warn!("the keeper does not end: not all that is committed may be on disk");
            let _ = child.kill();
        }
        thread::sleep(LOOK);
    }
    None
}

/// Is a keeper until standard input ends, as it does when the memory server ends, however.
///
/// # Errors
/// What keeps it from starting.
pub fn run(args: &MemoryKeeperArgs) -> Result<ExitCode, Fault> {
    start_log(&args.log)?;
    let stop = Arc::<AtomicBool>::default();
    // Whoever ends all of a terminal's or a service's processes is to be heard by the memory server.
    let unheard = Arc::<AtomicBool>::default();
    for signal in [SIGTERM, SIGINT] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&unheard));
        registered.map_err(|error| Fault::io("cannot watch signals", error))?;
    }
    let ended = Arc::clone(&stop);
    thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]); // nothing is ever written there
        ended.store(true, Ordering::Relaxed);
        thread::sleep(LAST);
        std::process::exit(1);
    });
    let directory = Directory::open(&args.disk).map_err(|why| Fault::Other(why.to_string()))?;
    let keeper = Keeper {
        way: &SharedWay::new(&args.directory),
        directory: &directory,
        floor: args.checkpoint_bytes,
        stop: &stop,
        note: &|what| tracing::warn!("keeper: {what}"),
    };
    keeper.run(drawn()?);
    Ok(ExitCode::SUCCESS)
}
