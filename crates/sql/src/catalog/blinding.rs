//! Which columns are blinded in which keys of a table.
//!
//! Decided when a key is made, and true as long as its entries are there: a key of an earlier release, or
//! from before its table was somebody's, stays plain until it is made anew. Rows are the key 0.

use manxdb_vault::{KeyId, MARK_BYTES};
use serde::{Deserialize, Serialize};

use super::sealing::vault_error;
use super::{Column, ColumnId, IndexId, Table};
use crate::error::{SqlError, SqlResult};

/// The key by which rows lie: the primary one, or the hidden row id.
pub const ROWS: IndexId = IndexId(0);

/// What is said, and what was decided, of personal values in the keys of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blinding {
    /// Columns that are `PERSONAL`: blinded in keys whatever their type.
    pub personal: Vec<ColumnId>,
    /// Keys that are `ORDERED`: never blinded.
    pub ordered: Vec<IndexId>,
    /// The vault's key that values are blinded under; `None` while no key is blinded.
    key: Option<u64>,
    /// Columns that are blinded, of each key in which some are.
    keys: Vec<(IndexId, Vec<ColumnId>)>,
}

impl Blinding {
    /// Whether a column is blinded in a key.
    #[must_use]
    pub fn blinds(&self, key: IndexId, column: ColumnId) -> bool {
        self.of(key).contains(&column)
    }

    /// The columns that are blinded in a key.
    #[must_use]
    pub fn of(&self, key: IndexId) -> &[ColumnId] {
        let found = self.keys.iter().find(|(id, _)| *id == key);
        found.map_or(&[], |(_, columns)| columns)
    }

    /// Whether no key has a blinded column.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.keys.is_empty()
    }

    /// Decides anew for all keys; `make` gives the vault's key where one is needed for the first time.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn decide(
        &mut self,
        keys: Vec<(IndexId, Vec<ColumnId>)>,
        make: impl FnOnce() -> SqlResult<KeyId>,
    ) -> SqlResult<()> {
        self.keys = keys;
        self.keys.retain(|(_, columns)| !columns.is_empty());
        if self.keys.is_empty() {
            self.key = None;
        } else if self.key.is_none() {
            self.key = Some(make()?.get());
        }
        assert_eq!(
            self.key.is_some(),
            !self.keys.is_empty(),
            "blinded keys have a key of the vault, and no others"
        );
        Ok(())
    }

    /// Forgets a key of the vault that another table uses.
    pub(crate) fn without_key(&mut self) {
        self.key = None;
        self.keys.clear();
    }

    /// Whether a stored one makes sense.
    pub(super) fn is_whole(&self) -> bool {
        let has_columns = self.keys.iter().all(|(_, columns)| !columns.is_empty());
        self.key.is_some() != self.keys.is_empty() && has_columns
    }
}

impl Table {
    /// Whether a column is blinded in the keys of a table whose rows are sealed: text and bytes are, and what
    /// is PERSONAL.
    #[must_use]
    pub fn is_for_blinding(&self, column: &Column) -> bool {
        column.ty.is_text() || column.ty.is_bytes() || self.blinding.personal.contains(&column.id)
    }

    /// Whether the column at `at` is blinded in a key.
    #[must_use]
    pub fn blinds(&self, key: IndexId, at: usize) -> bool {
        // A table that blinds nothing pays no more than this.
        !self.blinding.is_plain()
            && self
                .columns
                .get(at)
                .is_some_and(|column| self.blinding.blinds(key, column.id))
    }

    /// The mark that stands for a value in keys.
    ///
    /// # Errors
    /// 51005 when the vault's key is not to be had.
    pub(crate) fn mark(&self, value: &[u8]) -> SqlResult<[u8; MARK_BYTES]> {
        let Some(key) = self.blinding.key else {
            return Err(SqlError::internal("a blinded key without a key"));
        };
        match self.sealing.blinder(KeyId::from_stored(key)) {
            Some(Ok(blinder)) => Ok(blinder.mark(value)),
            Some(Err(error)) => Err(vault_error(self, error)),
            None => {
                let text = format!(
                    "Keys of '{}.{}' are blinded, and this server has no vault: start it with the one they were blinded by",
                    self.database, self.name
                );
                Err(SqlError::new(51005, "HY000", text))
            }
        }
    }
}
