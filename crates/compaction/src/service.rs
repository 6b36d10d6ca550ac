//! A database's side: RocksDB's compactions go to the pool, and come back checked or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{
    AttemptId, DatabaseId, Facts, LocalReason, Pressure, SessionId, Spec, Zone,
};
use manxdb_jobs::message::Verdict;
use manxdb_jobs::{Answer as Word, Ask, Client};
use parking_lot::Mutex;

use crate::actor::{Actor, Handle};
use crate::edge::{JobInfo, Service, Waited};
use crate::link::{self, CONTROL, Link, Route};
use crate::order::{Order, STAGING, fingerprint, relative};
use crate::outputs::{Answer, Expected, Reading, Refusal, verify};
use crate::text::Fields;

/// What a database knows of the inputs of a job, beside their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inputs {
    /// Smallest and largest user key of all of them.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries of all of them.
    pub entries: Option<u64>,
}

/// Says what is known of files by their names.
pub type Known = Box<dyn Fn(&[String]) -> Inputs + Send + Sync>;

/// How a database's compactions are done elsewhere.
pub struct ServiceOptions {
    /// Where the control plane may be.
    pub route: Route,
    /// The volume that the database is on, by the operators' name,
    pub volume: String,
    /// and where it is here.
    pub volume_root: PathBuf,
    /// The directory that RocksDB opens.
    pub database: PathBuf,
    /// The database's identity, the same each time it is open.
    pub database_id: DatabaseId,
    /// Drawn at random each time it is opened.
    pub session: SessionId,
    /// Where the volume is.
    pub zone: Zone,
    /// The name of its flavour, and what that needs to know now.
    pub flavour: &'static str,
    /// The parameters of the flavour at the time of a job.
    pub parameters: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    /// Jobs with fewer bytes of inputs stay at home.
    pub bytes_min: u64,
    /// How much of the outputs is read before they are believed.
    pub reading: Reading,
    /// Patience.
    pub client: ClientOptions,
}

/// Jobs by how they ended.
#[derive(Debug, Default)]
pub struct Counts {
    /// Installed.
    pub installed: AtomicU64,
    /// Bytes of inputs of these.
    pub bytes: AtomicU64,
    /// At home, by the place of the reason in [`LocalReason::ALL`].
    pub local: [AtomicU64; LocalReason::ALL.len()],
}

/// A job between `schedule` and `installed`.
struct Job {
    answer: Option<Receiver<Word>>,
    expected: Expected,
    bytes: u64,
    attempt: Option<AttemptId>,
}

/// RocksDB's service.
pub struct Remote {
    core: Handle<Client>,
    place: Place,
    counts: Arc<Counts>,
    jobs: Mutex<BTreeMap<String, Job>>,
    numbers: AtomicU64,
    known: Mutex<Option<Known>>,
    // Dropped last: they carry what the others say.
    _actor: Actor<Client>,
    _link: Link,
}

/// Where the database is, here and for others.
struct Place {
    volume: String,
    database: PathBuf,
    relative: String,
    zone: Zone,
    flavour: &'static str,
    parameters: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    bytes_min: u64,
    reading: Reading,
}

impl Remote {
    /// A service for the database that is about to be opened.
    ///
    /// # Errors
    /// The database is not on the volume, or the system has no thread left.
    pub fn start(options: ServiceOptions) -> Result<Arc<Self>, String> {
        let relative = relative(&options.volume_root, &options.database)?;
        let staging = options.database.join(STAGING);
        sweep(&staging)?;
        let core = Client::new(
            options.database_id,
            options.session,
            CONTROL,
            options.client,
        );
        let (to_control, waiting) = link::queue();
        let threads = |error: std::io::Error| error.to_string();
        let actor = Actor::start("compactions", core, |_| to_control).map_err(threads)?;
        let link = Link::start(options.route, waiting, actor.handle()).map_err(threads)?;
        Ok(Arc::new(Self {
            core: actor.handle(),
            place: Place {
                volume: options.volume,
                database: options.database,
                relative,
                zone: options.zone,
                flavour: options.flavour,
                parameters: options.parameters,
                bytes_min: options.bytes_min,
                reading: options.reading,
            },
            counts: Arc::default(),
            jobs: Mutex::default(),
            numbers: AtomicU64::new(0),
            known: Mutex::default(),
            _actor: actor,
            _link: link,
        }))
    }

    /// From now on more is known of input files than their sizes.
    pub fn set_known(&self, known: Known) {
        *self.known.lock() = Some(known);
    }

    /// How near the database is to stalling.
    pub fn press(&self, pressure: Pressure) {
        self.core.tell(Ask::Pressure(pressure));
    }

