//! DDL: each statement changes the catalog in transactions of its own, then publishes.

mod alter;
mod analyze;
mod backfill;
mod blinding;
mod change;
mod copy;
mod create;
mod default;
mod define;
mod foreign;
mod generated;
mod key;
mod key_expression;
mod materialized;
mod names;
mod owners;
mod ownership;
mod remove;
mod selected;
mod serial;
mod temporary;
mod view;

pub(crate) use analyze::{analyze, analyze_again};
pub(crate) use blinding::{says, wanted};
pub(crate) use default::quote as quote_text;
pub(crate) use view::variable_in_view;

use std::sync::Arc;

use manxdb_storage::Durability;
use manxdb_txn::{Transaction, Waiter};
use sqlparser::ast::{ObjectType, Statement};

use super::StatementOutcome;
use crate::catalog::store::Edit;
use crate::catalog::{Catalog, CatalogStore, Table, TemporaryTables, VirtualTables};
use crate::error::{SqlError, SqlResult};
use crate::executor::SubqueryRunner;
use crate::expr::{EvalContext, Warning, WarningLevel};
use crate::parser::{Parsed, Special};
use crate::statement::ExecContext;
use crate::types::Collation;

/// Keeps the writers of other sessions from a table for the moments in which a change of it begins
/// and ends. A courtesy: what is correct rests on validation, as with LOCK TABLES.
pub trait TableGate {
    /// Lets no new statement of others write the table, and waits for some time for transactions
    /// that have.
    ///
    /// # Errors
    /// The statement was interrupted; the table is open then.
    fn close(&self, database: &str, name: &str) -> SqlResult<()>;

    /// Ends what [`TableGate::close`] began.
    fn open(&self);
}

/// A table closed to other writers; opened on drop.
struct ClosedTable<'a>(&'a dyn TableGate);

impl<'a> ClosedTable<'a> {
    fn close(context: &DdlContext<'a>, table: &Table) -> SqlResult<Self> {
        context.gate.close(&table.database, &table.name)?;
        Ok(Self(context.gate))
    }
}

impl Drop for ClosedTable<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// What DDL depends on. The session has committed its own transaction before, unless
/// [`keeps_transaction`].
pub struct DdlContext<'a> {
    /// The catalog.
    pub store: &'a CatalogStore,
    /// The session's temporary tables.
    pub temporary: &'a TemporaryTables,
    /// The session's transaction: it takes the rows of CREATE TEMPORARY TABLE … SELECT.
    pub txn: &'a Transaction,
    /// Current database.
    pub database: Option<&'a str>,
    /// For defaults, back-fill and CREATE TABLE … SELECT.
    pub eval: &'a EvalContext<'a>,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Keeps writers of other sessions off a table.
    pub gate: &'a dyn TableGate,
    /// How the statement waits for row locks and hears of KILL.
    pub waiter: &'a Arc<dyn Waiter>,
    /// `collation_connection`.
    pub collation: Collation,
    /// `collation_server`, for new databases.
    pub default_collation: Collation,
    /// `user@host`, for views.
    pub definer: &'a str,
    /// When a change counts as done.
    pub durability: Durability,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// As [`crate::statement::ExecContext::memory_limit`].
    pub memory_limit: usize,
}

/// Whether [`execute`] is the one to run `parsed`.
#[must_use]
pub fn is_ddl(parsed: &Parsed) -> bool {
    if let Some(special) = &parsed.special {
        return matches!(
            special,
            Special::CreateDatabase { .. }
                | Special::AlterDatabase { .. }
                | Special::AlterTable { .. }
        );
    }
    match &parsed.statement {
        Statement::CreateTable(_)
        | Statement::CreateIndex(_)
        | Statement::CreateView(_)
        | Statement::AlterView { .. }
        | Statement::Truncate(_)
        | Statement::RenameTable(_) => true,
        Statement::Drop { object_type, .. } => matches!(
            object_type,
            ObjectType::Table
                | ObjectType::View
                | ObjectType::MaterializedView
                | ObjectType::Index
                | ObjectType::Database
                | ObjectType::Schema
        ),
        _ => false,
    }
}

/// Whether a DDL statement leaves an open transaction as it is: it says TEMPORARY.
#[must_use]
pub fn keeps_transaction(parsed: &Parsed) -> bool {
    match &parsed.statement {
        _ if parsed.special.is_some() => false,
        Statement::CreateTable(create) => create.temporary,
        Statement::Drop { temporary, .. } => *temporary,
        _ => false,
    }
}

