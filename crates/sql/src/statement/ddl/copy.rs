//! Copying a table into one of another shape, while it serves.
//!
//! | step | what happens | writers of the table |
//! |---|---|---|
//! | begin | the record says where changes are noted ([`Table::copying`]) | wait while those at work end |
//! | copy | every row is converted, chunk by chunk, each chunk in a transaction of its own | write, and note the rows they change |
//! | catch up | rows noted as changed are copied again, in rounds, until few are left | the same |
//! | end | new statements wait; the last changed rows and the new record in one transaction | wait |
//!
//! A row is noted in the transaction that changes it, so the copy misses none. While rows change, two
//! versions of them may meet in a unique key of the copy that never met in the table: such a row is
//! put off, and counts as a duplicate only if it is one at the end, when every row is the newest.
//! Where rows change faster than they can be copied again, the end comes after [`ROUNDS_MAX`] rounds
//! all the same: writers wait for longer then.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::transaction::rest_behind;
use manxdb_txn::{IsolationLevel, ReadMode, Transaction, TxnError};
use manxdb_vault::KeyId;

use super::backfill::{check_rows, convert, hidden_row_id};
use super::change::{Change, ToCheck};
use super::{ClosedTable, DdlContext};
use crate::catalog::store::{CHUNK, Edit};
use crate::catalog::{SequenceKind, Table, copy_notes, record};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::statement::rows::RowWriter;
use crate::statement::target::Target;
use crate::types::{Row, Value};

/// Rounds of copying changed rows again before writers have to wait.
const ROUNDS_MAX: usize = 16;
/// Changed rows that are few enough for the end: writers wait for so many.
const LAST_ROWS: usize = 2_000;
/// Ends that lost against writers of other servers before ALTER TABLE gives up.
const ENDS_MAX: usize = 8;
/// Rows that may be put off because of a unique key; more are duplicates.
const PUT_OFF_MAX: usize = 1_000;

/// A copy in the making.
pub(super) struct TableCopy<'a> {
    context: &'a DdlContext<'a>,
    old: &'a Table,
    new: &'a Table,
    target: Target,
    /// Whether rows may have other keys in the copy than in the table: where is noted for each.
    moves: bool,
    /// Keys in the table of rows that met another in a unique key of the copy.
    put_off: BTreeSet<Vec<u8>>,
    /// Rows converted, for messages.
    number: usize,
}

impl<'a> TableCopy<'a> {
    /// The copy of `old` into `new`, which has an identity of its own.
    ///
    /// # Errors
    /// Those of binding what is computed.
    pub(super) fn new(
        context: &'a DdlContext<'a>,
        old: &'a Table,
        new: &'a Table,
    ) -> SqlResult<Self> {
        let catalog = super::temporary::seen(context);
        let bind = super::default::bind_context(context, &catalog);
        Ok(Self {
            context,
            old,
            new,
            target: Target::plan(&bind, &Arc::new(new.clone()))?,
            moves: keys_differ(old, new),
            put_off: BTreeSet::new(),
            number: 0,
        })
    }

    fn writer<'t>(&'t self, txn: &'t Transaction) -> RowWriter<'t> {
        RowWriter {
            txn,
            table: self.new,
            tz: &self.context.eval.time_zone,
            owners: None,
        }
    }

    fn reader<'t>(&'t self, txn: &'t Transaction) -> RowWriter<'t> {
        RowWriter {
            txn,
            table: self.old,
            tz: &self.context.eval.time_zone,
            owners: None,
        }
    }

    /// Copies every row as it is when its chunk is read.
    ///
    /// # Errors
    /// What does not fit the new definition; 1317; storage.
    pub(super) fn copy_rows(&mut self) -> SqlResult<()> {
        let prefix = encoding::index_prefix(self.old, 0);
        let mut rest = Some(KeyRange::prefix(&prefix));
        let context = self.context;
        while let Some(range) = rest {
            context.waiter.check()?;
            // Nobody else writes the copy, and what changes in the table is noted: there is nothing
            // to validate.
            let level = IsolationLevel::RepeatableRead;
            let (left, duplicates) = context.store.retrying_at(
                level,
                context.waiter,
                Durability::Async,
                &mut |txn| self.copy_chunk(txn, &prefix, &range),
            )?;
            rest = left;
            self.put_off(duplicates)?;
        }
        Ok(())
    }

