//! Who, where and what: functions that answer from the state of the session.

use super::{ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{Collation, DataType, Value};

/// What `VERSION()` answers; the first part chooses the dialect clients speak.
pub const SERVER_VERSION: &str = "8.0.36-ManxDB-0.1.0";

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("DATABASE", (0, 0), infer::short_text, database).per_statement(),
    ScalarFunction::new("USER", (0, 0), infer_user, user).per_statement(),
    ScalarFunction::new("CURRENT_USER", (0, 0), infer_user, current_user).per_statement(),
    ScalarFunction::new("CURRENT_ROLE", (0, 0), infer_user, current_role).per_statement(),
    ScalarFunction::new("VERSION", (0, 0), infer_user, version),
    ScalarFunction::new("CONNECTION_ID", (0, 0), infer::unsigned, connection_id).per_statement(),
    ScalarFunction::new("LAST_INSERT_ID", (0, 1), infer::unsigned, last_insert_id).per_statement(),
    ScalarFunction::new("ROW_COUNT", (0, 0), infer::integer_always, row_count).per_statement(),
    ScalarFunction::new("FOUND_ROWS", (0, 0), infer::integer_always, found_rows).per_statement(),
    ScalarFunction::new("CHARSET", (1, 1), infer_user, charset),
    ScalarFunction::new("COLLATION", (1, 1), infer_user, collation),
    ScalarFunction::new("COERCIBILITY", (1, 1), infer::integer_always, coercibility),
    ScalarFunction::new("SLEEP", (1, 1), infer::integer_always, sleep).volatile(),
    ScalarFunction::new("BENCHMARK", (2, 2), infer::integer_always, benchmark).volatile(),
    ScalarFunction::new("GET_LOCK", (2, 2), infer::integer_or_null, get_lock).volatile(),
    ScalarFunction::new("RELEASE_LOCK", (1, 1), infer::integer_or_null, release_lock).volatile(),
    ScalarFunction::new(
        "RELEASE_ALL_LOCKS",
        (0, 0),
        infer::integer_always,
        |ctx, _, _| Ok(Value::UInt(ctx.session.release_all_locks())),
    )
    .volatile(),
    ScalarFunction::new("IS_FREE_LOCK", (1, 1), infer::integer_or_null, is_free_lock).volatile(),
    ScalarFunction::new("IS_USED_LOCK", (1, 1), infer::integer_or_null, is_used_lock).volatile(),
];

fn infer_user(_args: &[Expr]) -> (DataType, bool) {
    (DataType::varchar(288), false)
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn database(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(ctx.session.database().map_or(Value::Null, Value::Text))
}

fn user(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Text(ctx.session.session_user()))
}

fn current_user(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Text(ctx.session.current_user()))
}

fn current_role(_ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(text("NONE"))
}

fn version(_ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(text(SERVER_VERSION))
}

fn connection_id(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::UInt(ctx.session.connection_id()))
}

fn last_insert_id(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(arg) = args.first() else {
        return Ok(Value::UInt(ctx.session.last_insert_id()));
    };
    let bits = arg.to_bits();
    ctx.session.set_last_insert_id(bits.unwrap_or(0));
    Ok(bits.map_or(Value::Null, Value::UInt))
}

fn row_count(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Int(ctx.session.row_count()))
}

fn found_rows(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Int(
        i64::try_from(ctx.session.found_rows()).unwrap_or(i64::MAX),
    ))
}

/// Text and what is not text tell; which text collation an argument has, only its type knows.
fn charset(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(text(
        if matches!(args[0], Value::Text(_) | Value::Json(_)) {
            "utf8mb4"
        } else {
            "binary"
        },
    ))
}

fn collation(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let collation = match args[0] {
        Value::Text(_) => Collation::default(),
        Value::Json(_) => Collation::Bin,
        _ => Collation::Binary,
    };
    Ok(text(collation.name()))
}

fn coercibility(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Int(match args[0] {
        Value::Null => 6,
        Value::Text(_) => 4,
        _ => 5,
    }))
}

fn sleep(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let seconds = args[0]
        .to_double()
        .filter(|seconds| *seconds >= 0.0)
        .ok_or_else(|| {
            crate::error::SqlError::new(1210, "HY000", "Incorrect arguments to sleep.")
        })?;
    Ok(Value::Int(i64::from(ctx.session.sleep(seconds)?)))
}

/// The expression has been evaluated once already; more would tell nothing about this server.
fn benchmark(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(if args[0].is_null() {
        Value::Null
    } else {
        Value::Int(0)
    })
}

fn lock_name(value: &Value) -> SqlResult<String> {
    let name = value
        .to_text()
        .filter(|name| !name.is_empty() && name.chars().count() <= 64);
    name.map(|name| name.to_lowercase()).ok_or_else(|| {
        let shown = value
            .to_text()
            .map_or("NULL".to_string(), |name| format!("'{name}'"));
        let message = format!("Incorrect user-level lock name {shown}.");
        crate::error::SqlError::new(3057, "42000", message)
    })
}

fn get_lock(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let name = lock_name(&args[0])?;
    let Some(timeout) = args[1].to_double() else {
        return Ok(Value::Null);
    };
    let timeout = (timeout >= 0.0).then_some(timeout);
    Ok(Value::Int(ctx.session.get_lock(&name, timeout)?))
}

fn release_lock(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let name = lock_name(&args[0])?;
    Ok(ctx
        .session
        .release_lock(&name)
        .map_or(Value::Null, Value::Int))
}

fn is_free_lock(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let name = lock_name(&args[0])?;
    Ok(Value::Int(i64::from(
        ctx.session.lock_holder(&name).is_none(),
    )))
}

fn is_used_lock(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let name = lock_name(&args[0])?;
    let holder = ctx.session.lock_holder(&name);
    Ok(holder.map_or(Value::Null, |id| {
        Value::Int(i64::try_from(id).unwrap_or(i64::MAX))
    }))
}
