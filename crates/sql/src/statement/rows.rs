//! One row of one table, written with its index entries. Foreign keys are [`super::foreign_key`]'s.

use manxdb_txn::{ReadMode, Transaction};
use manxdb_vault::KeyId;

use crate::catalog::{Index, Table, copy_notes};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::statement::owners::OwnerNotes;
use crate::types::{Row, Value, to_text};

/// Writes rows of one table.
#[derive(Clone, Copy)]
pub(super) struct RowWriter<'a> {
    pub(super) txn: &'a Transaction,
    pub(super) table: &'a Table,
    pub(super) tz: &'a jiff::tz::TimeZone,
    /// Where it is noted that rows may have got or lost an owner; `None` where no table has owners.
    pub(super) owners: Option<&'a OwnerNotes>,
}

/// A unique key that already holds a row's values.
pub(super) struct Duplicate {
    /// Row key suffix of the row that holds them.
    pub(super) suffix: Vec<u8>,
    /// 1062 as MySQL words it.
    pub(super) error: SqlError,
}

impl RowWriter<'_> {
    /// Encoded primary key of `row`, or the hidden row id.
    pub(super) fn suffix(&self, row: &[Value], hidden: u64) -> SqlResult<Vec<u8>> {
        encoding::row_key_suffix(self.table, row, hidden, self.tz)
    }

    fn row_key(&self, suffix: &[u8]) -> Vec<u8> {
        encoding::row_key(self.table, suffix)
    }

    fn index_key(&self, index: &Index, row: &[Value], suffix: &[u8]) -> SqlResult<Vec<u8>> {
        encoding::index_key(self.table, index, row, suffix, self.tz)
    }

    /// The row stored under `suffix`.
    pub(super) fn read(&self, suffix: &[u8], mode: ReadMode) -> SqlResult<Option<Row>> {
        match self.txn.get(&self.row_key(suffix), mode)? {
            Some(record) => encoding::decode_row(self.table, (suffix, &record), self.tz).map(Some),
            None => Ok(None),
        }
    }

    /// As [`RowWriter::read`], with the key that the row is sealed under.
    pub(super) fn read_with_key(
        &self,
        suffix: &[u8],
        mode: ReadMode,
    ) -> SqlResult<Option<(Row, Option<KeyId>)>> {
        let Some(record) = self.txn.get(&self.row_key(suffix), mode)? else {
            return Ok(None);
        };
        let row = encoding::decode_row(self.table, (suffix, &record), self.tz)?;
        Ok(Some((row, encoding::key_of(&record))))
    }

    /// The first unique key, primary key first, that already holds the values of `row`.
    pub(super) fn find_duplicate(
        &self,
        row: &[Value],
        suffix: &[u8],
    ) -> SqlResult<Option<Duplicate>> {
        self.find_duplicate_as(row, suffix, ReadMode::Update)
    }

    /// As [`RowWriter::find_duplicate`], read in a mode.
    pub(super) fn find_duplicate_as(
        &self,
        row: &[Value],
        suffix: &[u8],
        mode: ReadMode,
    ) -> SqlResult<Option<Duplicate>> {
        if !self.table.primary_key.is_empty() {
            let taken = self.txn.get(&self.row_key(suffix), mode)?;
            if taken.is_some() {
                return Ok(Some(Duplicate {
                    suffix: suffix.to_vec(),
                    error: self.primary_duplicate(row),
                }));
            }
        }
        self.find_index_duplicate(row, suffix, mode)
    }

    /// As [`RowWriter::find_duplicate_as`] without the primary key.
    pub(super) fn find_index_duplicate(
        &self,
        row: &[Value],
        suffix: &[u8],
        mode: ReadMode,
    ) -> SqlResult<Option<Duplicate>> {
        for index in self.table.indexes.iter().filter(|index| index.unique) {
            if holds_null(index, row) {
                continue;
            }
            let key = self.index_key(index, row, suffix)?;
            if let Some(holder) = self.txn.get(&key, mode)? {
                return Ok(Some(Duplicate {
                    suffix: holder,
                    error: self.index_duplicate(index, row),
                }));
            }
        }
        Ok(None)
    }

    /// Tells a copy of the table that is being made that the row changes.
    fn note_change(&self, suffix: &[u8]) -> SqlResult<()> {
        if let Some(copy) = self.table.copying {
            let note = copy_notes::changed_row_key(copy, suffix);
            self.txn.put(note, Vec::new())?;
        }
        Ok(())
    }

    /// Writes a row that [`RowWriter::find_duplicate`] has let through.
    pub(super) fn insert(&self, row: &[Value], suffix: &[u8]) -> SqlResult<()> {
        let key = match self.owners {
            Some(owners) => owners.key_of_inserted(self.txn, self.table, row, self.tz)?,
            None => None,
        };
        self.insert_under(row, suffix, key)
    }

    /// The record of a row under a key, or plain.
    fn record(&self, row: &[Value], suffix: &[u8], key: Option<KeyId>) -> SqlResult<Vec<u8>> {
        let record = encoding::encode_row(self.table, row, self.tz);
        match key {
            None => Ok(record),
            Some(key) => encoding::seal(self.table, suffix, key, &record),
        }
    }

    /// As [`RowWriter::insert`], sealed under a key, or plain.
    pub(super) fn insert_under(
        &self,
        row: &[Value],
        suffix: &[u8],
        key: Option<KeyId>,
    ) -> SqlResult<()> {
        self.note_change(suffix)?;
        let record = self.record(row, suffix, key)?;
        self.txn.put(self.row_key(suffix), record)?;
        for index in &self.table.indexes {
            let key = self.index_key(index, row, suffix)?;
            self.txn.put(key, suffix.to_vec())?;
        }
        self.owners.map_or(Ok(()), |owners| {
            owners.inserted(self.table, row, suffix, self.tz)
        })
    }

    /// Removes a row and its index entries.
    pub(super) fn delete(&self, row: &[Value], suffix: &[u8]) -> SqlResult<()> {
        self.note_change(suffix)?;
        if let Some(owners) = self.owners {
            owners.note_going(self.txn, self.table, suffix)?;
        }
        self.txn.delete(self.row_key(suffix))?;
        for index in &self.table.indexes {
            let key = self.index_key(index, row, suffix)?;
            self.txn.delete(key)?;
        }
        self.owners.map_or(Ok(()), |owners| {
            owners.deleted(self.table, row, suffix, self.tz)
        })
    }

    /// Replaces `old`, stored under `suffix`, by `new`; the new suffix.
    pub(super) fn update(&self, old: &[Value], suffix: &[u8], new: &[Value]) -> SqlResult<Vec<u8>> {
        let new_suffix = if self.table.primary_key.is_empty() {
            suffix.to_vec()
        } else {
            self.suffix(new, 0)?
        };
        let moved = new_suffix != suffix;
        if moved {
            let taken = self.txn.get(&self.row_key(&new_suffix), ReadMode::Update)?;
            if taken.is_some() {
                return Err(self.primary_duplicate(new));
            }
        }
        // Plain reads that look through an index at an older state find the row by an entry
        // written here, as they find it by its key.
        let lags = self.txn.plain_reads_lag(&self.row_key(suffix))?;
        let key = match self.owners {
            Some(owners) => {
                owners.key_of_updated(self.txn, self.table, (old, new), suffix, self.tz)?
            }
            None => None,
        };
        let mut changes = Vec::new();
        for index in &self.table.indexes {
            let old_key = self.index_key(index, old, suffix)?;
            let new_key = self.index_key(index, new, &new_suffix)?;
            if old_key == new_key && !moved && !lags {
                continue;
            }
            if index.unique && old_key != new_key && !holds_null(index, new) {
                let taken = self.txn.get(&new_key, ReadMode::Update)?;
                if taken.is_some() {
                    return Err(self.index_duplicate(index, new));
                }
            }
            changes.push((old_key, new_key));
        }
        self.note_change(suffix)?;
        if moved {
            self.note_change(&new_suffix)?;
            self.txn.delete(self.row_key(suffix))?;
        }
        let record = self.record(new, &new_suffix, key)?;
        self.txn.put(self.row_key(&new_suffix), record)?;
        for (old_key, new_key) in changes {
            if old_key != new_key {
                self.txn.delete(old_key)?;
            }
            self.txn.put(new_key, new_suffix.clone())?;
        }
        if let Some(owners) = self.owners {
            owners.updated(self.table, (old, new), (suffix, &new_suffix), self.tz)?;
        }
        Ok(new_suffix)
    }

    fn primary_duplicate(&self, row: &[Value]) -> SqlError {
        let values = self.table.primary_key.iter().map(|&at| (at, None));
        self.duplicate(values, row, "PRIMARY")
    }

    pub(super) fn index_duplicate(&self, index: &Index, row: &[Value]) -> SqlError {
        let values = index.columns.iter().map(|part| (part.column, part.prefix));
        self.duplicate(values, row, &index.name)
    }

    fn duplicate(
        &self,
        parts: impl Iterator<Item = (usize, Option<u32>)>,
        row: &[Value],
        key: &str,
    ) -> SqlError {
        let shown: Vec<String> = parts
            .filter_map(|(at, prefix)| {
                let text = to_text(row.get(at)?, &self.table.columns.get(at)?.ty);
                Some(match prefix {
                    Some(length) => text.chars().take(length as usize).collect(),
                    None => text,
                })
            })
            .collect();
        let shown: String = shown.join("-").chars().take(64).collect();
        SqlError::duplicate_key(&shown, &self.table.name, key)
    }
}

/// Whether a key column of `row` is NULL: then it collides with nothing.
pub(super) fn holds_null(index: &Index, row: &[Value]) -> bool {
    index
        .columns
        .iter()
        .any(|part| row.get(part.column).is_none_or(Value::is_null))
}
