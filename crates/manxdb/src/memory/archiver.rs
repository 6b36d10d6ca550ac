//! The log archiver of a memory server: a process of its own, because one that clings to memory when it is
//! shut out is killed, and a memory server must not be.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use manxdb_rack::archiver::{ArchiverStats, LogArchiver};
use manxdb_rack::disk::Directory;
use manxdb_rack::memory::SharedTransport;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::MemoryArchiverArgs;
use crate::config::DiskSettings;
use crate::fault::Fault;
use crate::process::{random_u64, start_log};

/// Between two looks at whether it lives, and before it is started again.
const LOOK: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_secs(1);
/// How long it may take to end: longer than it waits for the disk.
const LAST: Duration = Duration::from_secs(15);
/// Between two lines with its numbers.
const TELL: Duration = Duration::from_millis(500);

/// What a log archiver tells of itself, in this order in each line.
pub const NAMES: [&str; 6] = [
    "manxdb_memory_archiver_at_work",
    "manxdb_memory_archiver_written_bytes_total",
    "manxdb_memory_archiver_syncs_total",
    "manxdb_memory_archiver_checkpoints_total",
    "manxdb_memory_archiver_failures_total",
    "manxdb_memory_archiver_gaps_total",
];

/// Begins a line that says what is in the log archiver's way; nothing behind it: nothing is any more.
const TROUBLE: &str = "trouble ";

/// What a log archiver told last.
#[derive(Debug, Default)]
struct Told {
    /// Its numbers since it began; none while there is none.
    numbers: Option<[u64; NAMES.len()]>,
    /// What is in its way, empty while nothing is.
    trouble: String,
}

/// The numbers of a log archiver since it began, and what is in its way.
#[derive(Debug, Clone, Default)]
pub struct Numbers(Arc<Mutex<Told>>);

impl Numbers {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As it told them last, less than a second ago; none while there is no log archiver.
    pub fn get(&self) -> Option<[u64; NAMES.len()]> {
        self.told().numbers
    }

    /// What is in the log archiver's way, if anything is. It is known also while the log archiver is started again.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.told().trouble.clone();
        (!trouble.is_empty()).then_some(trouble)
    }

    fn hear(&self, line: &str) {
        if let Some(trouble) = line.strip_prefix(TROUBLE) {
            trouble.clone_into(&mut self.told().trouble);
        } else if let Some(numbers) = heard(line) {
            self.told().numbers = Some(numbers);
        }
    }

    /// Listens to a log archiver until it ends.
    fn listen(&self, archiver: ChildStdout) {
        for line in BufReader::new(archiver).lines().map_while(Result::ok) {
            self.hear(&line);
        }
        self.told().numbers = None;
    }
}

fn told(tally: &ArchiverStats) -> String {
    let at_work = u64::from(tally.is_at_work.load(Ordering::Relaxed));
    let counts = [
        &tally.bytes,
        &tally.syncs,
        &tally.checkpoints,
        &tally.failures,
        &tally.gaps,
    ];
    let counts = counts.map(|count| format!(" {}", count.get()));
    let trouble = tally.trouble();
    let trouble = trouble.split_whitespace().collect::<Vec<_>>().join(" "); // one line
    format!("{at_work}{}\n{TROUBLE}{trouble}\n", counts.concat())
}

