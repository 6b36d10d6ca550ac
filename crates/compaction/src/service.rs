//! A database's side: RocksDB's compactions go to the pool, and come back checked or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Once};
use std::time::Instant;

use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{AttemptId, DatabaseId, Facts, JobId, LocalReason, SessionId, Spec, Zone};
use manxdb_jobs::message::Verdict;
use manxdb_jobs::{Answer as Word, Ask, Client};
use parking_lot::Mutex;

use crate::actor::{Actor, Handle};
use crate::blobs;
use crate::counts::Counts;
use crate::depot::{Depot, Put};
use crate::edge::{Flavour, House, JobInfo, Opened, Pool, Resident, Service, Told, Waited};
use crate::link::{self, CONTROL, Link, Route};
use crate::metrics::of_database;
use crate::objects::{Moved, ObjectError};
use crate::order::{Kind, Order, relative};
use crate::outputs::{Answer, Expected, Reading, Refusal, verify};
use crate::pressure::{Sight, Watch};
use crate::seal::{seal, unseal};
use crate::settings::{self, Settings};
use crate::staging::Staging;
use crate::text::{Fields, Unreadable};
use crate::view::Copies;
use crate::volume::Volume;
use crate::wire::DESCRIPTION_MAX;

/// The pool that a database's compactions are done by.
pub struct RemotePool {
    /// Where the control plane may be.
    pub route: Route,
    /// The volume that the database and workers share, by the operators' name,
    pub volume: String,
    /// and what it is here: the directory has the database in it, the object store gets copies.
    pub storage: Volume,
    /// The database's identity, the same each time it is open.
    pub database_id: DatabaseId,
    /// Drawn at random each time it is opened.
    pub session: SessionId,
    /// Where the volume is.
    pub zone: Zone,
    /// Jobs with fewer bytes of inputs stay at home.
    pub bytes_min: u64,
    /// How much of the outputs is read before they are believed.
    pub reading: Reading,
    /// Patience.
    pub client: ClientOptions,
}

impl Pool for RemotePool {
    fn serve(
        &self,
        database: &Path,
        flavour: Arc<dyn Flavour>,
        house: Arc<dyn House>,
    ) -> Result<Arc<dyn Resident>, String> {
        let remote: Arc<dyn Resident> = Remote::start(self, database, flavour, house)?;
        Ok(remote)
    }
}

/// A job between `schedule` and `installed`.
struct Job {
    /// Its name everywhere, and its trace in all logs.
    id: JobId,
    answer: Option<Receiver<Word>>,
    expected: Expected,
    bytes: u64,
    since: Instant,
    accepted: Option<Accepted>,
    /// In an object store: what was put there.
    put: Option<Put>,
}

/// An answer whose outputs RocksDB may install.
struct Accepted {
    attempt: AttemptId,
    output_bytes: u64,
    notes: Vec<u8>,
}

/// RocksDB's service.
pub struct Remote {
    core: Handle<Client>,
    staging: Staging,
    place: Place,
    house: Arc<dyn House>,
    counts: Counts,
    jobs: Mutex<Jobs>,
    emptied: Once,
    /// Why a job of a column family last stayed at home.
    said: Mutex<BTreeMap<String, String>>,
    sight: Sight,
    watch: Mutex<Option<Watch>>,
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
    shared: Shared,
    zone: Zone,
    kind: Kind,
    bytes_min: u64,
    reading: Reading,
}

/// How others come to the database's files.
enum Shared {
    /// They are on the volume, under this name.
    Directory(String),
    /// As copies.
    Depot(Depot),
}

impl Shared {
    fn of(pool: &RemotePool, directory: &Path) -> Result<Self, String> {
        match &pool.storage {
            Volume::Directory(root) => Ok(Self::Directory(relative(root, directory)?)),
            Volume::Objects(objects) => {
                let (database, session) = (pool.database_id, pool.session);
                let depot = Depot::start(objects, directory, database, session);
                Ok(Self::Depot(depot.map_err(|error| error.to_string())?))
            }
        }
    }