/// Runs a DDL statement.
///
/// # Errors
/// MySQL's numbers for what exists, does not exist or contradicts itself; 1235.
pub fn execute(context: &DdlContext<'_>, parsed: &Parsed) -> SqlResult<StatementOutcome> {
    if let Some(special) = &parsed.special {
        return execute_special(context, parsed, special);
    }
    match &parsed.statement {
        Statement::CreateTable(create) => create::create_table(context, parsed, create),
        Statement::CreateIndex(create) => alter::create_index(context, create),
        Statement::CreateView(create) if create.materialized => {
            materialized::create(context, parsed, create)
        }
        Statement::CreateView(create) => {
            let columns: Vec<_> = create.columns.iter().map(|c| c.name.clone()).collect();
            let existing = match (create.or_replace, create.if_not_exists) {
                (true, _) => view::Existing::Replace,
                (_, true) => view::Existing::Skip,
                _ => view::Existing::Refuse,
            };
            view::create(
                context,
                parsed,
                &create.name,
                &columns,
                &create.query,
                existing,
            )
        }
        Statement::AlterView {
            name,
            columns,
            query,
            ..
        } => {
            let existing = view::Existing::MustExist;
            view::create(context, parsed, name, columns, query, existing)
        }
        Statement::Truncate(truncate) => remove::truncate(context, truncate),
        Statement::RenameTable(renames) => remove::rename(context, renames),
        Statement::Drop {
            object_type,
            if_exists,
            names,
            temporary,
            table,
            ..
        } => match (object_type, names.as_slice(), table) {
            (ObjectType::Table, ..) if *temporary => {
                temporary::drop_tables(context, names, *if_exists)
            }
            (ObjectType::Table, ..) => remove::drop_tables(context, names, *if_exists),
            (ObjectType::View, ..) => view::drop(context, names, *if_exists),
            (ObjectType::MaterializedView, ..) => materialized::drop(context, names, *if_exists),
            (ObjectType::Index, [name], Some(table)) => alter::drop_index(context, name, table),
            (ObjectType::Database | ObjectType::Schema, [name], _) => {
                let name = super::names::parts(name).join(".");
                create::drop_database(context, &name, *if_exists)
            }
            _ => Err(SqlError::not_supported("this DROP")),
        },
        other => Err(SqlError::not_supported(other.to_string())),
    }
}

fn execute_special(
    context: &DdlContext<'_>,
    parsed: &Parsed,
    special: &Special,
) -> SqlResult<StatementOutcome> {
    match special {
        Special::CreateDatabase {
            name,
            if_not_exists,
            charset,
            collation,
        } => create::create_database(
            context,
            name,
            *if_not_exists,
            charset.as_deref(),
            collation.as_deref(),
        ),
        Special::AlterDatabase {
            name,
            charset,
            collation,
        } => create::alter_database(
            context,
            name.as_deref(),
            charset.as_deref(),
            collation.as_deref(),
        ),
        Special::AlterTable { name, actions } => {
            alter::table(context, name, actions, &parsed.annotations)
        }
        _ => Err(SqlError::internal("not a DDL statement")),
    }
}

/// An outcome with this many affected rows.
fn done(affected_rows: u64) -> StatementOutcome {
    StatementOutcome {
        affected_rows,
        ..StatementOutcome::default()
    }
}

/// Adds a note to the statement's warnings.
fn note(context: &DdlContext<'_>, code: u16, message: String) {
    context.eval.warnings.borrow_mut().push(Warning {
        level: WarningLevel::Note,
        code,
        message,
    });
}

/// Gives the parents of new foreign keys another version: statements planned before they had
/// this child must not commit.
fn touch_parents(
    edit: &mut Edit<'_>,
    table: &Table,
    is_new: &dyn Fn(&str) -> bool,
) -> SqlResult<()> {
    let parents: Vec<Table> = table
        .foreign_keys
        .iter()
        .filter(|key| key.enforced && is_new(&key.name))
        .filter_map(|key| edit.catalog.table(&key.ref_database, &key.ref_table).ok())
        .filter(|parent| {
            !(parent.database == table.database
                && parent.name.to_lowercase() == table.name.to_lowercase())
        })
        .map(|parent| (**parent).clone())
        .collect();
    for mut parent in parents {
        parent.schema_version += 1;
        edit.put_table(parent)?;
    }
    Ok(())
}

/// Runs `work` as a statement inside `txn`.
fn execute_in<T>(
    context: &DdlContext<'_>,
    txn: &Transaction,
    catalog: &Catalog,
    work: impl FnOnce(&ExecContext<'_>) -> SqlResult<T>,
) -> SqlResult<T> {
    let subqueries = SubqueryRunner::new(
        txn,
        context.virtual_tables,
        context.waiter.as_ref(),
        context.memory_limit,
        None,
    );
    let eval = EvalContext {
        subqueries: &subqueries,
        ..super::writing(context.eval, false)
    };
    work(&ExecContext {
        txn,
        catalog,
        virtual_tables: context.virtual_tables,
        waiter: context.waiter.as_ref(),
        eval: &eval,
        memory_limit: context.memory_limit,
        spill: None,
        sequences: context.store.sequences(),
        foreign_key_checks: context.foreign_key_checks,
        unique_checks: true,
        owners: None,
    })
}
