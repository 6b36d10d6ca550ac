//! Evaluation without a session: what a view computes is the same for everybody.

use std::cell::{Cell, RefCell};

use crate::error::{SqlError, SqlResult};
use crate::expr::functions::SeededRandom;
use crate::expr::{ConstantLists, DIV_INCREMENT, EvalContext, SessionInfo, Subqueries, Warning};
use crate::plan::Plan;
use crate::types::{Row, SqlMode, Value};

struct Nobody;

impl SessionInfo for Nobody {
    fn database(&self) -> Option<String> {
        None
    }
    fn current_user(&self) -> String {
        String::new()
    }
    fn connection_id(&self) -> u64 {
        0
    }
    fn last_insert_id(&self) -> u64 {
        0
    }
    fn set_last_insert_id(&self, _id: u64) {}
    fn row_count(&self) -> i64 {
        -1
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn system_variable(&self, name: &str, _global: bool) -> SqlResult<Value> {
        Err(SqlError::internal(format!(
            "a materialized view asks for '{name}'"
        )))
    }
    fn user_variable(&self, _name: &str) -> Value {
        Value::Null
    }
    fn set_user_variable(&self, _name: &str, _value: Value) {}
    fn sleep(&self, _seconds: f64) -> SqlResult<bool> {
        Ok(true)
    }
    fn get_lock(&self, _name: &str, _timeout_seconds: Option<f64>) -> SqlResult<i64> {
        Ok(0)
    }
    fn release_lock(&self, _name: &str) -> Option<i64> {
        None
    }
    fn release_all_locks(&self) -> u64 {
        0
    }
    fn lock_holder(&self, _name: &str) -> Option<u64> {
        None
    }
}

impl Subqueries for Nobody {
    fn run(
        &self,
        _eval: &EvalContext<'_>,
        _plan: &Plan,
        _outer: &[&[Value]],
        _each: &mut dyn FnMut(Row) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        Err(SqlError::internal("a materialized view has a subquery"))
    }
}

/// Runs `work` with a context of nobody's. What warns is an error: a reader that is answered by the
/// view would miss the warning.
pub(super) fn evaluate<T>(
    sql_mode: SqlMode,
    work: impl FnOnce(&EvalContext<'_>) -> SqlResult<T>,
) -> SqlResult<T> {
    let random = Cell::new(0);
    let warnings: RefCell<Vec<Warning>> = RefCell::default();
    let clock = || 0;
    let done = work(&EvalContext {
        params: &[],
        now_micros: 0,
        clock: &clock,
        time_zone: jiff::tz::TimeZone::UTC,
        sql_mode,
        // A reader with another runs the base plan.
        div_precision_increment: DIV_INCREMENT,
        group_concat_max_len: 1024,
        random: &random,
        seeded: SeededRandom::default(),
        lists: ConstantLists::default(),
        session: &Nobody,
        subqueries: &Nobody,
        warnings: &warnings,
        strict_write: false,
        refuses_null: false,
    })?;
    match warnings.into_inner().pop() {
        None => Ok(done),
        Some(warning) => Err(SqlError::new(warning.code, "HY000", warning.message)),
    }
}