    fn depot(&self) -> Option<&Depot> {
        match self {
            Self::Directory(_) => None,
            Self::Depot(depot) => Some(depot),
        }
    }
}

/// Why a job stays at home.
struct AtHome {
    reason: LocalReason,
    why: String,
}

fn unfit(why: impl ToString) -> AtHome {
    AtHome {
        reason: LocalReason::Unfit,
        why: why.to_string(),
    }
}

fn storage(error: ObjectError) -> AtHome {
    AtHome {
        reason: LocalReason::Storage,
        why: error.to_string(),
    }
}

/// What RocksDB says of a job.
struct Asked {
    names: Vec<String>,
    output_level: u64,
    options_file: u64,
    /// Of a part of a split job: its first user key,
    begin: Option<Vec<u8>>,
    /// and the one behind its last.
    end: Option<Vec<u8>>,
}

impl Asked {
    fn read(input: &[u8]) -> Result<Self, Unreadable> {
        let fields = Fields::of(input)?;
        let border = |is_there: &str, key: &str| match fields.raw(is_there)? {
            "true" => fields.bytes(key).map(Some),
            _ => Ok(None),
        };
        Ok(Self {
            names: fields.names("input_files")?,
            output_level: fields.number("output_level")?,
            options_file: fields.number("options_file_number")?,
            begin: border("has_begin", "begin")?,
            end: border("has_end", "end")?,
        })
    }

    /// The part of a range of keys that outputs may be in. A deleted range may end at the border.
    fn narrowed(&self, (first, last): (Vec<u8>, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
        let begin = self.begin.clone().unwrap_or_default();
        let end = self.end.clone().unwrap_or_else(|| last.clone());
        (first.max(begin), last.min(end))
    }
}

/// An order as it travels.
fn packed(order: &Order, files: usize) -> Result<Vec<u8>, AtHome> {
    let bytes = seal(postcard::to_stdvec(order).map_err(unfit)?);
    if bytes.len() > DESCRIPTION_MAX {
        let length = bytes.len();
        return Err(unfit(format!(
            "its description has {length} bytes ({files} files), a message at most \
             {DESCRIPTION_MAX}"
        )));
    }
    Ok(bytes)
}

/// A job as it is handed out.
struct Described {
    spec: Spec,
    expected: Expected,
    put: Option<Put>,
}

/// Why an answer is not installed.
enum Turned {
    /// It is wrong.
    Wrong(Refusal),
    /// The outputs could not be had.
    Storage(ObjectError),
}

fn wrong(what: String) -> Turned {
    Turned::Wrong(Refusal::Wrong(what))
}

impl Remote {
    /// A service for the database that is about to be opened.
    ///
    /// # Errors
    /// The database is not on the volume, or the system has no thread left.
    pub fn start(
        pool: &RemotePool,
        database: &Path,
        flavour: Arc<dyn Flavour>,
        house: Arc<dyn House>,
    ) -> Result<Arc<Self>, String> {
        Self::begin(pool, database, Kind::of(flavour.as_ref()), house)
    }

    /// A service for a database of a kind.
    ///
    /// # Errors
    /// As [`Remote::start`].
    pub fn begin(
        pool: &RemotePool,
        database: &Path,
        kind: Kind,
        house: Arc<dyn House>,
    ) -> Result<Arc<Self>, String> {
        let shared = Shared::of(pool, database)?;
        let staging = Staging::make(database, pool.database_id, pool.session)?;
        let core = Client::new(pool.database_id, pool.session, CONTROL, pool.client);
        let (to_control, waiting) = link::queue();
        let threads = |error: std::io::Error| error.to_string();
        let actor = Actor::start("compactions", core, |_| to_control).map_err(threads)?;
        let link = Link::start(pool.route.clone(), waiting, actor.handle()).map_err(threads)?;
        Ok(Arc::new(Self {
            core: actor.handle(),
            staging,
            place: Place {
                id: pool.database_id,
                session: pool.session,
                volume: pool.volume.clone(),
                database: database.to_owned(),
                shared,
                zone: pool.zone,
                kind,
                bytes_min: pool.bytes_min,
                reading: pool.reading,
            },
            house,
            counts: Counts::default(),
            jobs: Mutex::default(),
            emptied: Once::new(),
            said: Mutex::default(),
            sight: Sight::default(),
            watch: Mutex::default(),
            _actor: actor,
            _link: link,
        }))
    }

