//! Types in CAST and CONVERT, and collations by name.

use sqlparser::ast;

use super::Binder;
use super::literal::text_literal;
use crate::error::{SqlError, SqlResult};
use crate::plan::{Expr, ExprKind};
use crate::types::{Collation, DataType, TextSize, Value};

impl Binder<'_> {
    /// CAST(expr AS type).
    pub(crate) fn bind_cast(
        &mut self,
        expr: &ast::Expr,
        data_type: &ast::DataType,
    ) -> SqlResult<Expr> {
        if matches!(data_type, ast::DataType::Binary(None))
            && let Some(binding) = bind_tightly(expr)
        {
            return self.bind_scalar(&binding);
        }
        let mut value = self.bind_scalar(expr)?;
        let ty = cast_type(data_type, &value.ty, self.context.collation)?;
        self.infer(&mut value, &ty);
        match fixed_length(data_type) {
            Some(length) => filled_up(value, length),
            None => Expr::cast(value, ty),
        }
    }

    /// CONVERT(expr, type) and CONVERT(expr USING charset).
    pub(crate) fn bind_convert(
        &mut self,
        expr: &ast::Expr,
        data_type: Option<&ast::DataType>,
        charset: Option<&ast::ObjectName>,
    ) -> SqlResult<Expr> {
        match (data_type, charset) {
            (Some(data_type), _) => self.bind_cast(expr, data_type),
            (None, Some(charset)) => {
                let value = self.bind_scalar(expr)?;
                let collation = charset_collation(&charset.to_string(), self.context.collation)?;
                let ty = text_type(None, collation, &value.ty);
                Expr::cast(value, ty)
            }
            (None, None) => Err(SqlError::syntax("near 'CONVERT'")),
        }
    }

    /// `_utf8mb4'text'`.
    pub(crate) fn bind_introducer(&mut self, prefix: &str, value: &ast::Expr) -> SqlResult<Expr> {
        let charset = prefix.trim_start_matches('_').to_ascii_lowercase();
        let literal = self.bind_scalar(value)?;
        if charset == "n" {
            return Ok(literal);
        }
        let collation = charset_collation(&charset, self.context.collation)?;
        match (&literal.kind, collation) {
            (ExprKind::Literal(Value::Text(text)), Collation::Binary) => {
                Ok(bytes_as_string(text.clone().into_bytes()))
            }
            (ExprKind::Literal(Value::Bytes(bytes)), Collation::Binary) => {
                Ok(bytes_as_string(bytes.clone()))
            }
            (ExprKind::Literal(Value::Text(text)), collation) => Ok(text_literal(text, collation)),
            (ExprKind::Literal(Value::Bytes(bytes)), collation)
                if collation != Collation::Binary =>
            {
                let text = String::from_utf8(bytes.clone()).map_err(|_| {
                    SqlError::new(1300, "HY000", format!("Invalid {charset} character string"))
                })?;
                Ok(text_literal(&text, collation))
            }
            _ => Ok(literal),
        }
    }

    /// The type of `DATE '…'`, `TIME '…'` and `TIMESTAMP '…'`.
    pub(crate) fn literal_type(
        &self,
        data_type: &ast::DataType,
        value: &Expr,
    ) -> SqlResult<DataType> {
        let digits = match &value.kind {
            ExprKind::Literal(Value::Text(text)) => text
                .rsplit_once('.')
                .map_or(0, |(_, fraction)| fraction.len().min(6)),
            _ => 0,
        };
        let fsp = u8::try_from(digits).unwrap_or(0);
        match data_type {
            ast::DataType::Time(..) => Ok(DataType::Time { fsp }),
            ast::DataType::Timestamp(..) | ast::DataType::Datetime(_) => {
                Ok(DataType::DateTime { fsp })
            }
            other => cast_type(other, &value.ty, self.context.collation),
        }
    }
}

