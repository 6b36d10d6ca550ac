//! CREATE, ALTER and DROP VIEW.

use sqlparser::ast::{Ident, ObjectName, Query, Statement};

use super::{DdlContext, done, note};
use crate::binder::{BindContext, plan_query};
use crate::catalog::name_locks::LockedNames;
use crate::catalog::{Catalog, View};
use crate::error::{SqlError, SqlResult};
use crate::parser::{Parsed, in_default_mode, parse};
use crate::plan::Plan;
use crate::statement::StatementOutcome;
use crate::statement::names::relation;

/// What to do when the view exists, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    Refuse,
    Skip,
    Replace,
    MustExist,
}

/// 1351: a view means the same to everybody.
pub(crate) fn variable_in_view() -> SqlError {
    SqlError::new(
        1351,
        "HY000",
        "View's SELECT contains a variable or parameter",
    )
}

/// CREATE [OR REPLACE] VIEW and ALTER VIEW.
pub(super) fn create(
    context: &DdlContext<'_>,
    parsed: &Parsed,
    name: &ObjectName,
    columns: &[Ident],
    query: &Query,
    existing: Existing,
) -> SqlResult<StatementOutcome> {
    if parsed.param_count > 0 {
        return Err(variable_in_view());
    }
    let (database, name) = relation(context.database, name)?;
    super::define::check_name(&name)?;
    let mut locked = LockedNames::default();
    locked.change(&database, &name);
    let _locked = super::names::lock(context, locked)?;
    let catalog = context.store.current();
    let home = catalog.database(&database)?;
    if home.materialized.contains_key(&name.to_lowercase()) {
        let text = format!("Table '{name}' already exists");
        return Err(SqlError::new(1050, "42S01", text));
    }
    if home.tables.contains_key(&name.to_lowercase()) {
        let text = match existing {
            Existing::MustExist | Existing::Replace => {
                return Err(SqlError::new(
                    1347,
                    "HY000",
                    format!("'{database}.{name}' is not VIEW"),
                ));
            }
            _ => format!("Table '{name}' already exists"),
        };
        return Err(SqlError::new(1050, "42S01", text));
    }
    let old = catalog.view(&database, &name).cloned();
    match (&old, existing) {
        (Some(_), Existing::Refuse) => {
            return Err(SqlError::new(
                1050,
                "42S01",
                format!("Table '{name}' already exists"),
            ));
        }
        (Some(_), Existing::Skip) => {
            note(context, 1050, format!("Table '{name}' already exists"));
            return Ok(done(0));
        }
        (None, Existing::MustExist) => return Err(SqlError::no_such_table(&database, &name)),
        _ => {}
    }
    let plan = plan_at_home(context, &super::temporary::seen(context), &database, query)?;
    let hidden = plan
        .tables
        .iter()
        .find(|(id, ..)| context.temporary.has(*id));
    if let Some((_, _, table)) = hidden {
        let text = format!("View's SELECT refers to a temporary table '{table}'");
        return Err(SqlError::new(1352, "HY000", text));
    }
    check_columns(&plan.columns, columns)?;
    let (text, anew) = text_of(context, parsed, query)?;
    let columns = if anew && columns.is_empty() {
        names_as_written(context, &database, parsed, query)?
    } else {
        columns.iter().map(|column| column.value.clone()).collect()
    };
    let view = View {
        database: home.name.clone(),
        name,
        columns,
        query: text,
        definer: context.definer.to_string(),
        schema_version: old.map_or(1, |old| old.schema_version + 1),
    };
    context
        .store
        .edit(context.waiter, context.durability, &mut |edit| {
            edit.put_view(view.clone())
        })?;
    Ok(done(0))
}

/// The text a view is kept as, and whether it is another than the client's. It is read in one
/// mode, whatever the session's: what means something else there is written anew.
///
/// # Errors
/// 1235 when even that does not mean the same.
fn text_of(context: &DdlContext<'_>, parsed: &Parsed, query: &Query) -> SqlResult<(String, bool)> {
    let written = parsed.view_query.clone();
    let written = written.unwrap_or_else(|| query.to_string());
    let mode = context.eval.sql_mode;
    let read = mode.of_view_text();
    let is_same = |text: &str| {
        parse(text, read).is_ok_and(|statements| {
            let mut statements = statements.into_iter().map(|parsed| parsed.statement);
            matches!(statements.next(), Some(Statement::Query(other)) if *other == *query)
        })
    };
    if read == mode || is_same(&written) {
        return Ok((written, false));
    }
    let anew = in_default_mode(query);
    if is_same(&anew) {
        return Ok((anew, true));
    }
    Err(SqlError::not_supported(
        "CREATE VIEW whose text cannot be written without ANSI_QUOTES, PIPES_AS_CONCAT, \
         NO_BACKSLASH_ESCAPES or HIGH_NOT_PRECEDENCE",
    ))
}

/// What the columns are called: those without a name as they were written, which the text the
/// view is kept as does not show.
fn names_as_written(
    context: &DdlContext<'_>,
    database: &str,
    parsed: &Parsed,
    query: &Query,
) -> SqlResult<Vec<String>> {
    let catalog = super::temporary::seen(context);
    let named = BindContext {
        database: Some(database),
        source: parsed.view_query.as_deref(),
        ..super::default::bind_context(context, &catalog)
    };
    let plan = plan_query(&named, query)?;
    Ok(plan.columns.into_iter().map(|column| column.name).collect())
}

/// The view's SELECT as it will be bound where the view lives.
///
/// # Errors
/// 1235 when it means something else there than in the current database.
fn plan_at_home(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    database: &str,
    query: &Query,
) -> SqlResult<Plan> {
    let here = super::default::bind_context(context, catalog);
    let plan = plan_query(&here, query)?;
    if context
        .database
        .is_some_and(|current| current.eq_ignore_ascii_case(database))
    {
        return Ok(plan);
    }
    let at_home = BindContext {
        database: Some(database),
        ..here
    };
    match plan_query(&at_home, query) {
        Ok(other) if other.tables == plan.tables => Ok(plan),
        _ => Err(SqlError::not_supported(
            "CREATE VIEW in another database over names without a database",
        )),
    }
}

fn check_columns(selected: &[crate::types::ColumnMeta], named: &[Ident]) -> SqlResult<()> {
    if !named.is_empty() && named.len() != selected.len() {
        return Err(SqlError::new(
            1353,
            "HY000",
            "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts",
        ));
    }
    let names: Vec<String> = if named.is_empty() {
        selected
            .iter()
            .map(|meta| meta.name.to_lowercase())
            .collect()
    } else {
        named.iter().map(|name| name.value.to_lowercase()).collect()
    };
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return Err(super::define::duplicate_column(name));
        }
    }
    Ok(())
}

/// DROP VIEW: all or none.
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
    let mut views = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let (database, name) = relation(context.database, name)?;
        if catalog.view(&database, &name).is_some() {
            views.push((database, name));
        } else if catalog.table(&database, &name).is_ok() {
            return Err(SqlError::new(
                1347,
                "HY000",
                format!("'{database}.{name}' is not VIEW"),
            ));
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
    if !views.is_empty() {
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                views
                    .iter()
                    .try_for_each(|(database, name)| edit.remove_view(database, name))
            })?;
    }
    Ok(done(0))
}