    fn copy_chunk(
        &mut self,
        txn: &Transaction,
        prefix: &[u8],
        range: &KeyRange,
    ) -> SqlResult<(Option<KeyRange>, Vec<Vec<u8>>)> {
        let page = txn.scan(range, Direction::Forward, CHUNK, ReadMode::Plain)?;
        let mut duplicates = Vec::new();
        for (key, value) in &page {
            let suffix = key.get(prefix.len()..).unwrap_or_default();
            let zone = &self.context.eval.time_zone;
            let row = encoding::decode_row(self.old, (suffix, value), zone)?;
            let sealed = encoding::key_of(value);
            if self.write(txn, (&row, sealed), suffix, None)?.is_some() {
                duplicates.push(suffix.to_vec());
            }
        }
        let left = match page.last() {
            Some((last, _)) if page.len() == CHUNK => {
                Some(rest_behind(range, last, Direction::Forward))
            }
            _ => None,
        };
        Ok((left, duplicates))
    }

    /// Writes a row of the table into the copy, which has no row of it, under the key that it is sealed
    /// under; why it could not.
    fn write(
        &mut self,
        txn: &Transaction,
        (row, sealed): (&[Value], Option<KeyId>),
        suffix: &[u8],
        before: Option<&Row>,
    ) -> SqlResult<Option<SqlError>> {
        self.number += 1;
        let (context, old, new) = (self.context, self.old, self.new);
        let row = convert(context, &self.target, old, new, row, before, self.number)?;
        let strict = super::super::writing(context.eval, false);
        self.target.check(&strict, &row)?;
        let hidden = hidden_row_id(context, old, new, suffix)?;
        let new_suffix = encoding::row_key_suffix(new, &row, hidden, &context.eval.time_zone)?;
        let writer = self.writer(txn);
        let moves = self.moves || new_suffix != suffix;
        // Nobody else writes the copy.
        let duplicate = if moves {
            writer.find_duplicate_as(&row, &new_suffix, ReadMode::Plain)?
        } else {
            writer.find_index_duplicate(&row, &new_suffix, ReadMode::Plain)?
        };
        if let Some(duplicate) = duplicate {
            return Ok(Some(duplicate.error));
        }
        writer.insert_under(&row, &new_suffix, sealed)?;
        if moves {
            txn.put(copy_notes::moved_row_key(new.id, suffix), new_suffix)?;
        }
        Ok(None)
    }

    /// Removes what the copy has of the row that `suffix` is the table's key of.
    fn remove(&self, txn: &Transaction, suffix: &[u8]) -> SqlResult<Option<Row>> {
        let moved = copy_notes::moved_row_key(self.new.id, suffix);
        let place = match txn.get(&moved, ReadMode::Plain)? {
            Some(place) => {
                txn.delete(moved)?;
                place
            }
            None if self.moves => return Ok(None),
            None => suffix.to_vec(),
        };
        let writer = self.writer(txn);
        let Some(row) = writer.read(&place, ReadMode::Plain)? else {
            return Ok(None);
        };
        writer.delete(&row, &place)?;
        Ok(Some(row))
    }