    /// Jobs by how they ended.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Jobs handed out that are not over.
    pub fn waiting(&self) -> usize {
        self.jobs.lock().waiting.len()
    }

    /// Makes a job of RocksDB's words, and puts what it needs where workers come to it.
    fn describe(&self, info: &JobInfo, input: &[u8]) -> Result<Described, AtHome> {
        let asked = Asked::read(input).map_err(unfit)?;
        let options = settings::read(&self.place.database, asked.options_file).map_err(unfit)?;
        let settings = Settings::of(&options);
        let blobs = blobs::found(&self.place.database, &settings, &info.family);
        if let Some(why) = blobs.map_err(unfit)? {
            return Err(unfit(why));
        }
        let bytes = self.large_enough(&asked.names)?;
        let expected = self.expected(&asked);
        let told = Told {
            inputs: &asked.names,
            options: &options,
        };
        let parameters = self.house.parameters(info, &told).map_err(unfit)?;
        let expected = expected.map_err(unfit)?;
        let (database, put) = self.shown(info, &asked)?;
        let order = Order {
            volume: self.place.volume.clone(),
            database,
            copies: put.as_ref().map(|put| put.copies.clone()),
            flavour: self.place.kind.name.to_owned(),
            parameters,
            input: input.to_vec(),
        };
        let input = packed(&order, asked.names.len())?.into();
        let facts = self.facts(info, bytes);
        Ok(Described {
            spec: Spec { facts, input },
            expected,
            put,
        })
    }

    /// Bytes of the inputs.
    fn large_enough(&self, names: &[String]) -> Result<u64, AtHome> {
        let size = |name: &String| {
            let path = self.place.database.join(name);
            fs::metadata(&path).map(|found| found.len())
        };
        let sizes: Result<Vec<u64>, _> = names.iter().map(size).collect();
        let bytes: u64 = sizes.map_err(unfit)?.into_iter().sum();
        if bytes < self.place.bytes_min {
            return Err(AtHome {
                reason: LocalReason::Small,
                why: String::new(),
            });
        }
        Ok(bytes)
    }

    /// Where workers find the database, and what was put there for this job.
    fn shown(&self, info: &JobInfo, asked: &Asked) -> Result<(String, Option<Put>), AtHome> {
        let depot = match &self.place.shared {
            Shared::Directory(relative) => return Ok((relative.clone(), None)),
            Shared::Depot(depot) => depot,
        };
        let put = depot.put(&info.family, &asked.names, asked.options_file);
        let put = put.map_err(storage)?;
        self.counts.put.fetch_add(put.moved.put, Ordering::Relaxed);
        Ok((depot.base().to_owned(), Some(put)))
    }

    fn facts(&self, info: &JobInfo, bytes: u64) -> Facts {
        let level = |level: i32| u8::try_from(level).unwrap_or(u8::MAX);
        Facts {
            start_level: level(info.start_level),
            output_level: level(info.output_level),
            bytes,
            score: if info.is_manual { -1 } else { 0 },
            fingerprint: self.place.kind.fingerprint,
            zone: self.place.zone,
        }
    }

    /// What is known of the outputs before there are any.
    ///
    /// # Errors
    /// The database should know it and does not.
    fn expected(&self, asked: &Asked) -> Result<Expected, String> {
        let sight = self.sight.lock();
        let known = sight.as_ref().map(|opened| opened.inputs(&asked.names));
        drop(sight);
        let known = known.transpose()?.unwrap_or_default();
        let is_whole = asked.begin.is_none() && asked.end.is_none();
        Ok(Expected {
            output_level: asked.output_level,
            keys: known.keys.map(|keys| asked.narrowed(keys)),
            entries: known.entries.filter(|_| is_whole),
        })
    }

