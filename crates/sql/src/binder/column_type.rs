//! Column types as written to column types as stored.

use sqlparser::ast::{BinaryLength, CharacterLength, DataType as Ast, EnumMember, ExactNumberInfo};

use crate::error::{SqlError, SqlResult};
use crate::types::{Collation, DataType, IntWidth, SET_MEMBERS_MAX, Sign, TextSize, text_equal};

/// Characters a VARCHAR of four-byte characters can hold.
pub(crate) const VARCHAR_MAX: u64 = 16_383;
/// Bytes a VARBINARY can hold.
const VARBINARY_MAX: u64 = 65_535;
/// Characters or bytes of CHAR and BINARY.
const CHAR_MAX: u64 = 255;

/// The stored type of column `name`; text gets `collation`.
///
/// # Errors
/// 1074, 1425, 1426, 1427 for lengths; 1235 for types that do not exist here.
pub(crate) fn resolve(name: &str, ast: &Ast, collation: Collation) -> SqlResult<DataType> {
    if let Some(ty) = integer(ast) {
        return Ok(ty);
    }
    if let Some(ty) = number(name, ast)? {
        return Ok(ty);
    }
    if let Some(ty) = temporal(name, ast)? {
        return Ok(ty);
    }
    if let Some(ty) = text(name, ast, collation)? {
        return Ok(ty);
    }
    match ast {
        Ast::JSON => Ok(DataType::Json),
        Ast::Bit(width) => bit(name, *width),
        Ast::Custom(custom, arguments) => {
            custom_type(name, &custom.to_string(), arguments, collation)
        }
        other => Err(SqlError::not_supported(format!("column type {other}"))),
    }
}

fn integer(ast: &Ast) -> Option<DataType> {
    let (width, unsigned, shown) = match ast {
        Ast::Bool | Ast::Boolean => (IntWidth::Tiny, false, Some(1)),
        Ast::TinyInt(shown) => (IntWidth::Tiny, false, *shown),
        Ast::TinyIntUnsigned(_) | Ast::UTinyInt => (IntWidth::Tiny, true, None),
        Ast::SmallInt(_) | Ast::Int2(_) => (IntWidth::Small, false, None),
        Ast::SmallIntUnsigned(_) | Ast::Int2Unsigned(_) | Ast::USmallInt => {
            (IntWidth::Small, true, None)
        }
        Ast::MediumInt(_) => (IntWidth::Medium, false, None),
        Ast::MediumIntUnsigned(_) => (IntWidth::Medium, true, None),
        Ast::Int(_) | Ast::Integer(_) | Ast::Int4(_) => (IntWidth::Int, false, None),
        Ast::IntUnsigned(_) | Ast::IntegerUnsigned(_) | Ast::Int4Unsigned(_) => {
            (IntWidth::Int, true, None)
        }
        Ast::BigInt(_) | Ast::Int8(_) => (IntWidth::Big, false, None),
        Ast::BigIntUnsigned(_) | Ast::Int8Unsigned(_) | Ast::UBigInt => (IntWidth::Big, true, None),
        _ => return None,
    };
    Some(DataType::Int {
        width,
        unsigned,
        display_width: (width == IntWidth::Tiny && shown == Some(1)).then_some(1),
    })
}

