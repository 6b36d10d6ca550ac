//! A database's side: hands RocksDB's compactions to the pool, and installs verified outputs or
//! none.
//!
//! | question | answered in |
//! |---|---|
//! | where the database is, on this machine and on the volume | `location` |
//! | which jobs go to the pool, and their description | `request` |
//! | a worker's answer, and whether it is installed | `response` |
//! | the life of a job in between | here |

mod location;
mod request;
mod response;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Once};
use std::time::Instant;

use manxdb_core::last_failure::LastFailure;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{AttemptId, DatabaseId, JobId, LocalReason, SessionId, Zone};
use manxdb_jobs::message::OutputVerdict;
use manxdb_jobs::{Answer as Word, Ask, Client};
use parking_lot::Mutex;

use self::location::DatabaseLocation;
use self::request::AtHome;
use self::response::wrong;
use crate::actor::{Actor, Handle};
use crate::database::counts::{Counts, of_database};
use crate::database::outputs::Expected;
use crate::database::pressure::{Sight, Watch};
use crate::database::staging::Staging;
use crate::database::uploads::{Put, Uploads};
use crate::edge::{
    CompactionProfile, DatabaseCallbacks, DatabaseService, JobInfo, OpenDatabase, Pool, Service,
    Waited,
};
use crate::object_store::volume::Volume;
use crate::order::ProfileId;
use crate::transport::link::{self, CONTROL, Link, Route};

/// The pool that a database's compactions are done by.
pub struct RemotePool {
    /// Where the control plane may be.
    pub route: Route,
    /// The volume that the database and workers share, by the operators' name,
    pub volume: String,
    /// and the volume as this machine reaches it: the directory contains the database; the object
    /// store receives copies.
    pub storage: Volume,
    /// The database's identity, the same each time it is open.
    pub database_id: DatabaseId,
    /// Drawn at random each time it is opened.
    pub session: SessionId,
    /// Where the volume is.
    pub zone: Zone,
    /// Jobs with fewer bytes of inputs stay local.
    pub bytes_min: u64,
    /// Patience.
    pub client: ClientOptions,
}

impl Pool for RemotePool {
    fn serve(
        &self,
        database: &Path,
        profile: Arc<dyn CompactionProfile>,
        callbacks: Arc<dyn DatabaseCallbacks>,
    ) -> Result<Arc<dyn DatabaseService>, String> {
        let remote: Arc<dyn DatabaseService> = Remote::start(self, database, profile, callbacks)?;
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
    /// With an object store: the job's uploads.
    put: Option<Put>,
}

/// A verified answer: RocksDB may install its outputs.
struct Accepted {
    attempt: AttemptId,
    output_bytes: u64,
    notes: Vec<u8>,
}

/// RocksDB's service.
pub struct Remote {
    core: Handle<Client>,
    staging: Staging,
    place: DatabaseLocation,
    callbacks: Arc<dyn DatabaseCallbacks>,
    counts: Counts,
    jobs: Mutex<Jobs>,
    emptied: Once,
    /// For which reason the last job of a column family stayed local.
    stayed: Mutex<BTreeMap<String, LastFailure>>,
    sight: Sight,
    watch: Mutex<Option<Watch>>,
    // Dropped last: the other fields send through them.
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

impl Remote {
    /// A service for the database that is about to be opened.
    ///
    /// # Errors
    /// The database is not on the volume, or the system has no thread left.
    pub fn start(
        pool: &RemotePool,
        database: &Path,
        profile: Arc<dyn CompactionProfile>,
        callbacks: Arc<dyn DatabaseCallbacks>,
    ) -> Result<Arc<Self>, String> {
        Self::begin(pool, database, ProfileId::of(profile.as_ref()), callbacks)
    }

    /// A service for a database of a profile_id.
    ///
    /// # Errors
    /// As [`Remote::start`].
    pub fn begin(
        pool: &RemotePool,
        database: &Path,
        profile_id: ProfileId,
        callbacks: Arc<dyn DatabaseCallbacks>,
    ) -> Result<Arc<Self>, String> {
        let place = DatabaseLocation::of(pool, database, profile_id)?;
        let staging = Staging::make(database, pool.database_id, pool.session)?;
        let core = Client::new(pool.database_id, pool.session, CONTROL, pool.client);
        let (to_control, waiting) = link::queue();
        let threads = |error: std::io::Error| error.to_string();
        let actor = Actor::start("compactions", core, |_| to_control).map_err(threads)?;
        let link = Link::start(pool.route.clone(), waiting, actor.handle()).map_err(threads)?;
        Ok(Arc::new(Self {
            core: actor.handle(),
            staging,
            place,
            callbacks,
            counts: Counts::default(),
            jobs: Mutex::default(),
            emptied: Once::new(),
            stayed: Mutex::default(),
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

    /// Whether the reason differs from the column family's last one: a database that can never use
    /// the pool logs this once.
    fn is_news(&self, family: &str, why: &str) -> bool {
        let mut stayed = self.stayed.lock();
        let last = stayed.entry(family.to_owned()).or_default();
        last.failed(why).is_some()
    }

    /// Removes what attempts of earlier times left. Not before RocksDB has locked the database:
    /// another process may have it open.
    fn empty(&self) {
        self.emptied.call_once(|| self.sweep());
    }

    /// Forgets a job: no attempt at it will be installed any more.
    fn end(&self, name: &str) -> Option<Job> {
        let job = self.jobs.lock().waiting.remove(name);
        self.sweep();
        self.take_back(job.as_ref().and_then(|job| job.put.as_ref()));
        job
    }

    /// Removes a job's uploads, which no attempt needs any more.
    fn take_back(&self, put: Option<&Put>) {
        if let Some((uploads, put)) = self.place.shared.uploads().zip(put) {
            uploads.end(put.job);
        }
    }

    fn sweep(&self) {
        let waiting = || self.jobs.lock().waiting.keys().cloned().collect();
        self.staging.sweep(waiting);
    }
}

impl DatabaseService for Remote {
    fn opened(&self, database: Box<dyn OpenDatabase>) {
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
        // Outside the lock: this may be the last reference to the database, and closing it waits
        // for threads that need the lock.
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
        if self.place.shared.uploads().is_some_and(Uploads::rests) {
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
        // A core that does not answer is ending: the job is over.
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
        if let Some(uploads) = self.place.shared.uploads() {
            uploads.stop();
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
            self.callbacks.noted(&accepted.notes);
            OutputVerdict::Installed
        } else {
            tracing::error!(trace = %job.id, %attempt, "RocksDB did not install the outputs");
            OutputVerdict::Unused
        };
        self.core.tell(Ask::Settled { attempt, verdict });
    }
}
