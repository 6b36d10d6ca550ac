//! Column definitions: how a result column presents itself to clients.

use manxdb_sql::types::{Collation, ColumnMeta, DataType, IntWidth, Sign, TextSize};
use mysql_common::constants::{ColumnFlags, ColumnType};

use super::codec::put_lenenc_bytes;

/// Collation id of everything that is not text.
const BINARY: u16 = 63;
/// `decimals` of values without a fixed number of them.
const NOT_FIXED: u8 = 31;

/// The wire form of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireType {
    /// Type code.
    pub code: ColumnType,
    /// Display length, bytes for text.
    pub length: u32,
    /// Digits after the point.
    pub decimals: u8,
    /// Character data, sent in the client's collation.
    pub text: bool,
    /// Flags that follow from the type alone.
    pub flags: ColumnFlags,
}

/// The wire form of `ty`.
#[must_use]
pub fn wire_type(ty: &DataType) -> WireType {
    match ty {
        DataType::Null => plain(ColumnType::MYSQL_TYPE_NULL, 0, ColumnFlags::BINARY_FLAG),
        DataType::Int {
            width,
            unsigned,
            display_width,
        } => {
            let mut wire = integer(*width, *unsigned, *display_width);
            if ty.zerofill().is_some() {
                wire.flags |= ColumnFlags::ZEROFILL_FLAG;
            }
            wire
        }
        DataType::Decimal {
            precision,
            scale,
            sign,
        } => WireType {
            length: u32::from(*precision) + u32::from(*scale > 0) + u32::from(!sign.is_unsigned()),
            decimals: *scale,
            ..plain(ColumnType::MYSQL_TYPE_NEWDECIMAL, 0, fraction_flags(*sign))
        },
        DataType::Float { sign } => float(ColumnType::MYSQL_TYPE_FLOAT, ty, *sign),
        DataType::Double { sign } => float(ColumnType::MYSQL_TYPE_DOUBLE, ty, *sign),
        DataType::Year => plain(
            ColumnType::MYSQL_TYPE_YEAR,
            4,
            ColumnFlags::UNSIGNED_FLAG | ColumnFlags::ZEROFILL_FLAG,
        ),
        DataType::Date => plain(ColumnType::MYSQL_TYPE_DATE, 10, ColumnFlags::BINARY_FLAG),
        DataType::Time { fsp } => temporal(ColumnType::MYSQL_TYPE_TIME, 10, *fsp),
        DataType::DateTime { fsp } => temporal(ColumnType::MYSQL_TYPE_DATETIME, 19, *fsp),
        DataType::Timestamp { fsp } => {
            let mut wire = temporal(ColumnType::MYSQL_TYPE_TIMESTAMP, 19, *fsp);
            wire.flags |= ColumnFlags::TIMESTAMP_FLAG;
            wire
        }
        _ => string(ty),
    }
}

fn string(ty: &DataType) -> WireType {
    let blob = ColumnFlags::BLOB_FLAG;
    match ty {
        DataType::Char { length, collation } => text(
            ColumnType::MYSQL_TYPE_STRING,
            characters(*length),
            *collation,
        ),
        DataType::Varchar { length, collation } => text(
            ColumnType::MYSQL_TYPE_VAR_STRING,
            characters(*length),
            *collation,
        ),
        DataType::Text { size, collation } => {
            let length = match size {
                TextSize::Long => u32::MAX,
                shorter => characters(capacity(*shorter)),
            };
            let mut wire = text(ColumnType::MYSQL_TYPE_BLOB, length, *collation);
            wire.flags |= blob;
            wire
        }
        DataType::Enum { members, collation } => {
            let longest = members.iter().map(|m| m.chars().count()).max().unwrap_or(0);
            let length = characters(u32::try_from(longest).unwrap_or(u32::MAX));
            let mut wire = text(ColumnType::MYSQL_TYPE_STRING, length, *collation);
            wire.flags |= ColumnFlags::ENUM_FLAG;
            wire
        }
        DataType::Set { collation, .. } => {
            let length = characters(ty.char_length());
            let mut wire = text(ColumnType::MYSQL_TYPE_STRING, length, *collation);
            wire.flags |= ColumnFlags::SET_FLAG;
            wire
        }
        DataType::Bit { width } => plain(
            ColumnType::MYSQL_TYPE_BIT,
            u32::from(*width),
            ColumnFlags::UNSIGNED_FLAG,
        ),
        DataType::Binary { length } => plain(
            ColumnType::MYSQL_TYPE_STRING,
            *length,
            ColumnFlags::BINARY_FLAG,
        ),
        DataType::Varbinary { length } => plain(
            ColumnType::MYSQL_TYPE_VAR_STRING,
            *length,
            ColumnFlags::BINARY_FLAG,
        ),
        DataType::Blob { size } => plain(
            ColumnType::MYSQL_TYPE_BLOB,
            capacity(*size),
            ColumnFlags::BINARY_FLAG | blob,
        ),
        // JSON, and whatever type comes later: clients show it as it is.
        _ => plain(
            ColumnType::MYSQL_TYPE_JSON,
            u32::MAX,
            ColumnFlags::BINARY_FLAG | blob,
        ),
    }
}

