//! What a declared type implies: names, widths, families.

use super::data_type::{Collation, DataType, IntWidth, Sign, TextSize};
use super::number::{MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE};

/// Most characters of a FLOAT and of a DOUBLE, as clients are told them.
const FLOAT_WIDTH: u8 = 12;
const DOUBLE_WIDTH: u8 = 22;

impl IntWidth {
    /// Bytes of storage.
    #[must_use]
    pub fn bytes(self) -> u8 {
        match self {
            IntWidth::Tiny => 1,
            IntWidth::Small => 2,
            IntWidth::Medium => 3,
            IntWidth::Int => 4,
            IntWidth::Big => 8,
        }
    }

    /// Least and greatest value.
    #[must_use]
    pub fn range(self, unsigned: bool) -> (i128, i128) {
        let bits = u32::from(self.bytes()) * 8;
        if unsigned {
            (0, (1i128 << bits) - 1)
        } else {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        }
    }

    /// `int`, `bigint`, …
    #[must_use]
    pub fn sql_name(self) -> &'static str {
        match self {
            IntWidth::Tiny => "tinyint",
            IntWidth::Small => "smallint",
            IntWidth::Medium => "mediumint",
            IntWidth::Int => "int",
            IntWidth::Big => "bigint",
        }
    }

    /// Digits of the greatest magnitude.
    #[must_use]
    pub fn digits(self, unsigned: bool) -> u8 {
        match (self, unsigned) {
            (IntWidth::Tiny, _) => 3,
            (IntWidth::Small, _) => 5,
            (IntWidth::Medium, false) => 7,
            (IntWidth::Medium, true) => 8,
            (IntWidth::Int, _) => 10,
            (IntWidth::Big, false) => 19,
            (IntWidth::Big, true) => 20,
        }
    }
}

impl TextSize {
    /// Capacity in bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            TextSize::Tiny => 255,
            TextSize::Normal => 65_535,
            TextSize::Medium => 16_777_215,
            TextSize::Long => u32::MAX,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            TextSize::Tiny => "tiny",
            TextSize::Normal => "",
            TextSize::Medium => "medium",
            TextSize::Long => "long",
        }
    }
}

impl DataType {
    /// BIGINT.
    pub const BIGINT: DataType = DataType::Int {
        width: IntWidth::Big,
        unsigned: false,
        display_width: None,
    };
    /// BIGINT UNSIGNED.
    pub const BIGINT_UNSIGNED: DataType = DataType::Int {
        width: IntWidth::Big,
        unsigned: true,
        display_width: None,
    };
    /// The type of comparisons and other truth values: shown as `int`, prints 0 or 1.
    pub const BOOLEAN: DataType = DataType::Int {
        width: IntWidth::Int,
        unsigned: false,
        display_width: None,
    };
    /// DOUBLE.
    pub const DOUBLE: DataType = DataType::Double {
        sign: DataType::SIGNED,
    };
    /// FLOAT.
    pub const FLOAT: DataType = DataType::Float {
        sign: DataType::SIGNED,
    };
    /// Of numbers that may be negative.
    pub const SIGNED: Sign = Sign::Signed;
    /// Of numbers that may not.
    pub const UNSIGNED: Sign = Sign::Unsigned;

    /// The sign of UNSIGNED numbers, or of others.
    #[must_use]
    pub fn sign_of(unsigned: bool) -> Sign {
        if unsigned {
            Sign::Unsigned
        } else {
            Sign::Signed
        }
    }

    /// VARCHAR of `length` characters under the default collation.
    #[must_use]
    pub fn varchar(length: u32) -> Self {
        DataType::text_of(length, Collation::default())
    }

    /// VARCHAR, or LONGTEXT when `length` is more than a VARCHAR holds.
    #[must_use]
    pub fn text_of(length: u32, collation: Collation) -> Self {
        match (length, collation) {
            (0..=16_383, Collation::Binary) => DataType::Varbinary { length },
            (_, Collation::Binary) => DataType::Blob {
                size: TextSize::Long,
            },
            (0..=16_383, _) => DataType::Varchar { length, collation },
            _ => DataType::Text {
                size: TextSize::Long,
                collation,
            },
        }
    }

    /// The collation of character strings; `Binary` for byte strings; `None` for others.
    #[must_use]
    pub fn collation(&self) -> Option<Collation> {
        match self {
            DataType::Char { collation, .. }
            | DataType::Varchar { collation, .. }
            | DataType::Text { collation, .. }
            | DataType::Enum { collation, .. }
            | DataType::Set { collation, .. } => Some(*collation),
            DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::Blob { .. } => {
                Some(Collation::Binary)
            }
            DataType::Json => Some(Collation::Bin),
            _ => None,
        }
    }

    /// The same type under another collation.
    #[must_use]
    pub fn with_collation(&self, new: Collation) -> Self {
        let mut ty = self.clone();
        match &mut ty {
            DataType::Char { collation, .. }
            | DataType::Varchar { collation, .. }
            | DataType::Text { collation, .. }
            | DataType::Enum { collation, .. }
            | DataType::Set { collation, .. } => *collation = new,
            _ => {}
        }
        ty
    }

