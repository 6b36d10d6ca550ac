//! Whom to forget, and how it went.

use crate::catalog::Table;
use crate::types::Value;

/// Whom to forget, and how it was asked for.
#[derive(Debug, Clone)]
pub(in crate::session::gdpr) struct Forgotten {
    pub(in crate::session::gdpr) database: String,
    pub(in crate::session::gdpr) table: String,
    /// Values of the primary key.
    pub(in crate::session::gdpr) id: Vec<Value>,
    pub(super) asked_by: String,
    pub(super) reason: Option<String>,
    /// A statement asks for it: what is held as a whole is refused. The server's own goes on with what may go.
    pub(super) is_asked: bool,
}

impl Forgotten {
    /// The person of `table` with the primary key `id`, of whom the account `asked_by` asks.
    pub(in crate::session::gdpr) fn named(table: &Table, id: Vec<Value>, asked_by: &str) -> Self {
        Self {
            database: table.database.clone(),
            table: table.name.clone(),
            id,
            asked_by: asked_by.to_string(),
            reason: None,
            is_asked: true,
        }
    }
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::gdpr) struct ForgetDone {
    pub(super) request: u64,
    /// Rows changed by all of its transactions.
    pub(super) rows: u64,
    /// Rows that are put off.
    pub(super) put_off: u64,
}

/// How one attempt went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForgetOutcome {
    /// All that may go has gone.
    Done(ForgetDone),
    /// There is more than one transaction may change.
    TooMany,
}

impl std::fmt::Display for ForgetDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "request {}", self.request)?;
        if self.put_off > 0 {
            write!(f, "; {} rows are put off", self.put_off)?;
        }
        Ok(())
    }
}