    /// Gets outputs and checks them; what RocksDB is to be told.
    fn accept(
        &self,
        attempt: AttemptId,
        result: &[u8],
        expected: &Expected,
        copies: Option<&Copies>,
    ) -> Result<(Vec<u8>, Accepted), Turned> {
        let damaged = || wrong("the answer is not what the worker sent".to_owned());
        let result = unseal(result).ok_or_else(damaged)?;
        let answer: Answer = postcard::from_bytes(result)
            .map_err(|error| wrong(format!("the answer cannot be read: {error}")))?;
        let directory = self.staging.directory(attempt);
        let mut moved = Moved::default();
        if let Some((depot, copies)) = self.place.shared.depot().zip(copies) {
            let fetched = depot.fetch(copies, attempt, &answer.files, &directory);
            moved = fetched.map_err(|error| match error {
                // It said that it had put it there.
                ObjectError::Missing(_) | ObjectError::Differs { .. } | ObjectError::Name(_) => {
                    wrong(error.to_string())
                }
                other => Turned::Storage(other),
            })?;
        }
        self.counts
            .fetched
            .fetch_add(moved.fetched, Ordering::Relaxed);
        let verified = verify(&answer, expected, &directory, self.place.reading);
        let description = verified.map_err(Turned::Wrong)?;
        let (fetched, worker) = (moved.fetched, answer.moved);
        let (worker_fetched, worker_put) = (worker.fetched, worker.put);
        tracing::info!(
            trace = %attempt.job, %attempt, fetched, worker_fetched, worker_put, "checked"
        );
        let output_bytes = answer.files.iter().map(|file| file.bytes).sum();
        let accepted = Accepted {
            attempt,
            output_bytes,
            notes: answer.notes,
        };
        Ok((description, accepted))
    }

    /// Outputs are not installed.
    fn turn_down(&self, name: &str, attempt: AttemptId, why: Turned) {
        let trace = attempt.job;
        let (verdict, reason) = match why {
            Turned::Wrong(refusal) => {
                tracing::error!(%trace, %attempt, %refusal, "a worker's outputs are refused");
                (Verdict::Refused, LocalReason::Refused)
            }
            Turned::Storage(error) => {
                tracing::warn!(%trace, %attempt, %error, "a worker's outputs cannot be fetched");
                (Verdict::Unused, LocalReason::Storage)
            }
        };
        self.core.tell(Ask::Settled { attempt, verdict });
        self.end(name);
        self.counts.stays_home(reason);
    }

    /// Whether it was another reason the last time that one of a column family stayed at home: a
    /// database that cannot be compacted elsewhere at all says so once.
    fn is_news(&self, family: &str, why: &str) -> bool {
        let mut said = self.said.lock();
        let before = said.insert(family.to_owned(), why.to_owned());
        before.is_none_or(|before| before != why)
    }

    /// Removes what attempts of earlier times left. Not before RocksDB has locked the database:
    /// another process may have it open.
    fn empty(&self) {
        self.emptied.call_once(|| self.sweep());
    }

    /// A job is over: nobody writes for it any more that anybody waits for.
    fn end(&self, name: &str) -> Option<Job> {
        let job = self.jobs.lock().waiting.remove(name);
        self.sweep();
        let put = job.as_ref().and_then(|job| job.put.as_ref());
        if let Some((depot, put)) = self.place.shared.depot().zip(put) {
            depot.end(put.job);
        }
        job
    }

    fn sweep(&self) {
        let waiting = || self.jobs.lock().waiting.keys().cloned().collect();
        self.staging.sweep(waiting);
    }
}

impl Resident for Remote {
    fn opened(&self, database: Box<dyn Opened>) {
        self.empty();
        *self.sight.lock() = Some(database);
        let core = self.core.clone();
        let watch = Watch::start(Arc::clone(&self.sight), move |pressure| {
            core.tell(Ask::Pressure(pressure));
        });
        match watch {
            Ok(watch) => *self.watch.lock() = Some(watch),
            Err(error) => tracing::warn!(%error, "nobody watches how near writes are to stopping"),
        }
    }

