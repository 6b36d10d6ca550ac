//! UPDATE of one or several tables.
//!
//! The rows to change are collected before the first is written (no Halloween problem);
//! assignments see those to their left, as in MySQL.

use std::collections::BTreeSet;

use manxdb_txn::ReadMode;
use sqlparser::ast::{self, AssignmentTarget, SqliteOnConflict};

use super::foreign_key::ForeignKeys;
use super::generated::refuse_value;
use super::names::{is_default, parts, refuse_view};
use super::rows::RowWriter;
use super::target::{Target, position};
use super::{
    Access, ExecContext, Kind, ModifyStatement, StatementOutcome, add_reads, is_ignorable,
    note_param, note_plan, refuse_returning, warn,
};
use crate::binder::{BindContext, ModifyPlan, ModifyTable, bind_expr, plan_modify};
use crate::error::{SqlError, SqlResult};
use crate::executor;
use crate::explain::{ExplainFormat, explain_modify};
use crate::expr::assign;
use crate::plan::{Expr, walk};
use crate::types::{Row, Value};

/// A planned UPDATE.
#[derive(Debug, Clone)]
pub(super) struct Update {
    scan: ModifyPlan,
    targets: Vec<Written>,
    /// In the order written: target, column, value (`None` is DEFAULT).
    assignments: Vec<(usize, usize, Option<Expr>)>,
    pub(super) ignore: bool,
}

impl Update {
    /// EXPLAIN.
    pub(super) fn explain(&self, format: ExplainFormat) -> Vec<Row> {
        let offsets = self.targets.iter().map(|written| written.offset);
        explain_modify(&self.scan, "UPDATE", offsets, format)
    }
}

/// A table some assignment writes.
#[derive(Debug, Clone)]
struct Written {
    target: Target,
    /// Where its columns start in a scanned row.
    offset: usize,
    assigned: Vec<usize>,
    /// The statement writes the table under another name too.
    shared: bool,
}

/// Plans an UPDATE.
pub(super) fn plan(context: &BindContext<'_>, update: &ast::Update) -> SqlResult<ModifyStatement> {
    refuse_returning(update.returning.as_deref())?;
    if update.from.is_some() {
        return Err(SqlError::syntax("near 'FROM'"));
    }
    let from = std::slice::from_ref(&update.table);
    refuse_view(context, from, "UPDATE")?;
    let scan = plan_modify(
        context,
        from,
        update.selection.as_ref(),
        &update.order_by,
        update.limit.as_ref(),
    )?;
    let mut params = Vec::new();
    let mut targets: Vec<Written> = Vec::new();
    let mut assignments = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    let mut reads = Vec::new();
    let mut slots_read = scan.slots_read.clone();
    for assignment in &update.assignments {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(SqlError::not_supported("assignment to a tuple"));
        };
        let (place, column) = resolve(context, &scan.tables, &parts(name))?;
        let written = match places.iter().position(|known| *known == place) {
            Some(written) => written,
            None => {
                let table = &scan.tables[place];
                let base = context.catalog.table(&table.database, &table.table)?;
                targets.push(Written {
                    target: Target::plan(context, base)?,
                    offset: table.offset,
                    assigned: Vec::new(),
                    shared: false,
                });
                places.push(place);
                targets.len() - 1
            }
        };
        let value = if is_default(&assignment.value) {
            None
        } else {
            refuse_value(&targets[written].target.table, column)?;
            let value = &assignment.value;
            let mut bound = bind_expr(context, &scan.scope, value, "field list", &mut reads)?;
            if let Some(meta) = targets[written].target.table.columns.get(column) {
                note_param(&mut params, &bound, &meta.ty);
                bound = bound.stored_in(&meta.ty);
            }
            walk::references(&bound, &mut |(depth, slot)| {
                if let Some(read) = slots_read.get_mut(slot).filter(|_| depth == 0) {
                    *read = true;
                }
            });
            Some(bound)
        };
        targets[written].assigned.push(column);
        assignments.push((written, column, value));
    }
    note_shared(&mut targets, &places, &scan.tables)?;
    note_plan(&mut params, &scan.plan);
    let mut access: Vec<_> = targets
        .iter()
        .map(|written| {
            let table = &written.target.table;
            (table.database.clone(), table.name.clone(), Access::Update)
        })
        .collect();
    reads.extend(scan.looks_at(&places, &slots_read));
    add_reads(context.catalog, &mut access, &reads);
    Ok(ModifyStatement {
        param_types: params,
        access,
        kind: Kind::Update(Update {
            scan,
            targets,
            assignments,
            ignore: matches!(update.or, Some(SqliteOnConflict::Ignore)),
        }),
    })
}

