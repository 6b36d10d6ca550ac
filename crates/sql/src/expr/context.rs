//! What evaluation may look at besides the row.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{ConstantLists, RowSet};
use crate::error::SqlResult;
use crate::plan::Plan;
use crate::types::{Collation, Row, SqlMode, Value};

/// Severity of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningLevel {
    /// Note.
    Note,
    /// Warning.
    Warning,
    /// Error (for SHOW WARNINGS after a failed statement).
    Error,
}

/// A row of SHOW WARNINGS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Severity.
    pub level: WarningLevel,
    /// MySQL's number.
    pub code: u16,
    /// Text.
    pub message: String,
}

/// TestSession and variables of the session that expressions can ask for. Implemented by the session.
pub trait SessionInfo {
    /// `DATABASE()`.
    fn database(&self) -> Option<String>;
    /// `CURRENT_USER()`, as `user@host`.
    fn current_user(&self) -> String;
    /// `USER()`: the name the client logged in with, and where from.
    fn session_user(&self) -> String {
        self.current_user()
    }
    /// `CONNECTION_ID()`.
    fn connection_id(&self) -> u64;
    /// `LAST_INSERT_ID()`.
    fn last_insert_id(&self) -> u64;
    /// `LAST_INSERT_ID(expr)`.
    fn set_last_insert_id(&self, id: u64);
    /// `ROW_COUNT()` of the previous statement.
    fn row_count(&self) -> i64;
    /// `FOUND_ROWS()`.
    fn found_rows(&self) -> u64;
    /// `@@name`.
    ///
    /// # Errors
    /// 1193 when there is no such variable.
    fn system_variable(&self, name: &str, global: bool) -> SqlResult<Value>;
    /// `@name`; NULL when never set.
    fn user_variable(&self, name: &str) -> Value;
    /// `@name := value`.
    fn set_user_variable(&self, name: &str, value: Value);
    /// SLEEP(seconds): true when interrupted.
    ///
    /// # Errors
    /// Statement time-out.
    fn sleep(&self, seconds: f64) -> SqlResult<bool>;
    /// `GET_LOCK` and its family are named locks of the instance; `None` timeout waits for ever.
    /// Returns 1 when got, 0 on time-out.
    ///
    /// # Errors
    /// Interrupted or timed out.
    fn get_lock(&self, name: &str, timeout_seconds: Option<f64>) -> SqlResult<i64>;
    /// `RELEASE_LOCK`: 1 released, 0 held by another, NULL none.
    fn release_lock(&self, name: &str) -> Option<i64>;
    /// `RELEASE_ALL_LOCKS`: how many were released, one taken twice counted twice.
    fn release_all_locks(&self) -> u64;
    /// Connection holding the lock (`IS_USED_LOCK`).
    fn lock_holder(&self, name: &str) -> Option<u64>;
}

/// Runs sub-plans for subquery expressions. Implemented by the executor.
pub trait Subqueries {
    /// Runs `plan` under `eval` (the context the calling expression got) with `outer` rows,
    /// innermost first, and hands each row to `each` until it returns false.
    /// Uncorrelated plans may be answered from a cache of this statement.
    ///
    /// # Errors
    /// Whatever running the plan meets.
    fn run(
        &self,
        eval: &EvalContext<'_>,
        plan: &Plan,
        outer: &[&[Value]],
        each: &mut dyn FnMut(Row) -> SqlResult<bool>,
    ) -> SqlResult<()>;

    /// All rows of an uncorrelated `plan`, once they have been read; `None` before, and always
    /// for others. The columns are compared under `collations`.
    ///
    /// # Errors
    /// As [`Subqueries::run`].
    fn row_set(
        &self,
        _eval: &EvalContext<'_>,
        _plan: &Plan,
        _collations: &[Collation],
    ) -> SqlResult<Option<Rc<RowSet>>> {
        Ok(None)
    }
}

/// Everything an expression may depend on besides its row. One per statement execution.
pub struct EvalContext<'a> {
    /// Values of `?`.
    pub params: &'a [Value],
    /// `NOW()` of this statement: microseconds since 1970 UTC.
    pub now_micros: i64,
    /// SYSDATE and UUID need the real clock of the instance.
    pub clock: &'a dyn Fn() -> i64,
    /// Session time zone.
    pub time_zone: jiff::tz::TimeZone,
    /// `sql_mode` bits that change evaluation.
    pub sql_mode: SqlMode,
    /// `div_precision_increment`, default 4.
    pub div_precision_increment: u8,
    /// `group_concat_max_len` in bytes.
    pub group_concat_max_len: usize,
    /// Random state for `RAND()`, `RANDOM_BYTES`, UUID; seeded by the instance.
    pub random: &'a Cell<u64>,
    /// Sequences of `RAND(seed)`.
    pub seeded: crate::expr::functions::SeededRandom,
    /// What is known of the constant lists of IN.
    pub lists: ConstantLists,
    /// What functions ask of the session.
    pub session: &'a dyn SessionInfo,
    /// Runs subqueries.
    pub subqueries: &'a dyn Subqueries,
    /// Warnings raised so far.
    pub warnings: &'a RefCell<Vec<Warning>>,
    /// In INSERT/UPDATE of a strict session bad values are errors; in SELECT they are warnings.
    pub strict_write: bool,
    /// NULL for a column that is NOT NULL is error 1048; otherwise a warning, and the column's
    /// implicit default is stored.
    pub refuses_null: bool,
}

impl<'a> EvalContext<'a> {
    /// The same context for storing values: what does not fit is an error when `strict`.
    #[must_use]
    pub fn writing(&self, strict: bool) -> EvalContext<'a> {
        EvalContext {
            time_zone: self.time_zone.clone(),
            seeded: crate::expr::functions::SeededRandom::default(),
            lists: ConstantLists::default(),
            strict_write: strict,
            refuses_null: true,
            ..*self
        }
    }
}

impl EvalContext<'_> {
    /// Most warnings a statement keeps (`max_error_count`).
    const WARNINGS_MAX: usize = 1024;

    fn push(&self, level: WarningLevel, code: u16, message: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < Self::WARNINGS_MAX {
            warnings.push(Warning {
                level,
                code,
                message,
            });
        }
    }

    /// Raises a warning.
    pub fn warn(&self, code: u16, message: impl Into<String>) {
        self.push(WarningLevel::Warning, code, message.into());
    }

    /// Raises a note.
    pub fn note(&self, code: u16, message: impl Into<String>) {
        self.push(WarningLevel::Note, code, message.into());
    }

    /// A warning, or the error of that number inside a strict write.
    ///
    /// # Errors
    /// In a strict write.
    pub fn problem(
        &self,
        code: u16,
        sqlstate: &'static str,
        message: impl Into<String>,
    ) -> SqlResult<()> {
        if self.strict_write {
            return Err(crate::error::SqlError::new(code, sqlstate, message));
        }
        self.warn(code, message);
        Ok(())
    }

    /// 1292 `Truncated incorrect DOUBLE value: 'x'`.
    ///
    /// # Errors
    /// In a strict write.
    pub fn truncated(&self, kind: &str, value: &Value) -> SqlResult<()> {
        let text = value.to_text().unwrap_or_default();
        self.problem(
            1292,
            "22007",
            format!("Truncated incorrect {kind} value: '{text}'"),
        )
    }

    /// 64 random bits (splitmix64 over the statement's state).
    #[must_use]
    pub fn next_random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
