//! Catalog records and their keys.
//!
//! ```text
//! database   0x00 0x01 ‖ lower name                          → record
//! table/view 0x00 0x02 ‖ lower database ‖ 0x00 ‖ lower name  → record
//! garbage    0x00 0x03 ‖ data prefix                         → empty: that range is to be deleted
//! table id   0x00 0x04                                       → next id, u32 BE
//! temporary  0x00 0x06 ‖ table u32 BE            → empty: a session's own; garbage after a crash
//! probe      0x00 0x08                                           → empty
//! shared     0x00 0x09, 0x0a, 0x0b               → u64 BE: see `shared.rs`
//! reserved   0x00 0x0c ‖ table u32 BE            → empty: written before it is published; garbage after a crash
//! sequence   0x00 0x05 ‖ table u32 BE ‖ kind u8              → next value, u64 BE
//! unfinished 0x00 0x07 ‖ table u32 BE            → record the table has again after a crash
//! statistics 0x00 0x0e ‖ table u32 BE            → record
//! materialized view 0x00 0x0f ‖ lower database ‖ 0x00 ‖ lower name → record: the definition alone
//! (0x00 0x10 and above belong to other modules: accounts, settings)
//!
//! record     format u8 ‖ kind u8 ‖ version u64 BE ‖ id u32 BE ‖ crc32 u32 BE ‖ postcard
//! ```
//! Format 1 holds the record alone. Format 2 is a table that has what format 1 knows nothing of,
//! indexes a foreign key made for itself among it; a list of its generated columns,
//! (position, [`Generated`]), follows it. Format 3 is format 2 with the id of a copy that is being
//! made behind it, while ALTER TABLE makes one: who did not know would not note its changes. Format 4 is
//! a table that says whose its rows are: what format 2 holds, that id or none, and what was decided
//! ([`OwnershipRecord`]). Format 5 is format 4 with what is blinded in the table's keys behind it
//! ([`Blinding`]); keys of a table in an earlier format are plain. Format 6 is format 5
//! with how long its rows are kept behind it. Format 7 is format 5 with that, or none, and with the column of
//! the home region behind it. A record is written in the lowest format that can hold
//! it, so that an older release goes on reading what it understands and refuses only the rest.
//!
//! Version and id stand outside the body, so that a statement can check in one read and no
//! decoding that a table is still the one it was planned for.

use manxdb_ownership::{Edge, Retention};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    Blinding, ColumnId, Generated, Index, IndexState, MaterializedView, Ownership, Table, TableId,
    TableStatistics, View,
};
use crate::error::{SqlError, SqlResult};
use crate::types::Collation;

/// A record and nothing else.
const PLAIN: u8 = 1;
/// A table followed by its generated columns; its indexes may be [`IndexState::Implicit`].
const WITH_GENERATED: u8 = 2;
/// As [`WITH_GENERATED`], of a table that is being copied; the id of the copy follows.
const BEING_COPIED: u8 = 3;
/// As [`WITH_GENERATED`], followed by the id of a copy, if one is being made, and by
/// [`OwnershipRecord`].
const OWNED: u8 = 4;
/// As [`OWNED`], followed by [`Blinding`].
const BLINDED: u8 = 5;
/// As [`BLINDED`], followed by the [`Retention`] of its rows.
const RETAINED: u8 = 6;
/// As [`BLINDED`], followed by the [`Retention`] of its rows, if there is one, and the column of the home
/// region.
const HOMED: u8 = 7;
const HEADER: usize = 18;

/// What a record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Database = 1,
    Table = 2,
    View = 3,
    Statistics = 4,
    MaterializedView = 5,
}

/// The stored form of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatabaseRecord {
    pub(crate) name: String,
    pub(crate) collation: Collation,
}

/// What was decided of a table's ownership.
#[derive(Debug, Serialize, Deserialize)]
struct OwnershipRecord {
    /// Positions of foreign keys, with what they mean.
    edges: Vec<(usize, Edge)>,
    ownership: Ownership,
}

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Database(DatabaseRecord),
    Table(Box<Table>),
    View(View),
    MaterializedView(MaterializedView),
}

