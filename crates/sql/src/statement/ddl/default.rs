//! DEFAULT, ON UPDATE and CHECK: kept as text, tried out when defined.

use sqlparser::ast::{Expr, UnaryOperator, Value};

use super::DdlContext;
use crate::binder::{BindContext, Scope, bind_definition, bit_bytes, hex_bytes};
use crate::catalog::{Catalog, Column, ColumnDefault, Table};
use crate::error::{SqlError, SqlResult};
use crate::expr::assign;
use crate::parser::{canonical as canonical_text, parse_expression, stored_mode};
use crate::types::{DataType, to_text};

/// A DEFAULT as it is stored; `DEFAULT NULL` is no default. CURRENT_TIMESTAMP must have the
/// column's precision.
///
/// # Errors
/// 1101 and 1067.
pub(super) fn of_expr(column: &Column, expr: &Expr) -> SqlResult<Option<ColumnDefault>> {
    if let Some(fsp) = now_precision(expr) {
        if !is_moment(&column.ty, fsp) {
            return Err(invalid(column));
        }
        return Ok(Some(ColumnDefault::Now));
    }
    if let Expr::Nested(inner) = expr {
        return Ok(Some(ColumnDefault::Expression(canonical_text(inner))));
    }
    let Some(text) = literal(expr, &column.ty) else {
        return Err(invalid(column));
    };
    if text == "NULL" {
        return Ok(None);
    }
    let heavy = matches!(
        column.ty,
        DataType::Text { .. } | DataType::Blob { .. } | DataType::Json
    );
    if heavy {
        return Err(SqlError::new(
            1101,
            "42000",
            format!(
                "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value",
                column.name
            ),
        ));
    }
    Ok(Some(ColumnDefault::Literal(text)))
}

/// A literal of a column of type `ty` as default-mode SQL text.
fn literal(expr: &Expr, ty: &DataType) -> Option<String> {
    match expr {
        Expr::Value(value) => Some(match &value.value {
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::NationalStringLiteral(text) => quote(text),
            Value::Number(digits, _) => digits.clone(),
            Value::Boolean(truth) => u8::from(*truth).to_string(),
            Value::Null => "NULL".to_string(),
            Value::HexStringLiteral(digits) => of_bytes(hex_bytes(digits)?, ty)?,
            Value::SingleQuotedByteStringLiteral(bits) => of_bytes(bit_bytes(bits)?, ty)?,
            _ => return None,
        }),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => literal(expr, ty).map(|text| format!("-{text}")),
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        } => literal(expr, ty),
        Expr::Prefixed { value, .. } => literal(value, ty),
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) => Some(quote(text)),
            _ => None,
        },
        _ => None,
    }
}

/// A hexadecimal or bit literal: the number or the text it is in a column of type `ty`, and
/// hexadecimal digits for bytes that are no text.
fn of_bytes(bytes: Vec<u8>, ty: &DataType) -> Option<String> {
    if ty.is_number() {
        if bytes.len() > 8 {
            return None;
        }
        let number = bytes
            .iter()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        return Some(number.to_string());
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => quote(&text),
        Err(error) => {
            let digits = error.as_bytes().iter().map(|byte| format!("{byte:02X}"));
            format!("0x{}", digits.collect::<String>())
        }
    })
}

/// A string literal of default-mode SQL.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// Whether the type is DATETIME or TIMESTAMP of that many fraction digits.
pub(super) fn is_moment(ty: &DataType, digits: u8) -> bool {
    matches!(ty, DataType::DateTime { fsp } | DataType::Timestamp { fsp } if *fsp == digits)
}

/// Fraction digits of an expression that is CURRENT_TIMESTAMP by one of its names.
pub(super) fn now_precision(expr: &Expr) -> Option<u8> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let name = function.name.to_string().to_ascii_uppercase();
    if !["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"].contains(&name.as_str()) {
        return None;
    }
    let text = function.args.to_string();
    let digits = text.trim_matches(['(', ')', ' ']);
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse().ok()
}

pub(super) fn invalid(column: &Column) -> SqlError {
    SqlError::new(
        1067,
        "42000",
        format!("Invalid default value for '{}'", column.name),
    )
}

