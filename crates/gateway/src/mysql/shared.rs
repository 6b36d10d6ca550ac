//! What all connections share: the server behind the frontend, settings, counters.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use manxdb_sql::session::Instance;
use rustls::ServerConfig;

use super::idle::IdleConnections;
use crate::host::ProcessHost;
use crate::password_key::PasswordKey;

/// Longer than clients pause between the commands of a transaction, shorter than people do.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Settings of the MySQL listener.
#[derive(Clone)]
pub struct MysqlOptions {
    /// Most bytes of rows that one open cursor keeps.
    pub cursor_memory_bytes: usize,
    /// TLS is offered when there is a certificate.
    pub tls: Option<Arc<ServerConfig>>,
    /// A connection whose client says nothing for this long gives its thread back.
    pub idle_after: Duration,
    /// Passwords are taken over connections without TLS when there is a key to encrypt them for.
    pub password_key: Option<Arc<PasswordKey>>,
}

impl Default for MysqlOptions {
    fn default() -> Self {
        Self {
            cursor_memory_bytes: 64 << 20,
            tls: None,
            idle_after: IDLE_AFTER,
            password_key: None,
        }
    }
}

/// What all connections share.
pub struct Shared {
    /// The server behind the frontend.
    pub instance: Arc<Instance>,
    /// Reaches sessions.
    pub host: Arc<ProcessHost>,
    /// Settings.
    pub options: MysqlOptions,
    /// No further command is taken.
    pub draining: AtomicBool,
    /// Counters.
    pub metrics: FrontendMetrics,
    /// Admitted now.
    pub connections: AtomicUsize,
    /// Those that have no thread.
    pub idle: IdleConnections,
}

impl Shared {
    /// Nobody is connected yet.
    ///
    /// # Errors
    /// The operating system has nothing to wait for connections with.
    pub fn new(
        instance: Arc<Instance>,
        host: Arc<ProcessHost>,
        options: MysqlOptions,
    ) -> io::Result<Self> {
        Ok(Self {
            instance,
            host,
            options,
            draining: AtomicBool::new(false),
            metrics: FrontendMetrics::new(),
            connections: AtomicUsize::new(0),
            idle: IdleConnections::new()?,
        })
    }
}

/// Counters of the frontend, resolved once.
pub struct FrontendMetrics {
    /// Time of commands from packet read to reply written.
    pub command_seconds: metrics::Histogram,
    /// Statements answered by an error.
    pub errors: metrics::Counter,
    /// Connections that did not log in.
    pub failed_logins: metrics::Counter,
    /// Sessions that ended by a defect.
    pub panics: metrics::Counter,
    /// Open connections.
    pub connections: metrics::Gauge,
    /// Connections taken from the listener.
    pub accepted: metrics::Counter,
    /// Connections turned away before the greeting.
    pub refused: metrics::Counter,
}

impl FrontendMetrics {
    fn new() -> Self {
        metrics::describe_histogram!(
            "manxdb_mysql_command_seconds",
            "Time from a command's arrival to its reply, by the MySQL listener"
        );
        metrics::describe_gauge!("manxdb_mysql_connections", "Open MySQL connections");
        Self {
            command_seconds: metrics::histogram!("manxdb_mysql_command_seconds"),
            errors: metrics::counter!("manxdb_mysql_errors_total"),
            failed_logins: metrics::counter!("manxdb_mysql_failed_logins_total"),
            panics: metrics::counter!("manxdb_mysql_panics_total"),
            connections: metrics::gauge!("manxdb_mysql_connections"),
            accepted: metrics::counter!("manxdb_mysql_accepted_connections_total"),
            refused: metrics::counter!("manxdb_mysql_refused_connections_total"),
        }
    }
}
