//! `manxdb serve`: wires the parts of a server together, and takes them apart in order.

mod admin;
pub mod compaction;
mod first_start;
mod health;
mod lost;
mod memory;
mod owners;
mod pass_on;
mod pool_status;
mod redis;
mod replicated;
mod store;
mod vault;

pub use admin::{CERTIFICATE_FILE, TOKEN_FILE};
use health::{HealthThreads, StoreHealth};
use store::Store;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use manxdb_core::last_failure::LastFailure;
use manxdb_gateway::ProcessHost;
use manxdb_gateway::admin::AdminServer;
use manxdb_gateway::mysql::{MysqlOptions, MysqlServer};
use manxdb_gateway::password_key::PasswordKey;
use manxdb_gateway::redis::RedisServer;
use manxdb_gateway::tls;
use manxdb_sql::session::{Instance, InstanceOptions};
use manxdb_storage::Durability;
use manxdb_txn::{CommitPath, IsolationLevel};

use crate::cli::{DurabilityChoice, IsolationChoice, ServeArgs};
use crate::cluster::replication::Replication;
use crate::config::{self, Rows, Settings};
use crate::fault::Fault;
use crate::notify::notify;
use crate::process::{self, listen};

/// How often the main thread looks at the stop flags.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between looks for data of dropped tables, when the last look left none.
const GARBAGE_TICKS: u32 = 20;
/// File descriptors beside those of connections: files of the store, listeners, logs.
const DESCRIPTORS_BESIDE: u64 = 2048;

/// Runs a server until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, in one line.
pub fn run(args: &ServeArgs, matches: &clap::ArgMatches) -> Result<ExitCode, Fault> {
    let (mut settings, _) = config::load(&args.settings, matches)?;
    if let Some(port) = args.mysql_port {
        settings.mysql_listen.set_port(port);
    }
    if let Some(port) = args.admin_port {
        settings.admin_listen.set_port(port);
    }
    process::start_log(&settings.log)?;
    // From here a first signal is noticed, a second one ends the process.
    let stop = Arc::new(AtomicBool::new(false));
    process::watch_signals(&stop).map_err(|error| Fault::io("cannot watch signals", error))?;
    fit_connections_to_descriptors(&mut settings);

    // Ports first: a start that fails here has touched nothing.
    let mysql = listen(settings.mysql_listen, "MySQL clients", "mysql-listen")?;
    let admin = listen(settings.admin_listen, "the admin page", "admin-listen")?;
    let redis = settings.redis.as_ref();
    let redis = redis.map(|redis| listen(redis.listen, "Redis clients", "redis-listen"));
    let redis = redis.transpose()?;
    if let Rows::Curp(at) = &settings.rows {
        let listeners = (mysql, admin);
        return replicated::run(
            &settings,
            at,
            listeners,
            args.root_password.as_deref(),
            &stop,
        );
    }
    let server = Server::open(&settings)?;
    let welcome = server.initialise(&settings, args.root_password.as_deref())?;
    let running = server.start(&settings, mysql, redis, admin)?;
    running.announce(&settings, welcome.as_deref());
    running.watch(&stop);
    running.stop(Duration::from_secs(settings.shutdown_grace_seconds.into()))
}

