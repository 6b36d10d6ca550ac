//! What all sessions share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use manxdb_storage::Durability;
use manxdb_txn::{CommitPath, Waiter};

use super::{Prepared, ResultSink, Status};
use crate::error::{SqlError, SqlResult};
use crate::types::Value;

/// Time, randomness and waiting, given by the process that hosts the instance.
pub trait Host: Send + Sync + 'static {
    /// Wall clock: microseconds since 1970 UTC.
    fn wall_micros(&self) -> i64;
    /// Monotonic clock in microseconds, for durations and time-outs.
    fn monotonic_micros(&self) -> i64;
    /// 64 random bits.
    fn random(&self) -> u64;
    /// Blocks the calling session for at most `micros`, or until `wake` is called for it.
    fn park(&self, session: u64, micros: u64);
    /// Ends another session's `park`.
    fn wake(&self, session: u64);
    /// Name of the system's time zone for `time_zone = SYSTEM`, for example `UTC`.
    fn system_time_zone(&self) -> String;
}

/// Settings of an instance; each is a system variable too where MySQL has one.
#[derive(Debug, Clone)]
pub struct InstanceOptions {
    /// When a commit counts as done.
    pub durability: Durability,
    /// `max_connections`.
    pub max_connections: usize,
    /// `max_allowed_packet` in bytes.
    pub max_allowed_packet: usize,
    /// `long_query_time` in microseconds.
    pub long_query_micros: i64,
    /// Memory one statement may hold, bytes.
    pub statement_memory_bytes: usize,
    /// `port`, for the variable only.
    pub port: u16,
    /// `hostname`, for the variable only.
    pub hostname: String,
    /// `datadir`, for the variable only.
    pub data_directory: String,
}

/// One database server: catalog, accounts, global variables, sessions.
pub struct Instance {
    _path: Arc<dyn CommitPath>,
}

/// What a door knows of a client before it has logged in.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// Address as shown in the process list, for example `127.0.0.1:53122`.
    pub peer: String,
    /// Host part, matched against accounts (`localhost` for loopback addresses).
    pub host: String,
    /// CLIENT_FOUND_ROWS was asked for.
    pub found_rows: bool,
    /// CLIENT_MULTI_STATEMENTS was asked for.
    pub multi_statements: bool,
    /// The connection is encrypted.
    pub secure: bool,
}

/// An account as authentication needs it.
#[derive(Debug, Clone)]
pub struct AccountAuth {
    /// `user@host` of the matched account.
    pub identity: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// Stored verifier: SHA1(SHA1(password)) as 20 bytes, or for caching_sha2_password
    /// SHA256(SHA256(password)) as 32 bytes, or empty for no password.
    pub verifier: Vec<u8>,
    /// Locked or expired.
    pub locked: bool,
}

impl Instance {
    /// Opens or creates the system state in `path`. A new one gets an account `root@%` with
    /// `root_password` (`None`: no password, the caller asked for `--insecure`).
    ///
    /// # Errors
    /// Storage; 1105 when the stored catalog cannot be read.
    pub fn open(
        path: Arc<dyn CommitPath>,
        _host: Arc<dyn Host>,
        _options: InstanceOptions,
    ) -> SqlResult<Arc<Self>> {
        Ok(Arc::new(Self { _path: path }))
    }

    /// Whether the stored state has accounts already (a first start has none).
    #[must_use]
    pub fn is_initialised(&self) -> bool {
        false
    }

    /// First start: creates `root@%`.
    ///
    /// # Errors
    /// Storage.
    pub fn initialise(&self, _root_password: Option<&str>) -> SqlResult<()> {
        Ok(())
    }

    /// The account that `user` from `host` would log in to.
    #[must_use]
    pub fn account(&self, _user: &str, _host: &str) -> Option<AccountAuth> {
        None
    }

