//! Keys of what is noted about a copy of a table in the making. They lie among the data of the copy,
//! so that they are garbage when that is.

use super::TableId;
use super::record::index_prefix;

/// Index number under which a copy in the making has its notes; no index gets it.
const NOTES_OF_COPY: u32 = u32::MAX;

/// Everything noted about a copy in the making: garbage when it is made.
pub(crate) fn notes_of_copy_prefix(copy: TableId) -> Vec<u8> {
    index_prefix(copy, NOTES_OF_COPY)
}

/// Notes of rows that have changed since they were copied.
pub(crate) fn changed_rows_prefix(copy: TableId) -> Vec<u8> {
    [notes_of_copy_prefix(copy), vec![1]].concat()
}

/// The note that the row of a table with key suffix `suffix` has changed.
pub(crate) fn changed_row_key(copy: TableId, suffix: &[u8]) -> Vec<u8> {
    [changed_rows_prefix(copy).as_slice(), suffix].concat()
}

/// Where the key suffix is noted that a row with another in the table has in the copy.
pub(crate) fn moved_row_key(copy: TableId, suffix: &[u8]) -> Vec<u8> {
    let prefix = [notes_of_copy_prefix(copy), vec![2]].concat();
    [prefix.as_slice(), suffix].concat()
}