fn plain(code: ColumnType, length: u32, flags: ColumnFlags) -> WireType {
    WireType {
        code,
        length,
        decimals: 0,
        text: false,
        flags,
    }
}

fn text(code: ColumnType, length: u32, collation: Collation) -> WireType {
    let flags = match collation {
        Collation::Bin | Collation::Bin0900 | Collation::Binary => ColumnFlags::BINARY_FLAG,
        _ => ColumnFlags::empty(),
    };
    WireType {
        text: collation != Collation::Binary,
        ..plain(code, length, flags)
    }
}

fn temporal(code: ColumnType, length: u32, fsp: u8) -> WireType {
    let fraction = if fsp == 0 { 0 } else { u32::from(fsp) + 1 };
    WireType {
        decimals: fsp,
        ..plain(code, length + fraction, ColumnFlags::BINARY_FLAG)
    }
}

fn integer(width: IntWidth, unsigned: bool, display_width: Option<u8>) -> WireType {
    let (code, signed_length, unsigned_length) = match width {
        IntWidth::Tiny => (ColumnType::MYSQL_TYPE_TINY, 4, 3),
        IntWidth::Small => (ColumnType::MYSQL_TYPE_SHORT, 6, 5),
        IntWidth::Medium => (ColumnType::MYSQL_TYPE_INT24, 9, 8),
        IntWidth::Int => (ColumnType::MYSQL_TYPE_LONG, 11, 10),
        IntWidth::Big => (ColumnType::MYSQL_TYPE_LONGLONG, 20, 20),
    };
    let default = if unsigned {
        unsigned_length
    } else {
        signed_length
    };
    plain(
        code,
        display_width.map_or(default, u32::from),
        sign(unsigned),
    )
}

/// FLOAT or DOUBLE.
fn float(code: ColumnType, ty: &DataType, sign: Sign) -> WireType {
    WireType {
        decimals: sign.digits().map_or(NOT_FIXED, |(_, digits)| digits),
        ..plain(code, ty.char_length(), fraction_flags(sign))
    }
}

fn fraction_flags(of: Sign) -> ColumnFlags {
    let mut flags = sign(of.is_unsigned());
    flags.set(
        ColumnFlags::ZEROFILL_FLAG,
        matches!(of, Sign::Filled { .. }),
    );
    flags
}

fn sign(unsigned: bool) -> ColumnFlags {
    if unsigned {
        ColumnFlags::UNSIGNED_FLAG
    } else {
        ColumnFlags::empty()
    }
}

fn characters(count: u32) -> u32 {
    count.saturating_mul(4)
}

fn capacity(size: TextSize) -> u32 {
    match size {
        TextSize::Tiny => 255,
        TextSize::Normal => 65_535,
        TextSize::Medium => 16_777_215,
        TextSize::Long => u32::MAX,
    }
}

/// Writes a column definition; text is announced in `collation`, the client's.
pub fn put_column(out: &mut Vec<u8>, column: &ColumnMeta, collation: u16) {
    let wire = wire_type(&column.ty);
    for part in [
        "def",
        &column.schema,
        &column.table,
        &column.org_table,
        &column.name,
        &column.org_name,
    ] {
        put_lenenc_bytes(out, part.as_bytes());
    }
    out.push(0x0C); // length of what follows
    let id = if wire.text { collation } else { BINARY };
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&wire.length.to_le_bytes());
    out.push(wire.code as u8);
    out.extend_from_slice(&column_flags(column, wire).bits().to_le_bytes());
    out.push(wire.decimals);
    out.extend_from_slice(&[0, 0]);
}

