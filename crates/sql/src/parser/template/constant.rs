//! What a constant of the text means.

use std::str::FromStr;

use super::TEXT_BYTES_MAX;
use super::token::Kind;
use crate::types::SqlMode;
use crate::types::{Collation, DataType, Decimal, Value};

/// The value that parsing would find in `text`.
pub(super) fn constant(
    text: &str,
    kind: Kind,
    mode: SqlMode,
    collation: Collation,
) -> Option<(Value, DataType)> {
    if kind == Kind::Text {
        let inner = text.get(1..text.len().checked_sub(1)?)?;
        let ty = DataType::Varchar {
            length: u32::try_from(TEXT_BYTES_MAX).ok()?,
            collation,
        };
        return Some((Value::Text(unescaped(inner, mode)?), ty));
    }
    if text.contains('.') {
        let ty = DataType::Decimal {
            precision: 65,
            scale: 30,
            sign: DataType::SIGNED,
        };
        let value = Decimal::from_str(text).ok()?;
        return Some((Value::Decimal(Box::new(value)), ty));
    }
    Some((Value::Int(text.parse().ok()?), DataType::BIGINT))
}

/// Text between single quotes with doubled quotes and escapes resolved.
fn unescaped(inner: &str, mode: SqlMode) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => out.push(chars.next()?),
            '\\' if !mode.no_backslash_escapes => match chars.next()? {
                '0' => out.push('\0'),
                'b' => out.push('\u{8}'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'Z' => out.push('\u{1a}'),
                // LIKE gives these two their meaning, so the escape stays.
                wildcard @ ('%' | '_') => out.extend(['\\', wildcard]),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    Some(out)
}
