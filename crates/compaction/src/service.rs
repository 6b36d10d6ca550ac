//! A database's side: RocksDB's compactions go to the pool, and come back checked or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{
    AttemptId, DatabaseId, Facts, JobId, LocalReason, Pressure, SessionId, Spec, Zone,
};
use manxdb_jobs::message::Verdict;
use manxdb_jobs::{Answer as Word, Ask, Client};
use parking_lot::Mutex;

use crate::actor::{Actor, Handle};
use crate::blobs;
use crate::edge::{JobInfo, Service, Waited};
use crate::link::{self, CONTROL, Link, Route};
use crate::order::{Order, STAGING, fingerprint, relative};
use crate::outputs::{Answer, Expected, Reading, Refusal, verify};
use crate::seal::{seal, unseal};
use crate::text::Fields;
use crate::wire::DESCRIPTION_MAX;

/// What a database knows of the inputs of a job, beside their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inputs {
    /// Smallest and largest user key of all of them.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries of all of them, without deleted ranges.
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
    /// Given to the pool, or meant to be: each ends as one of the others.
    pub asked: AtomicU64,
    /// Installed.
    pub installed: AtomicU64,
    /// Bytes of inputs of these.
    pub bytes: AtomicU64,
    /// At home, by the place of the reason in [`LocalReason::ALL`].
    pub local: [AtomicU64; LocalReason::ALL.len()],
}

/// A job between `schedule` and `installed`.
struct Job {
    /// Its name everywhere, and its trace in all logs.
    id: JobId,
    answer: Option<Receiver<Word>>,
    expected: Expected,
    bytes: u64,
    since: Instant,
    attempt: Option<AttemptId>,
}

/// RocksDB's service.
pub struct Remote {
    core: Handle<Client>,
    place: Place,
    counts: Arc<Counts>,
    jobs: Mutex<Jobs>,
    known: Mutex<Option<Known>>,
    // Dropped last: they carry what the others say.
    _actor: Actor<Client>,
    _link: Link,
}

/// Jobs between `schedule` and `installed`, by their names.
#[derive(Default)]
struct Jobs {
    waiting: BTreeMap<String, Job>,
    /// Asked for so far. The core counts too: it is asked under the lock that this is behind.
    asked: u64,
}

/// Where the database is, here and for others.
struct Place {
    id: DatabaseId,
    session: SessionId,
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
        prepare(&options.database)?;
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
                id: options.database_id,
                session: options.session,
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
        let options_file = fields.number("options_file_number").map_err(unreadable)?;
        if let Some(why) = blobs::found(&self.place.database, options_file, &info.family)? {
            return Err(why);
        }
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
        let input = seal(postcard::to_stdvec(&order).map_err(|error| error.to_string())?);
        if input.len() > DESCRIPTION_MAX {
            let (files, bytes) = (names.len(), input.len());
            return Err(format!(
                "its description has {bytes} bytes ({files} files), a message at most \
                 {DESCRIPTION_MAX}"
            ));
        }
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
        let damaged = || Refusal::Wrong("the answer is not what the worker sent".to_owned());
        let result = unseal(result).ok_or_else(damaged)?;
        let answer: Answer = postcard::from_bytes(result)
            .map_err(|error| Refusal::Wrong(format!("the answer cannot be read: {error}")))?;
        let directory = self.directory(attempt);
        verify(&answer, expected, &directory, self.place.reading)
    }

    fn directory(&self, attempt: AttemptId) -> PathBuf {
        self.place.database.join(STAGING).join(attempt.to_string())
    }

    /// A job is over: nobody writes for it any more that anybody waits for.
    fn end(&self, name: &str) -> Option<Job> {
        let job = self.jobs.lock().waiting.remove(name);
        self.sweep();
        job
    }

    /// Removes what attempts at jobs that are over have left, those of workers that come late too.
    /// What a worker has finished is removed by nobody else.
    fn sweep(&self) {
        let staging = self.place.database.join(STAGING);
        let entries = fs::read_dir(&staging).into_iter().flatten();
        // Listed before it is asked which jobs are waited for: a directory that is there was made
        // for a job that was asked for earlier.
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        let waiting: Vec<String> = self.jobs.lock().waiting.keys().cloned().collect();
        for name in names {
            let text = name.to_string_lossy();
            let attempt_at = |job: &String| {
                let rest = text.strip_prefix(job.as_str());
                rest.is_some_and(|rest| rest.starts_with('-'))
            };
            if waiting.iter().any(attempt_at) {
                continue;
            }
            remove(&staging.join(&name));
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.sweep();
    }
}

