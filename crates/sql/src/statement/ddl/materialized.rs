//! CREATE and DROP MATERIALIZED VIEW.

use sqlparser::ast::{CreateView, ObjectName};

use super::{DdlContext, done, note};
use crate::catalog::MaterializedView;
use crate::catalog::name_locks::LockedNames;
use crate::error::{SqlError, SqlResult};
use crate::parser::Parsed;
use crate::statement::StatementOutcome;
use crate::statement::names::relation;
use crate::views::shapes_of;

/// CREATE MATERIALIZED VIEW: checks that the view can be kept up to date, and keeps its definition.
pub(super) fn create(
    context: &DdlContext<'_>,
    parsed: &Parsed,
    create: &CreateView,
) -> SqlResult<StatementOutcome> {
    if create.or_replace {
        return Err(SqlError::not_supported(
            "OR REPLACE of a materialized view: drop it first",
        ));
    }
    if !create.columns.is_empty() {
        return Err(SqlError::not_supported(
            "column names of a materialized view: it answers queries, and is not read by its name",
        ));
    }
    let (database, name) = relation(context.database, &create.name)?;
    super::define::check_name(&name)?;
    let mut locked = LockedNames::default();
    locked.change(&database, &name);
    let _locked = super::names::lock(context, locked)?;
    let catalog = context.store.current();
    let home = catalog.database(&database)?;
    let lower = name.to_lowercase();
    let is_taken = home.tables.contains_key(&lower)
        || home.views.contains_key(&lower)
        || home.materialized.contains_key(&lower);
    if is_taken {
        let text = format!("Table '{name}' already exists");
        if create.if_not_exists && home.materialized.contains_key(&lower) {
            note(context, 1050, text);
            return Ok(done(0));
        }
        return Err(SqlError::new(1050, "42S01", text));
    }
    let query = parsed.view_query.clone();
    let view = MaterializedView {
        database: home.name.clone(),
        name,
        query: query.unwrap_or_else(|| create.query.to_string()),
        sql_mode: context.eval.sql_mode.bits(),
        collation: context.collation,
        definer: context.definer.to_string(),
        schema_version: 1,
    };
    shapes_of(&view, &super::temporary::seen(context)).map_err(|error| match error.code {
        // Which tables of which database are computed is not known here; none of them can be held.
        1109 => SqlError::not_supported("a computed table in a materialized view"),
        _ => error,
    })?;
    context
        .store
        .edit(context.waiter, context.durability, &mut |edit| {
            edit.put_materialized(view.clone())
        })?;
    Ok(done(0))
}

/// DROP MATERIALIZED VIEW: all or none.
pub(super) fn drop(
    context: &DdlContext<'_>,
    names: &[ObjectName],
    if_exists: bool,
) -> SqlResult<StatementOutcome> {
    let mut locked = LockedNames::default();
    for name in names {
        let (database, name) = relation(context.database, name)?;
        locked.change(&database, &name);
    }
    let _locked = super::names::lock(context, locked)?;
    let catalog = context.store.current();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        let (database, name) = relation(context.database, name)?;
        if catalog.materialized(&database, &name).is_some() {
            found.push((database, name));
        } else {
            missing.push(format!("{database}.{name}"));
        }
    }
    if !missing.is_empty() && !if_exists {
        let text = format!("Unknown table '{}'", missing.join(","));
        return Err(SqlError::new(1051, "42S02", text));
    }
    for name in missing {
        note(context, 1051, format!("Unknown table '{name}'"));
    }
    if !found.is_empty() {
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                found
                    .iter()
                    .try_for_each(|(database, name)| edit.remove_materialized(database, name))
            })?;
    }
    Ok(done(0))
}
