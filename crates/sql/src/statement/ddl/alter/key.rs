//! ALTER TABLE, CREATE INDEX and DROP INDEX: keys and constraints.

use sqlparser::ast::{CreateIndex, ObjectName};

use crate::error::{SqlError, SqlResult};
use crate::parser::Annotations;
use crate::statement::StatementOutcome;
use crate::statement::ddl::change::change;
use crate::statement::ddl::define::Builder;
use crate::statement::ddl::key::index_comment;
use crate::statement::ddl::{DdlContext, done};
use crate::statement::names::{parts, relation};

/// CREATE INDEX.
pub(in crate::statement::ddl) fn create_index(
    context: &DdlContext<'_>,
    create: &CreateIndex,
) -> SqlResult<StatementOutcome> {
    let (database, table) = relation(context.database, &create.table_name)?;
    let name = create.name.as_ref().map(|name| parts(name).join("."));
    let annotations = Annotations::default();
    change(context, &database, &table, &annotations, &|builder, _| {
        let parts = builder.key_parts(&create.columns, name.as_deref())?;
        let comment = index_comment(&create.index_options);
        let id = builder.add_index(name.as_deref(), parts, create.unique, comment)?;
        builder.note_order(id, &create.index_options);
        Ok(())
    })?;
    Ok(done(0))
}

/// DROP INDEX … ON t.
pub(in crate::statement::ddl) fn drop_index(
    context: &DdlContext<'_>,
    name: &ObjectName,
    table: &ObjectName,
) -> SqlResult<StatementOutcome> {
    let (database, table) = relation(context.database, table)?;
    let name = parts(name).join(".");
    let annotations = Annotations::default();
    change(context, &database, &table, &annotations, &|builder, _| {
        drop_index_of(builder, &name)
    })?;
    Ok(done(0))
}

pub(super) fn drop_primary_key(builder: &mut Builder<'_>) -> SqlResult<()> {
    if builder.table.primary_key.is_empty() {
        return Err(cannot_drop("PRIMARY"));
    }
    builder.table.primary_key.clear();
    Ok(())
}

pub(super) fn drop_index_of(builder: &mut Builder<'_>, name: &str) -> SqlResult<()> {
    if name.eq_ignore_ascii_case("PRIMARY") && !builder.table.primary_key.is_empty() {
        builder.table.primary_key.clear();
        return Ok(());
    }
    let lower = name.to_lowercase();
    let before = builder.table.indexes.len();
    builder
        .table
        .indexes
        .retain(|index| index.name.to_lowercase() != lower);
    if builder.table.indexes.len() == before {
        return Err(cannot_drop(name));
    }
    Ok(())
}

pub(super) fn drop_foreign_key(builder: &mut Builder<'_>, name: &str) -> SqlResult<()> {
    let lower = name.to_lowercase();
    let before = builder.table.foreign_keys.len();
    builder
        .table
        .foreign_keys
        .retain(|key| !key.enforced || key.name.to_lowercase() != lower);
    if builder.table.foreign_keys.len() == before {
        return Err(cannot_drop(name));
    }
    // One of the same name that the statement makes is another.
    builder.decided.retain(|key| key.to_lowercase() != lower);
    Ok(())
}

/// DROP CONSTRAINT and DROP CHECK: whatever has the name.
pub(super) fn drop_constraint(
    builder: &mut Builder<'_>,
    name: &str,
    check_only: bool,
) -> SqlResult<()> {
    let lower = name.to_lowercase();
    let before = builder.table.checks.len();
    builder
        .table
        .checks
        .retain(|check| check.name.to_lowercase() != lower);
    if builder.table.checks.len() < before {
        return Ok(());
    }
    if check_only {
        return Err(no_check(name));
    }
    if drop_foreign_key(builder, name).is_ok() || drop_index_of(builder, name).is_ok() {
        return Ok(());
    }
    Err(SqlError::new(
        3940,
        "HY000",
        format!("Constraint '{name}' does not exist."),
    ))
}

pub(super) fn rename_index(builder: &mut Builder<'_>, from: &str, to: &str) -> SqlResult<()> {
    let lower = |name: &str| name.to_lowercase();
    let indexes = &mut builder.table.indexes;
    let taken = indexes
        .iter()
        .any(|index| lower(&index.name) == lower(to) && lower(from) != lower(to));
    if taken {
        return Err(SqlError::new(
            1061,
            "42000",
            format!("Duplicate key name '{to}'"),
        ));
    }
    let index = indexes
        .iter_mut()
        .find(|index| lower(&index.name) == lower(from))
        .ok_or_else(|| SqlError::no_such_key(from, &builder.table.name))?;
    index.name = to.to_string();
    Ok(())
}

/// Enforces a CHECK or stops to.
pub(super) fn enforce_check(
    builder: &mut Builder<'_>,
    name: &str,
    enforced: bool,
) -> SqlResult<()> {
    let lower = name.to_lowercase();
    let mut checks = builder.table.checks.iter_mut();
    let check = checks.find(|check| check.name.to_lowercase() == lower);
    check.ok_or_else(|| no_check(name))?.enforced = enforced;
    Ok(())
}

/// 1091.
pub(in crate::statement::ddl) fn cannot_drop(name: &str) -> SqlError {
    SqlError::new(
        1091,
        "42000",
        format!("Can't DROP '{name}'; check that column/key exists"),
    )
}

/// 3821.
fn no_check(name: &str) -> SqlError {
    SqlError::new(
        3821,
        "HY000",
        format!("Check constraint '{name}' is not found in the table."),
    )
}
