//! Tables as they are written to the catalog, and as they are read from it.

use super::*;
use crate::catalog::{
    Column, ColumnId, ForeignKey, ForeignKeyAction, GeneratedKind, OwnershipAnnotation,
};
use crate::types::{DataType, IntWidth};
use manxdb_ownership::{EdgeKind, Origin};

fn table(generated: Option<Generated>) -> Table {
    let column = |id: u32, generated: Option<Generated>| Column {
        id: ColumnId(id),
        name: format!("c{id}"),
        ty: DataType::Int {
            width: IntWidth::Int,
            unsigned: false,
            display_width: None,
        },
        not_null: false,
        default: None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        absent_value: None,
        generated,
    };
    Table {
        id: TableId(7),
        database: "d".into(),
        name: "t".into(),
        schema_version: 3,
        columns: vec![column(1, None), column(2, generated)],
        primary_key: vec![0],
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation: Collation::default(),
        comment: String::new(),
        data_subject: false,
        ownership_rules: Vec::new(),
        ownership: Ownership::default(),
        next_column_id: 3,
        next_index_id: 1,
        created_at: 0,
        temporary: false,
        analyzed: None,
        blinding: Blinding::default(),
        copying: None,
        sealing: crate::catalog::Sealing::default(),
    }
}

#[test]
fn a_table_that_is_being_copied_says_where() {
    let generated = Generated {
        expression: "`c1` + 1".into(),
        kind: GeneratedKind::Stored,
    };
    for generated in [None, Some(generated)] {
        let mut copied = table(generated);
        copied.copying = Some(TableId(9));
        let bytes = Record::Table(Box::new(copied.clone())).encode().unwrap();
        assert_eq!(bytes[0], BEING_COPIED);
        assert_eq!(
            Record::decode(&bytes).unwrap(),
            Record::Table(Box::new(copied))
        );
    }
}

#[test]
fn what_is_decided_of_ownership_comes_back_and_damage_of_it_is_no_panic() {
    let edge = Edge {
        kind: EdgeKind::OwnedBy,
        origin: Origin::Inferred,
    };
    let mut owned = table(None);
    owned.copying = Some(TableId(9));
    owned.ownership.unowned_allowed = true;
    owned.foreign_keys.push(ForeignKey {
        name: "t_ibfk_1".into(),
        columns: vec![1],
        ref_database: "d".into(),
        ref_table: "users".into(),
        ref_columns: vec!["id".into()],
        on_delete: ForeignKeyAction::NoAction,
        on_update: ForeignKeyAction::NoAction,
        ownership: OwnershipAnnotation::References,
        enforced: true,
        edge: Some(edge),
    });
    let record = Record::Table(Box::new(owned.clone()));
    let bytes = record.encode().unwrap();
    assert_eq!(bytes[0], OWNED);
    assert_eq!(Record::decode(&bytes).unwrap(), record);
    let mut subject = table(None);
    subject.data_subject = true;
    let record = Record::Table(Box::new(subject));
    assert_eq!(record.encode().unwrap()[0], OWNED);
    let generated: Vec<(usize, Generated)> = Vec::new();
    let body = postcard::to_stdvec(&(&owned, generated)).unwrap();
    for edges in [vec![(1, edge)], vec![(0, edge), (0, edge)]] {
        let ownership = Ownership::default();
        let behind = OwnershipRecord { edges, ownership };
        let body = (body.clone(), None::<TableId>, behind);
        let bytes = seal(OWNED, Kind::Table, 3, 7, &body).unwrap();
        assert_eq!(Record::decode(&bytes).unwrap_err().code, 1712);
    }
}

#[test]
fn the_column_of_the_home_region_comes_back_and_one_that_is_not_there_is_damage() {
    let mut homed = table(None);
    homed.data_subject = true;
    homed.ownership.home_region = Some(homed.columns[0].id);
    let retention = Retention {
        count: 3,
        unit: manxdb_ownership::RetentionUnit::Day,
        after: "b".into(),
    };
    for retention in [None, Some(retention)] {
        homed.ownership.retention = retention;
        let record = Record::Table(Box::new(homed.clone()));
        let bytes = record.encode().unwrap();
        assert_eq!(bytes[0], HOMED);
        assert_eq!(Record::decode(&bytes).unwrap(), record);
    }
    homed.ownership.home_region = Some(ColumnId(u32::MAX));
    let bytes = Record::Table(Box::new(homed)).encode().unwrap();
    assert_eq!(Record::decode(&bytes).unwrap_err().code, 1712);
}

