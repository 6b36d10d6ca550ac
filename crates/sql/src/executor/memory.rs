//! What one statement holds in memory and in temporary files. Rows to be written count too, from when they are read until
//! the last one is written.

use std::cell::Cell;

use crate::error::{SqlError, SqlResult};
use crate::types::{Row, Value, json_bytes};

/// Bytes held, against a limit.
#[derive(Debug)]
pub(super) struct Memory {
    used: Cell<usize>,
    limit: usize,
    /// Bytes written to temporary files.
    in_files: Cell<u64>,
}

/// Bytes of temporary files that a statement may write for each byte of memory.
const FILES_TIMES: u64 = 128;

impl Memory {
    pub fn new(limit: usize) -> Self {
        Self {
            used: Cell::new(0),
            limit,
            in_files: Cell::new(0),
        }
    }

    /// Notes `bytes` more.
    pub fn charge(&self, bytes: usize) -> SqlResult<()> {
        let used = self.used.get().saturating_add(bytes);
        self.used.set(used);
        if used <= self.limit {
            return Ok(());
        }
        Err(SqlError::new(
            1038,
            "HY001",
            format!(
                "Out of sort memory: the statement needs more than {} bytes for sorting, grouping, \
                 joining or the rows it changes; take fewer rows at a time or raise the \
                 statement's memory limit",
                self.limit
            ),
        ))
    }

    /// Bytes that may be held.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes held.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Whether `bytes` more would still fit. What does not goes to a temporary file.
    pub fn fits(&self, bytes: usize) -> bool {
        self.used.get().saturating_add(bytes) <= self.limit
    }

    /// Whether `bytes` more fit and leave one part in `parts` of all memory to the operators above:
    /// a table that is looked into until its last row is out must not take what they need.
    pub fn fits_leaving_one_in(&self, parts: usize, bytes: usize) -> bool {
        let reserved = self.limit.checked_div(parts).unwrap_or(0);
        self.fits(bytes.saturating_add(reserved))
    }

    /// Notes `bytes` written to a temporary file.
    ///
    /// # Errors
    /// 1038 past the limit.
    pub fn charge_file(&self, bytes: u64) -> SqlResult<()> {
        let limit = (self.limit as u64).saturating_mul(FILES_TIMES);
        let used = self.in_files.get().saturating_add(bytes);
        self.in_files.set(used);
        if used <= limit {
            return Ok(());
        }
        Err(SqlError::new(
            1038,
            "HY001",
            format!(
                "Out of sort memory: the statement needs more than {limit} bytes of temporary \
                 files for sorting or joining; take fewer rows at a time or raise the \
                 statement's memory limit"
            ),
        ))
    }

    /// Notes `bytes` less.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

/// Bytes a row takes, about.
pub(crate) fn row_bytes(row: &Row) -> usize {
    size_of::<Row>() + row.iter().map(value_bytes).sum::<usize>()
}

/// Bytes a value takes, about.
pub(crate) fn value_bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Decimal(_) => 48,
            Value::Json(json) => json_bytes(json),
            _ => 0,
        }
}