pub(super) fn invalid_on_update(column: &Column) -> SqlError {
    SqlError::new(
        1294,
        "HY000",
        format!("Invalid ON UPDATE clause for '{}' column", column.name),
    )
}

/// Tries a DEFAULT out and gives a number or time the form of its type, `0` of a DECIMAL(5,2)
/// that of `0.00`: clients read it back.
///
/// # Errors
/// 1067 when it does not fit; what binding meets.
pub(super) fn settle(context: &DdlContext<'_>, column: &mut Column) -> SqlResult<()> {
    let temporal = matches!(
        column.ty,
        DataType::DateTime { .. } | DataType::Timestamp { .. }
    );
    if column.on_update_now && !temporal {
        return Err(invalid_on_update(column));
    }
    let Some(ColumnDefault::Literal(text)) = &column.default else {
        return Ok(());
    };
    let parsed = parse_expression(text, crate::types::SqlMode::default())?;
    let catalog = context.store.current();
    let bound = bind_definition(
        &bind_context(context, &catalog),
        &Scope::default(),
        &parsed,
        "default value",
    )?;
    let value = bound.eval(context.eval, &[], &[])?;
    let strict = super::super::writing(context.eval, false);
    let fitted = assign(&strict, value, column, 1).map_err(|_| invalid(column))?;
    let too_long =
        matches!((&fitted, &column.ty), (crate::types::Value::Null, _) if column.not_null);
    if too_long {
        return Err(invalid(column));
    }
    if let Some(text) = canonical(&fitted, &column.ty) {
        column.default = Some(ColumnDefault::Literal(text));
    }
    Ok(())
}

/// The literal of a number, a time, a member or bits; other types keep what was written.
fn canonical(value: &crate::types::Value, ty: &DataType) -> Option<String> {
    match ty {
        DataType::Bit { .. } => Some(bits(value)),
        DataType::Enum { .. } | DataType::Set { .. } => Some(quote(&to_text(value, ty))),
        DataType::Int { .. } | DataType::Decimal { .. } | DataType::Year => {
            Some(to_text(value, ty))
        }
        DataType::Date
        | DataType::Time { .. }
        | DataType::DateTime { .. }
        | DataType::Timestamp { .. } => Some(quote(&to_text(value, ty))),
        _ if ty.shown_digits().is_some() && ty.zerofill().is_none() => Some(to_text(value, ty)),
        _ => None,
    }
}

/// A BIT's literal, as MySQL writes it.
pub(super) fn bits(value: &crate::types::Value) -> String {
    format!("b'{:b}'", value.to_bits().unwrap_or(0))
}

/// Binds every CHECK and DEFAULT expression of `table`.
///
/// # Errors
/// 3820 for unknown columns, and what binding meets.
pub(super) fn check_constraints(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    table: &Table,
) -> SqlResult<()> {
    let bind = bind_context(context, catalog);
    let scope = Scope::of_table(table, &table.name);
    for check in &table.checks {
        let parsed = parse_expression(&check.expression, stored_mode())?;
        bind_definition(&bind, &scope, &parsed, "check constraint").map_err(|error| {
            if error.code == 1054 {
                SqlError::new(
                    3820,
                    "HY000",
                    format!(
                        "Check constraint '{}' refers to non-existing column: {}",
                        check.name, error.message
                    ),
                )
            } else {
                error
            }
        })?;
    }
    for column in &table.columns {
        if let Some(ColumnDefault::Expression(text)) = &column.default {
            let parsed = parse_expression(text, stored_mode())?;
            bind_definition(&bind, &scope, &parsed, "default value")?;
        }
    }
    Ok(())
}

/// Binding outside a session's statement.
pub(super) fn bind_context<'a>(
    context: &'a DdlContext<'_>,
    catalog: &'a Catalog,
) -> BindContext<'a> {
    BindContext {
        catalog,
        database: context.database,
        sql_mode: context.eval.sql_mode,
        collation: context.collation,
        virtual_tables: context.virtual_tables,
        source: None,
        constants: &[],
        with: None,
        for_view: false,
    }
}
