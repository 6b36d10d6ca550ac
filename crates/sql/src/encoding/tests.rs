//! Byte order is value order; records come back as they went; damage is an error, never a panic.

use std::sync::Arc;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;
use crate::catalog::{
    Column, ColumnDefault, ColumnId, Index, IndexColumn, IndexId, IndexState, Table, TableId,
};
use crate::types::{
    Collation, DataType, Date, DateTime, Decimal, IntWidth, TextSize, Time, Value, parse_json,
    sort_cmp_typed,
};

fn column(id: u32, ty: DataType) -> Column {
    Column {
        id: ColumnId(id),
        name: format!("c{id}"),
        ty,
        not_null: false,
        default: None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        absent_value: None,
        generated: None,
    }
}

fn table(types: Vec<DataType>) -> Table {
    let columns: Vec<Column> = (1..).zip(types).map(|(id, ty)| column(id, ty)).collect();
    Table {
        id: TableId(7),
        database: "d".into(),
        name: "t".into(),
        schema_version: 1,
        next_column_id: 100,
        columns,
        primary_key: vec![],
        indexes: vec![],
        foreign_keys: vec![],
        checks: vec![],
        collation: Collation::default(),
        comment: String::new(),
        data_subject: false,
        temporary: false,
        analyzed: None,
        blinding: crate::catalog::Blinding::default(),
        copying: None,
        sealing: crate::catalog::Sealing::default(),
        ownership_rules: vec![],
        ownership: crate::catalog::Ownership::default(),
        next_index_id: 2,
        created_at: 0,
    }
}

fn text(collation: Collation) -> DataType {
    DataType::Varchar {
        length: 100,
        collation,
    }
}

/// A type with a strategy for its values.
fn typed_values() -> Vec<(DataType, BoxedStrategy<Value>)> {
    let int = |width, unsigned| DataType::Int {
        width,
        unsigned,
        display_width: None,
    };
    let words =
        || prop_oneof!["[a-cA-C \\-_é]{0,5}", "\\PC{0,5}", "[a\u{0} ]{0,4}"].prop_map(Value::Text);
    let decimals = (any::<i64>(), any::<i32>())
        .prop_map(|(a, b)| Value::decimal(Decimal::new((i128::from(a) * i128::from(b)).into(), 4)));
    let dates =
        (0u16..3000, 0u8..=12, 0u8..=28).prop_map(|(year, month, day)| Date { year, month, day });
    let moments = (1970u16..2030, 1u8..=12, 1u8..=28, 0u64..86_400_000_000).prop_map(
        |(year, month, day, micros)| {
            Value::DateTime(DateTime {
                date: Date { year, month, day },
                micros,
            })
        },
    );
    let members = vec!["z".to_string(), "a".to_string(), "m".to_string()];
    let picks = members.clone();
    let mut all = vec![
        (
            int(IntWidth::Tiny, false),
            any::<i8>().prop_map(|v| Value::Int(v.into())).boxed(),
        ),
        (
            int(IntWidth::Medium, false),
            (-8_388_608i64..8_388_608).prop_map(Value::Int).boxed(),
        ),
        (
            int(IntWidth::Int, true),
            any::<u32>().prop_map(|v| Value::Int(v.into())).boxed(),
        ),
        (
            int(IntWidth::Big, false),
            any::<i64>().prop_map(Value::Int).boxed(),
        ),
        (
            int(IntWidth::Big, true),
            any::<u64>().prop_map(Value::UInt).boxed(),
        ),
        (
            DataType::Decimal {
                precision: 40,
                scale: 4,
                sign: DataType::SIGNED,
            },
            decimals.boxed(),
        ),
        (
            DataType::DOUBLE,
            prop::num::f64::NORMAL
                .prop_union(prop::num::f64::ZERO)
                .prop_map(Value::Double)
                .boxed(),
        ),
        (DataType::Date, dates.prop_map(Value::Date).boxed()),
        (
            DataType::Time { fsp: 6 },
            (-3_020_399_000_000i64..3_020_399_000_000)
                .prop_map(|micros| Value::Time(Time { micros }))
                .boxed(),
        ),
        (DataType::DateTime { fsp: 6 }, moments.clone().boxed()),
        (DataType::Timestamp { fsp: 6 }, moments.boxed()),
        (DataType::Year, (1901i64..2155).prop_map(Value::Int).boxed()),
        (
            DataType::Varbinary { length: 9 },
            prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..6)
                .prop_map(Value::Bytes)
                .boxed(),
        ),
        (
            DataType::Enum {
                members,
                collation: Collation::default(),
            },
            (0usize..3)
                .prop_map(move |at| Value::Text(picks[at].clone()))
                .boxed(),
        ),
    ];
    for collation in Collation::ALL {
        if collation != Collation::Binary {
            all.push((text(collation), words().boxed()));
        }
    }
    all
}

