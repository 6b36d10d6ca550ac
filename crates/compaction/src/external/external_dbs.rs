//! One service for all databases that a program opens with it.
//!
//! A program makes the service before it opens a database. With each job RocksDB names the database
//! by its path, its identity, and its session, which begins when the database is opened. So the
//! service of one database starts with its first job, and starts again after the database was
//! reopened.
//!
//! When a database closes, RocksDB tells the service to cancel, and does not say which database it
//! is. Then all databases of the program stop waiting; those that stay open compact their jobs
//! locally, and begin a new session in the pool with the next job.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use manxdb_core::Digest;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, LocalReason, SessionId, Zone};
use parking_lot::Mutex;

use crate::database::identity::machine;
use crate::database::service::{Remote, RemotePool};
use crate::edge::{DatabaseService as _, JobInfo, Service, Shaped, TableFunctions, Waited};
use crate::external::external_db::{ExternalDb, OpenExternalDb};
use crate::object_store::volume::Volume;
use crate::order::ProfileId;
use crate::transport::link::Route;

/// The pool for a program's databases.
pub struct ExternalDbOptions {
    /// Where the control plane may be.
    pub route: Route,
    /// The volume that the databases and workers share, by the operators' name,
    pub volume: String,
    /// and the volume as this machine reaches it.
    pub storage: Volume,
    /// Where the volume is.
    pub zone: Zone,
    /// Jobs with fewer bytes of inputs stay local.
    pub bytes_min: u64,
    /// The program sets neither `db_paths` nor `cf_paths`.
    pub has_one_path: bool,
    /// Patience.
    pub client: ClientOptions,
    /// Draws a number that is unique in the pool.
    pub draw: fn() -> Result<u64, String>,
    /// Functions of the program's RocksDB.
    pub tables: TableFunctions,
}

/// The service of a program's databases.
pub struct ExternalDbs {
    options: ExternalDbOptions,
    databases: Mutex<Databases>,
}

#[derive(Default)]
struct Databases {
    /// Databases by their paths, as RocksDB names them.
    open: BTreeMap<String, DatabaseSession>,
    /// The service of each unfinished job.
    jobs: BTreeMap<String, Arc<Remote>>,
    /// Counters of finished sessions, and of compactions that had no session.
    past: BTreeMap<String, u64>,
}

impl Databases {
    /// A compaction that the program does itself, since its database has no service.
    fn stays_home(&mut self, reason: LocalReason) {
        let word = reason.word();
        let name = format!("manxdb_compaction_local_total{{reason=\"{word}\"}}");
        *self.past.entry(name).or_default() += 1;
    }

    /// Another session of a database.
    fn replace(&mut self, name: &str, database: DatabaseSession) {
        let old = self.open.insert(name.to_owned(), database);
        if let Some(State::Served(remote) | State::Ending(remote)) = old.map(|old| old.state) {
            add(&mut self.past, remote.numbers());
        }
    }
}

fn add(sums: &mut BTreeMap<String, u64>, numbers: Vec<(String, u64)>) {
    for (name, value) in numbers {
        *sums.entry(name).or_default() += value;
    }
}

/// A database that was open once.
struct DatabaseSession {
    /// RocksDB's name for this time.
    session: String,
    state: State,
}

enum State {
    Served(Arc<Remote>),
    /// It waits no more; its last jobs are being installed.
    Ending(Arc<Remote>),
    /// It cannot be handed out; why, was said.
    Refused,
}

