//! Type rules shared by functions.

use crate::expr::result_collation;
use crate::plan::Expr;
use crate::types::{Collation, DataType, TextSize};

type Typed = (DataType, bool);

fn any_nullable(args: &[Expr]) -> bool {
    args.iter().any(|arg| arg.nullable)
}

/// BIGINT, NULL when an argument is.
pub fn integer(args: &[Expr]) -> Typed {
    (DataType::BIGINT, any_nullable(args))
}

/// BIGINT that may be NULL whatever the arguments.
pub fn integer_or_null(_args: &[Expr]) -> Typed {
    (DataType::BIGINT, true)
}

/// BIGINT, never NULL.
pub fn integer_always(_args: &[Expr]) -> Typed {
    (DataType::BIGINT, false)
}

/// BIGINT UNSIGNED, NULL when an argument is.
pub fn unsigned(args: &[Expr]) -> Typed {
    (DataType::BIGINT_UNSIGNED, any_nullable(args))
}

/// DOUBLE that may be NULL.
pub fn double_or_null(_args: &[Expr]) -> Typed {
    (DataType::DOUBLE, true)
}

/// DOUBLE, NULL when an argument is.
pub fn double(args: &[Expr]) -> Typed {
    (DataType::DOUBLE, any_nullable(args))
}

/// Text as long as the arguments together, NULL when an argument is.
pub fn text(args: &[Expr]) -> Typed {
    (text_type(args), any_nullable(args))
}

/// As [`text`], but may be NULL whatever the arguments.
pub fn text_or_null(args: &[Expr]) -> Typed {
    (text_type(args), true)
}

fn text_type(args: &[Expr]) -> DataType {
    let length = args
        .iter()
        .fold(0u32, |sum, arg| sum.saturating_add(arg.ty.char_length()));
    DataType::text_of(length, result_collation(args))
}

/// Text as the first argument's.
pub fn first_text(args: &[Expr]) -> Typed {
    let first = args.get(..1).unwrap_or_default();
    (text_type(first), any_nullable(args))
}

/// Text without a bound known before running.
pub fn long_text(args: &[Expr]) -> Typed {
    (DataType::text_of(u32::MAX, result_collation(args)), true)
}

/// Text of our own making without a bound known before running: digits, whatever the arguments.
pub fn long_ascii(_args: &[Expr]) -> Typed {
    (DataType::text_of(u32::MAX, Collation::default()), true)
}

/// A short text of our own making.
pub fn short_text(_args: &[Expr]) -> Typed {
    (DataType::varchar(64), true)
}

/// Bytes.
pub fn bytes(_args: &[Expr]) -> Typed {
    let ty = DataType::Blob {
        size: TextSize::Long,
    };
    (ty, true)
}

/// JSON.
pub fn json(_args: &[Expr]) -> Typed {
    (DataType::Json, true)
}

/// DATE.
pub fn date(_args: &[Expr]) -> Typed {
    (DataType::Date, true)
}

/// Digits of the fraction of a second in a date or time that is read from a value of type `ty`;
/// six where only the value tells.
pub fn fraction_digits(ty: &DataType) -> u8 {
    match ty {
        DataType::Decimal { scale, .. } => (*scale).min(6),
        ty if ty.is_temporal() => ty.fsp(),
        ty if ty.is_integer() => 0,
        DataType::Null => 0,
        _ => 6,
    }
}

/// The constant number of fractional digits an argument gives, else `otherwise`.
pub fn constant_fsp(arg: Option<&Expr>, otherwise: u8) -> u8 {
    let Some(arg) = arg else { return otherwise };
    match arg.as_literal().and_then(crate::types::Value::to_i64) {
        Some(fsp) => u8::try_from(fsp.clamp(0, 6)).unwrap_or(6),
        None => 6,
    }
}
