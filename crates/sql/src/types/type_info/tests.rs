//! Types as MySQL 8 prints them.

use super::*;

fn decimal(precision: u8, scale: u8) -> DataType {
    DataType::Decimal {
        precision,
        scale,
        sign: DataType::SIGNED,
    }
}

#[test]
fn types_print_as_mysql_8_prints_them() {
    let boolean = DataType::Int {
        width: IntWidth::Tiny,
        unsigned: false,
        display_width: Some(1),
    };
    let table = [
        (boolean, "tinyint(1)"),
        (DataType::BIGINT_UNSIGNED, "bigint unsigned"),
        (decimal(10, 2), "decimal(10,2)"),
        (DataType::varchar(255), "varchar(255)"),
        (DataType::DateTime { fsp: 6 }, "datetime(6)"),
        (DataType::Timestamp { fsp: 0 }, "timestamp"),
        (
            DataType::Blob {
                size: TextSize::Long,
            },
            "longblob",
        ),
        (
            DataType::Enum {
                members: vec!["a".into(), "b'c".into()],
                collation: Collation::Bin,
            },
            "enum('a','b''c')",
        ),
        (
            DataType::Set {
                members: vec!["a".into(), "b'c".into()],
                collation: Collation::Bin,
            },
            "set('a','b''c')",
        ),
        (DataType::Bit { width: 1 }, "bit(1)"),
    ];
    for (ty, expected) in table {
        assert_eq!(ty.sql_name(), expected);
    }
}
