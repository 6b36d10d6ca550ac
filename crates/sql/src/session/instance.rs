//! What all sessions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use manxdb_storage::KeyRange;
use manxdb_txn::{CommitPath, IsolationLevel, Transaction, TxnError, TxnId, Waiter};
use parking_lot::{Mutex, RwLock};

use super::accounts::{Account, AccountKey, Accounts, Privileges, password, privilege, store};
use super::auto_analyze::ChangedRows;
use super::gdpr::{Audit, NextPurge, RunningRequests};
use super::host::{AccountAuth, ClientInfo, Host, InstanceOptions};
use super::locks::TableLocks;
use super::metrics::{Metrics, MetricsSnapshot, SlowStatement, count};
use super::named_locks::NamedLocks;
use super::plan_cache::PlanCache;
use super::processes::{Activity, Processes};
use super::session::Session;
use super::variables::Values;
use crate::catalog::{CatalogStore, Sealing, Table};
use crate::error::{SqlError, SqlResult};
use crate::statement::owners::OwnerGraph;
use crate::types::Value;
use crate::views::{Candidates, Views};

/// One database server: catalog, accounts, global variables, sessions.
pub struct Instance {
    pub(super) path: Arc<dyn CommitPath>,
    pub(super) host: Arc<dyn Host>,
    pub(super) options: InstanceOptions,
    pub(super) store: CatalogStore,
    pub(super) accounts: ArcSwap<Accounts>,
    /// Held from reading the accounts to publishing them changed: two GRANTs at once must both
    /// be there afterwards.
    pub(super) account_changes: Mutex<()>,
    pub(super) globals: RwLock<Values>,
    pub(super) processes: Processes,
    pub(super) plans: PlanCache,
    pub(super) named_locks: NamedLocks,
    pub(super) table_locks: TableLocks,
    pub(super) metrics: Metrics,
    /// Monotonic microseconds at open, for `Uptime`.
    pub(super) opened_at: i64,
    pub(super) changed_rows: ChangedRows,
    /// Requests to forget that are under way.
    pub(super) requests_running: RunningRequests,
    /// What is recorded of them.
    pub(super) audit: Audit,
    pub(super) next_purge: NextPurge,
    /// The vault, which rows of owned tables are sealed by.
    pub(super) sealing: Sealing,
    /// Materialized views in use.
    pub(super) views: Arc<Views>,
    /// Templates of queries that might earn one.
    pub(super) candidates: Candidates,
    /// Links of ownership, of the catalog they were last asked of.
    owner_graph: ArcSwap<(u64, Option<Arc<OwnerGraph>>)>,
    next_connection: AtomicU64,
    next_transaction: AtomicU64,
    shutdown_requested: AtomicBool,
    /// Prepared statements of all sessions, for `max_prepared_stmt_count`.
    pub(super) prepared: Arc<AtomicU64>,
}

/// A waiter for the instance's own short transactions: nothing to wait for.
pub(super) struct NoWait;

impl Waiter for NoWait {
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        if ready() {
            Ok(())
        } else {
            Err(TxnError::LockTimeout)
        }
    }

    fn wake(&self) {}

    fn check(&self) -> Result<(), TxnError> {
        Ok(())
    }
}

/// Chunks of 1000 keys that one round of deleting garbage takes.
const GARBAGE_CHUNKS: usize = 4;

impl Instance {
    /// Opens or creates the system state in `path`.
    ///
    /// # Errors
    /// Storage; 1105 or 1712 when the stored catalog cannot be read.
    pub fn open(
        path: Arc<dyn CommitPath>,
        host: Arc<dyn Host>,
        options: InstanceOptions,
    ) -> SqlResult<Arc<Self>> {
        let globals = initial_globals(&options, host.as_ref());
        let sealing = super::sealing::sealing_of(&path, host.vault())?;
        let (audit, recorded) = Audit::open(host.audit());
        let instance = Self {
            opened_at: host.monotonic_micros(),
            store: CatalogStore::open(Arc::clone(&path), Arc::new(NoWait), sealing.clone())?,
            path,
            host,
            options,
            accounts: ArcSwap::default(),
            account_changes: Mutex::default(),
            globals: RwLock::new(globals),
            processes: Processes::default(),
            plans: PlanCache::default(),
            named_locks: NamedLocks::default(),
            table_locks: TableLocks::default(),
            metrics: Metrics::default(),
            changed_rows: ChangedRows::default(),
            requests_running: RunningRequests::default(),
            audit,
            next_purge: NextPurge::default(),
            sealing,
            views: Arc::default(),
            candidates: Candidates::default(),
            owner_graph: ArcSwap::default(),
            next_connection: AtomicU64::new(1),
            next_transaction: AtomicU64::new(1),
            shutdown_requested: AtomicBool::new(false),
            prepared: Arc::default(),
        };
        instance.reload_accounts()?;
        instance.adopt_records(recorded)?;
        if let Err(error) = instance.redo_erasures() {
            tracing::warn!(%error, "keys of people who were forgotten are not erased yet");
        }
        instance.views.attach(&instance.path);
        let instance = Arc::new(instance);
        instance.replay()?;
        Ok(instance)
    }