/// A byte string that an introducer makes of a literal. It stands in a cast: a bare literal of
/// bytes is a hexadecimal one, and that is a number among numbers.
fn bytes_as_string(bytes: Vec<u8>) -> Expr {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let ty = DataType::Varbinary { length };
    Expr {
        kind: ExprKind::Cast(Box::new(Expr::literal(Value::Bytes(bytes), ty.clone()))),
        ty,
        nullable: false,
    }
}

/// `expr` with its text compared under the collation called `name`.
pub(crate) fn with_collation(expr: Expr, name: &str) -> SqlResult<Expr> {
    Expr::collate(expr, collation_named(name)?)
}

/// The leftmost operand of an operator, borrowed as the expression is; none of what is no operator.
macro_rules! leftmost {
    ($expr:expr) => {
        match $expr {
            ast::Expr::BinaryOp { left, .. } => Some(left),
            ast::Expr::Like { expr, .. }
            | ast::Expr::RLike { expr, .. }
            | ast::Expr::InList { expr, .. }
            | ast::Expr::InSubquery { expr, .. }
            | ast::Expr::Between { expr, .. }
            | ast::Expr::IsNull(expr)
            | ast::Expr::IsNotNull(expr) => Some(expr),
            _ => None,
        }
    };
}

/// `BINARY a = b` reaches us as `CAST(a = b AS BINARY)`, but the operator binds more tightly than
/// any other: the cast moves to the leftmost operand.
fn bind_tightly(expr: &ast::Expr) -> Option<ast::Expr> {
    // Looked at before it is copied: a copy of a deep one takes as much stack as it is deep.
    leftmost!(expr)?;
    let mut moved = expr.clone();
    let leftmost = leftmost!(&mut moved)?;
    let operand = std::mem::replace(leftmost.as_mut(), ast::Expr::value(ast::Value::Null));
    **leftmost = ast::Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(operand),
        data_type: ast::DataType::Binary(None),
        format: None,
    };
    Some(moved)
}

/// The collation called `name`.
pub(crate) fn collation_named(name: &str) -> SqlResult<Collation> {
    let name = name.trim_matches(['`', '\'', '"']);
    Collation::from_name(name)
        .ok_or_else(|| SqlError::new(1273, "HY000", format!("Unknown collation: '{name}'")))
}

fn charset_collation(charset: &str, default: Collation) -> SqlResult<Collation> {
    let charset = charset.trim_matches(['`', '\'', '"']).to_ascii_lowercase();
    match charset.as_str() {
        "utf8mb4" | "utf8" | "utf8mb3" | "latin1" | "ascii" | "ucs2" | "utf16" => Ok(default),
        "binary" => Ok(Collation::Binary),
        _ => Err(SqlError::new(
            1115,
            "42000",
            format!("Unknown character set: '{charset}'"),
        )),
    }
}

fn text_type(length: Option<u32>, collation: Collation, from: &DataType) -> DataType {
    if collation == Collation::Binary {
        return match length {
            Some(length) => DataType::Varbinary { length },
            None => DataType::Blob {
                size: TextSize::Long,
            },
        };
    }
    match (length, from) {
        (Some(length), _) => DataType::Varchar { length, collation },
        (None, DataType::Char { length, .. } | DataType::Varchar { length, .. }) => {
            DataType::Varchar {
                length: *length,
                collation,
            }
        }
        (None, DataType::Text { size, .. }) => DataType::Text {
            size: *size,
            collation,
        },
        _ => DataType::Text {
            size: TextSize::Long,
            collation,
        },
    }
}

