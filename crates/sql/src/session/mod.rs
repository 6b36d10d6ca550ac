//! A client's session: what a frontend talks to.
//!
//! | file | answers |
//! |---|---|
//! | [`session`] | the methods a frontend calls |
//! | [`compile`], [`run`], [`execute`] | one statement: cache, parse, plan; run, retry, report |
//! | [`special`], [`set`], [`show`] | statements the session answers itself |
//! | [`transaction`], [`prepared`], [`waiter`] | BEGIN to COMMIT; PREPARE; waiting, KILL, time-outs |
//! | [`temporary`] | temporary tables |
//! | [`files`] | LOAD DATA and INTO OUTFILE: who may, where, and what goes wrong |
//! | [`state`], [`variables`] | what a session knows about itself; system variables |
//! | [`accounts`], [`secrets`] | users, privileges; passwords kept out of sight |
//! | [`schema`] | information_schema and its kin, computed |
//! | [`instance`] | what all sessions share: catalog, accounts, plan cache, counters |
//! | [`probe`] | whether the store takes writes |
//! | [`ddl`] | the statements that change the catalog |
//! | [`compliance`] | EXPLAIN COMPLIANCE |
//! | [`gdpr`] | GDPR GET |

mod accounts;
mod auto_analyze;
mod compile;
mod compiled;
mod compliance;
mod ddl;
mod execute;
mod explain;
mod files;
mod gdpr;
mod host;
mod instance;
mod locks;
mod masked;
mod metrics;
mod named_locks;
mod overview;
mod owners;
mod plan_cache;
mod prepared;
mod probe;
mod processes;
mod retyped;
mod run;
mod schema;
mod sealing;
mod secrets;
#[allow(clippy::module_inception)] // the folder's one main type
mod session;
mod set;
mod show;
mod special;
mod state;
mod temporary;
mod transaction;
mod variables;
mod view_candidates;
mod views;
mod waiter;

pub use gdpr::{CertificateOverview, PersonTree, TreeLink, TreeRow, TreeTable};
pub use host::{AccountAuth, ClientInfo, CompressionInfo, Host, InstanceOptions, TlsInfo};
pub use instance::{Instance, VERSION};
pub use metrics::{
    KindLatency, LATENCY_BOUNDS_MICROS, MetricsSnapshot, STATEMENT_KINDS, SlowStatement,
    StatementKind, TimeSplit,
};
pub use overview::{OverviewLink, OverviewRequest, OverviewTable, OwnershipOverview, ViewOverview};
pub use session::Session;
pub use variables::FrontendTimeouts;
pub use waiter::SessionControl;

use std::io::Read;

use crate::error::{SqlError, SqlResult};
use crate::statement::StatementOutcome;
use crate::types::{ColumnMeta, Value};

/// Receives results in the order: for each statement either `columns`, `row`*, `end`, or `done`.
pub trait ResultSink {
    /// A result set begins.
    ///
    /// # Errors
    /// The client went away.
    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()>;
    /// One row. TIMESTAMPs are in the session's time zone already.
    ///
    /// # Errors
    /// The client went away.
    fn row(&mut self, row: &[Value]) -> SqlResult<()>;
    /// The result set is complete; `more` results follow.
    ///
    /// # Errors
    /// The client went away.
    fn end(&mut self, status: Status, more: bool) -> SqlResult<()>;
    /// The file `name` of the client, from its first byte. Everything of it that is not read is
    /// passed over by the frontend.
    ///
    /// # Errors
    /// The client went away; 3948 at frontends that cannot ask for files.
    fn local_file(&mut self, name: &str) -> SqlResult<&mut dyn Read> {
        let _ = name;
        Err(SqlError::new(
            3948,
            "42000",
            "Loading local data is disabled; this must be enabled on both the client and server sides",
        ))
    }
    /// A statement without rows is done.
    ///
    /// # Errors
    /// The client went away.
    fn done(&mut self, outcome: &StatementOutcome, status: Status, more: bool) -> SqlResult<()>;
}

/// What OK and EOF packets say of the session.
#[allow(clippy::struct_excessive_bools)] // one a status flag
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// A transaction is open.
    pub in_transaction: bool,
    /// The open transaction is READ ONLY.
    pub read_only_transaction: bool,
    /// autocommit is on.
    pub autocommit: bool,
    /// `NO_BACKSLASH_ESCAPES` is in `sql_mode`.
    pub no_backslash_escapes: bool,
    /// Warnings of the statement.
    pub warnings: u16,
    /// The current database changed by the statement (session track).
    pub schema_changed: bool,
}

/// Answer to PREPARE.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Identity in this session.
    pub id: u32,
    /// One a `?`.
    pub params: Vec<ColumnMeta>,
    /// Result columns; empty when the statement returns none.
    pub columns: Vec<ColumnMeta>,
}