fn column_flags(column: &ColumnMeta, wire: WireType) -> ColumnFlags {
    let mut flags = wire.flags;
    flags.set(ColumnFlags::NOT_NULL_FLAG, column.not_null);
    flags.set(ColumnFlags::PRI_KEY_FLAG, column.primary_key);
    flags.set(ColumnFlags::UNIQUE_KEY_FLAG, column.unique_key);
    flags.set(ColumnFlags::MULTIPLE_KEY_FLAG, column.multiple_key);
    flags.set(ColumnFlags::AUTO_INCREMENT_FLAG, column.auto_increment);
    let in_key = column.primary_key || column.unique_key || column.multiple_key;
    flags.set(ColumnFlags::PART_KEY_FLAG, in_key);
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(ty: DataType) -> ColumnMeta {
        ColumnMeta {
            schema: "s".into(),
            table: "t".into(),
            org_table: "o".into(),
            name: "n".into(),
            org_name: "c".into(),
            ty,
            not_null: true,
            primary_key: true,
            unique_key: false,
            multiple_key: false,
            auto_increment: true,
        }
    }

    #[test]
    fn a_definition_has_the_layout_clients_expect() {
        let mut out = Vec::new();
        let ty = DataType::Int {
            width: IntWidth::Big,
            unsigned: true,
            display_width: None,
        };
        put_column(&mut out, &meta(ty), 255);
        // NOT_NULL 1 | PRI_KEY 2 | UNSIGNED 32 | AUTO_INCREMENT 512 | PART_KEY 16384
        assert_eq!(
            out,
            b"\x03def\x01s\x01t\x01o\x01n\x01c\x0c\x3f\x00\x14\0\0\0\x08\x23\x42\0\0\0"
        );
    }

    #[test]
    fn a_boolean_is_a_tinyint_of_length_one() {
        let wire = wire_type(&DataType::Int {
            width: IntWidth::Tiny,
            unsigned: false,
            display_width: Some(1),
        });
        assert_eq!((wire.code as u8, wire.length), (1, 1));
    }

    #[test]
    fn text_counts_four_bytes_a_character_and_blobs_are_binary() {
        let varchar = wire_type(&DataType::Varchar {
            length: 50,
            collation: Collation::default(),
        });
        assert_eq!((varchar.code as u8, varchar.length), (253, 200));
        assert!(varchar.text && varchar.flags.is_empty());
        let blob = wire_type(&DataType::Blob {
            size: TextSize::Normal,
        });
        assert_eq!((blob.code as u8, blob.length), (252, 65_535));
        assert!(!blob.text && blob.flags.contains(ColumnFlags::BINARY_FLAG));
    }

    #[test]
    fn decimals_and_fractions_are_told() {
        let decimal = wire_type(&DataType::Decimal {
            precision: 10,
            scale: 2,
            sign: DataType::SIGNED,
        });
        assert_eq!(
            (decimal.code as u8, decimal.length, decimal.decimals),
            (246, 12, 2)
        );
        let datetime = wire_type(&DataType::DateTime { fsp: 6 });
        assert_eq!((datetime.length, datetime.decimals), (26, 6));
    }

    #[test]
    fn filled_numbers_tell_their_width_and_their_flag() {
        let digits = Some((7, 2));
        let filled = |digits| Sign::Filled { digits };
        let table = [
            (
                DataType::Decimal {
                    precision: 8,
                    scale: 2,
                    sign: filled(None),
                },
                (9, 2),
            ),
            (DataType::Float { sign: filled(None) }, (12, 31)),
            (
                DataType::Double {
                    sign: filled(digits),
                },
                (7, 2),
            ),
        ];
        for (ty, expected) in table {
            let wire = wire_type(&ty);
            assert_eq!((wire.length, wire.decimals), expected, "{ty:?}");
            let both = ColumnFlags::ZEROFILL_FLAG | ColumnFlags::UNSIGNED_FLAG;
            assert!(wire.flags.contains(both), "{ty:?}");
        }
    }

    #[test]
    fn floats_tell_their_digits() {
        let sign = Sign::Digits {
            unsigned: true,
            width: 7,
            digits: 2,
        };
        let wire = wire_type(&DataType::Float { sign });
        assert_eq!((wire.length, wire.decimals), (7, 2));
        assert_eq!(wire.flags, ColumnFlags::UNSIGNED_FLAG);
        let plain = wire_type(&DataType::DOUBLE);
        assert_eq!((plain.length, plain.decimals), (22, 31));
    }

    #[test]
    fn json_has_its_own_code_and_enums_their_flag() {
        assert_eq!(wire_type(&DataType::Json).code as u8, 0xF5);
        let wire = wire_type(&DataType::Enum {
            members: vec!["a".into(), "long".into()],
            collation: Collation::default(),
        });
        assert_eq!((wire.code as u8, wire.length), (254, 16));
        assert!(wire.flags.contains(ColumnFlags::ENUM_FLAG));
    }

    #[test]
    fn a_set_is_a_string_with_its_flag_and_bits_are_counted() {
        let set = wire_type(&DataType::Set {
            members: vec!["a".into(), "long".into()],
            collation: Collation::default(),
        });
        assert_eq!((set.code as u8, set.length), (254, 24));
        assert!(set.flags.contains(ColumnFlags::SET_FLAG));
        let bit = wire_type(&DataType::Bit { width: 12 });
        assert_eq!((bit.code as u8, bit.length), (16, 12));
        assert!(bit.flags.contains(ColumnFlags::UNSIGNED_FLAG));
    }
}