    /// Whether the stored state has accounts already (a first start has none).
    #[must_use]
    pub fn is_initialised(&self) -> bool {
        !self.accounts.load().all.is_empty()
    }

    /// First start: creates `root@%` with all privileges; `None` is no password.
    ///
    /// # Errors
    /// Storage.
    pub fn initialise(&self, root_password: Option<&str>) -> SqlResult<()> {
        let key = AccountKey {
            user: "root".to_string(),
            host: "%".to_string(),
        };
        let mut root = Account::new(key);
        root.verifier = password::verifier(&root.plugin, root_password.unwrap_or_default());
        root.global = Privileges::all(privilege::Level::Global).with(Privileges::GRANT_OPTION);
        self.in_transaction(|txn| store::put(txn, &root))?;
        self.reload_accounts()
    }

    /// The account that `user` from `host` would log in to.
    #[must_use]
    pub fn account(&self, user: &str, host: &str) -> Option<AccountAuth> {
        if let Err(error) = self.hear() {
            tracing::warn!(%error, "what other servers have changed is not known");
        }
        let accounts = self.accounts.load();
        let account = accounts.of_login(user, host)?;
        Some(AccountAuth {
            identity: account.key.identity(),
            plugin: account.plugin.clone(),
            verifier: account.verifier.clone(),
            locked: account.locked,
            sees_others: account.global.has_any(Privileges::PROCESS),
        })
    }

    /// `max_connections` as it is now: how many clients the frontends admit.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        let most = self.globals.read().integer("max_connections");
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// `connect_timeout`, seconds: a client must have logged in by then.
    #[must_use]
    pub fn connect_timeout_seconds(&self) -> u64 {
        let seconds = self.globals.read().integer("connect_timeout");
        u64::try_from(seconds).unwrap_or(1).max(1)
    }

    /// `protocol_compression_algorithms`: what the frontends offer to clients, for example
    /// `zlib,zstd,uncompressed`.
    #[must_use]
    pub fn protocol_compression_algorithms(&self) -> String {
        let globals = self.globals.read();
        globals.text("protocol_compression_algorithms").to_string()
    }

    /// Opens a session for an authenticated user.
    ///
    /// # Errors
    /// 1040 too many connections; 1231 for the collation; 1049 and 1044 for the database.
    pub fn connect(
        self: &Arc<Self>,
        id: u64,
        identity: &str,
        user: &str,
        client: ClientInfo,
        database: Option<&str>,
    ) -> SqlResult<Session> {
        if self.processes.count() >= self.max_connections() {
            return Err(SqlError::new(1040, "08004", "Too many connections"));
        }
        let process = self.processes.add(
            id,
            Activity {
                user: user.to_string(),
                identity: identity.to_string(),
                peer: client.peer.clone(),
                command: "Sleep",
                since_micros: self.host.monotonic_micros(),
                ..Activity::default()
            },
        );
        count(&self.metrics.connections_total);
        let collation = client.collation;
        let mut session = Session::new(Arc::clone(self), process, identity, user, client);
        session.set_client_collation(collation)?;
        if let Some(name) = database {
            session.use_database(name)?;
        }
        Ok(session)
    }

    /// Next connection id, unique in this process.
    #[must_use]
    pub fn next_connection_id(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Orderly end: persists what is only in memory.
    ///
    /// # Errors
    /// Storage.
    pub fn shutdown(&self) -> SqlResult<()> {
        self.store.sequences().flush()
    }

    /// Deletes some of what dropped tables and indexes left behind; whether more is left. The
    /// process calls it after opening and now and then while it serves: a start does not wait
    /// for it, nor fail with it on a disk that cannot be written.
    ///
    /// # Errors
    /// Storage.
    pub fn collect_garbage(&self) -> SqlResult<bool> {
        self.store.collect_garbage(GARBAGE_CHUNKS)
    }

    /// Whether a client with the privilege asked for SHUTDOWN.
    #[must_use]
    pub fn shutdown_requested(&self) -> bool {
        self.shutdown_requested.load(Ordering::Relaxed)
    }

    /// Statements slower than `long_query_time`, oldest first; a bounded ring.
    #[must_use]
    pub fn slow_statements(&self) -> Vec<SlowStatement> {
        self.metrics.slow_statements()
    }

    /// Counters since start.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.metrics.snapshot(self.processes.count())
    }