    /// Opens a session for an authenticated user.
    ///
    /// # Errors
    /// 1040 too many connections; 1049 and 1044 for the database.
    pub fn connect(
        self: &Arc<Self>,
        _id: u64,
        _identity: &str,
        _user: &str,
        _client: ClientInfo,
        _database: Option<&str>,
    ) -> SqlResult<Session> {
        Err(SqlError::not_supported("sessions"))
    }

    /// Next connection id, unique in this process.
    #[must_use]
    pub fn next_connection_id(&self) -> u64 {
        0
    }

    /// Orderly end: persists sequences exactly, so that no AUTO_INCREMENT gap follows.
    ///
    /// # Errors
    /// Storage.
    pub fn shutdown(&self) -> SqlResult<()> {
        Ok(())
    }
}

/// Lets the door and other sessions reach into a running session.
#[derive(Debug, Default)]
pub struct SessionControl {
    /// KILL QUERY: the running statement stops.
    pub kill_query: AtomicBool,
    /// KILL: the door must close the connection.
    pub kill_connection: AtomicBool,
}

/// One client's session. Used by one thread at a time.
pub struct Session {
    _instance: Arc<Instance>,
}

impl Session {
    /// Runs the text of a COM_QUERY: one statement, or several when the client may.
    /// Results of statements before a failing one have reached the sink already.
    ///
    /// # Errors
    /// The failing statement's error; the session stays usable.
    pub fn query(&mut self, _text: &str, _sink: &mut dyn ResultSink) -> SqlResult<()> {
        Err(SqlError::not_supported("sessions"))
    }

    /// PREPARE over the binary protocol.
    ///
    /// # Errors
    /// 1064, 1295, 1461 and binding errors.
    pub fn prepare(&mut self, _text: &str) -> SqlResult<Prepared> {
        Err(SqlError::not_supported("sessions"))
    }

    /// EXECUTE over the binary protocol.
    ///
    /// # Errors
    /// 1243 unknown statement; 1210 wrong parameter count; the statement's own.
    pub fn execute(
        &mut self,
        _statement: u32,
        _params: &[Value],
        _sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        Err(SqlError::not_supported("sessions"))
    }

    /// Number of parameters of a prepared statement.
    #[must_use]
    pub fn param_count(&self, _statement: u32) -> Option<usize> {
        None
    }

    /// COM_STMT_CLOSE.
    pub fn close_statement(&mut self, _statement: u32) {}

    /// COM_INIT_DB.
    ///
    /// # Errors
    /// 1049, 1044.
    pub fn use_database(&mut self, _name: &str) -> SqlResult<()> {
        Err(SqlError::not_supported("sessions"))
    }

    /// COM_SET_OPTION: whether `query` takes several statements at once from now on.
    pub fn set_multi_statements(&mut self, _allowed: bool) {}

    /// COM_RESET_CONNECTION, and the first half of COM_CHANGE_USER: rolls back, drops prepared
    /// statements, user variables and session settings.
    pub fn reset(&mut self) {}

    /// Second half of COM_CHANGE_USER, after the door authenticated the new user.
    ///
    /// # Errors
    /// 1049, 1044.
    pub fn change_user(
        &mut self,
        _identity: &str,
        _user: &str,
        _database: Option<&str>,
    ) -> SqlResult<()> {
        Err(SqlError::not_supported("sessions"))
    }

    /// State for OK packets.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::default()
    }

    /// Current database.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        None
    }

    /// Handle for KILL.
    #[must_use]
    pub fn control(&self) -> Arc<SessionControl> {
        Arc::default()
    }

    /// `wait_timeout` in seconds: how long the door lets the session idle.
    #[must_use]
    pub fn idle_timeout_seconds(&self) -> u64 {
        28_800
    }

    /// COM_STATISTICS.
    #[must_use]
    pub fn statistics(&self) -> String {
        String::new()
    }

    /// The waiter that statements of this session use.
    #[must_use]
    pub fn waiter(&self) -> Option<Arc<dyn Waiter>> {
        None
    }
}
