//! Rows found by the values of a foreign key.

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::ReadMode;
use manxdb_txn::transaction::rest_behind;

use super::ForeignKeys;
use super::links::Access;
use crate::catalog::{IndexId, Table};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::types::Value;

/// Child entries read at a time.
const PAGE: usize = 256;

/// Which of the rows are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// One of them, read with [`ReadMode::Share`]: it must stay.
    One,
    /// All of them, to be changed.
    All,
}

impl Wanted {
    fn mode(self) -> ReadMode {
        match self {
            Wanted::One => ReadMode::Share,
            Wanted::All => ReadMode::Update,
        }
    }
}

impl ForeignKeys<'_> {
    /// Row key suffixes of rows of `table` whose `columns` are `values`.
    pub(super) fn find(
        &self,
        table: &Table,
        columns: &[usize],
        access: &Access,
        values: &[Value],
        wanted: Wanted,
    ) -> SqlResult<Vec<Vec<u8>>> {
        let Some(key) = access.key() else {
            return Err(SqlError::not_supported("a foreign key without an index"));
        };
        let mut prefix = encoding::index_prefix(table, key.0);
        let skipped = prefix.len();
        self.encode((table, key), columns, values, &mut prefix)?;
        let suffix = |key: &[u8]| key.get(skipped..).unwrap_or_default().to_vec();
        match access {
            Access::Row => {
                let found = self.context.txn.get(&prefix, wanted.mode())?;
                Ok(found.map(|_| suffix(&prefix)).into_iter().collect())
            }
            Access::RowPrefix => self.scan(&prefix, wanted, |key, _| suffix(&key)),
            _ => self.scan(&prefix, wanted, |_, value| value),
        }
    }

    /// Appends the columns of a key for `values` of `columns`.
    pub(super) fn encode(
        &self,
        (table, of): (&Table, IndexId),
        columns: &[usize],
        values: &[Value],
        key: &mut Vec<u8>,
    ) -> SqlResult<()> {
        let tz = &self.context.eval.time_zone;
        for (&at, value) in columns.iter().zip(values) {
            encoding::encode_key_part(table, of, (at, None), value, tz, key)?;
        }
        Ok(())
    }

    /// What `suffix` makes of the entries that begin with `prefix`, read a page at a time.
    fn scan(
        &self,
        prefix: &[u8],
        wanted: Wanted,
        suffix: impl Fn(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> SqlResult<Vec<Vec<u8>>> {
        let limit = match wanted {
            Wanted::One => 1,
            Wanted::All => PAGE,
        };
        let mut range = KeyRange::prefix(prefix);
        let mut found = Vec::new();
        loop {
            let txn = self.context.txn;
            let page = txn.scan(&range, Direction::Forward, limit, wanted.mode())?;
            let last = page.last().map(|(key, _)| key.clone());
            let full = page.len() == limit;
            found.extend(page.into_iter().map(|(key, value)| suffix(key, value)));
            match last {
                Some(last) if full && wanted == Wanted::All => {
                    self.context.waiter.check()?;
                    range = rest_behind(&range, &last, Direction::Forward);
                }
                _ => return Ok(found),
            }
        }
    }
}