fn cast_type(
    data_type: &ast::DataType,
    from: &DataType,
    collation: Collation,
) -> SqlResult<DataType> {
    use ast::DataType as D;
    let fsp = |digits: &Option<u64>| -> SqlResult<u8> {
        let digits = digits.unwrap_or(0);
        u8::try_from(digits)
            .ok()
            .filter(|d| *d <= 6)
            .ok_or_else(|| {
                SqlError::new(
                    1426,
                    "42000",
                    format!("Too-big precision {digits} specified for 'CAST'. Maximum is 6."),
                )
            })
    };
    Ok(match data_type {
        D::Signed | D::SignedInteger | D::Int(_) | D::Integer(_) | D::BigInt(_) => DataType::BIGINT,
        D::Unsigned | D::UnsignedInteger | D::IntUnsigned(_) | D::BigIntUnsigned(_) => {
            DataType::BIGINT_UNSIGNED
        }
        D::Decimal(info) | D::Numeric(info) | D::Dec(info) => decimal(info)?,
        D::Float(_) | D::Float4 => DataType::FLOAT,
        D::Double(_) | D::DoublePrecision | D::Real | D::Float8 => DataType::DOUBLE,
        D::Char(length) | D::Character(length) | D::Varchar(length) | D::Nvarchar(length) => {
            text_type(character_length(length.as_ref()), collation, from)
        }
        D::Text | D::String(_) => text_type(None, collation, &DataType::Null),
        D::Binary(_) => binary(fixed_length(data_type)),
        D::Varbinary(length) => binary(match length {
            Some(ast::BinaryLength::IntegerLength { length }) => {
                Some(u32::try_from(*length).unwrap_or(u32::MAX))
            }
            _ => None,
        }),
        D::Date => DataType::Date,
        D::Time(digits, _) => DataType::Time { fsp: fsp(digits)? },
        D::Datetime(digits) | D::Timestamp(digits, _) => DataType::DateTime { fsp: fsp(digits)? },
        D::JSON => DataType::Json,
        D::Custom(name, _) => match name.to_string().to_ascii_uppercase().as_str() {
            "YEAR" => DataType::Year,
            "NCHAR" => text_type(None, collation, from),
            other => return Err(SqlError::not_supported(format!("CAST AS {other}"))),
        },
        other => return Err(SqlError::not_supported(format!("CAST AS {other}"))),
    })
}

/// CAST to BINARY(n): filled up with zero bytes, yet a VARBINARY to whoever asks for the type.
fn filled_up(value: Expr, length: u32) -> SqlResult<Expr> {
    let filled = Expr::cast(value, DataType::Binary { length })?;
    Expr::cast(filled, DataType::Varbinary { length })
}

/// The n of `BINARY(n)`.
fn fixed_length(data_type: &ast::DataType) -> Option<u32> {
    match data_type {
        ast::DataType::Binary(length) => length.map(|l| u32::try_from(l).unwrap_or(u32::MAX)),
        _ => None,
    }
}

fn binary(length: Option<u32>) -> DataType {
    match length {
        Some(length) => DataType::Varbinary { length },
        None => DataType::Blob {
            size: TextSize::Long,
        },
    }
}

fn character_length(length: Option<&ast::CharacterLength>) -> Option<u32> {
    match length {
        Some(ast::CharacterLength::IntegerLength { length, .. }) => {
            Some(u32::try_from(*length).unwrap_or(u32::MAX))
        }
        _ => None,
    }
}

fn decimal(info: &ast::ExactNumberInfo) -> SqlResult<DataType> {
    let (precision, scale) = match info {
        ast::ExactNumberInfo::None => (10, 0),
        ast::ExactNumberInfo::Precision(precision) => (*precision, 0),
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let too_big = |what: &str, value: String, max: u8| {
        SqlError::new(
            1426,
            "42000",
            format!("Too-big {what} {value} specified for 'CAST'. Maximum is {max}."),
        )
    };
    let precision_digits = u8::try_from(precision)
        .ok()
        .filter(|p| *p <= 65)
        .ok_or_else(|| too_big("precision", precision.to_string(), 65))?;
    let scale_digits = u8::try_from(scale)
        .ok()
        .filter(|s| *s <= 30)
        .ok_or_else(|| too_big("scale", scale.to_string(), 30))?;
    if scale_digits > precision_digits {
        return Err(SqlError::new(
            1427,
            "42000",
            "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column 'CAST').",
        ));
    }
    Ok(DataType::Decimal {
        precision: if precision_digits == 0 {
            10
        } else {
            precision_digits
        },
        scale: scale_digits,
        sign: DataType::SIGNED,
    })
}
