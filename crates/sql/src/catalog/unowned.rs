//! Keys of rows that have no owner. They lie among the data of their table, so that they are garbage
//! when that is. A row that has one, and a table that nobody owns, has no such key.

use super::TableId;
use super::record::index_prefix;

/// Index number under which a table has its rows without owner; no index gets it.
const UNOWNED_ROWS: u32 = u32::MAX - 1;

/// All rows of a table without an owner.
pub(crate) fn unowned_rows_prefix(table: TableId) -> Vec<u8> {
    index_prefix(table, UNOWNED_ROWS)
}

/// The fact that the row with key suffix `suffix` has no owner; nothing is stored under it.
pub(crate) fn unowned_row_key(table: TableId, suffix: &[u8]) -> Vec<u8> {
    [unowned_rows_prefix(table).as_slice(), suffix].concat()
}
