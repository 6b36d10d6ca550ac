//! A context for tests of expressions: no session, no subqueries, a fixed clock.

use std::cell::{Cell, RefCell};

use super::{EvalContext, SessionInfo, Subqueries, Warning};
use crate::error::{SqlError, SqlResult};
use crate::plan::{Expr, Plan};
use crate::types::{Collation, DataType, Row, SqlMode, Value, parse_decimal, to_text};

/// 2024-02-29 12:34:56.789012 UTC.
pub const NOW: i64 = 1_709_210_096_789_012;

struct Nobody;

impl SessionInfo for Nobody {
    fn database(&self) -> Option<String> {
        Some("shop".to_string())
    }
    fn current_user(&self) -> String {
        "root@localhost".to_string()
    }
    fn connection_id(&self) -> u64 {
        7
    }
    fn last_insert_id(&self) -> u64 {
        42
    }
    fn set_last_insert_id(&self, _id: u64) {}
    fn row_count(&self) -> i64 {
        -1
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn system_variable(&self, name: &str, _global: bool) -> SqlResult<Value> {
        Err(SqlError::new(
            1193,
            "HY000",
            format!("Unknown system variable '{name}'"),
        ))
    }
    fn user_variable(&self, _name: &str) -> Value {
        Value::Null
    }
    fn set_user_variable(&self, _name: &str, _value: Value) {}
    fn sleep(&self, _seconds: f64) -> SqlResult<bool> {
        Ok(false)
    }
    fn get_lock(&self, _name: &str, _timeout_seconds: Option<f64>) -> SqlResult<i64> {
        Ok(1)
    }
    fn release_lock(&self, _name: &str) -> Option<i64> {
        Some(1)
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
        Err(SqlError::not_supported("subqueries in this test"))
    }
}

/// The `sql_mode` of a fresh server.
pub fn default_mode() -> SqlMode {
    SqlMode {
        strict: true,
        no_zero_date: true,
        no_zero_in_date: true,
        error_for_division_by_zero: true,
        only_full_group_by: true,
        ..SqlMode::default()
    }
}

/// Runs `body` with a context; returns its result and the warnings raised.
pub fn with_context<T>(
    strict_write: bool,
    body: impl FnOnce(&EvalContext<'_>) -> T,
) -> (T, Vec<Warning>) {
    let random = Cell::new(1);
    let warnings = RefCell::new(Vec::new());
    let clock = || NOW;
    let context = EvalContext {
        params: &[],
        now_micros: NOW,
        clock: &clock,
        time_zone: jiff::tz::TimeZone::UTC,
        sql_mode: default_mode(),
        div_precision_increment: 4,
        group_concat_max_len: 1024,
        random: &random,
        seeded: crate::expr::functions::SeededRandom::default(),
        lists: crate::expr::ConstantLists::default(),
        session: &Nobody,
        subqueries: &Nobody,
        warnings: &warnings,
        strict_write,
        refuses_null: strict_write,
    };
    let result = body(&context);
    drop(context);
    (result, warnings.into_inner())
}

/// What a client would see: the text, `error N`, and `!N` for each warning.
pub fn shown(expr: SqlResult<Expr>) -> String {
    let expr = match expr {
        Ok(expr) => expr,
        Err(error) => return format!("error {}", error.code),
    };
    let (result, warnings) = with_context(false, |ctx| expr.eval(ctx, &[], &[]));
    let mut text = match result {
        Ok(value) => to_text(&value, &expr.ty),
        Err(error) => format!("error {}", error.code),
    };
    for warning in warnings {
        text.push_str(&format!(" !{}", warning.code));
    }
    text
}

/// Text under the default collation.
pub fn t(text: &str) -> Expr {
    Expr::text(text, Collation::default())
}

/// An integer.
pub fn i(value: i64) -> Expr {
    Expr::int(value)
}

/// An exact number from its digits.
pub fn d(digits: &str) -> Expr {
    let value = parse_decimal(digits).0;
    let scale = crate::types::decimal_scale(&value);
    let precision = u8::try_from(digits.len()).unwrap_or(65);
    Expr::literal(
        Value::decimal(value),
        DataType::Decimal {
            precision,
            scale,
            sign: DataType::SIGNED,
        },
    )
}

/// A double.
pub fn f(value: f64) -> Expr {
    Expr::literal(Value::Double(value), DataType::DOUBLE)
}

/// NULL.
pub fn null() -> Expr {
    Expr::null()
}

/// `text` as a value of `ty`.
pub fn typed(text: &str, ty: DataType) -> Expr {
    let (value, _) = with_context(false, |ctx| {
        crate::expr::cast(ctx, Value::Text(text.to_string()), &ty)
    });
    Expr::literal(value.unwrap(), ty)
}

/// A DATETIME with the digits of fraction it is written with.
pub fn dt(text: &str) -> Expr {
    let fsp = text
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    typed(
        text,
        DataType::DateTime {
            fsp: u8::try_from(fsp).unwrap(),
        },
    )
}

/// A JSON document.
pub fn j(text: &str) -> Expr {
    typed(text, DataType::Json)
}