impl ExternalDbs {
    /// A service for databases that are opened later.
    #[must_use]
    pub fn new(options: ExternalDbOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            databases: Mutex::default(),
        })
    }

    /// Numbers for metrics, by name and labels, of all databases together.
    pub fn numbers(&self) -> Vec<(String, u64)> {
        let databases = self.databases.lock();
        let mut sums = databases.past.clone();
        for database in databases.open.values() {
            if let State::Served(remote) | State::Ending(remote) = &database.state {
                add(&mut sums, remote.numbers());
            }
        }
        sums.into_iter().collect()
    }

    /// The service of a job's database.
    fn host(&self, databases: &mut Databases, info: &JobInfo) -> Option<Arc<Remote>> {
        let name = &info.database;
        if let Some(database) = databases.open.get(name) {
            let is_same = database.session == info.session;
            let reason = match &database.state {
                State::Served(remote) if is_same => return Some(Arc::clone(remote)),
                State::Refused if is_same => Some(LocalReason::Unfit),
                // Its last outputs are still renamed from where a new session begins to write.
                State::Served(remote) | State::Ending(remote) if remote.waiting() > 0 => {
                    Some(LocalReason::Closing)
                }
                _ => None,
            };
            if let Some(reason) = reason {
                databases.stays_home(reason);
                return None;
            }
        }
        self.admit(databases, info)
    }

    /// A database that has its first job since it was opened.
    fn admit(&self, databases: &mut Databases, info: &JobInfo) -> Option<Arc<Remote>> {
        let (name, session) = (&info.database, info.session.clone());
        let begun = self.begin(info);
        let state = match &begun {
            Ok(remote) => State::Served(Arc::clone(remote)),
            Err(why) => {
                tracing::warn!(database = name, why, "its compactions stay at home");
                databases.stays_home(LocalReason::Unfit);
                State::Refused
            }
        };
        databases.replace(name, DatabaseSession { session, state });
        begun.ok()
    }

    /// A database's identity in the pool. RocksDB's own comes along when a database is copied, so
    /// the place belongs to it: the path, and in front of an object store the machine.
    fn identity(&self, database_id: &str, directory: &Path) -> DatabaseId {
        let mut digest = Digest::default();
        let path = directory.to_string_lossy();
        for part in [database_id, &self.options.volume, &path] {
            digest.number(part.len() as u64).bytes(part.as_bytes());
        }
        if let Volume::Objects(_) = self.options.storage {
            digest.number(machine());
        }
        DatabaseId(digest.value())
    }

    /// Begins a session of a database that RocksDB has opened, and locked.
    fn begin(&self, info: &JobInfo) -> Result<Arc<Remote>, String> {
        let directory = Path::new(&info.database);
        let named = |error: std::io::Error| format!("{}: {error}", directory.display());
        let directory = directory.canonicalize().map_err(named)?;
        let options = &self.options;
        let pool = RemotePool {
            route: options.route.clone(),
            volume: options.volume.clone(),
            storage: options.storage.clone(),
            database_id: self.identity(&info.database_id, &directory),
            session: SessionId((options.draw)()?),
            zone: options.zone,
            bytes_min: options.bytes_min,
            client: options.client,
        };
        let external_db = ExternalDb::new(&directory, options.has_one_path, options.tables);
        let callbacks = Arc::clone(&external_db);
        let remote = Remote::begin(&pool, &directory, ProfileId::of(&Shaped), callbacks)?;
        remote.opened(Box::new(OpenExternalDb(external_db)));
        let database = pool.database_id.0;
        tracing::info!(
            directory = %directory.display(),
            database = format!("{database:x}"),
            "its compactions are handed to a pool"
        );
        Ok(remote)
    }
}

impl Service for ExternalDbs {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        let remote = self.host(&mut self.databases.lock(), info)?;
        let job = remote.schedule(info, input)?;
        self.databases.lock().jobs.insert(job.clone(), remote);
        Some(job)
    }

    fn wait(&self, job: &str) -> Waited {
        let remote = self.databases.lock().jobs.get(job).cloned();
        let Some(remote) = remote else {
            return Waited::Local; // asked for by nobody
        };
        let waited = remote.wait(job);
        if waited == Waited::Local {
            self.databases.lock().jobs.remove(job);
        }
        waited
    }

    fn cancel(&self) {
        for database in self.databases.lock().open.values_mut() {
            if let State::Served(remote) = &database.state {
                remote.cancel();
                remote.closing();
                database.state = State::Ending(Arc::clone(remote));
            }
        }
    }

    fn installed(&self, job: &str, is_installed: bool) {
        let remote = self.databases.lock().jobs.remove(job);
        if let Some(remote) = remote {
            remote.installed(job, is_installed);
        }
    }
}