pub(crate) const DATABASES: &[u8] = &[0x00, 0x01];
pub(crate) const RELATIONS: &[u8] = &[0x00, 0x02];
pub(crate) const GARBAGE: &[u8] = &[0x00, 0x03];
pub(crate) const NEXT_TABLE_ID: &[u8] = &[0x00, 0x04];
pub(crate) const TEMPORARY: &[u8] = &[0x00, 0x06];
pub(crate) const RESERVED: &[u8] = &[0x00, 0x0c];
pub(crate) const UNFINISHED: &[u8] = &[0x00, 0x07];
/// Written to find out whether anything can be.
pub(crate) const PROBE: &[u8] = &[0x00, 0x08];
const SEQUENCES: &[u8] = &[0x00, 0x05];
/// How often the catalog was changed, where several servers have it.
pub(crate) const CATALOG_CHANGES: &[u8] = &[0x00, 0x09];
/// How often accounts were.
pub(crate) const ACCOUNT_CHANGES: &[u8] = &[0x00, 0x0a];
/// Which server changes the catalog now; 0: none.
pub(crate) const TURN: &[u8] = &[0x00, 0x0b];
/// What ANALYZE TABLE found out.
pub(crate) const STATISTICS: &[u8] = &[0x00, 0x0e];
/// Definitions of materialized views. A release that does not know them runs the base plans.
pub(crate) const MATERIALIZED_VIEWS: &[u8] = &[0x00, 0x0f];
/// First byte of all rows and index entries.
const DATA: u8 = 0x01;

/// Key of a database's record.
pub(crate) fn database_key(name: &str) -> Vec<u8> {
    [DATABASES, name.to_lowercase().as_bytes()].concat()
}

/// Key of a table's or view's record.
pub(crate) fn relation_key(database: &str, name: &str) -> Vec<u8> {
    [
        RELATIONS,
        database.to_lowercase().as_bytes(),
        &[0x00],
        name.to_lowercase().as_bytes(),
    ]
    .concat()
}

/// Key of the definition of a materialized view.
pub(crate) fn materialized_key(database: &str, name: &str) -> Vec<u8> {
    [
        MATERIALIZED_VIEWS,
        database.to_lowercase().as_bytes(),
        &[0x00],
        name.to_lowercase().as_bytes(),
    ]
    .concat()
}

/// Key of the note that a data range is to be deleted.
pub(crate) fn garbage_key(prefix: &[u8]) -> Vec<u8> {
    [GARBAGE, prefix].concat()
}

/// The data range a [`garbage_key`] is about.
///
/// # Errors
/// 1712 when it is not inside one table: a shorter prefix would be everybody's data.
pub(crate) fn garbage_prefix(note: &[u8]) -> SqlResult<&[u8]> {
    let prefix = note.get(GARBAGE.len()..).unwrap_or_default();
    if prefix.first() == Some(&DATA) && prefix.len() >= table_prefix(TableId(0)).len() {
        return Ok(prefix);
    }
    Err(SqlError::new(
        1712,
        "HY000",
        "a note of dropped data is damaged",
    ))
}

/// Key of a sequence.
pub(crate) fn sequence_key(table: TableId, kind: u8) -> Vec<u8> {
    [SEQUENCES, &table.0.to_be_bytes(), &[kind]].concat()
}

/// Key of the note that a table's change has not come to its end.
pub(crate) fn unfinished_key(table: TableId) -> Vec<u8> {
    [UNFINISHED, &table.0.to_be_bytes()].concat()
}

/// Key of the note that a table id is a temporary table's.
pub(crate) fn temporary_key(table: TableId) -> Vec<u8> {
    [TEMPORARY, &table.0.to_be_bytes()].concat()
}

/// Key of the note that a table id is that of a table in the making.
pub(crate) fn reserved_key(table: TableId) -> Vec<u8> {
    [RESERVED, &table.0.to_be_bytes()].concat()
}

/// The table a [`temporary_key`] is about.
pub(crate) fn temporary_id(key: &[u8]) -> SqlResult<TableId> {
    noted_id(key, TEMPORARY)
        .ok_or_else(|| SqlError::new(1712, "HY000", "a note of a temporary table is damaged"))
}

/// Key of a table's statistics.
pub(crate) fn statistics_key(table: TableId) -> Vec<u8> {
    [STATISTICS, &table.0.to_be_bytes()].concat()
}

/// The stored form of a table's statistics.
pub(crate) fn encode_statistics(table: TableId, found: &TableStatistics) -> SqlResult<Vec<u8>> {
    seal(PLAIN, Kind::Statistics, 0, table.0, found)
}

/// Back from [`encode_statistics`]; `None` when they cannot be read: a table is as good without.
pub(crate) fn decode_statistics(key: &[u8], bytes: &[u8]) -> Option<(TableId, TableStatistics)> {
    let id = key.get(STATISTICS.len()..)?.try_into().ok()?;
    let header = bytes.get(..HEADER)?;
    let body = bytes.get(HEADER..)?;
    let is_known = header[0] == PLAIN && header[1] == Kind::Statistics as u8;
    let stored = u32::from_be_bytes([header[14], header[15], header[16], header[17]]);
    if !is_known || crc32fast::hash(body) != stored {
        return None;
    }
    let found = postcard::from_bytes(body).ok()?;
    Some((TableId(u32::from_be_bytes(id)), found))
}