fn key(value: &Value, ty: &DataType) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_column(value, ty, None, &TimeZone::UTC, &mut out).unwrap();
    out
}

#[test]
fn byte_order_of_keys_is_the_order_of_values() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (ty, values) in typed_values() {
        let with_null = prop_oneof![1 => Just(Value::Null), 20 => values];
        runner
            .run(&(with_null.clone(), with_null), |(a, b)| {
                let (left, right) = (key(&a, &ty), key(&b, &ty));
                prop_assert_eq!(
                    left.cmp(&right),
                    sort_cmp_typed(&a, &b, &ty),
                    "{:?} {:?} {:?}",
                    ty,
                    a,
                    b
                );
                if left != right {
                    prop_assert!(!left.starts_with(&right) && !right.starts_with(&left));
                }
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn records_come_back_as_they_went() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (ty, values) in typed_values() {
        let table = table(vec![ty, DataType::BIGINT]);
        runner
            .run(&values, |value| {
                let row = vec![value, Value::Null];
                let record = encode_row(&table, &row, &TimeZone::UTC);
                prop_assert_eq!(
                    decode_row(&table, (b"", &record), &TimeZone::UTC).unwrap(),
                    row
                );
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn entries_of_an_index_give_back_what_they_hold() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (ty, values) in typed_values() {
        let mut table = table(vec![ty.clone(), DataType::BIGINT, DataType::BIGINT]);
        table.primary_key = vec![1];
        let index = Index {
            id: IndexId(3),
            name: "i".into(),
            columns: vec![IndexColumn {
                column: 0,
                prefix: None,
                descending: false,
            }],
            unique: false,
            state: IndexState::Public,
            comment: String::new(),
        };
        assert!(entry_holds(&table, &index, &[false, true]));
        assert!(!entry_holds(&table, &index, &[false, false, true]));
        let wanted = [entry_holds(&table, &index, &[true]), true, false];
        let is_lossy = match &ty {
            DataType::Varchar { collation, .. } => *collation != Collation::Bin0900,
            other => {
                other.is_text() || matches!(other, DataType::Decimal { .. } | &DataType::DOUBLE)
            }
        };
        assert_eq!(wanted[0], !is_lossy, "{ty:?}");
        let with_null = prop_oneof![1 => Just(Value::Null), 9 => values];
        let with_id = (with_null, any::<i64>());
        runner
            .run(&with_id, |(value, id)| {
                let zone = TimeZone::UTC;
                let row = [value, Value::Int(id), Value::Int(5)];
                let suffix = row_key_suffix(&table, &row, 0, &zone).unwrap();
                let key = index_key(&table, &index, &row, &suffix, &zone).unwrap();
                let mut read = vec![Value::Int(9); 3];
                let entry = (key.as_slice(), suffix.as_slice());
                decode_entry(&table, &index, entry, &wanted, &zone, &mut read).unwrap();
                let first = if wanted[0] { &row[0] } else { &Value::Int(9) };
                prop_assert_eq!(&read[0], first);
                prop_assert_eq!(&read[1..], &[Value::Int(id), Value::Int(9)]);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn json_text_and_blobs_come_back() {
    let table = table(vec![
        DataType::Json,
        DataType::Blob {
            size: TextSize::Long,
        },
    ]);
    let json = parse_json(r#"{"b":[1,2.5,null],"a":"é"}"#).unwrap();
    let row = vec![Value::Json(Arc::new(json)), Value::Bytes(vec![0, 255, 7])];
    let record = encode_row(&table, &row, &TimeZone::UTC);
    assert_eq!(
        decode_row(&table, (b"", &record), &TimeZone::UTC).unwrap(),
        row
    );
}

#[test]
fn timestamps_are_stored_in_utc_and_read_in_any_zone() {
    let table = table(vec![DataType::Timestamp { fsp: 0 }]);
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let at = |hour: u64| {
        Value::DateTime(DateTime {
            date: Date {
                year: 2024,
                month: 7,
                day: 1,
            },
            micros: hour * 3_600_000_000,
        })
    };
    let record = encode_row(&table, &[at(12)], &berlin);
    assert_eq!(
        decode_row(&table, (b"", &record), &TimeZone::UTC).unwrap(),
        vec![at(10)]
    );
    assert_eq!(
        decode_row(&table, (b"", &record), &berlin).unwrap(),
        vec![at(12)]
    );
}

#[test]
fn added_columns_take_their_absent_value_and_dropped_ones_are_skipped() {
    let old = table(vec![DataType::BIGINT, DataType::varchar(5)]);
    let record = encode_row(
        &old,
        &[Value::Int(1), Value::Text("x".into())],
        &TimeZone::UTC,
    );
    let mut new = old.clone();
    new.columns.remove(0);
    let mut added = column(9, DataType::varchar(10));
    added.absent_value = Some(ColumnDefault::Literal("'it''s'".into()));
    new.columns.push(added);
    let mut required = column(10, DataType::BIGINT);
    required.not_null = true;
    new.columns.push(required);
    let expected = vec![
        Value::Text("x".into()),
        Value::Text("it's".into()),
        Value::Int(0),
    ];
    assert_eq!(
        decode_row(&new, (b"", &record), &TimeZone::UTC).unwrap(),
        expected
    );
    let mut row = vec![Value::Int(8), Value::Null, Value::Null];
    let wanted = [false, true, false];
    decode_columns(&new, (b"", &record), &wanted, &TimeZone::UTC, &mut row).unwrap();
    assert_eq!(
        row,
        vec![Value::Int(8), Value::Text("it's".into()), Value::Null]
    );
}

#[test]
fn unique_entries_carry_the_row_key_only_beside_a_null() {
    let table = table(vec![DataType::BIGINT]);
    let mut index = Index {
        id: IndexId(3),
        name: "i".into(),
        columns: vec![IndexColumn {
            column: 0,
            prefix: None,
            descending: false,
        }],
        unique: true,
        state: IndexState::Public,
        comment: String::new(),
    };
    let make = |index: &Index, value: Value| {
        index_key(&table, index, &[value], b"suffix", &TimeZone::UTC).unwrap()
    };
    assert!(!make(&index, Value::Int(1)).ends_with(b"suffix"));
    assert!(make(&index, Value::Null).ends_with(b"suffix"));
    index.unique = false;
    assert!(make(&index, Value::Int(1)).ends_with(b"suffix"));
    assert!(make(&index, Value::Int(1)).starts_with(&index_prefix(&table, 3)));
}

#[test]
fn a_key_says_of_which_table_and_index_it_is() {
    let table = table(vec![DataType::BIGINT]);
    let prefix = index_prefix(&table, 3);
    let key = [prefix.as_slice(), b"columns"].concat();
    let parts = (table.id, 3, b"columns".as_slice());
    assert_eq!(split_key(&key), Some(parts));
    assert_eq!(split_key(&prefix[..KEY_HEAD - 1]), None);
    let catalog = [&[0], &key[1..]].concat();
    assert_eq!(split_key(&catalog), None, "no table has it");
}

proptest! {
    #[test]
    fn damaged_entries_are_errors(bytes in prop::collection::vec(prop_oneof![0u8..2, any::<u8>()], 0..40)) {
        for (ty, _) in typed_values() {
            let mut table = table(vec![ty, DataType::BIGINT]);
            table.primary_key = vec![1];
            let index = Index {
                id: IndexId(3),
                name: "i".into(),
                columns: vec![IndexColumn { column: 0, prefix: None, descending: false }],
                unique: false,
                state: IndexState::Public,
                comment: String::new(),
            };
            let mut row = vec![Value::Null; 2];
            let entry = (bytes.as_slice(), bytes.as_slice());
            let read = decode_entry(&table, &index, entry, &[true, true], &TimeZone::UTC, &mut row);
            if let Err(error) = read {
                prop_assert_eq!(error.code, 1712);
            }
        }
    }

    #[test]
    fn damaged_records_are_errors(mut bytes in prop::collection::vec(any::<u8>(), 0..40), valid in any::<bool>()) {
        let types: Vec<DataType> = typed_values().into_iter().map(|(ty, _)| ty).collect();
        let table = table(types);
        if valid && !bytes.is_empty() {
            bytes[0] = 1;
        }
        if let Err(error) = decode_row(&table, (b"", &bytes), &TimeZone::UTC) {
            // What may be sealed needs a vault to tell.
            let may_be = bytes.first() == Some(&2) && bytes.len() > 28;
            prop_assert!(error.code == 1712 || may_be && error.code == 51005, "{error}");
        }
    }
}