/// Makes an empty directory for attempts, where RocksDB can rename files into the database.
fn prepare(database: &Path) -> Result<(), String> {
    let staging = &database.join(STAGING);
    let named = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(staging).map_err(|error| named(staging, error))?;
    let device = |path: &Path| {
        let found = fs::metadata(path).map_err(|error| named(path, error))?;
        Ok::<_, String>(found.dev())
    };
    if device(staging)? != device(database)? {
        let staging = staging.display();
        return Err(format!(
            "{staging} is on another file system than the database, so that outputs could not be \
             renamed into it: it must be a plain directory"
        ));
    }
    for entry in fs::read_dir(staging).map_err(|error| named(staging, error))? {
        remove(&entry.map_err(|error| named(staging, error))?.path());
    }
    Ok(())
}

/// Times that a directory is emptied in which somebody still makes files.
const REMOVALS_MAX: usize = 16;

/// Removes what an attempt left, though its worker may not have heard yet that nobody waits for
/// it: without the directory it makes no more files. What stays all the same is harmless, and is
/// removed the next time.
fn remove(path: &Path) {
    for _ in 0..REMOVALS_MAX {
        let removed = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) => {
                return tracing::debug!(%error, path = %path.display(), "left for later");
            }
            Ok(()) => return,
        }
    }
    tracing::debug!(path = %path.display(), "files are still made in it; left for later");
}

impl Service for Remote {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        let (spec, expected) = match self.describe(info, input) {
            Ok(described) => described,
            Err(why) => {
                let (rocksdb_job, family) = (info.number(), &info.family);
                tracing::warn!(rocksdb_job, family, why, "a compaction stays at home");
                self.stay_home(LocalReason::Unfit);
                return None;
            }
        };
        let bytes = spec.facts.bytes;
        if bytes < self.place.bytes_min {
            self.stay_home(LocalReason::Unfit);
            return None;
        }
        let mut jobs = self.jobs.lock();
        jobs.asked += 1;
        let id = JobId {
            database: self.place.id,
            session: self.place.session,
            number: jobs.asked,
        };
        let job = Job {
            id,
            answer: Some(self.core.ask(Ask::Compact(spec))),
            expected,
            bytes,
            since: Instant::now(),
            attempt: None,
        };
        let name = id.to_string();
        jobs.waiting.insert(name.clone(), job);
        drop(jobs);
        let (rocksdb_job, family) = (info.number(), &info.family);
        tracing::debug!(trace = %id, rocksdb_job, family, bytes, "a compaction is asked for");
        Some(name)
    }

    fn wait(&self, name: &str) -> Waited {
        let taken = {
            let mut jobs = self.jobs.lock();
            let job = jobs.waiting.get_mut(name);
            job.and_then(|job| Some((job.id, job.answer.take()?, job.expected.clone())))
        };
        let Some((id, answer, expected)) = taken else {
            return Waited::Local; // asked for by nobody
        };
        let (attempt, result) = match answer.recv() {
            Ok(Word::Done { attempt, result }) => (attempt, result),
            Ok(Word::Local(reason)) => {
                tracing::info!(trace = %id, reason = reason.word(), "compacting at home");
                self.end(name);
                self.stay_home(reason);
                return Waited::Local;
            }
            Err(_) => return Waited::Local, // the service is ending
        };
        let accepted = if attempt.job == id {
            self.accept(attempt, &result, &expected)
        } else {
            Err(Refusal::Wrong(format!("{attempt} is no attempt at {id}")))
        };
        match accepted {
            Ok(description) => {
                if let Some(job) = self.jobs.lock().waiting.get_mut(name) {
                    job.attempt = Some(attempt);
                }
                Waited::Done(description)
            }
            Err(refusal) => {
                let verdict = Verdict::Refused;
                tracing::error!(trace = %id, %attempt, %refusal, "a worker's outputs are refused");
                self.core.tell(Ask::Settled { attempt, verdict });
                self.end(name);
                self.stay_home(LocalReason::Refused);
                Waited::Local
            }
        }
    }

    fn cancel(&self) {
        self.core.tell(Ask::Close);
    }

    fn installed(&self, name: &str, is_installed: bool) {
        let Some(job) = self.end(name) else {
            return; // it was done at home
        };
        let Some(attempt) = job.attempt else {
            return;
        };
        let (bytes, seconds) = (job.bytes, job.since.elapsed().as_secs_f64());
        let verdict = if is_installed {
            tracing::info!(trace = %job.id, %attempt, bytes, seconds, "installed");
            self.counts.installed.fetch_add(1, Ordering::Relaxed);
            self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            Verdict::Installed
        } else {
            tracing::error!(trace = %job.id, %attempt, "RocksDB did not install the outputs");
            Verdict::Unused
        };
        self.core.tell(Ask::Settled { attempt, verdict });
    }
}