    /// Jobs by how they ended.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn describe(&self, info: &JobInfo, input: &[u8]) -> Result<(Spec, Expected), String> {
        let fields = Fields::of(input).map_err(|error| error.to_string())?;
        let unreadable = |error: crate::text::Unreadable| error.to_string();
        let names = fields.names("input_files").map_err(unreadable)?;
        let output_level = fields.number("output_level").map_err(unreadable)?;
        let is_part = fields.raw("has_begin") == Ok("true") || fields.raw("has_end") == Ok("true");
        let size = |name: &String| {
            let path = self.place.database.join(name);
            fs::metadata(&path).map(|found| found.len())
        };
        let sizes: Result<Vec<u64>, _> = names.iter().map(size).collect();
        let bytes = sizes.map_err(|error| error.to_string())?.into_iter().sum();
        let known = self.known.lock().as_ref().map(|known| known(&names));
        let known = known.unwrap_or_default();
        let order = Order {
            volume: self.place.volume.clone(),
            database: self.place.relative.clone(),
            flavour: self.place.flavour.to_owned(),
            parameters: (self.place.parameters)(),
            input: input.to_vec(),
        };
        let level = |level: i32| u8::try_from(level).unwrap_or(u8::MAX);
        let facts = Facts {
            start_level: level(info.start_level),
            output_level: level(info.output_level),
            bytes,
            score: if info.is_manual { -1 } else { 0 },
            fingerprint: fingerprint(),
            zone: self.place.zone,
        };
        let expected = Expected {
            output_level,
            keys: known.keys,
            entries: known.entries.filter(|_| !is_part),
        };
        let input = postcard::to_stdvec(&order).map_err(|error| error.to_string())?;
        let input = input.into();
        Ok((Spec { facts, input }, expected))
    }

    fn stay_home(&self, reason: LocalReason) {
        let place = LocalReason::ALL.iter().position(|one| *one == reason);
        if let Some(count) = place.and_then(|place| self.counts.local.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks an answer; what RocksDB is to be told.
    fn accept(
        &self,
        attempt: AttemptId,
        result: &[u8],
        expected: &Expected,
    ) -> Result<Vec<u8>, Refusal> {
        let answer: Answer = postcard::from_bytes(result)
            .map_err(|error| Refusal::Wrong(format!("the answer cannot be read: {error}")))?;
        let directory = self.directory(attempt);
        verify(&answer, expected, &directory, self.place.reading)
    }

    fn directory(&self, attempt: AttemptId) -> PathBuf {
        self.place.database.join(STAGING).join(attempt.to_string())
    }

    fn settle(&self, attempt: AttemptId, verdict: Verdict) {
        self.core.tell(Ask::Settled { attempt, verdict });
        let directory = self.directory(attempt);
        if let Err(error) = fs::remove_dir_all(&directory) {
            tracing::debug!(%error, directory = %directory.display(), "left for the next sweep");
        }
    }
}

/// Removes what attempts of earlier times left.
fn sweep(staging: &Path) -> Result<(), String> {
    match fs::remove_dir_all(staging) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} cannot be emptied: {error}", staging.display()))
        }
        _ => Ok(()),
    }
}

impl Service for Remote {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        let (spec, expected) = match self.describe(info, input) {
            Ok(described) => described,
            Err(why) => {
                tracing::warn!(why, "a compaction stays at home");
                self.stay_home(LocalReason::Unfit);
                return None;
            }
        };
        let bytes = spec.facts.bytes;
        if bytes < self.place.bytes_min {
            self.stay_home(LocalReason::Unfit);
            return None;
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let name = number.to_string();
        let job = Job {
            answer: Some(self.core.ask(Ask::Compact(spec))),
            expected,
            bytes,
            attempt: None,
        };
        self.jobs.lock().insert(name.clone(), job);
        Some(name)
    }

    fn wait(&self, name: &str) -> Waited {
        let taken = {
            let mut jobs = self.jobs.lock();
            let job = jobs.get_mut(name);
            job.and_then(|job| Some((job.answer.take()?, job.expected.clone())))
        };
        let word = taken.and_then(|(answer, expected)| Some((answer.recv().ok()?, expected)));
        let (attempt, result, expected) = match word {
            Some((Word::Done { attempt, result }, expected)) => (attempt, result, expected),
            Some((Word::Local(reason), _)) => {
                self.jobs.lock().remove(name);
                self.stay_home(reason);
                return Waited::Local;
            }
            None => return Waited::Local, // the service is ending
        };
        match self.accept(attempt, &result, &expected) {
            Ok(description) => {
                if let Some(job) = self.jobs.lock().get_mut(name) {
                    job.attempt = Some(attempt);
                }
                Waited::Done(description)
            }
            Err(refusal) => {
                tracing::error!(%attempt, %refusal, "a worker's outputs are refused");
                self.jobs.lock().remove(name);
                self.settle(attempt, Verdict::Refused);
                self.stay_home(LocalReason::Refused);
                Waited::Local
            }
        }
    }

    fn cancel(&self) {
        self.core.tell(Ask::Close);
    }

    fn installed(&self, name: &str, is_installed: bool) {
        let Some(job) = self.jobs.lock().remove(name) else {
            return; // it was done at home
        };
        let Some(attempt) = job.attempt else {
            return;
        };
        if is_installed {
            self.counts.installed.fetch_add(1, Ordering::Relaxed);
            self.counts.bytes.fetch_add(job.bytes, Ordering::Relaxed);
            self.settle(attempt, Verdict::Installed);
        } else {
            self.settle(attempt, Verdict::Unused);
        }
    }
}