/// A type of numbers, as it was resolved, declared ZEROFILL: unsigned, and shown with at least as many
/// characters as were asked for, or as the greatest number has.
///
/// # Errors
/// 1439 for more than 255 digits; 1064 for what is no number.
pub(crate) fn filled_up(name: &str, ast: &Ast, ty: &DataType) -> SqlResult<DataType> {
    let asked = match ast {
        Ast::TinyInt(digits)
        | Ast::TinyIntUnsigned(digits)
        | Ast::SmallInt(digits)
        | Ast::SmallIntUnsigned(digits)
        | Ast::MediumInt(digits)
        | Ast::MediumIntUnsigned(digits)
        | Ast::Int(digits)
        | Ast::IntUnsigned(digits)
        | Ast::Integer(digits)
        | Ast::IntegerUnsigned(digits)
        | Ast::BigInt(digits)
        | Ast::BigIntUnsigned(digits) => *digits,
        _ => None,
    };
    let width = match ty {
        DataType::Int { width, .. } => width,
        DataType::Decimal {
            precision, scale, ..
        } => {
            return Ok(DataType::Decimal {
                precision: *precision,
                scale: *scale,
                sign: Sign::Filled { digits: None },
            });
        }
        DataType::Float { .. } | DataType::Double { .. } => {
            let digits = ty.shown_digits();
            let sign = Sign::Filled { digits };
            return Ok(match ty {
                DataType::Float { .. } => DataType::Float { sign },
                _ => DataType::Double { sign },
            });
        }
        _ => return Err(SqlError::syntax("near 'ZEROFILL'")),
    };
    let digits = match asked.filter(|digits| *digits > 0) {
        Some(digits) => u8::try_from(digits).map_err(|_| {
            let text = format!("Display width out of range for column '{name}' (max = 255)");
            SqlError::new(1439, "42000", text)
        })?,
        None => width.digits(true),
    };
    Ok(DataType::Int {
        width: *width,
        unsigned: true,
        display_width: Some(digits),
    })
}

/// The m and d of FLOAT(m, d) and DOUBLE(m, d).
fn float_digits(name: &str, ast: &Ast) -> SqlResult<Option<(u8, u8)>> {
    let (Ast::Float(info)
    | Ast::FloatUnsigned(info)
    | Ast::Double(info)
    | Ast::DoubleUnsigned(info)) = ast
    else {
        return Ok(None);
    };
    let ExactNumberInfo::PrecisionAndScale(width, digits) = info else {
        return Ok(None);
    };
    if (*width, *digits) == (0, 0) {
        return Ok(None);
    }
    let Ok(width) = u8::try_from(*width) else {
        let text = format!("Display width out of range for column '{name}' (max = 255)");
        return Err(SqlError::new(1439, "42000", text));
    };
    match u8::try_from(*digits) {
        Ok(digits @ 0..=30) if digits <= width => Ok(Some((width, digits))),
        Ok(0..=30) => Err(more_behind_the_point(name)),
        _ => Err(too_big_scale(name, *digits)),
    }
}

fn too_big_scale(name: &str, scale: i64) -> SqlError {
    let text = format!("Too big scale {scale} specified for column '{name}'. Maximum is 30.");
    SqlError::new(1425, "42000", text)
}

fn more_behind_the_point(name: &str) -> SqlError {
    let text =
        format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{name}').");
    SqlError::new(1427, "42000", text)
}

fn number(name: &str, ast: &Ast) -> SqlResult<Option<DataType>> {
    Ok(Some(match ast {
        Ast::Decimal(info) | Ast::Numeric(info) | Ast::Dec(info) => decimal(name, info, false)?,
        Ast::DecimalUnsigned(info) | Ast::DecUnsigned(info) => decimal(name, info, true)?,
        Ast::Float(info) => float(info, float_sign(name, ast, false)?),
        Ast::FloatUnsigned(info) => float(info, float_sign(name, ast, true)?),
        Ast::Float4 => DataType::FLOAT,
        Ast::Double(_) | Ast::DoublePrecision | Ast::Real | Ast::Float8 => DataType::Double {
            sign: float_sign(name, ast, false)?,
        },
        Ast::DoubleUnsigned(_) | Ast::DoublePrecisionUnsigned | Ast::RealUnsigned => {
            DataType::Double {
                sign: float_sign(name, ast, true)?,
            }
        }
        _ => return Ok(None),
    }))
}

/// How a FLOAT or DOUBLE without ZEROFILL is kept and shown.
fn float_sign(name: &str, ast: &Ast, unsigned: bool) -> SqlResult<Sign> {
    Ok(match float_digits(name, ast)? {
        Some((width, digits)) => Sign::Digits {
            unsigned,
            width,
            digits,
        },
        None => DataType::sign_of(unsigned),
    })
}

