//! Sealed row records: format 2.
//!
//! ```text
//! 2 ‖ key id varint ‖ nonce 12 ‖ ciphertext of the record in format 1 ‖ tag 16
//! ```
//! The key is one of the vault's. The format, the table's id, the row's key and the key's id are
//! associated data, so that a record opens as the row that it was written for and as no other. The
//! version of the table's definition is not among them: ALTER TABLE ADD COLUMN leaves records as they are.

use std::borrow::Cow;

use manxdb_vault::{KeyId, SEALED_BYTES_MORE};

use super::record::{Reader, write_varint};
use crate::catalog::{Table, vault_error};
use crate::error::{SqlError, SqlResult};

/// Version of the format of sealed records.
const FORMAT: u8 = 2;

/// Whether a row record is sealed.
#[must_use]
pub fn is_sealed(record: &[u8]) -> bool {
    record.first() == Some(&FORMAT)
}

/// The key that a row record is sealed under; `None` for a plain one.
#[must_use]
pub fn key_of(record: &[u8]) -> Option<KeyId> {
    let (format, bytes) = record.split_first()?;
    if *format != FORMAT {
        return None;
    }
    let id = Reader { bytes }.varint()?;
    Some(KeyId::from_stored(id))
}

fn aad(table: &Table, suffix: &[u8], key: KeyId) -> Vec<u8> {
    let mut aad = Vec::with_capacity(13 + suffix.len());
    aad.push(FORMAT);
    aad.extend_from_slice(&table.id.0.to_be_bytes());
    aad.extend_from_slice(&key.get().to_be_bytes());
    aad.extend_from_slice(suffix);
    aad
}

/// The sealed form of `record`, a plain one of the row `suffix` of `table`.
///
/// # Errors
/// 51005 when the key is not to be had.
pub fn seal(table: &Table, suffix: &[u8], key: KeyId, record: &[u8]) -> SqlResult<Vec<u8>> {
    assert!(!is_sealed(record), "a record is sealed once");
    let Some(vault) = table.sealing.vault() else {
        return Err(no_vault(table));
    };
    let mut out = Vec::with_capacity(11 + record.len() + SEALED_BYTES_MORE);
    out.push(FORMAT);
    write_varint(key.get(), &mut out);
    vault
        .seal(key, &aad(table, suffix, key), record, &mut out)
        .map_err(|error| vault_error(table, error))?;
    assert_eq!(key_of(&out), Some(key), "a sealed record names its key");
    Ok(out)
}

/// The plain record of the row `suffix` of `table`: every reader of row records comes through here.
///
/// # Errors
/// 1712 when it is cut short; 51005 when the key is not to be had, or the record is not what was sealed for this row; 51006 when the
/// key was erased: the row's person was forgotten since the reader's snapshot.
pub(super) fn open<'r>(table: &Table, suffix: &[u8], record: &'r [u8]) -> SqlResult<Cow<'r, [u8]>> {
    if !is_sealed(record) {
        return Ok(Cow::Borrowed(record));
    }
    let mut reader = Reader {
        bytes: record.get(1..).unwrap_or_default(),
    };
    let id = reader
        .varint()
        .ok_or_else(|| super::record::damaged(table))?;
    if reader.bytes.len() < SEALED_BYTES_MORE {
        return Err(super::record::damaged(table));
    }
    let Some(vault) = table.sealing.vault() else {
        return Err(no_vault(table));
    };
    let key = KeyId::from_stored(id);
    let plain = vault
        .open_sealed(key, &aad(table, suffix, key), reader.bytes)
        .map_err(|error| vault_error(table, error))?;
    Ok(Cow::Owned(plain))
}

fn no_vault(table: &Table) -> SqlError {
    let text = format!(
        "A row of '{}.{}' is sealed, and this server has no vault: start it with the one it was sealed by",
        table.database, table.name
    );
    SqlError::new(51005, "HY000", text)
}