    /// The next `AUTO_INCREMENT` value a table would give; `None` for tables without.
    pub(super) fn next_auto_increment(&self, table: &Table) -> Option<u64> {
        super::ddl::next_auto_increment(self, table)
    }

    /// Rows of a stored table, counted up to `limit`.
    ///
    /// # Errors
    /// Storage.
    pub(super) fn count_rows(&self, table: &Table, limit: usize) -> SqlResult<usize> {
        let range = KeyRange::prefix(&crate::encoding::index_prefix(table, 0));
        Ok(self.store.begin().count_up_to(&range, limit)?)
    }

    /// Ends the parks of all sessions: something many may wait for has changed.
    pub(super) fn wake_all(&self) {
        for process in self.processes.list() {
            self.host.wake(process.id);
        }
    }

    pub(super) fn request_shutdown(&self) {
        self.shutdown_requested.store(true, Ordering::Relaxed);
    }

    pub(super) fn next_transaction_id(&self) -> TxnId {
        TxnId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs `work` in a transaction of the instance's own, repeated while it loses conflicts.
    pub(super) fn in_transaction<T>(
        &self,
        work: impl Fn(&Transaction) -> SqlResult<T>,
    ) -> SqlResult<T> {
        for _ in 0..20 {
            let txn = Transaction::begin(
                Arc::clone(&self.path),
                self.next_transaction_id(),
                IsolationLevel::Serializable,
                Arc::new(NoWait),
            );
            let done = work(&txn)?;
            match txn.commit(self.options.durability) {
                Ok(_) => return Ok(done),
                Err(TxnError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SqlError::new(
            1213,
            "40001",
            "Deadlock found when trying to get lock; try restarting transaction",
        ))
    }

    /// Plants defects in the upkeep of materialized views.
    #[cfg(feature = "mutants")]
    pub fn plant_in_views(&self, mutants: manxdb_views::mutants::Mutants) {
        self.views.plant(mutants);
    }

    /// Links of ownership in the catalog as it is; `None` when no table says whose its rows are.
    pub(super) fn owner_graph(&self) -> Option<Arc<OwnerGraph>> {
        let catalog = self.store.current();
        let known = self.owner_graph.load();
        if known.0 == catalog.version {
            return known.1.clone();
        }
        let graph = OwnerGraph::of(&catalog).map(Arc::new);
        let cached = Arc::new((catalog.version, graph.clone()));
        self.owner_graph.store(cached);
        graph
    }

    /// Hears what other servers on the same rows have changed.
    pub(super) fn hear(&self) -> SqlResult<()> {
        if self.store.refresh()? {
            let _guard = self.account_changes.lock();
            self.reload_accounts()?;
        }
        Ok(())
    }

    /// Reads the accounts anew.
    pub(super) fn reload_accounts(&self) -> SqlResult<()> {
        let version = self.accounts.load().version + 1;
        let (accounts, changes) = self.in_transaction(|txn| {
            let changes = self.store.account_changes(txn)?;
            Ok((store::load(txn, version)?, changes))
        })?;
        self.accounts.store(Arc::new(accounts));
        self.store.heard_of_accounts(changes);
        Ok(())
    }
}

fn initial_globals(options: &InstanceOptions, host: &dyn Host) -> Values {
    let mut globals = Values::default();
    let number = |value: usize| Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
    let text = |value: &str| Value::Text(value.to_string());
    globals.set_named(
        "transaction_isolation",
        text(super::variables::isolation_name(options.isolation)),
    );
    globals.set_named("max_connections", number(options.max_connections));
    globals.set_named("max_allowed_packet", number(options.max_allowed_packet));
    globals.set_named(
        "secure_file_priv",
        options
            .secure_file_priv
            .as_deref()
            .map_or(Value::Null, text),
    );
    globals.set_named("port", Value::Int(i64::from(options.port)));
    globals.set_named("hostname", text(&options.hostname));
    globals.set_named("datadir", text(&options.data_directory));
    globals.set_named("system_time_zone", text(&host.system_time_zone()));
    globals.set_named("version", text(VERSION));
    #[allow(clippy::cast_precision_loss)] // microseconds of a time-out
    let seconds = options.long_query_micros as f64 / 1e6;
    globals.set_named("long_query_time", Value::Double(seconds));
    globals
}

/// What the server calls itself: MySQL's version decides the dialect clients speak.
pub const VERSION: &str = concat!("8.0.36-ManxDB-", env!("CARGO_PKG_VERSION"));