fn float(info: &ExactNumberInfo, sign: Sign) -> DataType {
    match info {
        ExactNumberInfo::Precision(25..) => DataType::Double { sign },
        _ => DataType::Float { sign },
    }
}

fn decimal(name: &str, info: &ExactNumberInfo, unsigned: bool) -> SqlResult<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(0) => (10, 0),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if precision > 65 {
        let text = format!("Too-big precision {precision} specified for '{name}'. Maximum is 65.");
        return Err(SqlError::new(1426, "42000", text));
    }
    if scale > 30 {
        return Err(too_big_scale(name, scale));
    }
    let (Ok(precision), Ok(scale)) = (u8::try_from(precision), u8::try_from(scale)) else {
        return Err(SqlError::syntax(format!("precision of '{name}'")));
    };
    if scale > precision {
        return Err(more_behind_the_point(name));
    }
    Ok(DataType::Decimal {
        precision,
        scale,
        sign: DataType::sign_of(unsigned),
    })
}

fn temporal(name: &str, ast: &Ast) -> SqlResult<Option<DataType>> {
    let fsp = |digits: &Option<u64>| match digits.unwrap_or(0) {
        digits @ 0..=6 => Ok(u8::try_from(digits).unwrap_or(6)),
        digits => Err(SqlError::new(
            1426,
            "42000",
            format!("Too-big precision {digits} specified for '{name}'. Maximum is 6."),
        )),
    };
    Ok(Some(match ast {
        Ast::Date => DataType::Date,
        Ast::Time(digits, _) => DataType::Time { fsp: fsp(digits)? },
        Ast::Datetime(digits) => DataType::DateTime { fsp: fsp(digits)? },
        Ast::Timestamp(digits, _) => DataType::Timestamp { fsp: fsp(digits)? },
        _ => return Ok(None),
    }))
}

fn text(name: &str, ast: &Ast, collation: Collation) -> SqlResult<Option<DataType>> {
    let bytes = collation == Collation::Binary;
    let sized = |size| {
        if bytes {
            DataType::Blob { size }
        } else {
            DataType::Text { size, collation }
        }
    };
    Ok(Some(match ast {
        Ast::Char(length) | Ast::Character(length) => {
            let length = within(name, characters(length.as_ref()).unwrap_or(1), CHAR_MAX)?;
            if bytes {
                DataType::Binary { length }
            } else {
                DataType::Char { length, collation }
            }
        }
        Ast::Varchar(length)
        | Ast::Nvarchar(length)
        | Ast::CharVarying(length)
        | Ast::CharacterVarying(length) => {
            let Some(length) = characters(length.as_ref()) else {
                return Err(missing_length(name));
            };
            if bytes {
                DataType::Varbinary {
                    length: within(name, length, VARBINARY_MAX)?,
                }
            } else {
                DataType::Varchar {
                    length: within(name, length, VARCHAR_MAX)?,
                    collation,
                }
            }
        }
        Ast::Text => sized(TextSize::Normal),
        Ast::TinyText => sized(TextSize::Tiny),
        Ast::MediumText => sized(TextSize::Medium),
        Ast::LongText => sized(TextSize::Long),
        Ast::Binary(length) => DataType::Binary {
            length: within(name, length.unwrap_or(1), CHAR_MAX)?,
        },
        Ast::Varbinary(Some(BinaryLength::IntegerLength { length })) => DataType::Varbinary {
            length: within(name, *length, VARBINARY_MAX)?,
        },
        Ast::Blob(_) => DataType::Blob {
            size: TextSize::Normal,
        },
        Ast::TinyBlob => DataType::Blob {
            size: TextSize::Tiny,
        },
        Ast::MediumBlob => DataType::Blob {
            size: TextSize::Medium,
        },
        Ast::LongBlob => DataType::Blob {
            size: TextSize::Long,
        },
        Ast::Enum(members, _) => {
            let written = members.iter().map(|member| match member {
                EnumMember::Name(name) | EnumMember::NamedValue(name, _) => name.as_str(),
            });
            DataType::Enum {
                members: members_of(name, "ENUM", written, collation)?,
                collation,
            }
        }
        Ast::Set(members) => set(name, members, collation)?,
        _ => return Ok(None),
    }))
}

