//! The one error of this crate, already in MySQL's terms.

use manxdb_txn::TxnError;

/// An error as the client will see it: number, SQLSTATE, text.
///
/// Constructors below name the errors a client can branch on; every message
/// names the thing, the value and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// MySQL's error number, for example 1062.
    pub code: u16,
    /// Five characters, for example `23000`.
    pub sqlstate: &'static str,
    /// Human text.
    pub message: String,
}

/// Result of everything in this crate.
pub type SqlResult<T> = Result<T, SqlError>;

impl SqlError {
    /// An error by number.
    #[must_use]
    pub fn new(code: u16, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            sqlstate,
            message: message.into(),
        }
    }

    /// 1235: a feature ManxDB does not have yet; `feature` names it.
    #[must_use]
    pub fn not_supported(feature: impl AsRef<str>) -> Self {
        let feature = feature.as_ref();
        Self::new(
            1235,
            "42000",
            format!("This version of ManxDB doesn't yet support '{feature}'"),
        )
    }

    /// 1064: the text is not SQL we understand.
    #[must_use]
    pub fn syntax(detail: impl AsRef<str>) -> Self {
        let detail = detail.as_ref();
        Self::new(
            1064,
            "42000",
            format!("You have an error in your SQL syntax: {detail}"),
        )
    }

    /// 1176: an index that the table does not have.
    #[must_use]
    pub fn no_such_key(key: &str, table: &str) -> Self {
        let text = format!("Key '{key}' doesn't exist in table '{table}'");
        Self::new(1176, "42000", text)
    }

    /// 1146: no such table.
    #[must_use]
    pub fn no_such_table(database: &str, table: &str) -> Self {
        Self::new(
            1146,
            "42S02",
            format!("Table '{database}.{table}' doesn't exist"),
        )
    }

    /// 1054: no such column; `place` is MySQL's "field list", "where clause", …
    #[must_use]
    pub fn unknown_column(column: &str, place: &str) -> Self {
        Self::new(
            1054,
            "42S22",
            format!("Unknown column '{column}' in '{place}'"),
        )
    }

    /// 1062: a unique key already holds the value.
    #[must_use]
    pub fn duplicate_key(value: &str, table: &str, key: &str) -> Self {
        Self::new(
            1062,
            "23000",
            format!("Duplicate entry '{value}' for key '{table}.{key}'"),
        )
    }

    /// 1105: something only a defect of ours can explain; never a panic.
    #[must_use]
    pub fn internal(detail: impl AsRef<str>) -> Self {
        Self::new(
            1105,
            "HY000",
            format!("internal error: {}", detail.as_ref()),
        )
    }
}

impl From<TxnError> for SqlError {
    fn from(error: TxnError) -> Self {
        use manxdb_storage::StorageError;
        let message = error.to_string();
        match error {
            TxnError::Conflict { .. } | TxnError::Deadlock => Self::new(
                1213,
                "40001",
                "Deadlock found when trying to get lock; try restarting transaction",
            ),
            TxnError::LockTimeout => Self::new(
                1205,
                "HY000",
                "Lock wait timeout exceeded; try restarting transaction",
            ),
            TxnError::WouldWait => Self::internal("a polled wait reached a session"),
            TxnError::ReadOnly => Self::new(
                1792,
                "25006",
                "Cannot execute statement in a READ ONLY transaction.",
            ),
            TxnError::Procedure { .. } => Self::new(1105, "HY000", message),
            TxnError::LockNotAvailable => Self::new(3572, "HY000", message),
            TxnError::Interrupted => Self::new(1317, "70100", "Query execution was interrupted"),
            TxnError::StatementTimeout => Self::new(
                3024,
                "HY000",
                "Query execution was interrupted, maximum statement execution time exceeded",
            ),
            TxnError::TooManyLocks { .. } => Self::new(1206, "HY000", message),
            TxnError::TooLarge { .. } => Self::new(1197, "HY000", message),
            TxnError::Unknown(_) => Self::new(1180, "HY000", message),
            TxnError::Storage(StorageError::Full(_)) => Self::new(
                1021,
                "HY000",
                format!("{message}; nothing was written: free space and try again"),
            ),
            TxnError::Storage(StorageError::ReadOnly(_)) => Self::new(
                1290,
                "HY000",
                format!("{message}; reads go on: make the disk writable and restart the server"),
            ),
            TxnError::Storage(StorageError::Corrupt(_)) => Self::new(
                1712,
                "HY000",
                format!(
                    "{message}; other data is served: restore a backup, or see manxdb backup \
                     salvage --help"
                ),
            ),
            TxnError::Storage(_) => Self::new(1030, "HY000", message),
        }
    }
}