/// Marks tables that are written under two names.
///
/// # Errors
/// 1706 when that changes a primary key: the other name would look for the row in vain.
fn note_shared(targets: &mut [Written], places: &[usize], tables: &[ModifyTable]) -> SqlResult<()> {
    for at in 0..targets.len() {
        let id = targets[at].target.table.id;
        let twin =
            (0..targets.len()).find(|&other| other != at && targets[other].target.table.id == id);
        let Some(twin) = twin else {
            continue;
        };
        targets[at].shared = true;
        let key = &targets[at].target.table.primary_key;
        if targets[at]
            .assigned
            .iter()
            .any(|column| key.contains(column))
        {
            let alias = |target: usize| &tables[places[target]].alias;
            let text = format!(
                "Primary key/partition key update is not allowed since the table is updated both \
                 as '{}' and '{}'.",
                alias(at.min(twin)),
                alias(at.max(twin))
            );
            return Err(SqlError::new(1706, "HY000", text));
        }
    }
    Ok(())
}

/// Which scanned table and column a name on the left of `=` means.
fn resolve(
    context: &BindContext<'_>,
    tables: &[ModifyTable],
    names: &[String],
) -> SqlResult<(usize, usize)> {
    let (qualifier, column) = match names {
        [column] => (None, column),
        [table, column] => (Some((None, table)), column),
        [database, table, column] => (Some((Some(database), table)), column),
        _ => return Err(SqlError::unknown_column(&names.join("."), "field list")),
    };
    let mut found = None;
    for (place, table) in tables.iter().enumerate() {
        let fits = qualifier.is_none_or(|(database, name)| {
            name.to_lowercase() == table.alias.to_lowercase()
                && database.is_none_or(|database| database.eq_ignore_ascii_case(&table.database))
        });
        if !fits {
            continue;
        }
        let base = context.catalog.table(&table.database, &table.table)?;
        if let Some(at) = position(base, column) {
            if found.is_some() {
                return Err(SqlError::new(
                    1052,
                    "23000",
                    format!("Column '{column}' in field list is ambiguous"),
                ));
            }
            found = Some((place, at));
        }
    }
    found.ok_or_else(|| SqlError::unknown_column(&names.join("."), "field list"))
}

/// Runs a planned UPDATE.
pub(super) fn run(context: &ExecContext<'_>, update: &Update) -> SqlResult<StatementOutcome> {
    for written in &update.targets {
        written.target.touch(context)?;
    }
    let rows = executor::collect(
        &context.reading(),
        &update.scan.plan,
        Some(ReadMode::Update),
    )?;
    let mut seen: Vec<BTreeSet<Vec<u8>>> = vec![BTreeSet::new(); update.targets.len()];
    let (mut matched, mut changed) = (0_u64, 0_u64);
    let several = update.targets.len() > 1 || update.scan.tables.len() > 1;
    for (number, row) in rows.enumerate() {
        let row = row?;
        context.waiter.check()?;
        let values = assigned_values(context, update, &row, number + 1)?;
        for (place, written) in update.targets.iter().enumerate() {
            let Some((old, suffix)) = part(&row, written) else {
                continue;
            };
            if several && !seen[place].insert(suffix.clone()) {
                continue;
            }
            matched += 1;
            let Some((new, _)) = part(&values, written) else {
                continue;
            };
            let mark = context.txn.savepoint();
            match write(context, written, (old, suffix), new, number + 1) {
                Ok(true) => changed += 1,
                Ok(false) => {}
                Err(error) if update.ignore && is_ignorable(&error) => {
                    context.txn.rollback_to(mark);
                    warn(context.eval, error.code, error.message);
                }
                Err(error) => return Err(error),
            }
        }
    }
    let warnings = context.eval.warnings.borrow().len();
    Ok(StatementOutcome {
        affected_rows: changed,
        matched_rows: matched,
        last_insert_id: 0,
        stored_id: 0,
        info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
    })
}

