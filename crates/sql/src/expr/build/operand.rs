//! What an operand becomes for the sake of the one beside it: as MySQL does, a constant is read as
//! what it is compared with, and members and hexadecimal literals count among numbers.

use crate::error::{SqlError, SqlResult};
use crate::expr::functions;
use crate::plan::{Expr, ExprKind};
use crate::types::{
    DataType, Date, DateTime, MAX_DECIMAL_PRECISION, Parsed, Value, expand_year, parse_datetime,
    parse_decimal,
};

/// An ENUM, a SET and a hexadecimal literal beside a number are numbers, and a SET with an empty member
/// beside anything else is the text that it shows.
pub(super) fn beside(expr: Expr, other: &DataType) -> Expr {
    if other.is_number() {
        number_of_bytes(expr)
    } else if expr.ty.has_empty_member() {
        functions::shown_as_declared(expr)
    } else {
        expr
    }
}

/// Functions whose result is a date or time, and a text where they are given one.
const SUMS: [&str; 5] = ["DATE_ADD", "DATE_SUB", "TIMESTAMPADD", "ADDTIME", "SUBTIME"];

/// Hexadecimal and bit literals are numbers among numbers.
pub(super) fn number_of_bytes(expr: Expr) -> Expr {
    expr.member_number().calculated()
}

impl Expr {
    /// This expression where a number is computed: a hexadecimal literal is an integer, and what a
    /// function makes of a text that is a date or time counts as that, not as the number its text
    /// begins with.
    #[must_use]
    pub(crate) fn calculated(self) -> Expr {
        let sums_text = match &self.kind {
            ExprKind::Call(function, _) => SUMS.contains(&function.name) && self.ty.is_text(),
            _ => false,
        };
        if !sums_text {
            return self.literal_number();
        }
        match functions::lookup("_MOMENT_NUMBER") {
            Some(function) => Expr {
                nullable: true,
                kind: ExprKind::Call(function, vec![self]),
                ty: DataType::DOUBLE,
            },
            None => self,
        }
    }

    /// A hexadecimal or bit literal where a number is computed: BIGINT UNSIGNED, of a longer one
    /// the last eight bytes. The binder makes a bare literal of bytes of nothing else: a string
    /// behind `_binary` stands in a cast.
    #[must_use]
    pub(crate) fn literal_number(self) -> Expr {
        let ExprKind::Literal(Value::Bytes(bytes)) = &self.kind else {
            return self;
        };
        let last = bytes.get(bytes.len().saturating_sub(8)..);
        let number = last
            .unwrap_or_default()
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        Expr::literal(Value::UInt(number), DataType::BIGINT_UNSIGNED)
    }

    /// This expression where its value is stored in a column of type `ty`: a hexadecimal or bit
    /// literal is a number in a column of numbers, and beyond the range of each when it has more
    /// than eight bytes. A BIT takes the bytes as they are.
    #[must_use]
    pub(crate) fn stored_in(self, ty: &DataType) -> Expr {
        if !ty.is_number() || matches!(ty, DataType::Bit { .. }) {
            return self;
        }
        match &self.kind {
            ExprKind::Literal(Value::Bytes(bytes)) if bytes.len() > 8 => {
                let beyond = format!("1{}", "0".repeat(usize::from(MAX_DECIMAL_PRECISION) - 1));
                let number = parse_decimal(&beyond).0;
                let ty = DataType::Decimal {
                    precision: MAX_DECIMAL_PRECISION,
                    scale: 0,
                    sign: DataType::SIGNED,
                };
                Expr::literal(Value::decimal(number), ty)
            }
            _ => self.literal_number(),
        }
    }
}

/// A truth value beside JSON is JSON's true or false, where another integer is a number.
pub(super) fn truth_beside(expr: Expr, other: &DataType) -> Expr {
    match other {
        DataType::Json => functions::json_truth(expr),
        _ => expr,
    }
}

/// A constant number beside a column of dates or years is read as one.
pub(super) fn read_as_date(constant: Expr, other: &Expr) -> SqlResult<Expr> {
    let is_date = matches!(
        other.ty,
        DataType::Year | DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. }
    );
    if !is_date || !matches!(other.kind, ExprKind::Column(_) | ExprKind::Outer { .. }) {
        return Ok(constant);
    }
    if matches!(constant.kind, ExprKind::Param(_)) && constant.ty.is_number() {
        return Err(constant_needed());
    }
    Ok(match (constant.as_literal(), &other.ty) {
        (Some(Value::Int(year @ 1..=99)), DataType::Year) => {
            let year = i64::try_from(expand_year(year.unsigned_abs())).unwrap_or(0);
            Expr::int(year)
        }
        (
            Some(number @ (Value::Int(_) | Value::UInt(_) | Value::Decimal(_))),
            DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. },
        ) => match number.to_datetime(Date::ZERO) {
            Some(read) => Expr::literal(Value::DateTime(read), DataType::DateTime { fsp: 6 }),
            None => constant,
        },
        _ => constant,
    })
}

/// Brings a constant to the kind of what it is compared with, as far as that is exact: text
/// beside an integer column becomes an integer, text beside a date a date.
pub(super) fn adapt_constant(constant: Expr, other: &DataType) -> SqlResult<Expr> {
    // A text constant of a template: what it is beside a number or a date depends on its value.
    if matches!(constant.kind, ExprKind::Param(_))
        && constant.ty.is_text()
        && (matches!(other, DataType::Int { .. }) || other.is_temporal())
    {
        return Err(constant_needed());
    }
    let Some(Value::Text(text)) = constant.as_literal() else {
        return Ok(constant);
    };
    let word = match other {
        DataType::Int { .. } => return Ok(read_as_integer(text).unwrap_or(constant)),
        DataType::Date => "DATE",
        DataType::DateTime { .. } => "DATETIME",
        DataType::Timestamp { .. } => "TIMESTAMP",
        _ => return Ok(constant),
    };
    match parse_datetime(text) {
        Some((parsed, None)) if !parsed.truncated => Ok(date_literal(&parsed, other)),
        Some(_) => Ok(constant),
        None => Err(SqlError::new(
            1525,
            "HY000",
            format!("Incorrect {word} value: '{text}'"),
        )),
    }
}

/// Only the canonical spelling: '1abc' must stay text to raise its warning.
fn read_as_integer(text: &str) -> Option<Expr> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(Expr::literal(Value::Int(number), DataType::BIGINT));
    }
    let number = text.parse::<u64>().ok()?;
    Some(Expr::literal(
        Value::UInt(number),
        DataType::BIGINT_UNSIGNED,
    ))
}

/// A date that was read, as far as possible of the type it is compared with.
fn date_literal(parsed: &Parsed<DateTime>, other: &DataType) -> Expr {
    if parsed.has_time || *other != DataType::Date {
        let ty = DataType::DateTime { fsp: parsed.fsp };
        return Expr::literal(Value::DateTime(parsed.value), ty);
    }
    Expr::literal(Value::Date(parsed.value.date), DataType::Date)
}

/// Tells that a template cannot be planned: its constants are needed.
fn constant_needed() -> SqlError {
    SqlError::internal("this plan needs the constant itself")
}
