//! Constants as written.

use std::str::FromStr;

use sqlparser::ast;

use crate::error::{SqlError, SqlResult};
use crate::plan::Expr;
use crate::types::{Collation, DataType, Decimal, Value};

/// Binds a constant that is not a placeholder.
pub(crate) fn bind_literal(value: &ast::Value, collation: Collation) -> SqlResult<Expr> {
    use ast::Value as V;
    match value {
        V::Number(digits, _) => number(digits),
        V::SingleQuotedString(text)
        | V::DoubleQuotedString(text)
        | V::NationalStringLiteral(text)
        | V::EscapedStringLiteral(text)
        | V::TripleSingleQuotedString(text)
        | V::TripleDoubleQuotedString(text) => Ok(text_literal(text, collation)),
        V::HexStringLiteral(digits) => hex(digits),
        V::SingleQuotedByteStringLiteral(bits) | V::DoubleQuotedByteStringLiteral(bits) => {
            self::bits(bits)
        }
        V::Boolean(truth) => Ok(Expr::boolean(*truth)),
        V::Null => Ok(Expr::literal(Value::Null, DataType::Null)),
        other => Err(SqlError::syntax(format!("near '{other}'"))),
    }
}

/// A text constant.
pub(crate) fn text_literal(text: &str, collation: Collation) -> Expr {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    Expr::literal(
        Value::Text(text.to_string()),
        DataType::Varchar { length, collation },
    )
}

/// A bytes constant.
fn bytes_literal(bytes: Vec<u8>) -> Expr {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    Expr::literal(Value::Bytes(bytes), DataType::Varbinary { length })
}

fn number(digits: &str) -> SqlResult<Expr> {
    if digits.contains(['e', 'E']) {
        let value = f64::from_str(digits)
            .ok()
            .filter(|value| value.is_finite())
            .ok_or_else(|| illegal_double(digits))?;
        return Ok(Expr::literal(Value::Double(value), DataType::DOUBLE));
    }
    if !digits.contains('.') {
        if let Ok(value) = digits.parse::<i64>() {
            return Ok(Expr::literal(Value::Int(value), DataType::BIGINT));
        }
        if let Ok(value) = digits.parse::<u64>() {
            return Ok(Expr::literal(Value::UInt(value), DataType::BIGINT_UNSIGNED));
        }
    }
    let value =
        Decimal::from_str(digits).map_err(|_| SqlError::syntax(format!("near '{digits}'")))?;
    let scale = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let whole = digits.split('.').next().unwrap_or("");
    let whole = whole.trim_start_matches('0').len();
    let scale = u8::try_from(scale.min(30)).unwrap_or(30);
    let precision = u8::try_from((whole + usize::from(scale)).clamp(1, 65)).unwrap_or(65);
    let ty = DataType::Decimal {
        precision,
        scale,
        sign: DataType::SIGNED,
    };
    Ok(Expr::literal(Value::Decimal(Box::new(value)), ty))
}

fn illegal_double(digits: &str) -> SqlError {
    SqlError::new(
        1367,
        "22007",
        format!("Illegal double '{digits}' value found during parsing"),
    )
}

fn hex(digits: &str) -> SqlResult<Expr> {
    let bytes = hex_bytes(digits);
    bytes
        .map(bytes_literal)
        .ok_or_else(|| SqlError::syntax(format!("near 'x'{digits}''")))
}

/// The bytes of a hexadecimal literal; of an odd number of digits the first is half a byte.
pub(crate) fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let padded = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_string()
    };
    hex::decode(padded).ok()
}

fn bits(digits: &str) -> SqlResult<Expr> {
    let bytes = bit_bytes(digits);
    bytes
        .map(bytes_literal)
        .ok_or_else(|| SqlError::syntax(format!("near 'b'{digits}''")))
}

/// The bytes of a bit literal, the last eight digits in the last one.
pub(crate) fn bit_bytes(digits: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let offset = (8 - digits.len() % 8) % 8;
    let mut byte = 0_u8;
    for (index, digit) in digits.chars().enumerate() {
        let bit = match digit {
            '0' => 0,
            '1' => 1,
            _ => return None,
        };
        byte = (byte << 1) | bit;
        if (index + offset) % 8 == 7 {
            bytes.push(byte);
            byte = 0;
        }
    }
    Some(bytes)
}
