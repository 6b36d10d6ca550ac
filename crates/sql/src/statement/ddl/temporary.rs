//! DDL on temporary tables: the session's overlay changes, the stored catalog does not, and no
//! lock on the catalog is taken, because a transaction may be open that others wait for.

use std::sync::Arc;

use manxdb_storage::Durability;
use sqlparser::ast::{CreateTable, ObjectName};

use super::backfill;
use super::change::{Effects, ToCheck};
use super::create::{auto_increment_option, insert_plan, is_system, table_of};
use super::define::check_name;
use super::{DdlContext, done, execute_in, note};
use crate::catalog::store::Edit;
use crate::catalog::{
    Catalog, IndexState, OwnershipAnnotation, SequenceKind, Table, TemporaryTables,
};
use crate::error::{SqlError, SqlResult};
use crate::parser::Parsed;
use crate::statement::names::relation;
use crate::statement::{StatementOutcome, run_modify};

/// The catalog as the session sees it now.
pub(super) fn seen(context: &DdlContext<'_>) -> Arc<Catalog> {
    context.temporary.over(context.store.current())
}

/// CREATE TEMPORARY TABLE. The rows of a SELECT are written in the session's transaction; when
/// that fails the table is gone again.
///
/// # Errors
/// 1050, 1215 for foreign keys, 1044 and 1049 for the database; those of the definition and of
/// the SELECT.
pub(super) fn create(
    context: &DdlContext<'_>,
    parsed: &Parsed,
    create: &CreateTable,
) -> SqlResult<StatementOutcome> {
    let (database, name) = relation(context.database, &create.name)?;
    check_name(&name)?;
    let catalog = seen(context);
    if is_system(&database) {
        let text = format!("Access denied: '{database}' is computed and holds no other tables");
        return Err(SqlError::new(1044, "42000", text));
    }
    catalog.database(&database)?;
    if context.temporary.get(&database, &name).is_some() {
        let text = format!("Table '{name}' already exists");
        if !create.if_not_exists {
            return Err(SqlError::new(1050, "42S01", text));
        }
        note(context, 1050, text);
        return Ok(done(0));
    }
    let next = auto_increment_option(parsed)?;
    let mut table = table_of(context, &catalog, parsed, create, (&database, &name))?;
    refuse_foreign_keys(&mut table)?;
    table.temporary = true;
    table.id = context.store.new_temporary_id(context.waiter)?;
    let id = table.id;
    let filled = (|| {
        if let Some(next) = next.filter(|next| *next > 1) {
            let sequences = context.store.sequences();
            sequences.set(id, SequenceKind::AutoIncrement, next)?;
        }
        let Some(query) = &create.query else {
            return Ok(done(0));
        };
        // The SELECT may read the table that the new one is to hide: until it is filled the new
        // one has a name that no statement can give.
        let mut catalog = (*catalog).clone();
        let unnamed = format!("{name} ");
        if let Some(home) = catalog.databases.get_mut(&database.to_lowercase()) {
            let home = Arc::make_mut(home);
            home.tables
                .insert(unnamed.to_lowercase(), Arc::new(table.clone()));
        }
        let planned = insert_plan(context, &catalog, (&database, &unnamed), query, create)?;
        execute_in(context, context.txn, &catalog, |exec| {
            run_modify(exec, &planned)
        })
    })();
    match filled {
        Ok(_) => context.temporary.put(table),
        Err(_) => context.temporary.discard(id),
    }
    filled
}

/// Foreign keys that are only recorded, as in MySQL those written behind a column, are forgotten.
fn refuse_foreign_keys(table: &mut Table) -> SqlResult<()> {
    let plain = OwnershipAnnotation::References;
    let is_said = table.data_subject || table.ownership.home_region.is_some();
    if is_said || table.foreign_keys.iter().any(|key| key.ownership != plain) {
        return Err(SqlError::not_supported(
            "ownership annotations on a temporary table",
        ));
    }
    if table.foreign_keys.iter().any(|key| key.enforced) {
        return Err(SqlError::new(
            1215,
            "HY000",
            "Cannot add foreign key constraint",
        ));
    }
    table.foreign_keys.clear();
    Ok(())
}

/// DROP TEMPORARY TABLE: all or none.
///
/// # Errors
/// 1051.
pub(super) fn drop_tables(
    context: &DdlContext<'_>,
    names: &[ObjectName],
    if_exists: bool,
) -> SqlResult<StatementOutcome> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let (database, name) = relation(context.database, name)?;
        match context.temporary.get(&database, &name) {
            Some(table) => found.push(table),
            None => missing.push(format!("{database}.{name}")),
        }
    }
    if !missing.is_empty() && !if_exists {
        let text = format!("Unknown table '{}'", missing.join(","));
        return Err(SqlError::new(1051, "42S02", text));
    }
    for name in missing {
        note(context, 1051, format!("Unknown table '{name}'"));
    }
    remove(context.temporary, &found);
    Ok(done(0))
}

/// Takes these away.
pub(super) fn remove(temporary: &TemporaryTables, tables: &[Arc<Table>]) {
    for table in tables {
        temporary.remove(&table.database, &table.name);
    }
}

/// TRUNCATE: a new identity.
pub(super) fn truncate(context: &DdlContext<'_>, table: &Table) -> SqlResult<()> {
    let mut emptied = table.clone();
    emptied.id = context.store.new_temporary_id(context.waiter)?;
    emptied.schema_version += 1;
    for column in &mut emptied.columns {
        column.absent_value = None;
    }
    context.temporary.put(emptied);
    Ok(())
}

/// ALTER TABLE and the index statements: every row is copied to a new identity.
///
/// # Errors
/// 1215 for foreign keys; 1235 for RENAME; what rows of the old definition do not fit.
pub(super) fn change(
    context: &DdlContext<'_>,
    old: &Table,
    mut new: Table,
    effects: &Effects,
) -> SqlResult<()> {
    if effects.rename.is_some() {
        return Err(SqlError::not_supported("RENAME of a temporary table"));
    }
    refuse_foreign_keys(&mut new)?;
    new.id = context.store.new_temporary_id(context.waiter)?;
    new.schema_version = old.schema_version + 1;
    for column in &mut new.columns {
        column.absent_value = None;
    }
    for index in &mut new.indexes {
        index.state = IndexState::Public;
    }
    let copied = copy(context, old, &new);
    match copied {
        Ok(()) => context.temporary.put(new),
        Err(_) => context.temporary.discard(new.id),
    }
    copied
}

fn copy(context: &DdlContext<'_>, old: &Table, new: &Table) -> SqlResult<()> {
    let store = context.store;
    for kind in [SequenceKind::AutoIncrement, SequenceKind::RowId] {
        let next = store.sequences().peek(old.id, kind)?;
        if next > 1 {
            store.sequences().set(new.id, kind, next)?;
        }
    }
    let catalog = seen(context);
    store.retrying(context.waiter, Durability::Async, &mut |txn| {
        let edit = Edit::new(txn, (*catalog).clone());
        backfill::copy_rows(context, &edit, old, new, &ToCheck::default())
    })
}

/// Refuses what is done to stored tables only.
///
/// # Errors
/// 1235 when `database.name` is temporary.
pub(super) fn refuse(
    context: &DdlContext<'_>,
    database: &str,
    name: &str,
    what: &str,
) -> SqlResult<()> {
    match context.temporary.get(database, name) {
        None => Ok(()),
        Some(_) => Err(SqlError::not_supported(format!("{what} a temporary table"))),
    }
}
