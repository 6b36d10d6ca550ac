//! Declared types and result metadata.

use serde::{Deserialize, Serialize};

/// Width of an integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IntWidth {
    /// 1 byte.
    Tiny,
    /// 2 bytes.
    Small,
    /// 3 bytes.
    Medium,
    /// 4 bytes.
    Int,
    /// 8 bytes.
    Big,
}

/// Capacity class of TEXT and BLOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextSize {
    /// 255 bytes.
    Tiny,
    /// 65 535 bytes.
    Normal,
    /// 16 MiB.
    Medium,
    /// 4 GiB.
    Long,
}

/// How strings compare. All text is stored as UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub enum Collation {
    /// `utf8mb4_general_ci`: one weight a character, case and accents ignored, PAD SPACE.
    GeneralCi,
    /// `utf8mb4_unicode_ci`: UCA primary weights, PAD SPACE.
    UnicodeCi,
    /// `utf8mb4_0900_ai_ci`: UCA primary weights, NO PAD. The default.
    #[default]
    Uca0900AiCi,
    /// `utf8mb4_0900_as_cs`: UCA tertiary weights, NO PAD.
    Uca0900AsCs,
    /// `utf8mb4_bin`: code points, PAD SPACE.
    Bin,
    /// `utf8mb4_0900_bin`: code points, NO PAD.
    Bin0900,
    /// `binary`: bytes.
    Binary,
    /// `utf8mb4_esperanto_ci`: as `unicode_ci`, with ĉ ĝ ĥ ĵ ŝ ŭ as letters of their own.
    EsperantoCi,
}

/// Whether a DECIMAL, FLOAT or DOUBLE may be negative, and how it is shown. The first two are stored
/// as the booleans that stood here before there was a third.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sign {
    /// It may.
    Signed,
    /// UNSIGNED.
    Unsigned,
    /// ZEROFILL: not negative, and shown with zeros in front.
    Filled {
        /// FLOAT(m, d) and DOUBLE(m, d): characters in all, and digits behind the point.
        digits: Option<(u8, u8)>,
    },
    /// FLOAT(m, d) and DOUBLE(m, d) without ZEROFILL.
    Digits {
        /// UNSIGNED.
        unsigned: bool,
        /// Characters in all.
        width: u8,
        /// Digits behind the point.
        digits: u8,
    },
}

impl Sign {
    /// No negative values.
    #[must_use]
    pub fn is_unsigned(self) -> bool {
        match self {
            Sign::Signed => false,
            Sign::Unsigned | Sign::Filled { .. } => true,
            Sign::Digits { unsigned, .. } => unsigned,
        }
    }

    /// As it is without ZEROFILL, which is not negative either.
    #[must_use]
    pub fn unfilled(self) -> Self {
        match self {
            Sign::Filled {
                digits: Some((width, digits)),
            } => Sign::Digits {
                unsigned: true,
                width,
                digits,
            },
            Sign::Filled { digits: None } => Sign::Unsigned,
            kept => kept,
        }
    }

    /// Characters in all and digits behind the point, of a type that is declared with them.
    #[must_use]
    pub fn digits(self) -> Option<(u8, u8)> {
        match self {
            Sign::Filled { digits } => digits,
            Sign::Digits { width, digits, .. } => Some((width, digits)),
            Sign::Signed | Sign::Unsigned => None,
        }
    }
}

/// A declared or inferred type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DataType {
    /// The type of a bare NULL.
    Null,
    /// Integers. BOOLEAN is `Int { width: Tiny, unsigned: false }` with `display_width` 1.
    Int {
        /// Width.
        width: IntWidth,
        /// No negative values.
        unsigned: bool,
        /// `TINYINT(1)` keeps its 1: clients map it to booleans. Otherwise `None`.
        display_width: Option<u8>,
    },
    /// DECIMAL(precision, scale).
    Decimal {
        /// Digits in all, 1–65.
        precision: u8,
        /// Digits after the point, 0–30.
        scale: u8,
        /// Negative values, and how it is shown.
        sign: Sign,
    },
    /// FLOAT.
    Float {
        /// Negative values, and how it is shown.
        sign: Sign,
    },
    /// DOUBLE.
    Double {
        /// Negative values, and how it is shown.
        sign: Sign,
    },
    /// CHAR(n).
    Char {
        /// Characters.
        length: u32,
        /// Comparison.
        collation: Collation,
    },
    /// VARCHAR(n).
    Varchar {
        /// Characters.
        length: u32,
        /// Comparison.
        collation: Collation,
    },
    /// TINYTEXT to LONGTEXT.
    Text {
        /// Capacity.
        size: TextSize,
        /// Comparison.
        collation: Collation,
    },
    /// BINARY(n), padded with zero bytes.
    Binary {
        /// Bytes.
        length: u32,
    },
    /// VARBINARY(n).
    Varbinary {
        /// Bytes.
        length: u32,
    },
    /// TINYBLOB to LONGBLOB.
    Blob {
        /// Capacity.
        size: TextSize,
    },
    /// DATE.
    Date,
    /// TIME(fsp).
    Time {
        /// Digits of the fraction, 0–6.
        fsp: u8,
    },
    /// DATETIME(fsp).
    DateTime {
        /// Digits of the fraction, 0–6.
        fsp: u8,
    },
    /// TIMESTAMP(fsp): stored in UTC, shown in the session's time zone.
    Timestamp {
        /// Digits of the fraction, 0–6.
        fsp: u8,
    },
    /// YEAR.
    Year,
    /// JSON.
    Json,
    /// ENUM: a text value that sorts by its place in the list.
    Enum {
        /// Members in order.
        members: Vec<String>,
        /// Comparison.
        collation: Collation,
    },
    /// SET: a text of members that sorts by the number whose bits they are.
    Set {
        /// Members in order, at most 64.
        members: Vec<String>,
        /// Comparison.
        collation: Collation,
    },
    /// BIT(n): an unsigned number among numbers, bytes where text is wanted.
    Bit {
        /// Bits, 1–64.
        width: u8,
    },
}

/// What a client is told of one result column.
#[allow(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Database of the base table, or empty.
    pub schema: String,
    /// Table alias, or empty.
    pub table: String,
    /// Base table, or empty.
    pub org_table: String,
    /// Column alias.
    pub name: String,
    /// Base column, or empty.
    pub org_name: String,
    /// Type.
    pub ty: DataType,
    /// Cannot be NULL.
    pub not_null: bool,
    /// Part of the primary key.
    pub primary_key: bool,
    /// Only column of a unique key.
    pub unique_key: bool,
    /// First column of a non-unique key.
    pub multiple_key: bool,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_stored_as_the_boolean_that_it_was() {
        for (sign, unsigned) in [(Sign::Signed, false), (Sign::Unsigned, true)] {
            let stored = postcard::to_allocvec(&unsigned).unwrap();
            assert_eq!(postcard::to_allocvec(&sign).unwrap(), stored);
            assert_eq!(postcard::from_bytes::<Sign>(&stored).unwrap(), sign);
        }
        let filled = Sign::Filled {
            digits: Some((7, 2)),
        };
        let rounded = Sign::Digits {
            unsigned: true,
            width: 7,
            digits: 2,
        };
        for (sign, first) in [(filled, 2), (rounded, 3)] {
            let stored = postcard::to_allocvec(&sign).unwrap();
            assert_eq!(stored.first(), Some(&first));
            assert_eq!(postcard::from_bytes::<Sign>(&stored).unwrap(), sign);
        }
    }
}