    /// Makes the copy have rows as the table has them for `txn`; the keys of those that met another
    /// in a unique key, with the first error.
    fn renew(
        &mut self,
        txn: &Transaction,
        suffixes: &[Vec<u8>],
    ) -> SqlResult<(Vec<Vec<u8>>, Option<SqlError>)> {
        // All old versions go first, so that no row meets one of them.
        let mut before = Vec::with_capacity(suffixes.len());
        for suffix in suffixes {
            before.push(self.remove(txn, suffix)?);
        }
        let (mut duplicates, mut first) = (Vec::new(), None);
        for (suffix, before) in suffixes.iter().zip(&before) {
            let Some(row) = self.reader(txn).read_with_key(suffix, ReadMode::Plain)? else {
                continue;
            };
            let row = (row.0.as_slice(), row.1);
            if let Some(error) = self.write(txn, row, suffix, before.as_ref())? {
                duplicates.push(suffix.clone());
                first.get_or_insert(error);
            }
        }
        Ok((duplicates, first))
    }

    fn put_off(&mut self, suffixes: Vec<Vec<u8>>) -> SqlResult<()> {
        self.put_off.extend(suffixes);
        if self.put_off.len() <= PUT_OFF_MAX {
            return Ok(());
        }
        // So many rows do not change under us: one of them tells which key it is.
        let suffixes: Vec<_> = self.put_off.iter().cloned().collect();
        let txn = self.context.store.begin();
        let (_, error) = self.renew(&txn, &suffixes)?;
        match error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Copies rows again that have changed meanwhile, until few are left.
    ///
    /// # Errors
    /// As [`TableCopy::copy_rows`].
    pub(super) fn catch_up(&mut self) -> SqlResult<()> {
        for _ in 0..ROUNDS_MAX {
            if self.round()? <= LAST_ROWS {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Copies what is noted once; how many rows.
    fn round(&mut self) -> SqlResult<usize> {
        let prefix = copy_notes::changed_rows_prefix(self.new.id);
        let mut range = KeyRange::prefix(&prefix);
        let mut copied = 0;
        let context = self.context;
        loop {
            context.waiter.check()?;
            let (last, suffixes, duplicates) =
                context
                    .store
                    .retrying(context.waiter, Durability::Async, &mut |txn| {
                        self.renew_chunk(txn, &prefix, &range)
                    })?;
            copied += suffixes.len();
            for suffix in &suffixes {
                self.put_off.remove(suffix);
            }
            self.put_off(duplicates)?;
            match last {
                Some(last) => range = rest_behind(&range, &last, Direction::Forward),
                None => return Ok(copied),
            }
        }
    }

    #[allow(clippy::type_complexity)] // where the chunk ended, its rows, and those put off
    fn renew_chunk(
        &mut self,
        txn: &Transaction,
        prefix: &[u8],
        range: &KeyRange,
    ) -> SqlResult<(Option<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>)> {
        // A note that a transaction at work has locked is one of a later round.
        let free = ReadMode::UpdateSkipLocked;
        let page = txn.scan(range, Direction::Forward, CHUNK, free)?;
        let suffixes: Vec<Vec<u8>> = page
            .iter()
            .map(|(key, _)| key.get(prefix.len()..).unwrap_or_default().to_vec())
            .collect();
        let (duplicates, _) = self.renew(txn, &suffixes)?;
        for (key, _) in &page {
            txn.delete(key.clone())?;
        }
        let last = page.last().filter(|_| page.len() == CHUNK);
        Ok((last.map(|(key, _)| key.clone()), suffixes, duplicates))
    }

    /// Copies the last changed rows in the transaction that makes the copy the table. It commits
    /// only if no other row has changed by then.
    ///
    /// # Errors
    /// 1213 when too many have changed: catch up again. 1062; as [`TableCopy::copy_rows`].
    pub(super) fn finish(&mut self, edit: &Edit<'_>) -> SqlResult<()> {
        let prefix = copy_notes::changed_rows_prefix(self.new.id);
        let range = KeyRange::prefix(&prefix);
        let limit = 2 * LAST_ROWS;
        let page = edit
            .txn
            .scan(&range, Direction::Forward, limit, ReadMode::Validate)?;
        if page.len() == limit {
            return Err(TxnError::Deadlock.into());
        }
        let mut suffixes = self.put_off.clone();
        suffixes.extend(
            page.iter()
                .map(|(key, _)| key.get(prefix.len()..).unwrap_or_default().to_vec()),
        );
        let suffixes: Vec<_> = suffixes.into_iter().collect();
        if let (_, Some(duplicate)) = self.renew(edit.txn, &suffixes)? {
            return Err(duplicate);
        }
        self.take_counters()?;
        edit.add_garbage(&copy_notes::notes_of_copy_prefix(self.new.id))
    }

    /// The copy counts on from where the table is.
    fn take_counters(&self) -> SqlResult<()> {
        let sequences = self.context.store.sequences();
        for kind in [SequenceKind::AutoIncrement, SequenceKind::RowId] {
            let next = sequences.peek(self.old.id, kind)?;
            if next > sequences.peek(self.new.id, kind)? {
                sequences.set(self.new.id, kind, next)?;
            }
        }
        Ok(())
    }
}

impl Change<'_> {
    /// Every row to a new identity, then the switch.
    pub(super) fn copy(&self, mut new: Table) -> SqlResult<()> {
        let store = self.context.store;
        for column in &mut new.columns {
            column.absent_value = None;
        }
        new.id = store.reserve_table_id(self.context.waiter)?;
        let copied = self.copy_into(&new);
        match &copied {
            Ok(()) => store.sequences().forget(self.old.id),
            Err(_) => {
                // The statement's own error is the one to tell; the next start cleans up as well.
                let undone = self
                    .take_back()
                    .and_then(|()| store.abandon_reserved(new.id));
                if let Err(error) = undone {
                    tracing::warn!(%error, "a copy that failed is taken back at the next start");
                }
            }
        }
        copied
    }

    fn copy_into(&self, new: &Table) -> SqlResult<()> {
        let context = self.context;
        let sequences = context.store.sequences();
        if let Some(next) = self.effects.auto_increment.filter(|next| *next > 1) {
            sequences.set(new.id, SequenceKind::AutoIncrement, next)?;
        }
        self.begin_copy(new)?;
        let mut copy = TableCopy::new(context, self.old, new)?;
        copy.copy_rows()?;
        for _ in 0..ENDS_MAX {
            copy.catch_up()?;
            let _closed = ClosedTable::close(context, self.old)?;
            copy.catch_up()?;
            match self.end_copy(new, &mut copy) {
                Err(error) if error.code == 1213 => {}
                ended => return ended,
            }
        }
        Err(SqlError::new(
            1205,
            "HY000",
            "Lock wait timeout exceeded; try restarting transaction (the table changes faster than it can be copied)",
        ))
    }

    /// From here on writers note what they change.
    fn begin_copy(&self, new: &Table) -> SqlResult<()> {
        let context = self.context;
        let _closed = ClosedTable::close(context, self.old)?;
        context
            .store
            .edit(context.waiter, Durability::Async, &mut |edit| {
                let mut noting = self.old.clone();
                noting.copying = Some(new.id);
                noting.schema_version += 1;
                edit.begin_unfinished(self.old)?;
                edit.put_table(noting)
            })
    }

    fn end_copy(&self, new: &Table, copy: &mut TableCopy<'_>) -> SqlResult<()> {
        let context = self.context;
        let checks = ToCheck {
            rows: false,
            ..self.to_check(new)
        };
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                copy.finish(edit)?;
                check_rows(context, edit, new, &checks)?;
                edit.keep_reserved(new.id)?;
                edit.end_unfinished(self.old.id)?;
                edit.add_garbage(&record::table_prefix(self.old.id))?;
                self.publish(edit, new)
            })
    }
}

/// Whether rows have other keys in `new` than in `old`.
fn keys_differ(old: &Table, new: &Table) -> bool {
    let key = |table: &Table| {
        let columns = table.primary_key.iter();
        columns
            .filter_map(|at| table.columns.get(*at))
            .map(|column| (column.id, column.ty.clone()))
            .collect::<Vec<_>>()
    };
    key(old) != key(new)
}
