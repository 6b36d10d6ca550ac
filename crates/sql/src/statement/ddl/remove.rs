//! DROP, TRUNCATE and RENAME.

use sqlparser::ast::{ObjectName, RenameTable, Truncate};

use super::foreign::referring;
use super::names::lock_tables;
use super::{DdlContext, done, note};
use crate::catalog::name_locks::LockedNames;
use crate::catalog::{Catalog, Table, record};
use crate::error::{SqlError, SqlResult};
use crate::statement::StatementOutcome;
use crate::statement::foreign_key::describe;
use crate::statement::names::relation;
use crate::statement::owners::OwnerGraph;

/// Refuses when a table that does not go too has a foreign key to `table`.
///
/// # Errors
/// 3730.
pub(super) fn refuse_referenced(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    table: &Table,
    goes_too: &dyn Fn(&Table) -> bool,
) -> SqlResult<()> {
    if !context.foreign_key_checks {
        return Ok(());
    }
    let other = referring(catalog, &table.database, &table.name)
        .find(|(other, _)| other.id != table.id && !goes_too(other));
    match other {
        None => Ok(()),
        Some((other, key)) => Err(SqlError::new(
            3730,
            "HY000",
            format!(
                "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.",
                table.name, key.name, other.name
            ),
        )),
    }
}

/// DROP TABLE: all or none.
pub(super) fn drop_tables(
    context: &DdlContext<'_>,
    names: &[ObjectName],
    if_exists: bool,
) -> SqlResult<StatementOutcome> {
    let relations = names
        .iter()
        .map(|name| relation(context.database, name))
        .collect::<SqlResult<Vec<_>>>()?;
    let _locked = lock_tables(context, &relations, &LockedNames::default())?;
    let catalog = context.store.current();
    let mut missing = Vec::new();
    let mut hidden = Vec::new();
    let mut tables = Vec::new();
    for (database, table) in relations {
        if let Some(temporary) = context.temporary.get(&database, &table) {
            hidden.push(temporary);
            continue;
        }
        let found = catalog
            .databases
            .get(&database.to_lowercase())
            .and_then(|database| database.tables.get(&table.to_lowercase()));
        match found {
            Some(table) => tables.push(table.clone()),
            None => missing.push(format!("{database}.{table}")),
        }
    }
    if !missing.is_empty() && !if_exists {
        let text = format!("Unknown table '{}'", missing.join(","));
        return Err(SqlError::new(1051, "42S02", text));
    }
    for name in missing {
        note(context, 1051, format!("Unknown table '{name}'"));
    }
    for table in &tables {
        let goes_too = |other: &Table| tables.iter().any(|table| table.id == other.id);
        refuse_referenced(context, &catalog, table, &goes_too)?;
    }
    super::temporary::remove(context.temporary, &hidden);
    let owners = OwnerGraph::of(&catalog);
    if !tables.is_empty() {
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                tables.iter().try_for_each(|table| edit.remove_table(table))
            })?;
    }
    for table in &tables {
        context.store.sequences().forget(table.id);
        super::owners::look_at_left(context, owners.as_ref(), table.id)?;
    }
    Ok(done(0))
}

/// TRUNCATE: the table gets a new identity, its old data becomes garbage.
pub(super) fn truncate(
    context: &DdlContext<'_>,
    truncate: &Truncate,
) -> SqlResult<StatementOutcome> {
    for target in &truncate.table_names {
        let (database, name) = relation(context.database, &target.name)?;
        if let Some(table) = context.temporary.get(&database, &name) {
            super::temporary::truncate(context, &table)?;
            continue;
        }
        let relations = [(database.clone(), name.clone())];
        let _locked = lock_tables(context, &relations, &LockedNames::default())?;
        let catalog = context.store.current();
        let table = catalog.table(&database, &name)?.clone();
        let other = referring(&catalog, &table.database, &table.name)
            .find(|(other, _)| other.id != table.id);
        if let Some((other, key)) = other.filter(|_| context.foreign_key_checks) {
            let text = format!(
                "Cannot truncate a table referenced in a foreign key constraint (`{}`.`{}`, {})",
                other.database,
                other.name,
                describe(other, key)
            );
            return Err(SqlError::new(1701, "42000", text));
        }
        super::owners::refuse_truncate(context, &table)?;
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                let mut emptied = (*table).clone();
                emptied.id = edit.next_table_id()?;
                emptied.schema_version += 1;
                emptied.copying = None;
                for column in &mut emptied.columns {
                    column.absent_value = None;
                }
                edit.add_garbage(&record::table_prefix(table.id))?;
                edit.put_table(emptied)
            })?;
        context.store.sequences().forget(table.id);
        let owners = OwnerGraph::of(&catalog);
        super::owners::look_at_left(context, owners.as_ref(), table.id)?;
    }
    Ok(done(0))
}