    /// CHAR, VARCHAR, TEXT, ENUM, SET.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            DataType::Char { .. }
                | DataType::Varchar { .. }
                | DataType::Text { .. }
                | DataType::Enum { .. }
                | DataType::Set { .. }
        )
    }

    /// BINARY, VARBINARY, BLOB.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        matches!(
            self,
            DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::Blob { .. }
        )
    }

    /// Integers, YEAR and BIT.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            DataType::Int { .. } | DataType::Year | DataType::Bit { .. }
        )
    }

    /// FLOAT and DOUBLE.
    #[must_use]
    pub fn is_float(&self) -> bool {
        matches!(self, DataType::Float { .. } | DataType::Double { .. })
    }

    /// Integers, decimals, doubles, YEAR, BIT.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.is_integer() || self.is_float() || matches!(self, DataType::Decimal { .. })
    }

    /// DATE, TIME, DATETIME, TIMESTAMP.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            DataType::Date
                | DataType::Time { .. }
                | DataType::DateTime { .. }
                | DataType::Timestamp { .. }
        )
    }

    /// Whether it is a SET that has the empty member, whose values show another text than they
    /// travel as: see [`super::members`].
    #[must_use]
    pub fn has_empty_member(&self) -> bool {
        matches!(self, DataType::Set { members, .. } if members.iter().any(String::is_empty))
    }

    /// Declared UNSIGNED.
    #[must_use]
    pub fn is_unsigned(&self) -> bool {
        match self {
            DataType::Int { unsigned, .. } => *unsigned,
            DataType::Decimal { sign, .. }
            | DataType::Float { sign }
            | DataType::Double { sign } => sign.is_unsigned(),
            DataType::Year | DataType::Bit { .. } => true,
            _ => false,
        }
    }

    /// The characters that a column declared ZEROFILL is filled up to with zeros. Such a column is
    /// unsigned. No other unsigned integer keeps a display width but TINYINT(1), which needs no
    /// filling.
    #[must_use]
    pub fn zerofill(&self) -> Option<u8> {
        match self {
            DataType::Int {
                width,
                unsigned: true,
                display_width: Some(digits),
            } if (*width, *digits) != (IntWidth::Tiny, 1) => Some(*digits),
            DataType::Decimal {
                precision,
                scale,
                sign: Sign::Filled { .. },
            } => Some(precision + u8::from(*scale > 0)),
            DataType::Float {
                sign: Sign::Filled { digits },
            } => Some(digits.map_or(FLOAT_WIDTH, |(width, _)| width)),
            DataType::Double {
                sign: Sign::Filled { digits },
            } => Some(digits.map_or(DOUBLE_WIDTH, |(width, _)| width)),
            _ => None,
        }
    }

    /// The type of what is computed from a value of this one: only a column itself is filled up
    /// with zeros.
    #[must_use]
    pub fn computed(mut self) -> Self {
        if self.zerofill().is_some() {
            match &mut self {
                DataType::Int { display_width, .. } => *display_width = None,
                DataType::Decimal { sign, .. }
                | DataType::Float { sign }
                | DataType::Double { sign } => *sign = sign.unfilled(),
                _ => {}
            }
        }
        self
    }

    /// Digits of the fraction of a second; 0 for types without.
    #[must_use]
    pub fn fsp(&self) -> u8 {
        match self {
            DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
                *fsp
            }
            _ => 0,
        }
    }

    /// Precision and scale as an exact number; text and doubles count as the widest.
    #[must_use]
    pub fn precision_scale(&self) -> (u8, u8) {
        match self {
            DataType::Int {
                width, unsigned, ..
            } => (width.digits(*unsigned), 0),
            DataType::Decimal {
                precision, scale, ..
            } => (*precision, *scale),
            DataType::Year => (4, 0),
            DataType::Bit { width } => (bit_digits(*width), 0),
            DataType::Date => (8, 0),
            DataType::Time { fsp } => (7 + fsp, *fsp),
            DataType::DateTime { fsp } | DataType::Timestamp { fsp } => (14 + fsp, *fsp),
            DataType::Null => (1, 0),
            _ => (MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE),
        }
    }

    /// Most characters a value shows (bytes for byte strings, bits for BIT).
    #[must_use]
    pub fn char_length(&self) -> u32 {
        match self {
            DataType::Null => 0,
            DataType::Int {
                width, unsigned, ..
            } => u32::from(width.digits(*unsigned)) + u32::from(!unsigned),
            DataType::Decimal {
                precision,
                scale,
                sign,
            } => u32::from(*precision) + u32::from(*scale > 0) + u32::from(!sign.is_unsigned()),
            DataType::Float { sign } => {
                u32::from(sign.digits().map_or(FLOAT_WIDTH, |(width, _)| width))
            }
            DataType::Double { sign } => {
                u32::from(sign.digits().map_or(DOUBLE_WIDTH, |(width, _)| width))
            }
            DataType::Char { length, .. }
            | DataType::Varchar { length, .. }
            | DataType::Binary { length }
            | DataType::Varbinary { length } => *length,
            DataType::Text { size, .. } => size.bytes() / 4,
            DataType::Blob { size } => size.bytes(),
            DataType::Date => 10,
            DataType::Time { fsp } => 10 + u32::from(*fsp) + u32::from(*fsp > 0),
            DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
                19 + u32::from(*fsp) + u32::from(*fsp > 0)
            }
            DataType::Year => 4,
            DataType::Json => u32::MAX,
            DataType::Enum { members, .. } => members
                .iter()
                .map(|member| u32::try_from(member.chars().count()).unwrap_or(u32::MAX))
                .max()
                .unwrap_or(0),
            DataType::Set { members, .. } => {
                let characters: usize = members.iter().map(|member| member.chars().count()).sum();
                u32::try_from(characters + members.len().saturating_sub(1)).unwrap_or(u32::MAX)
            }
            DataType::Bit { width } => u32::from(*width),
        }
    }

    /// Bytes of a field of this type in files without field ends, as clients are told them; `None`
    /// for TEXT, BLOB and JSON, which have no width.
    #[must_use]
    pub fn file_width(&self) -> Option<usize> {
        let characters = match self {
            DataType::Text { .. } | DataType::Blob { .. } | DataType::Json => return None,
            DataType::Int {
                display_width: Some(digits),
                ..
            } => u32::from(*digits),
            DataType::Int {
                width: IntWidth::Medium,
                unsigned: false,
                ..
            } => 9,
            _ => self.char_length(),
        };
        let bytes = if self.is_text() { 4 } else { 1 };
        Some(characters as usize * bytes)
    }

    /// The type as SHOW CREATE TABLE and `information_schema.COLUMNS.COLUMN_TYPE` print it,
    /// without character set and collation.
    #[must_use]
    pub fn sql_name(&self) -> String {
        let is_named_without = matches!(self, DataType::Year | DataType::Bit { .. });
        let sign = if self.zerofill().is_some() {
            " unsigned zerofill"
        } else if self.is_unsigned() && !is_named_without {
            " unsigned"
        } else {
            ""
        };
        let base = self.base_name();
        match self {
            DataType::Int {
                display_width: Some(width),
                ..
            } => format!("{base}({width}){sign}"),
            DataType::Decimal {
                precision, scale, ..
            } => format!("{base}({precision},{scale}){sign}"),
            DataType::Int { .. } | DataType::Float { .. } | DataType::Double { .. } => {
                match self.shown_digits() {
                    Some((width, digits)) => format!("{base}({width},{digits}){sign}"),
                    None => format!("{base}{sign}"),
                }
            }
            DataType::Char { length, .. }
            | DataType::Varchar { length, .. }
            | DataType::Binary { length }
            | DataType::Varbinary { length } => format!("{base}({length})"),
            DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp }
                if *fsp > 0 =>
            {
                format!("{base}({fsp})")
            }
            DataType::Enum { members, .. } | DataType::Set { members, .. } => {
                let quoted: Vec<String> = members
                    .iter()
                    .map(|member| format!("'{}'", member.replace('\'', "''")))
                    .collect();
                format!("{base}({})", quoted.join(","))
            }
            DataType::Bit { width } => format!("{base}({width})"),
            DataType::Null => "binary(0)".to_string(),
            _ => base,
        }
    }

    /// The bare name, as `information_schema.COLUMNS.DATA_TYPE` prints it.
    #[must_use]
    pub fn base_name(&self) -> String {
        match self {
            DataType::Null => "null".to_string(),
            DataType::Int { width, .. } => width.sql_name().to_string(),
            DataType::Decimal { .. } => "decimal".to_string(),
            DataType::Float { .. } => "float".to_string(),
            DataType::Double { .. } => "double".to_string(),
            DataType::Char { .. } => "char".to_string(),
            DataType::Varchar { .. } => "varchar".to_string(),
            DataType::Text { size, .. } => format!("{}text", size.prefix()),
            DataType::Binary { .. } => "binary".to_string(),
            DataType::Varbinary { .. } => "varbinary".to_string(),
            DataType::Blob { size } => format!("{}blob", size.prefix()),
            DataType::Date => "date".to_string(),
            DataType::Time { .. } => "time".to_string(),
            DataType::DateTime { .. } => "datetime".to_string(),
            DataType::Timestamp { .. } => "timestamp".to_string(),
            DataType::Year => "year".to_string(),
            DataType::Json => "json".to_string(),
            DataType::Enum { .. } => "enum".to_string(),
            DataType::Set { .. } => "set".to_string(),
            DataType::Bit { .. } => "bit".to_string(),
        }
    }
}

/// Bytes that hold `width` bits.
#[must_use]
pub fn bit_bytes(width: u8) -> u32 {
    u32::from(width).div_ceil(8)
}

/// Decimal digits of the greatest number of `width` bits.
fn bit_digits(width: u8) -> u8 {
    // log10(2) is a little more than 0.3.
    u8::try_from(u32::from(width) * 302 / 1000 + 1).unwrap_or(20)
}

#[cfg(test)]
mod tests;