/// As [`run`], with the arguments of a command line.
///
/// # Errors
/// As [`run`].
pub fn run_as(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<ExitCode, Fault> {
    use clap::{CommandFactory as _, FromArgMatches as _};
    let wrong = |error: clap::Error| Fault::Config(error.to_string());
    let matches = crate::cli::Cli::command()
        .try_get_matches_from(arguments)
        .map_err(wrong)?;
    let cli = crate::cli::Cli::from_arg_matches(&matches).map_err(wrong)?;
    match cli.command {
        crate::cli::Command::Serve(args) => run(&args, crate::deepest(&matches)),
        _ => Err(Fault::Other(
            "these are no arguments of a server".to_owned(),
        )),
    }
}

/// One connection needs one descriptor. Where the system allows fewer, fewer connections are
/// admitted, so that accepting never starves the store of descriptors.
fn fit_connections_to_descriptors(settings: &mut Settings) {
    let wanted = settings.max_connections as u64 + DESCRIPTORS_BESIDE;
    let granted = process::raise_descriptor_limit(wanted);
    if granted < wanted {
        let fewer = granted
            .saturating_sub(granted.min(DESCRIPTORS_BESIDE) / 2)
            .max(16);
        let fewer = usize::try_from(fewer).unwrap_or(usize::MAX);
        settings.max_connections = settings.max_connections.min(fewer);
        tracing::warn!(
            file_descriptors = granted,
            max_connections = settings.max_connections,
            "the system allows fewer file descriptors than max_connections needs"
        );
    }
}

/// The parts of a server, open but not serving.
struct Server {
    store: Arc<Store>,
    instance: Arc<Instance>,
    host: Arc<ProcessHost>,
    /// The cluster that it belongs to, if it replicates.
    replication: Option<Arc<Replication>>,
}

impl Server {
    fn open(settings: &Settings) -> Result<Self, Fault> {
        let (store, path) = Store::open(settings)?;
        Self::over(store, path, settings)
    }

    fn over(store: Store, path: Arc<dyn CommitPath>, settings: &Settings) -> Result<Self, Fault> {
        let host = ProcessHost::new(system_time_zone())
            .map_err(|_| Fault::Other("the system has no randomness to give".to_owned()))?;
        // Rows of memory servers are on no disk of this machine.
        if !matches!(settings.rows, Rows::Memory(..)) {
            host.spill_into(settings.data.join("spill"));
        }
        if let Some(vault) = vault::open(&settings.vault, &settings.rows) {
            host.keep_keys_in(vault);
            if let Some(audit) = vault::open_audit(&settings.vault) {
                host.keep_audit_in(audit);
            }
        }
        let instance = Instance::open(path, host.clone(), instance_options(settings))?;
        Ok(Self {
            store: Arc::new(store),
            instance,
            host,
            replication: None,
        })
    }

    /// On a first start makes root; returns what to tell about its password.
    fn initialise(
        &self,
        settings: &Settings,
        given: Option<&str>,
    ) -> Result<Option<String>, Fault> {
        if self.instance.is_initialised() {
            return Ok(None);
        }
        let root = first_start::choose_root_password(given, settings.insecure)?;
        self.instance.initialise(root.password())?;
        Ok(Some(root.told()))
    }

    fn start(
        self,
        settings: &Settings,
        mysql: TcpListener,
        redis: Option<TcpListener>,
        admin: TcpListener,
    ) -> Result<Running, Fault> {
        let tls = certificate(settings)?;
        let options = MysqlOptions {
            cursor_memory_bytes: settings.statement_memory_bytes,
            tls: Some(Arc::clone(&tls)),
            password_key: Some(PasswordKey::open(&settings.data)?),
            ..MysqlOptions::default()
        };
        let instance = Arc::clone(&self.instance);
        let mysql = MysqlServer::start(mysql, instance, Arc::clone(&self.host), options)
            .map_err(|error| Fault::io("cannot start the MySQL listener", error))?;
        let admin_tls = settings.admin_tls.then(|| Arc::clone(&tls));
        let redis = match (redis, &settings.redis) {
            (Some(listener), Some(redis)) => {
                Some(redis::start(listener, tls, redis, settings, &self.store)?)
            }
            _ => None,
        };
        let redis_counters = redis.as_ref().map(RedisServer::counters);
        let stopping = Arc::new(AtomicBool::new(false));
        let health = Arc::new(StoreHealth::default());
        let asking = HealthThreads::start(&health, &self.instance)
            .map_err(|error| Fault::io("cannot start a thread", error))?;
        let mut sources = admin::sources(
            &settings.data,
            Arc::clone(&self.store),
            Arc::clone(&self.instance),
            health,
            redis_counters,
            self.replication.clone(),
            Arc::clone(&stopping),
        )?;
        if let Some(pool) = &settings.compaction {
            sources.compaction = Some(pool_status::source(pool, &settings.data)?);
        }
        admin::tell_certificate(settings)?;
        let admin = AdminServer::start(admin, admin_tls, sources)
            .map_err(|error| Fault::io("cannot start the admin listener", error))?;
        Ok(Running {
            server: self,
            mysql,
            redis,
            admin,
            asking,
            stopping,
        })
    }
}

/// A serving server.
struct Running {
    server: Server,
    mysql: MysqlServer,
    redis: Option<RedisServer>,
    admin: AdminServer,
    asking: HealthThreads,
    stopping: Arc<AtomicBool>,
}

impl Running {
    /// Says how to connect, and on a first start what root's password is.
    fn announce(&self, settings: &Settings, welcome: Option<&str>) {
        let mysql = self.mysql.address();
        let admin = self.admin.address();
        let scheme = if settings.admin_tls { "https" } else { "http" };
        let port = mysql.port();
        let first_start = welcome.map_or_else(String::new, |welcome| {
            format!(
                "\n{welcome}\n\nConnect:\n  manxdb sql --port {port} -p\n  \
                 mysql -h 127.0.0.1 -P {port} -u root -p\n"
            )
        });
        let redis = self.redis.as_ref().map_or_else(String::new, |redis| {
            format!("  Redis  {}\n", redis.address())
        });
        let text = format!(
            "ManxDB {} serves {}\n  MySQL  {mysql}\n{redis}  admin  {scheme}://{admin}/\n{first_start}",
            env!("CARGO_PKG_VERSION"),
            self.server.store.place(settings),
        );
        // A closed standard output is no reason not to serve.
        let _ = std::io::stdout().write_all(text.as_bytes());
        let _ = std::io::stdout().flush();
        if settings.insecure && !mysql.ip().to_canonical().is_loopback() {
            tracing::warn!(%mysql, "--insecure with an address that other machines reach");
        }
        tracing::info!(%mysql, %admin, "serving");
        notify("READY=1");
    }

    /// Until the server is to stop: what is done now and then.
    fn watch(&self, stop: &Arc<AtomicBool>) {
        std::thread::scope(|threads| {
            let analyzing = std::thread::Builder::new().name("statistics".to_string());
            let started = analyzing.spawn_scoped(threads, || self.keep_statistics(stop));
            if let Err(error) = started {
                tracing::warn!(%error, "tables are not analyzed by themselves");
            }
            let purging = std::thread::Builder::new().name("purge".to_string());
            if let Err(error) = purging.spawn_scoped(threads, || self.purge_files(stop)) {
                tracing::warn!(%error, "what was forgotten stays in files until they are compacted");
            }
            self.collect_garbage(stop);
            self.server.instance.stop_purging();
        });
    }

    /// Has what forgotten people have left in files go in time.
    fn purge_files(&self, stop: &AtomicBool) {
        let instance = &self.server.instance;
        let mut looks = Looks::default();
        let mut purged = LastFailure::default();
        while !Self::is_ending(instance, stop) {
            if !looks.wait_for_tick() {
                continue;
            }
            if let Some(news) = purged.news(&instance.purge_forgotten()) {
                tracing::warn!("what was forgotten may be in files still: {news}");
            }
        }
    }

    fn is_ending(instance: &Instance, stop: &AtomicBool) -> bool {
        stop.load(Ordering::SeqCst) || instance.shutdown_requested()
    }

    /// Analyzes tables of which much has changed, and makes views for what is often read.
    fn keep_statistics(&self, stop: &Arc<AtomicBool>) {
        let instance = &self.server.instance;
        while !Self::is_ending(instance, stop) {
            std::thread::sleep(TICK);
            let (asked, ending) = (Arc::clone(instance), Arc::clone(stop));
            let stopping = move || Self::is_ending(&asked, &ending);
            if let Err(error) = instance.analyze_changed_tables(stopping)
                && !Self::is_ending(instance, stop)
            {
                tracing::warn!("a table is not analyzed: {error}");
            }
            if let Err(error) = instance.tend_views() {
                tracing::warn!("materialized views are not made by themselves: {error}");
            }
        }
    }

    /// Deletes what dropped tables leave behind.
    fn collect_garbage(&self, stop: &AtomicBool) {
        let instance = &self.server.instance;
        let mut looks = Looks::default();
        let mut more_garbage = true;
        let (mut tended, mut collected) = (LastFailure::default(), LastFailure::default());
        while !Self::is_ending(instance, stop) {
            let is_due = looks.wait_for_tick();
            if more_garbage || is_due {
                if let Err(error) = instance.resume_requests() {
                    tracing::warn!(%error, "a request to forget somebody does not come to its end");
                }
                if let Some(news) = tended.news(&instance.tend_vault()) {
                    tracing::warn!("the vault is not tended: {news}");
                }
                let found = instance.collect_garbage();
                if let Some(news) = collected.news(&found) {
                    tracing::warn!("dropped tables are not cleaned up: {news}");
                }
                more_garbage = found.unwrap_or(false);
            }
        }
    }

    fn stop(self, grace: Duration) -> Result<ExitCode, Fault> {
        notify("STOPPING=1");
        tracing::info!(grace_seconds = grace.as_secs(), "stopping");
        self.stopping.store(true, Ordering::SeqCst);
        if let Some(redis) = self.redis {
            redis.shutdown();
        }
        self.mysql.shutdown(grace);
        drop(self.admin);
        drop(self.asking); // nothing is written any more when the store ends
        self.server.instance.shutdown()?;
        self.server.store.close()?;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }
}

/// Counts the ticks between looks of one thread.
#[derive(Default)]
struct Looks {
    ticks: u32,
}

impl Looks {
    /// Waits for the next tick; whether a look is due at it.
    fn wait_for_tick(&mut self) -> bool {
        std::thread::sleep(TICK);
        self.ticks = self.ticks.wrapping_add(1);
        self.ticks.is_multiple_of(GARBAGE_TICKS)
    }
}

fn instance_options(settings: &Settings) -> InstanceOptions {
    let data = &settings.data;
    let directory = std::fs::canonicalize(data).unwrap_or_else(|_| data.clone());
    InstanceOptions {
        durability: match settings.durability {
            DurabilityChoice::Sync => Durability::Sync,
            DurabilityChoice::Async => Durability::Async,
        },
        isolation: match settings.transaction_isolation {
            IsolationChoice::ReadCommitted => IsolationLevel::ReadCommitted,
            IsolationChoice::RepeatableRead => IsolationLevel::RepeatableRead,
            IsolationChoice::Serializable => IsolationLevel::Serializable,
        },
        max_connections: settings.max_connections,
        max_allowed_packet: settings.max_allowed_packet,
        long_query_micros: settings.long_query_micros,
        statement_memory_bytes: settings.statement_memory_bytes,
        secure_file_priv: settings.secure_file_priv.clone(),
        port: settings.mysql_listen.port(),
        hostname: hostname(),
        data_directory: format!("{}/", directory.display()),
    }
}

/// What all listeners of this server show.
fn certificate(settings: &Settings) -> Result<Arc<rustls::ServerConfig>, Fault> {
    Ok(match &settings.tls {
        Some((certificate, key)) => tls::from_files(certificate, key)?,
        None => tls::self_signed(&settings.data, &own_names())?,
    })
}

/// What clients on this machine and others may call it.
fn own_names() -> Vec<String> {
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    [&local[..], &[hostname()]].concat()
}

fn hostname() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name.into_owned()
    }
}

/// Name of the system's zone: `TZ`, else what `/etc/localtime` points at, else UTC.
fn system_time_zone() -> String {
    let from_environment = std::env::var("TZ").ok().filter(|tz| !tz.is_empty());
    let name = from_environment.or_else(|| {
        let link = std::fs::read_link(Path::new("/etc/localtime")).ok()?;
        let link = link.to_str()?;
        Some(link.split_once("zoneinfo/")?.1.to_owned())
    });
    name.filter(|name| jiff::tz::TimeZone::get(name).is_ok())
        .unwrap_or_else(|| "UTC".to_owned())
}