/// The scanned row with all assignments done, left to right.
fn assigned_values(
    context: &ExecContext<'_>,
    update: &Update,
    row: &Row,
    number: usize,
) -> SqlResult<Row> {
    let eval = context.eval;
    let mut values = row.clone();
    for (place, column, expr) in &update.assignments {
        let Some(written) = update.targets.get(*place) else {
            continue;
        };
        if part(row, written).is_none() {
            continue;
        }
        let Some(meta) = written.target.table.columns.get(*column) else {
            continue;
        };
        let value = match expr {
            Some(expr) => {
                let value = expr.eval_unrounded(eval, &values, &[])?.into_owned();
                let value = value.stored_from(&expr.ty, &meta.ty);
                assign(eval, value, meta, number)?
            }
            None if written.target.is_generated(*column) => continue,
            None => {
                let row = part(&values, written).map_or(&[][..], |(row, _)| row);
                written.target.default(eval, *column, row, number)?
            }
        };
        if let Some(slot) = values.get_mut(written.offset + column) {
            *slot = value;
        }
    }
    Ok(values)
}

/// A target's columns and row key suffix in a scanned row; `None` on the missing side of an
/// outer join.
fn part<'a>(row: &'a Row, written: &Written) -> Option<(&'a [Value], &'a Vec<u8>)> {
    let end = written.offset + written.target.table.columns.len();
    match row.get(end) {
        Some(Value::Bytes(suffix)) => Some((row.get(written.offset..end)?, suffix)),
        _ => None,
    }
}

/// Writes one changed row; false when nothing changed.
fn write(
    context: &ExecContext<'_>,
    written: &Written,
    (old, suffix): (&[Value], &[u8]),
    new: &[Value],
    number: usize,
) -> SqlResult<bool> {
    if old == new {
        return Ok(false);
    }
    let target = &written.target;
    let writer = RowWriter {
        txn: context.txn,
        table: &target.table,
        tz: &context.eval.time_zone,
        owners: context.owners,
    };
    let keys = ForeignKeys {
        context,
        links: &target.links,
    };
    let (current, mut new) = if written.shared || keys.links.len() > 1 || keys.refers_to_itself() {
        // A cascade, or the table's other name, may have changed or removed the row since.
        let Some(current) = writer.read(suffix, ReadMode::Update)? else {
            return Ok(false);
        };
        let mut changed = current.clone();
        for &at in &written.assigned {
            if let (Some(slot), Some(value)) = (changed.get_mut(at), new.get(at)) {
                slot.clone_from(value);
            }
        }
        (current, changed)
    } else {
        (old.to_vec(), new.to_vec())
    };
    target.set_update_times(context.eval, &mut new, &written.assigned)?;
    target.compute(context.eval, &mut new, number)?;
    target.check(context.eval, &new)?;
    target.raise_counter(context, &written.assigned, &new)?;
    writer.update(&current, suffix, &new)?;
    keys.check_parents(target.table.id, Some(&current), &new)?;
    keys.after_update(target.table.id, &current, &new, 0)?;
    Ok(true)
}