/// RENAME TABLE, several in order, all or none.
pub(super) fn rename(
    context: &DdlContext<'_>,
    renames: &[RenameTable],
) -> SqlResult<StatementOutcome> {
    let pairs = renames
        .iter()
        .map(|rename| {
            Ok((
                relation(context.database, &rename.old_name)?,
                relation(context.database, &rename.new_name)?,
            ))
        })
        .collect::<SqlResult<Vec<_>>>()?;
    let relations: Vec<_> = pairs
        .iter()
        .flat_map(|(from, to)| [from.clone(), to.clone()])
        .collect();
    let _locked = lock_tables(context, &relations, &LockedNames::default())?;
    for ((database, name), _) in &pairs {
        super::temporary::refuse(context, database, name, "RENAME of")?;
    }
    context
        .store
        .edit(context.waiter, context.durability, &mut |edit| {
            for ((database, name), (new_database, new_name)) in &pairs {
                rename_one(context, edit, (database, name), (new_database, new_name))?;
            }
            Ok(())
        })?;
    Ok(done(0))
}

/// Renames a table or view; foreign keys that refer to it follow.
pub(super) fn rename_one(
    context: &DdlContext<'_>,
    edit: &mut crate::catalog::store::Edit<'_>,
    from: (&str, &str),
    to: (&str, &str),
) -> SqlResult<()> {
    let same = from.0.eq_ignore_ascii_case(to.0) && from.1.to_lowercase() == to.1.to_lowercase();
    if !same {
        super::create::free_name(context, &edit.catalog, to.0, to.1, false)?;
    }
    super::define::check_name(to.1)?;
    if let Some(view) = edit.catalog.view(from.0, from.1).cloned() {
        if !from.0.eq_ignore_ascii_case(to.0) {
            let text = format!(
                "Changing schema from '{}' to '{}' is not allowed.",
                from.0, to.0
            );
            return Err(SqlError::new(1450, "HY000", text));
        }
        let mut renamed = (*view).clone();
        renamed.name = to.1.to_string();
        renamed.schema_version += 1;
        edit.remove_view(from.0, from.1)?;
        return edit.put_view(renamed);
    }
    let table = edit.catalog.table(from.0, from.1)?.clone();
    let mut renamed = (*table).clone();
    renamed
        .database
        .clone_from(&edit.catalog.database(to.0)?.name);
    renamed.name = to.1.to_string();
    renamed.schema_version += 1;
    let generated = format!("{}_ibfk_", table.name);
    for key in &mut renamed.foreign_keys {
        if let Some(number) = key.name.strip_prefix(&generated) {
            key.name = format!("{}_ibfk_{number}", to.1);
        }
        if refers(&key.ref_database, &key.ref_table, from) {
            key.ref_database.clone_from(&renamed.database);
            key.ref_table.clone_from(&renamed.name);
        }
    }
    edit.remove_table_record(from.0, from.1)?;
    let children: Vec<Table> = referring(&edit.catalog, from.0, from.1)
        .filter(|(child, _)| child.id != table.id)
        .map(|(child, _)| child.clone())
        .collect();
    for mut child in children {
        for key in &mut child.foreign_keys {
            if refers(&key.ref_database, &key.ref_table, from) {
                key.ref_database.clone_from(&renamed.database);
                key.ref_table.clone_from(&renamed.name);
            }
        }
        child.schema_version += 1;
        edit.put_table(child)?;
    }
    super::ownership::rename_rule_tables(edit, &renamed, from)?;
    edit.put_table(renamed)
}

fn refers(database: &str, table: &str, target: (&str, &str)) -> bool {
    database.eq_ignore_ascii_case(target.0) && table.to_lowercase() == target.1.to_lowercase()
}
