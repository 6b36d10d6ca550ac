//! Walking all rows of a table: to fill indexes, to check constraints, to copy.

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::transaction::rest_behind;
use manxdb_txn::{ReadMode, Transaction};

use super::change::ToCheck;
use super::{DdlContext, execute_in};
use crate::catalog::store::{CHUNK, Edit};
use crate::catalog::{Catalog, IndexId, SequenceKind, Table};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::expr::assign;
use crate::statement::ExecContext;
use crate::statement::foreign_key::{ForeignKeys, links};
use crate::statement::rows::{RowWriter, holds_null};
use crate::statement::target::Target;
use crate::types::{Row, Value};

/// Hands `each` every row of `table` with its key suffix, read in `txn` so that the commit
/// depends on all of them.
fn for_each_row(
    context: &DdlContext<'_>,
    txn: &Transaction,
    table: &Table,
    each: &mut dyn FnMut(Row, &[u8]) -> SqlResult<()>,
) -> SqlResult<()> {
    let prefix = encoding::index_prefix(table, 0);
    let mut range = KeyRange::prefix(&prefix);
    loop {
        context.waiter.check()?;
        let page = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Validate)?;
        for (key, value) in &page {
            let suffix = key.get(prefix.len()..).unwrap_or_default();
            let row = encoding::decode_row(table, (suffix, value), &context.eval.time_zone)?;
            each(row, suffix)?;
        }
        match page.last() {
            Some((last, _)) if page.len() == CHUNK => {
                range = rest_behind(&range, last, Direction::Forward);
            }
            _ => return Ok(()),
        }
    }
}

/// Fills write-only indexes from the rows, chunk by chunk, each in a transaction of its own.
/// Writers maintain them meanwhile, so a chunk that conflicts is simply done again.
///
/// # Errors
/// 1062 when a unique one meets two equal rows.
pub(super) fn fill_indexes(
    context: &DdlContext<'_>,
    table: &Table,
    added: &[IndexId],
) -> SqlResult<()> {
    let tz = &context.eval.time_zone;
    let prefix = encoding::index_prefix(table, 0);
    let mut range = KeyRange::prefix(&prefix);
    loop {
        context.waiter.check()?;
        let last = context
            .store
            .retrying(context.waiter, Durability::Async, &mut |txn| {
                let writer = RowWriter {
                    txn,
                    table,
                    tz,
                    owners: None,
                };
                let page = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Validate)?;
                for (key, value) in &page {
                    let suffix = key.get(prefix.len()..).unwrap_or_default();
                    let row = encoding::decode_row(table, (suffix, value), tz)?;
                    for index in table.indexes.iter().filter(|i| added.contains(&i.id)) {
                        let entry = encoding::index_key(table, index, &row, suffix, tz)?;
                        if index.unique && !holds_null(index, &row) {
                            let holder = txn.get(&entry, ReadMode::Validate)?;
                            if holder.is_some_and(|holder| holder != suffix) {
                                return Err(writer.index_duplicate(index, &row));
                            }
                        }
                        txn.put(entry, suffix.to_vec())?;
                    }
                }
                let full = page.len() == CHUNK;
                Ok(page.last().filter(|_| full).map(|(key, _)| key.clone()))
            })?;
        match last {
            Some(last) => range = rest_behind(&range, &last, Direction::Forward),
            None => return Ok(()),
        }
    }
}

/// Checks that every row satisfies what is new in `table`.
///
/// # Errors
/// 1138, 3819, 1452.
pub(super) fn check_rows(
    context: &DdlContext<'_>,
    edit: &Edit<'_>,
    table: &Table,
    checks: &ToCheck,
) -> SqlResult<()> {
    if *checks == ToCheck::default() {
        return Ok(());
    }
    with_checker(context, edit.txn, &edit.catalog, table, checks, |check| {
        for_each_row(context, edit.txn, table, &mut |row, _| check(&row))
    })
}

/// Runs `work` with a function that checks one row.
fn with_checker<T>(
    context: &DdlContext<'_>,
    txn: &Transaction,
    catalog: &Catalog,
    table: &Table,
    checks: &ToCheck,
    work: impl FnOnce(&mut dyn FnMut(&Row) -> SqlResult<()>) -> SqlResult<T>,
) -> SqlResult<T> {
    let bind = super::default::bind_context(context, catalog);
    let mut only_new = table.clone();
    only_new
        .foreign_keys
        .retain(|key| checks.foreign_keys.contains(&key.name));
    let only_new = std::sync::Arc::new(only_new);
    let target = Target::plan(&bind, &only_new)?;
    let own_links = links(&bind, &only_new)?;
    execute_in(context, txn, catalog, |exec: &ExecContext<'_>| {
        let keys = ForeignKeys {
            context: exec,
            links: &own_links,
        };
        work(&mut |row: &Row| {
            for (column, value) in only_new.columns.iter().zip(row) {
                if column.not_null && value.is_null() {
                    return Err(SqlError::new(1138, "22004", "Invalid use of NULL value"));
                }
            }
            if checks.rows {
                target.check(exec.eval, row)?;
            }
            if checks.foreign_keys.is_empty() {
                return Ok(());
            }
            keys.check_parents(only_new.id, None, row)
        })
    })
}