    fn closing(&self) {
        drop(self.watch.lock().take());
        let database = self.sight.lock().take();
        // Outside of the lock: it may be the last that holds the database, whose end waits for
        // threads that want the lock.
        drop(database);
    }

    fn numbers(&self) -> Vec<(String, u64)> {
        of_database(&self.counts, self.waiting())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.sweep();
    }
}

impl Service for Remote {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        self.empty();
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        if self.place.shared.depot().is_some_and(Depot::rests) {
            self.counts.stays_home(LocalReason::Storage); // why, was said when it failed
            return None;
        }
        let described = match self.describe(info, input) {
            Ok(described) => described,
            Err(AtHome { reason, why }) => {
                let (rocksdb_job, family) = (info.number(), &info.family);
                let is_news = reason != LocalReason::Small && self.is_news(family, &why);
                if is_news {
                    tracing::warn!(rocksdb_job, family, why, "a compaction stays at home");
                } else {
                    tracing::debug!(rocksdb_job, family, why, "a compaction stays at home");
                }
                self.counts.stays_home(reason);
                return None;
            }
        };
        let bytes = described.spec.facts.bytes;
        let mut jobs = self.jobs.lock();
        jobs.asked += 1;
        let id = JobId {
            database: self.place.id,
            session: self.place.session,
            number: jobs.asked,
        };
        let job = Job {
            id,
            answer: Some(self.core.ask(Ask::Compact(described.spec))),
            expected: described.expected,
            bytes,
            since: Instant::now(),
            accepted: None,
            put: described.put,
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
            job.and_then(|job| {
                let copies = job.put.as_ref().map(|put| put.copies.clone());
                Some((job.id, job.answer.take()?, job.expected.clone(), copies))
            })
        };
        let Some((id, answer, expected, copies)) = taken else {
            return Waited::Local; // asked for by nobody
        };
        let began = Instant::now();
        // A core that answers nobody any more is ending: the job is over all the same.
        let word = answer.recv().unwrap_or(Word::Local(LocalReason::Closing));
        self.counts.waited(began.elapsed());
        let (attempt, result) = match word {
            Word::Done { attempt, result } => (attempt, result),
            Word::Local(reason) => {
                tracing::info!(trace = %id, reason = reason.word(), "compacting at home");
                self.end(name);
                self.counts.stays_home(reason);
                return Waited::Local;
            }
        };
        let accepted = if attempt.job == id {
            self.accept(attempt, &result, &expected, copies.as_ref())
        } else {
            Err(wrong(format!("{attempt} is no attempt at {id}")))
        };
        match accepted {
            Ok((description, accepted)) => {
                if let Some(job) = self.jobs.lock().waiting.get_mut(name) {
                    job.accepted = Some(accepted);
                }
                Waited::Done(description)
            }
            Err(why) => {
                self.turn_down(name, attempt, why);
                Waited::Local
            }
        }
    }

    fn cancel(&self) {
        self.core.tell(Ask::Close);
        if let Some(depot) = self.place.shared.depot() {
            depot.stop();
        }
    }

    fn installed(&self, name: &str, is_installed: bool) {
        let Some(job) = self.end(name) else {
            return; // it was done at home
        };
        let Some(accepted) = job.accepted else {
            return;
        };
        let attempt = accepted.attempt;
        let (bytes, seconds) = (job.bytes, job.since.elapsed().as_secs_f64());
        let put = job.put.map_or(0, |put| put.moved.put);
        let verdict = if is_installed {
            tracing::info!(trace = %job.id, %attempt, bytes, seconds, put, "installed");
            self.counts.installed(bytes, accepted.output_bytes);
            self.house.noted(&accepted.notes);
            Verdict::Installed
        } else {
            tracing::error!(trace = %job.id, %attempt, "RocksDB did not install the outputs");
            Verdict::Unused
        };
        self.core.tell(Ask::Settled { attempt, verdict });
    }
}