#[test]
fn what_is_blinded_comes_back_and_keys_of_earlier_formats_are_plain() {
    let mut blinded = table(None);
    blinded.blinding.personal = vec![ColumnId(2)];
    let keys = vec![(crate::catalog::ROWS, vec![ColumnId(1)])];
    let key = || Ok(manxdb_vault::KeyId::from_stored(77));
    blinded.blinding.decide(keys, key).unwrap();
    let record = Record::Table(Box::new(blinded.clone()));
    let bytes = record.encode().unwrap();
    assert_eq!(bytes[0], BLINDED);
    assert_eq!(Record::decode(&bytes).unwrap(), record);
    assert!(blinded.blinds(crate::catalog::ROWS, 0));
    let mut owned = table(None);
    owned.data_subject = true;
    let bytes = Record::Table(Box::new(owned)).encode().unwrap();
    let Record::Table(read) = Record::decode(&bytes).unwrap() else {
        panic!("a table was written");
    };
    assert_eq!((bytes[0], read.blinding.is_plain()), (OWNED, true));
    // Columns that are blinded under no key.
    let stored = postcard::to_stdvec(&blinded.blinding).unwrap();
    let keyless: Blinding = {
        let mut bytes = stored.clone();
        let at = bytes.iter().position(|byte| *byte == 77).unwrap();
        bytes[at - 1] = 0;
        bytes.remove(at);
        postcard::from_bytes(&bytes).unwrap()
    };
    blinded.blinding = keyless;
    let bytes = Record::Table(Box::new(blinded)).encode().unwrap();
    assert_eq!(Record::decode(&bytes).unwrap_err().code, 1712);
}

#[test]
fn no_two_kinds_of_keys_share_a_prefix() {
    let prefixes = [
        DATABASES,
        RELATIONS,
        GARBAGE,
        NEXT_TABLE_ID,
        SEQUENCES,
        TEMPORARY,
        UNFINISHED,
        RESERVED,
        PROBE,
        STATISTICS,
        CATALOG_CHANGES,
        ACCOUNT_CHANGES,
        TURN,
    ];
    let distinct: std::collections::BTreeSet<_> = prefixes.iter().collect();
    assert_eq!(distinct.len(), prefixes.len());
    assert!(prefixes.iter().all(|prefix| !prefix.starts_with(&[DATA])));
}

#[test]
fn a_table_without_generated_columns_keeps_the_format_older_releases_read() {
    let record = Record::Table(Box::new(table(None)));
    let bytes = record.encode().expect("encodes");
    assert_eq!(bytes[0], PLAIN);
    assert_eq!(Record::decode(&bytes).expect("decodes"), record);
}

#[test]
fn a_table_with_generated_columns_comes_back_whole() {
    let record = Record::Table(Box::new(table(Some(Generated {
        expression: "(`c1` + 1)".into(),
        kind: GeneratedKind::Virtual,
    }))));
    let bytes = record.encode().expect("encodes");
    assert_eq!(bytes[0], WITH_GENERATED);
    assert_eq!(Record::decode(&bytes).expect("decodes"), record);
}

#[test]
fn an_index_state_that_older_releases_do_not_know_takes_the_second_format() {
    let mut table = table(None);
    table.indexes.push(Index {
        id: crate::catalog::IndexId(1),
        name: "c2".into(),
        columns: Vec::new(),
        unique: false,
        state: IndexState::Implicit,
        comment: String::new(),
    });
    let record = Record::Table(Box::new(table));
    let bytes = record.encode().expect("encodes");
    assert_eq!(bytes[0], WITH_GENERATED);
    assert_eq!(Record::decode(&bytes).expect("decodes"), record);
}

#[test]
fn a_record_of_a_format_to_come_is_refused_by_its_number() {
    let mut bytes = Record::Table(Box::new(table(None)))
        .encode()
        .expect("encodes");
    bytes[0] = HOMED + 1;
    let error = Record::decode(&bytes).expect_err("refused");
    assert!(error.message.contains("format 8"), "{}", error.message);
}

#[test]
fn a_key_of_a_column_that_is_not_there_is_damage_and_no_panic() {
    let mut table = table(None);
    table.primary_key = vec![2];
    let bytes = Record::Table(Box::new(table)).encode().expect("encodes");
    assert_eq!(Record::decode(&bytes).expect_err("refused").code, 1712);
}

#[test]
fn a_header_that_is_not_the_tables_is_damage() {
    let whole = Record::Table(Box::new(table(None)))
        .encode()
        .expect("encodes");
    for at in 2..14 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert_eq!(Record::decode(&bytes).expect_err("refused").code, 1712);
    }
}

#[test]
fn dropped_data_is_always_some_tables() {
    let prefix = index_prefix(TableId(7), 2);
    let note = garbage_key(&prefix);
    assert_eq!(garbage_prefix(&note).expect("whole"), prefix);
    for damaged in [&[][..], &[0x01], &[0x01, 0, 0, 0], &[0x00, 0x02, 0, 0, 0]] {
        let note = garbage_key(damaged);
        assert_eq!(garbage_prefix(&note).expect_err("refused").code, 1712);
    }
}

#[test]
fn a_generated_column_that_is_not_there_is_damage_and_no_panic() {
    let generated = Generated {
        expression: "1".into(),
        kind: GeneratedKind::Stored,
    };
    let bytes = seal(
        WITH_GENERATED,
        Kind::Table,
        1,
        7,
        &(table(None), vec![(9_usize, generated)]),
    )
    .expect("encodes");
    assert_eq!(Record::decode(&bytes).expect_err("refused").code, 1712);
}