/// The table a [`reserved_key`] is about.
pub(crate) fn reserved_id(key: &[u8]) -> SqlResult<TableId> {
    noted_id(key, RESERVED)
        .ok_or_else(|| SqlError::new(1712, "HY000", "a note of a reserved table id is damaged"))
}

fn noted_id(key: &[u8], notes: &[u8]) -> Option<TableId> {
    let id = key.strip_prefix(notes)?.try_into().ok()?;
    Some(TableId(u32::from_be_bytes(id)))
}

/// Everything stored of a table: rows and indexes.
pub(crate) fn table_prefix(table: TableId) -> Vec<u8> {
    [&[DATA], table.0.to_be_bytes().as_slice()].concat()
}

/// Everything stored of one index.
pub(crate) fn index_prefix(table: TableId, index: u32) -> Vec<u8> {
    [table_prefix(table), index.to_be_bytes().to_vec()].concat()
}

impl Record {
    /// The stored bytes.
    pub(crate) fn encode(&self) -> SqlResult<Vec<u8>> {
        match self {
            Record::Database(record) => seal(PLAIN, Kind::Database, 0, 0, record),
            Record::Table(table) => encode_table(table),
            Record::View(view) => seal(PLAIN, Kind::View, view.schema_version, 0, view),
            Record::MaterializedView(view) => {
                seal(PLAIN, Kind::MaterializedView, view.schema_version, 0, view)
            }
        }
    }

    /// Back from stored bytes.
    ///
    /// # Errors
    /// 1712 when the record is damaged or of a later format.
    pub(crate) fn decode(bytes: &[u8]) -> SqlResult<Self> {
        let damaged = || SqlError::new(1712, "HY000", "a catalog record is damaged");
        let header = bytes.get(..HEADER).ok_or_else(damaged)?;
        let body = bytes.get(HEADER..).ok_or_else(damaged)?;
        let kind = header[1];
        match header[0] {
            PLAIN => {}
            WITH_GENERATED | BEING_COPIED | OWNED | BLINDED | RETAINED | HOMED
                if kind == Kind::Table as u8 => {}
            format => {
                let message = format!("catalog record of format {format}, this is {HOMED}");
                return Err(SqlError::new(1712, "HY000", message));
            }
        }
        let stored = u32::from_be_bytes([header[14], header[15], header[16], header[17]]);
        if crc32fast::hash(body) != stored {
            return Err(damaged());
        }
        fn open<T: DeserializeOwned>(body: &[u8]) -> SqlResult<T> {
            postcard::from_bytes(body).map_err(|_| unreadable())
        }
        let record = match kind {
            1 => Record::Database(open(body)?),
            2 if header[0] == WITH_GENERATED => Record::Table(decode_with_generated(body)?),
            2 if header[0] == BEING_COPIED => {
                let (generated, copy): (Vec<u8>, TableId) = open(body)?;
                let mut table = decode_with_generated(&generated)?;
                table.copying = Some(copy);
                Record::Table(table)
            }
            2 if header[0] == OWNED => Record::Table(decode_owned(open(body)?)?),
            2 if header[0] == BLINDED => Record::Table(decode_blinded(open(body)?)?),
            2 if header[0] == RETAINED => Record::Table(decode_retained(open(body)?)?),
            2 if header[0] == HOMED => Record::Table(decode_homed(open(body)?)?),
            2 => Record::Table(Box::new(open(body)?)),
            3 => Record::View(open(body)?),
            5 => Record::MaterializedView(open(body)?),
            _ => return Err(damaged()),
        };
        match &record {
            Record::Table(table) if !is_whole(table, bytes) => Err(damaged()),
            _ => Ok(record),
        }
    }
}

/// 1712: the checksum of a record is right, and its parts do not fit together.
fn unreadable() -> SqlError {
    SqlError::new(1712, "HY000", "a catalog record cannot be read")
}

/// Whether the header, which the checksum does not cover, is the table's, and all positions are
/// of columns that it has.
fn is_whole(table: &Table, bytes: &[u8]) -> bool {
    let parts = table.indexes.iter().flat_map(|index| &index.columns);
    let keys = table.foreign_keys.iter().flat_map(|key| &key.columns);
    let mut positions = parts
        .map(|part| part.column)
        .chain(keys.copied())
        .chain(table.primary_key.iter().copied());
    is_version(bytes, table.schema_version, table.id.0)
        && positions.all(|at| at < table.columns.len())
}

