//! Under which key a row is sealed.
//!
//! | row | key |
//! |---|---|
//! | a person | one of its own |
//! | one that may have several owners: several OWNED_BY links, or a target of OWNS | one of its own, for as long as it is there |
//! | one with a single OWNED_BY link | that of the row the link leads to |
//! | the same, whose link is NULL: nobody's | none, it is plain |
//! | the same, whose link leads to a row that has not come yet (`foreign_key_checks = 0`) | the transit key, until it is looked at |
//!
//! So a person's key opens all that is the person's alone, and a key of a shared row opens that row with all
//! below it. A row's record names its key; a new row below it reads that name with the lock that the foreign
//! key takes anyway. When a row's key changes, the rows below it are looked at when the transaction
//! commits ([`super::check`]).

use jiff::tz::TimeZone;
use manxdb_txn::{ReadMode, Transaction};
use manxdb_vault::KeyId;

use super::graph::{OwnedTable, OwnerLink};
use crate::catalog::{Table, vault_error};
use crate::encoding;
use crate::error::SqlResult;
use crate::types::Value;

/// Whose key seals the rows of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyRule<'g> {
    /// Each row has its own.
    Own,
    /// That of the row the link leads to.
    Through(&'g OwnerLink),
    /// Rows are nobody's.
    Plain,
}

impl OwnedTable {
    /// Whose key seals its rows.
    pub(super) fn key_rule(&self) -> KeyRule<'_> {
        match self.owned_by.as_slice() {
            _ if self.is_subject() || !self.owned_through.is_empty() => KeyRule::Own,
            [] => KeyRule::Plain,
            [link] => KeyRule::Through(link),
            _ => KeyRule::Own,
        }
    }
}

/// A key that no row has.
pub(super) fn new_key(table: &Table) -> SqlResult<Option<KeyId>> {
    let Some(vault) = table.sealing.vault() else {
        return Ok(None);
    };
    let key = vault.take_key();
    key.map(Some).map_err(|error| vault_error(table, error))
}

/// The key of a row with `rule` that has none yet, or whose link has changed.
pub(super) fn key_of_new(
    txn: &Transaction,
    table: &Table,
    rule: KeyRule<'_>,
    row: &[Value],
    mode: ReadMode,
    tz: &TimeZone,
) -> SqlResult<Option<KeyId>> {
    match rule {
        KeyRule::Plain => Ok(None),
        KeyRule::Own => new_key(table),
        KeyRule::Through(link) => key_through(txn, table, link, row, mode, tz),
    }
}

/// The key of the row that a link leads to; the transit key when that row is not there.
fn key_through(
    txn: &Transaction,
    table: &Table,
    link: &OwnerLink,
    row: &[Value],
    mode: ReadMode,
    tz: &TimeZone,
) -> SqlResult<Option<KeyId>> {
    if !link.is_set(row) {
        return Ok(None);
    }
    match parent_record(txn, link, row, mode, tz)? {
        Some(record) => Ok(encoding::key_of(&record)),
        None => {
            let key = table.sealing.transit_key();
            key.map_err(|error| vault_error(table, error))
        }
    }
}

fn parent_record(
    txn: &Transaction,
    link: &OwnerLink,
    row: &[Value],
    mode: ReadMode,
    tz: &TimeZone,
) -> SqlResult<Option<Vec<u8>>> {
    let (Some(target), Some((_, suffix))) = (&link.target, link.target_of(row, tz)?) else {
        return Ok(None);
    };
    Ok(txn.get(&encoding::row_key(target, &suffix), mode)?)
}

/// The key that a row should have which is sealed under `has`, or plain.
pub(super) fn key_as_it_should_be(
    txn: &Transaction,
    owned: &OwnedTable,
    row: &[Value],
    has: Option<KeyId>,
    tz: &TimeZone,
) -> SqlResult<Option<KeyId>> {
    let mode = ReadMode::Validate;
    let rule = owned.key_rule();
    let Some(key) = has.filter(|_| matches!(rule, KeyRule::Own)) else {
        return key_of_new(txn, &owned.table, rule, row, mode, tz);
    };
    // A key of its own is no parent's: its table may have had one owner when the row was written.
    for link in &owned.owned_by {
        let parent = parent_record(txn, link, row, mode, tz)?;
        if parent.is_some_and(|record| encoding::key_of(&record) == Some(key)) {
            return new_key(&owned.table);
        }
    }
    Ok(Some(key))
}
