//! DELETE from one or several tables.

use std::collections::BTreeSet;

use manxdb_txn::ReadMode;
use sqlparser::ast::{self, FromTable, ObjectName, TableFactor, TableWithJoins};

use super::foreign_key::ForeignKeys;
use super::names::{parts, refuse_view};
use super::rows::RowWriter;
use super::target::Target;
use super::{
    Access, ExecContext, Kind, ModifyStatement, StatementOutcome, add_reads, is_ignorable,
    note_plan, refuse_returning, warn,
};
use crate::binder::{BindContext, ModifyPlan, ModifyTable, plan_modify};
use crate::catalog::{Table, TableId, touch};
use crate::error::{SqlError, SqlResult};
use crate::executor;
use crate::explain::{ExplainFormat, explain_modify};
use crate::parser::IGNORE_HINT;
use crate::types::{Row, Value};

/// A planned DELETE.
#[derive(Debug, Clone)]
pub(super) struct Delete {
    scan: ModifyPlan,
    targets: Vec<(Target, usize)>,
    pub(super) ignore: bool,
}

impl Delete {
    /// EXPLAIN.
    pub(super) fn explain(&self, format: ExplainFormat) -> Vec<Row> {
        let offsets = self.targets.iter().map(|(_, offset)| *offset);
        explain_modify(&self.scan, "DELETE", offsets, format)
    }
}

/// Plans a DELETE.
pub(super) fn plan(context: &BindContext<'_>, delete: &ast::Delete) -> SqlResult<ModifyStatement> {
    refuse_returning(delete.returning.as_deref())?;
    let listed = match &delete.from {
        FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => tables,
    };
    let (from, names): (&[TableWithJoins], Option<Vec<ObjectName>>) = match &delete.using {
        Some(using) => (using, Some(names_of(listed)?)),
        None if delete.tables.is_empty() => (listed, None),
        None => (listed, Some(delete.tables.clone())),
    };
    refuse_view(context, from, "DELETE")?;
    let scan = plan_modify(
        context,
        from,
        delete.selection.as_ref(),
        &delete.order_by,
        delete.limit.as_ref(),
    )?;
    let several = names.is_some();
    let places: Vec<usize> = match names {
        None if scan.tables.len() == 1 => vec![0],
        None => return Err(SqlError::syntax("DELETE of several tables must name them")),
        Some(names) => names
            .iter()
            .map(|name| place_of(&scan.tables, &parts(name)))
            .collect::<SqlResult<_>>()?,
    };
    let mut targets = Vec::new();
    let mut access = Vec::new();
    for &place in &places {
        let table = &scan.tables[place];
        let base = context.catalog.table(&table.database, &table.table)?;
        access.push((base.database.clone(), base.name.clone(), Access::Delete));
        targets.push((Target::plan(context, base)?, table.offset));
    }
    // In the form for several tables MySQL asks for SELECT on all of them.
    let looked_at = if several { &[][..] } else { &places };
    let reads = scan.looks_at(looked_at, &scan.slots_read);
    add_reads(context.catalog, &mut access, &reads);
    let mut params = Vec::new();
    note_plan(&mut params, &scan.plan);
    Ok(ModifyStatement {
        param_types: params,
        access,
        kind: Kind::Delete(Delete {
            scan,
            targets,
            ignore: delete
                .optimizer_hints
                .iter()
                .any(|hint| hint.text == IGNORE_HINT),
        }),
    })
}

fn names_of(tables: &[TableWithJoins]) -> SqlResult<Vec<ObjectName>> {
    tables
        .iter()
        .map(|table| match &table.relation {
            TableFactor::Table { name, .. } if table.joins.is_empty() => Ok(name.clone()),
            other => Err(SqlError::syntax(format!(
                "'{other}' is no table to delete from"
            ))),
        })
        .collect()
}

fn place_of(tables: &[ModifyTable], names: &[String]) -> SqlResult<usize> {
    let place = tables.iter().position(|table| match names {
        [name] => table.alias.to_lowercase() == name.to_lowercase(),
        [database, name] => {
            table.database.eq_ignore_ascii_case(database)
                && table.alias.to_lowercase() == name.to_lowercase()
        }
        _ => false,
    });
    place.ok_or_else(|| {
        SqlError::new(
            1109,
            "42S02",
            format!("Unknown table '{}' in MULTI DELETE", names.join(".")),
        )
    })
}

/// Runs a planned DELETE.
pub(super) fn run(context: &ExecContext<'_>, delete: &Delete) -> SqlResult<StatementOutcome> {
    for (target, _) in &delete.targets {
        target.touch(context)?;
    }
    let rows = executor::collect(
        &context.reading(),
        &delete.scan.plan,
        Some(ReadMode::Update),
    )?;
    // By table: two names of one table may mean the same row.
    let mut seen: BTreeSet<(TableId, Vec<u8>)> = BTreeSet::new();
    let several = delete.scan.tables.len() > 1;
    let mut deleted = 0_u64;
    for row in rows {
        let row = row?;
        context.waiter.check()?;
        for (target, offset) in &delete.targets {
            let end = offset + target.table.columns.len();
            let (Some(old), Some(Value::Bytes(suffix))) = (row.get(*offset..end), row.get(end))
            else {
                continue;
            };
            if several && !seen.insert((target.table.id, suffix.clone())) {
                continue;
            }
            let mark = context.txn.savepoint();
            match remove(context, target, old, suffix) {
                Ok(true) => deleted += 1,
                Ok(false) => {}
                Err(error) if delete.ignore && is_ignorable(&error) => {
                    context.txn.rollback_to(mark);
                    warn(context.eval, error.code, error.message);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(StatementOutcome {
        affected_rows: deleted,
        matched_rows: deleted,
        last_insert_id: 0,
        stored_id: 0,
        info: String::new(),
    })
}

/// Deletes rows, each with its key suffix, that the open transaction has read for update: they are as
/// given here in every column that an index or a link has. What refers to them, from tables `children`,
/// is the caller's matter.
///
/// # Errors
/// 1412 when a table has changed; storage; interruption.
pub(crate) fn delete_known<'t>(
    context: &ExecContext<'_>,
    table: &Table,
    children: impl Iterator<Item = &'t Table>,
    rows: &[(Row, Vec<u8>)],
) -> SqlResult<()> {
    assert!(
        !context.foreign_key_checks,
        "rows are deleted without their children only where foreign keys are not checked"
    );
    touch(context.txn, table)?;
    for child in children.filter(|child| child.id != table.id) {
        touch(context.txn, child)?;
    }
    let writer = RowWriter {
        txn: context.txn,
        table,
        tz: &context.eval.time_zone,
        owners: context.owners,
    };
    for (row, suffix) in rows {
        context.waiter.check()?;
        assert_eq!(
            row.len(),
            table.columns.len(),
            "a row has a value for each column of its table"
        );
        writer.delete(row, suffix)?;
    }
    Ok(())
}

/// Deletes one row with what refers to it; false when a cascade was faster.
fn remove(
    context: &ExecContext<'_>,
    target: &Target,
    old: &[Value],
    suffix: &[u8],
) -> SqlResult<bool> {
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
    let current: Row = if keys.links.len() > 1 || keys.refers_to_itself() {
        match writer.read(suffix, ReadMode::Update)? {
            Some(row) => row,
            None => return Ok(false),
        }
    } else {
        old.to_vec()
    };
    writer.delete(&current, suffix)?;
    keys.after_delete(target.table.id, &current, 0)?;
    Ok(true)
}