fn encode_table(table: &Table) -> SqlResult<Vec<u8>> {
    let generated: Vec<(usize, &Generated)> = table
        .columns
        .iter()
        .enumerate()
        .filter_map(|(at, column)| Some((at, column.generated.as_ref()?)))
        .collect();
    let (version, id) = (table.schema_version, table.id.0);
    let is_said = table.blinding != Blinding::default();
    if table.has_ownership() || is_said {
        let edges = table.foreign_keys.iter().enumerate();
        let owned = OwnershipRecord {
            edges: edges
                .filter_map(|(at, key)| Some((at, key.edge?)))
                .collect(),
            ownership: table.ownership.clone(),
        };
        let body = postcard::to_stdvec(&(table, generated))
            .map_err(|error| SqlError::internal(format!("catalog record: {error}")))?;
        let copy = table.copying;
        if let Some(home) = table.ownership.home_region {
            let body = (body, copy, owned, &table.blinding);
            let body = (body, &table.ownership.retention, home);
            return seal(HOMED, Kind::Table, version, id, &body);
        }
        if let Some(retention) = &table.ownership.retention {
            let body = ((body, copy, owned, &table.blinding), retention);
            return seal(RETAINED, Kind::Table, version, id, &body);
        }
        if is_said {
            let body = (body, copy, owned, &table.blinding);
            return seal(BLINDED, Kind::Table, version, id, &body);
        }
        return seal(OWNED, Kind::Table, version, id, &(body, copy, owned));
    }
    if let Some(copy) = table.copying {
        let body = postcard::to_stdvec(&(table, generated))
            .map_err(|error| SqlError::internal(format!("catalog record: {error}")))?;
        return seal(BEING_COPIED, Kind::Table, version, id, &(body, copy));
    }
    let implicit = |index: &Index| index.state == IndexState::Implicit;
    if generated.is_empty() && !table.indexes.iter().any(implicit) {
        return seal(PLAIN, Kind::Table, version, id, table);
    }
    seal(
        WITH_GENERATED,
        Kind::Table,
        version,
        id,
        &(table, generated),
    )
}

fn decode_with_generated(body: &[u8]) -> SqlResult<Box<Table>> {
    let (mut table, generated): (Box<Table>, Vec<(usize, Generated)>) =
        postcard::from_bytes(body).map_err(|_| unreadable())?;
    for (at, generated) in generated {
        let column = table.columns.get_mut(at).ok_or_else(unreadable)?;
        column.generated = Some(generated);
    }
    Ok(table)
}

/// The body of an [`OWNED`] record.
type OwnedBody = (Vec<u8>, Option<TableId>, OwnershipRecord);

/// The body of a [`BLINDED`] record.
type BlindedBody = (Vec<u8>, Option<TableId>, OwnershipRecord, Blinding);

/// The body of a [`RETAINED`] record.
type RetainedBody = (BlindedBody, Retention);

fn decode_retained((blinded, retention): RetainedBody) -> SqlResult<Box<Table>> {
    let mut table = decode_blinded(blinded)?;
    table.ownership.retention = Some(retention);
    Ok(table)
}

/// The body of a [`HOMED`] record.
type HomedBody = (BlindedBody, Option<Retention>, ColumnId);

fn decode_homed((blinded, retention, home): HomedBody) -> SqlResult<Box<Table>> {
    let mut table = decode_blinded(blinded)?;
    table.ownership.retention = retention;
    table.ownership.home_region = Some(home);
    if table.columns.iter().any(|column| column.id == home) {
        return Ok(table);
    }
    Err(unreadable())
}

fn decode_owned((generated, copy, owned): OwnedBody) -> SqlResult<Box<Table>> {
    let mut table = decode_with_generated(&generated)?;
    table.copying = copy;
    table.ownership = owned.ownership;
    for (at, edge) in owned.edges {
        let key = table.foreign_keys.get_mut(at);
        let key = key.filter(|key| key.enforced && key.edge.is_none());
        key.ok_or_else(unreadable)?.edge = Some(edge);
    }
    Ok(table)
}

fn decode_blinded((generated, copy, owned, blinding): BlindedBody) -> SqlResult<Box<Table>> {
    let mut table = decode_owned((generated, copy, owned))?;
    if !blinding.is_whole() {
        return Err(unreadable());
    }
    table.blinding = blinding;
    Ok(table)
}

fn seal<T: Serialize>(
    format: u8,
    kind: Kind,
    version: u64,
    id: u32,
    body: &T,
) -> SqlResult<Vec<u8>> {
    let body = postcard::to_stdvec(body)
        .map_err(|error| SqlError::internal(format!("catalog record: {error}")))?;
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.push(format);
    out.push(kind as u8);
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&body).to_be_bytes());
    out.extend_from_slice(&body);
    Ok(out)
}

/// Whether stored bytes are the record of exactly this version of this table.
pub(crate) fn is_version(bytes: &[u8], version: u64, id: u32) -> bool {
    bytes.get(2..10) == Some(version.to_be_bytes().as_slice())
        && bytes.get(10..14) == Some(id.to_be_bytes().as_slice())
}

#[cfg(test)]
mod tests;