/// Spaces at the end are no part of a member; no two members may be equal.
fn members_of<'a>(
    name: &str,
    kind: &str,
    written: impl Iterator<Item = &'a str>,
    collation: Collation,
) -> SqlResult<Vec<String>> {
    let mut members: Vec<String> = Vec::new();
    for member in written {
        let member = member.trim_end_matches(' ');
        if members
            .iter()
            .any(|known| text_equal(collation, known, member))
        {
            let text = format!("Column '{name}' has duplicated value '{member}' in {kind}");
            return Err(SqlError::new(1291, "HY000", text));
        }
        members.push(member.to_string());
    }
    Ok(members)
}

fn set(name: &str, written: &[String], collation: Collation) -> SqlResult<DataType> {
    if written.len() > SET_MEMBERS_MAX {
        let text = format!("Too many strings for column {name} and SET");
        return Err(SqlError::new(1097, "HY000", text));
    }
    if let Some(member) = written.iter().find(|member| member.contains(',')) {
        let text = format!("Illegal set '{member}' value found during parsing");
        return Err(SqlError::new(1367, "22007", text));
    }
    let members = members_of(name, "SET", written.iter().map(String::as_str), collation)?;
    Ok(DataType::Set { members, collation })
}

/// BIT(n), 1 bit where nothing is said.
fn bit(name: &str, width: Option<u64>) -> SqlResult<DataType> {
    match width.unwrap_or(1) {
        0 => {
            let text = format!("Invalid size for column '{name}'.");
            Err(SqlError::new(3013, "HY000", text))
        }
        width => match u8::try_from(width) {
            Ok(width @ 1..=64) => Ok(DataType::Bit { width }),
            _ => {
                let text = format!("Display width out of range for column '{name}' (max = 64)");
                Err(SqlError::new(1439, "42000", text))
            }
        },
    }
}

fn characters(length: Option<&CharacterLength>) -> Option<u64> {
    match length? {
        CharacterLength::IntegerLength { length, .. } => Some(*length),
        CharacterLength::Max => None,
    }
}

fn within(name: &str, length: u64, max: u64) -> SqlResult<u32> {
    u32::try_from(length)
        .ok()
        .filter(|_| length <= max)
        .ok_or_else(|| {
            SqlError::new(
                1074,
                "42000",
                format!(
                    "Column length too big for column '{name}' (max = {max}); use BLOB or TEXT instead"
                ),
            )
        })
}

/// VARCHAR without a length.
fn missing_length(column: &str) -> SqlError {
    SqlError::syntax(format!("VARCHAR column '{column}' needs a length"))
}

/// Types `sqlparser` has no variant for.
fn custom_type(
    name: &str,
    custom: &str,
    arguments: &[String],
    collation: Collation,
) -> SqlResult<DataType> {
    let numbers: Vec<u64> = arguments
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    match custom.to_ascii_uppercase().as_str() {
        "YEAR" => Ok(DataType::Year),
        "FIXED" => {
            let info = match numbers.as_slice() {
                [] => ExactNumberInfo::None,
                [precision] => ExactNumberInfo::Precision(*precision),
                [precision, scale, ..] => ExactNumberInfo::PrecisionAndScale(
                    *precision,
                    i64::try_from(*scale).unwrap_or(i64::MAX),
                ),
            };
            decimal(name, &info, false)
        }
        "NCHAR" => {
            let length = numbers.first().copied().unwrap_or(1);
            Ok(DataType::Char {
                length: within(name, length, CHAR_MAX)?,
                collation,
            })
        }
        "LONG" => Ok(DataType::Text {
            size: TextSize::Medium,
            collation,
        }),
        other => Err(SqlError::not_supported(format!("column type {other}"))),
    }
}