/// Copies every row of a temporary table `old`, which nobody else changes, into `new`, which has an
/// identity of its own. Writes are small transactions of their own.
///
/// # Errors
/// What does not fit the new types, 1062, 1138, 3819, 1452.
pub(super) fn copy_rows(
    context: &DdlContext<'_>,
    edit: &Edit<'_>,
    old: &Table,
    new: &Table,
    checks: &ToCheck,
) -> SqlResult<()> {
    let bind = super::default::bind_context(context, &edit.catalog);
    let target = Target::plan(&bind, &std::sync::Arc::new(new.clone()))?;
    let mut number = 0_usize;
    let mut batch: Vec<(Row, Vec<u8>)> = Vec::new();
    let everything = ToCheck {
        rows: true,
        foreign_keys: checks.foreign_keys.clone(),
    };
    with_checker(
        context,
        edit.txn,
        &edit.catalog,
        new,
        &everything,
        |check| {
            for_each_row(context, edit.txn, old, &mut |row, suffix| {
                number += 1;
                let row = convert(context, &target, old, new, &row, None, number)?;
                check(&row)?;
                let hidden = hidden_row_id(context, old, new, suffix)?;
                let suffix = encoding::row_key_suffix(new, &row, hidden, &context.eval.time_zone)?;
                batch.push((row, suffix));
                if batch.len() < CHUNK {
                    return Ok(());
                }
                write_batch(context, new, &std::mem::take(&mut batch))
            })
        },
    )?;
    write_batch(context, new, &batch)
}

/// A row of the old definition as one of the new. `copied` is what an earlier version of the row was
/// made into: it keeps the numbers that were generated for it.
pub(super) fn convert(
    context: &DdlContext<'_>,
    target: &Target,
    old: &Table,
    new: &Table,
    row: &[Value],
    copied: Option<&Row>,
    number: usize,
) -> SqlResult<Row> {
    let strict = super::super::writing(context.eval, false);
    let mut out = vec![Value::Null; new.columns.len()];
    let before = |at: usize| {
        let column = new.columns.get(at)?;
        let place = old.columns.iter().position(|other| other.id == column.id)?;
        let value = row.get(place)?.clone();
        Some(value.stored_from(&old.columns[place].ty, &column.ty))
    };
    // Defaults of new columns may read any other: they come last.
    let (kept, added): (Vec<usize>, Vec<usize>) =
        (0..new.columns.len()).partition(|at| before(*at).is_some());
    for at in kept.into_iter().chain(added) {
        let column = &new.columns[at];
        if column.generated.is_some() {
            continue;
        }
        let value = match before(at) {
            Some(Value::Null) if column.not_null => {
                return Err(SqlError::new(1138, "22004", "Invalid use of NULL value"));
            }
            Some(value) => assign(&strict, value, column, number)?,
            None if column.auto_increment && copied.is_some_and(|row| at < row.len()) => {
                copied.map_or(Value::Null, |row| row[at].clone())
            }
            None if column.auto_increment => {
                let sequences = context.store.sequences();
                let next = sequences.next(new.id, SequenceKind::AutoIncrement)?;
                let value = i64::try_from(next).map_or(Value::UInt(next), Value::Int);
                assign(&strict, value, column, number)?
            }
            None => {
                let lenient = super::super::writing(context.eval, true);
                target.default_quietly(&lenient, at, &out, number)?
            }
        };
        if let Some(slot) = out.get_mut(at) {
            *slot = value;
        }
    }
    target.compute(&strict, &mut out, number)?;
    Ok(out)
}

/// The key of a row without a primary key, 0 for one with.
pub(super) fn hidden_row_id(
    context: &DdlContext<'_>,
    old: &Table,
    new: &Table,
    suffix: &[u8],
) -> SqlResult<u64> {
    if !new.primary_key.is_empty() {
        return Ok(0);
    }
    let kept = suffix.try_into().map(u64::from_be_bytes);
    match kept {
        Ok(kept) if old.primary_key.is_empty() => Ok(kept),
        _ => context.store.sequences().next(new.id, SequenceKind::RowId),
    }
}

fn write_batch(context: &DdlContext<'_>, table: &Table, batch: &[(Row, Vec<u8>)]) -> SqlResult<()> {
    context
        .store
        .retrying(context.waiter, Durability::Async, &mut |txn| {
            let writer = RowWriter {
                txn,
                table,
                tz: &context.eval.time_zone,
                owners: None,
            };
            for (row, suffix) in batch {
                if let Some(duplicate) = writer.find_duplicate(row, suffix)? {
                    return Err(duplicate.error);
                }
                writer.insert(row, suffix)?;
            }
            Ok(())
        })
}

/// The highest value of the AUTO_INCREMENT column at `at`, 0 without rows.
pub(super) fn highest(context: &DdlContext<'_>, table: &Table, at: usize) -> SqlResult<u64> {
    let txn = context.store.begin();
    txn.declare_read_only();
    let mut highest = 0;
    for_each_row(context, &txn, table, &mut |row, _| {
        let value = row.get(at).and_then(Value::to_integer_checked);
        if let Some(value) = value.and_then(|(value, _)| u64::try_from(value).ok()) {
            highest = highest.max(value);
        }
        Ok(())
    })?;
    Ok(highest)
}
