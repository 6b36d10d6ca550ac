//! The columns of CREATE TABLE … SELECT.
//!
//! A column of a table brings its type, DEFAULT and comment along; one that was AUTO_INCREMENT is a
//! plain number with DEFAULT 0. What is computed takes the narrower of INT and BIGINT that holds
//! its digits, and when it is never NULL the default that its type implies.

use super::default::quote;
use crate::catalog::{Catalog, Column, ColumnDefault};
use crate::plan::physical::Node;
use crate::plan::{BinaryOp, Expr, ExprKind, Plan};
use crate::statement::target::position;
use crate::types::{ColumnMeta, DataType, IntWidth, Value, implicit_default, to_text};

/// Characters from which on a number is a BIGINT, as in MySQL.
const BIGINT_LENGTH: u32 = 10;

/// The columns that `plan` makes, without identities.
pub(super) fn columns(catalog: &Catalog, plan: &Plan) -> Vec<Column> {
    let expressions = expressions(&plan.root);
    let metas = plan.columns.iter().enumerate();
    metas
        .map(|(at, meta)| match base_column(catalog, meta) {
            Some(base) => copied(meta, base),
            None => computed(meta, expressions.get(at)),
        })
        .collect()
}

/// What a query without set operations selects.
fn expressions(node: &Node) -> &[Expr] {
    match node {
        Node::Project { expressions, .. } => expressions,
        Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Cut { input, .. } => expressions(input),
        _ => &[],
    }
}

fn base_column<'a>(catalog: &'a Catalog, meta: &ColumnMeta) -> Option<&'a Column> {
    let table = catalog.table(&meta.schema, &meta.org_table).ok()?;
    let column = table.columns.get(position(table, &meta.org_name)?)?;
    (column.ty == meta.ty).then_some(column)
}

fn copied(meta: &ColumnMeta, base: &Column) -> Column {
    let default = match &base.default {
        _ if base.auto_increment => implied(&base.ty),
        Some(ColumnDefault::Expression(_)) | None => None,
        kept => kept.clone(),
    };
    Column {
        comment: base.comment.clone(),
        ..plain(meta, base.ty.clone(), default)
    }
}

fn computed(meta: &ColumnMeta, expr: Option<&Expr>) -> Column {
    let ty = match &meta.ty {
        DataType::Null => DataType::Binary { length: 0 },
        DataType::Int {
            width: IntWidth::Big,
            unsigned,
            ..
        } if expr.and_then(length).is_some_and(|n| n < BIGINT_LENGTH) => DataType::Int {
            width: IntWidth::Int,
            unsigned: *unsigned,
            display_width: None,
        },
        DataType::Double { .. } => DataType::DOUBLE,
        other => other.clone(),
    };
    let default = implied(&ty).filter(|_| meta.not_null);
    plain(meta, ty, default)
}

fn plain(meta: &ColumnMeta, ty: DataType, default: Option<ColumnDefault>) -> Column {
    Column {
        ty,
        default,
        ..Column::of_result(meta)
    }
}

/// The default a NOT NULL column of type `ty` has without one, written out; `None` for types
/// that cannot have a DEFAULT.
fn implied(ty: &DataType) -> Option<ColumnDefault> {
    if matches!(
        ty,
        DataType::Text { .. } | DataType::Blob { .. } | DataType::Json | DataType::Null
    ) {
        return None;
    }
    let value = implicit_default(ty);
    if matches!(ty, DataType::Bit { .. }) {
        return Some(ColumnDefault::Literal(super::default::bits(&value)));
    }
    let text = to_text(&value, ty);
    let text = if ty.is_number() { text } else { quote(&text) };
    Some(ColumnDefault::Literal(text))
}

/// Characters of the longest value of an integer expression, as MySQL counts them; `None` where
/// that is as long as the type allows.
fn length(expr: &Expr) -> Option<u32> {
    match &expr.kind {
        ExprKind::Literal(Value::Int(number)) => u32::try_from(number.to_string().len()).ok(),
        ExprKind::Negate(operand) => Some(length(operand)? + 1),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (digits(a)?, digits(b)?);
            match op {
                BinaryOp::Add | BinaryOp::Sub => Some(a.max(b) + 2),
                BinaryOp::Mul => Some(a + b + 1),
                BinaryOp::IntDiv => Some(a + 1),
                BinaryOp::Mod => Some(a.max(b) + 1),
                _ => None,
            }
        }
        ExprKind::Call(function, _) => match function.name {
            "YEAR" => Some(4),
            "DAYOFYEAR" | "ASCII" | "FIELD" => Some(3),
            "MONTH" | "DAY" | "DAYOFMONTH" | "DAYOFWEEK" | "WEEKDAY" | "WEEK" | "QUARTER"
            | "MINUTE" | "SECOND" | "SIGN" | "STRCMP" | "INTERVAL" | "ISNULL" => Some(2),
            _ => None,
        },
        _ => None,
    }
}

/// Digits of an operand, its sign left out.
fn digits(expr: &Expr) -> Option<u32> {
    match (&expr.kind, &expr.ty) {
        (ExprKind::Literal(Value::Int(number)), _) => {
            u32::try_from(number.unsigned_abs().to_string().len()).ok()
        }
        (
            ExprKind::Column(_) | ExprKind::Outer { .. },
            DataType::Int {
                width, unsigned, ..
            },
        ) => Some(u32::from(width.digits(*unsigned))),
        _ => length(expr),
    }
}
