//! How rows and keys lie in the key space.
//!
//! ```text
//! row          0x01 ‖ table u32 BE ‖ 0u32 BE ‖ key columns       → row record, plain or sealed
//! unique index 0x01 ‖ table u32 BE ‖ index u32 BE ‖ columns      → row key suffix
//!              (with a NULL in it: ‖ row key suffix, so that NULLs never collide)
//! index        0x01 ‖ table u32 BE ‖ index u32 BE ‖ columns ‖ row key suffix → row key suffix
//! catalog      0x00 ‖ …                                          → see `catalog::store`
//! ```
//! The *row key suffix* is the encoded primary key (or the hidden row id, 8 bytes big-endian).
//! A key column is one tag byte (0x00 NULL, 0x01 value) and an order-preserving, self-delimiting
//! body, so byte order is MySQL's order and NULL sorts first. Text keys are collation sort keys:
//! lossy, so the row record always holds every column. What is not lossy can be read back from the
//! key alone ([`decode_entry`]). A column that is *blinded* in a key ([`crate::catalog::Blinding`]) is
//! the tag and a mark of 16 bytes that follows from its body and a key of the vault: equal values have
//! equal marks, and their order is nobody's.
//!
//! Functions take the session's time zone: rows in flight hold TIMESTAMP in session time, stored
//! ones in UTC.

mod entry;
mod key;
mod record;
mod sealed;
#[cfg(test)]
mod tests;

pub use entry::{decode_entry, entry_holds};
pub use key::{
    KEY_HEAD, encode_key_column, encode_key_part, index_key, index_prefix, row_key, row_key_suffix,
    split_key,
};
pub use record::{decode_columns, decode_row, encode_row};
pub use sealed::{is_sealed, key_of, seal};