fn heard(line: &str) -> Option<[u64; NAMES.len()]> {
    let numbers = line.split(' ').map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

/// A log archiver that is started again when it ends.
pub struct ArchiverProcess {
    stop: Arc<AtomicBool>,
    numbers: Numbers,
    watcher: Option<JoinHandle<()>>,
}

impl ArchiverProcess {
    /// Starts it.
    ///
    /// # Errors
    /// The system has no thread, or does not know this program.
    pub fn start(directory: &Path, disk: &DiskSettings, log: &str) -> Result<Self, Fault> {
        let io = |error| Fault::io("cannot start the log archiver", error);
        let program = std::env::current_exe().map_err(io)?;
        let mut command = Command::new(program);
        command.arg("memory-archiver");
        command.arg("--directory").arg(directory);
        command.arg("--disk").arg(&disk.directory);
        let bytes = disk.checkpoint_bytes.to_string();
        command.args(["--checkpoint-bytes", &bytes, "--log", log]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let (stop, numbers) = (Arc::<AtomicBool>::default(), Numbers::default());
        let (stopped, told) = (Arc::clone(&stop), numbers.clone());
        let watcher = thread::Builder::new().name("archiver".to_owned());
        let watcher = watcher.spawn(move || watch(&mut command, &stopped, &told));
        Ok(Self {
            stop,
            numbers,
            watcher: Some(watcher.map_err(io)?),
        })
    }

    /// What it tells of itself.
    pub fn numbers(&self) -> Numbers {
        self.numbers.clone()
    }

    /// Ends it when all that is committed is on disk, or it takes too long.
    pub fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join(); // one that panicked has nothing left to do
        }
    }
}

impl Drop for ArchiverProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(command: &mut Command, stop: &AtomicBool, numbers: &Numbers) {
    while !stop.load(Ordering::Relaxed) {
        match command.spawn() {
            Ok(mut child) => {
                let (told, numbers) = (child.stdout.take(), numbers.clone());
                let listener = thread::Builder::new().name("archiver-numbers".to_owned());
                let listen = move || {
                    if let Some(told) = told {
                        numbers.listen(told);
                    }
                };
                if let Err(error) = listener.spawn(listen) {
                    tracing::warn!(%error, "the log archiver's numbers are not shown");
                }
                let ended = attend(&mut child, stop);
                if let Some(status) = ended {
                    tracing::warn!(%status, "the log archiver has ended, and is started again");
                }
            }
            Err(error) => tracing::warn!(%error, "the log archiver cannot be started"),
        }
        let until = Instant::now() + PAUSE;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
    }
}

/// Waits for the end of a log archiver; none: it was told to end.
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
            tracing::warn!(
                "the log archiver does not end: not all that is committed may be on disk"
            );
            let _ = child.kill();
        }
        thread::sleep(LOOK);
    }
    None
}

/// Is a log archiver until standard input ends, as it does when the memory server ends, however.
///
/// # Errors
/// What keeps it from starting.
pub fn run(args: &MemoryArchiverArgs) -> Result<ExitCode, Fault> {
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
    let tally = Arc::<ArchiverStats>::default();
    let own = Arc::clone(&tally);
    thread::spawn(move || {
        // Nobody hears it any more when the memory server has ended.
        while std::io::stdout().write_all(told(&own).as_bytes()).is_ok() {
            let _ = std::io::stdout().flush();
            thread::sleep(TELL);
        }
    });
    let archiver = LogArchiver {
        way: &SharedTransport::new(&args.directory),
        directory: &directory,
        floor: args.checkpoint_bytes,
        stop: &stop,
        note: &|what| tracing::warn!("log archiver: {what}"),
        tally: &tally,
    };
    archiver.run(random_u64()?);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_archiver_tells_is_heard() {
        let tally = ArchiverStats::default();
        tally.is_at_work.store(true, Ordering::Relaxed);
        tally.bytes.add(300);
        tally.gaps.add(2);
        let numbers = Numbers::default();
        numbers.told().trouble = "file x is damaged".to_owned();
        told(&tally).lines().for_each(|line| numbers.hear(line));
        assert_eq!(numbers.get(), Some([1, 300, 0, 0, 0, 2]));
        assert_eq!(numbers.trouble(), None, "nothing is in its way any more");
        numbers.hear("trouble file y is damaged");
        assert_eq!(numbers.trouble().as_deref(), Some("file y is damaged"));
        for strange in ["", "1 2 3", "1 2 3 4 5 six", "1 2 3 4 5 6 7"] {
            assert_eq!(heard(strange), None, "{strange}");
        }
    }
}
