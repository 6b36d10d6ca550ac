//! CREATE TABLE, and databases.

use std::sync::Arc;

use sqlparser::ast::{CreateTable, CreateTableLikeKind, Query};

use super::define::{Builder, Place, check_name, collation};
use super::{DdlContext, done, execute_in, note};
use crate::binder::plan_query;
use crate::catalog::name_locks::LockedNames;
use crate::catalog::store::Edit;
use crate::catalog::{
    Blinding, Catalog, Column, ColumnId, IndexId, Ownership, Sealing, SequenceKind, Table, TableId,
};
use crate::error::{SqlError, SqlResult};
use crate::parser::{self, Parsed, quote_name};
use crate::statement::names::relation;
use crate::statement::{ModifyStatement, StatementOutcome, StatementPlan, plan, run_modify};
use crate::types::Collation;

/// Databases that are computed.
const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// CREATE DATABASE.
pub(super) fn create_database(
    context: &DdlContext<'_>,
    name: &str,
    if_not_exists: bool,
    charset: Option<&str>,
    collate: Option<&str>,
) -> SqlResult<StatementOutcome> {
    check_name(name)?;
    let chosen = collation(charset, collate)?.unwrap_or(context.default_collation);
    let _locked = super::names::lock(context, LockedNames::database(name))?;
    let current = context.store.current();
    if current.databases.contains_key(&name.to_lowercase()) || is_system(name) {
        let text = format!("Can't create database '{name}'; database exists");
        if if_not_exists {
            note(context, 1007, text);
            return Ok(done(1));
        }
        return Err(SqlError::new(1007, "HY000", text));
    }
    context
        .store
        .edit(context.waiter, context.durability, &mut |edit| {
            edit.put_database(name, chosen)
        })?;
    Ok(done(1))
}

/// ALTER DATABASE.
pub(super) fn alter_database(
    context: &DdlContext<'_>,
    name: Option<&str>,
    charset: Option<&str>,
    collate: Option<&str>,
) -> SqlResult<StatementOutcome> {
    let name = name
        .or(context.database)
        .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected"))?;
    let _locked = super::names::lock(context, LockedNames::database(name))?;
    let catalog = context.store.current();
    let database = catalog.database(name)?;
    let chosen = collation(charset, collate)?.unwrap_or(database.collation);
    let name = database.name.clone();
    context
        .store
        .edit(context.waiter, context.durability, &mut |edit| {
            edit.put_database(&name, chosen)
        })?;
    Ok(done(1))
}

/// DROP DATABASE.
pub(super) fn drop_database(
    context: &DdlContext<'_>,
    name: &str,
    if_exists: bool,
) -> SqlResult<StatementOutcome> {
    let _locked = super::names::lock(context, LockedNames::database(name))?;
    if is_system(name) {
        let text = format!("Access to system schema '{name}' is rejected.");
        return Err(SqlError::new(3552, "HY000", text));
    }
    let catalog = context.store.current();
    let Some(database) = catalog.databases.get(&name.to_lowercase()) else {
        let text = format!("Can't drop database '{name}'; database doesn't exist");
        if if_exists {
            note(context, 1008, text);
            return Ok(done(0));
        }
        return Err(SqlError::new(1008, "HY000", text));
    };
    for table in database.tables.values() {
        super::remove::refuse_referenced(context, &catalog, table, &|other| {
            other.database.eq_ignore_ascii_case(name)
        })?;
    }
    let count = database.tables.len() + database.views.len();
    let dropped = context
        .store
        .edit(context.waiter, context.durability, &mut |edit| {
            edit.remove_database(name)
        })?;
    for table in dropped {
        context.store.sequences().forget(table);
    }
    Ok(done(count as u64))
}

pub(super) fn is_system(name: &str) -> bool {
    SYSTEM
        .iter()
        .any(|system| name.eq_ignore_ascii_case(system))
}

/// CREATE TABLE in all its forms.
pub(super) fn create_table(
    context: &DdlContext<'_>,
    parsed: &Parsed,
    create: &CreateTable,
) -> SqlResult<StatementOutcome> {
    if create.temporary {
        return super::temporary::create(context, parsed, create);
    }
    if create.or_replace {
        return Err(SqlError::not_supported("CREATE OR REPLACE TABLE"));
    }
    let (database, name) = relation(context.database, &create.name)?;
    check_name(&name)?;
    let mut names = LockedNames::default();
    names.change(&database, &name);
    let next = auto_increment_option(parsed)?.filter(|next| *next > 1);
    let (locked, table) = loop {
        let held = super::names::lock(context, names.clone())?;
        let catalog = context.store.current();
        if !free_name(context, &catalog, &database, &name, create.if_not_exists)? {
            return Ok(done(0));
        }
        if create.query.is_some() {
            super::temporary::refuse(context, &database, &name, "CREATE TABLE … SELECT under")?;
        }
        let table = table_of(context, &catalog, parsed, create, (&database, &name))?;
        names.extend(super::names::new_parents(&catalog, &table, None));
        names.extend(sources(context, create)?);
        if held.covers(&names) {
            break (held, table);
        }
    };
    let has_owners = table.has_ownership();
    let outcome = if next.is_none() && create.query.is_none() {
        context
            .store
            .edit(context.waiter, context.durability, &mut |edit| {
                let mut made = table.clone();
                made.id = edit.next_table_id()?;
                super::touch_parents(edit, &made, &|_| true)?;
                super::ownership::put_checked(context, edit, made)?;
                Ok(done(0))
            })
    } else {
        make_with_contents(context, table, next, create)
    }?;
    if has_owners {
        super::owners::look_at_rows(context, &database, &name)?;
        drop(locked);
        super::blinding::blind_owned_through(context, &database, &name)?;
    }
    Ok(outcome)
}

/// The tables that CREATE TABLE … SELECT reads, which must be the same until they are read.
fn sources(context: &DdlContext<'_>, create: &CreateTable) -> SqlResult<LockedNames> {
    let mut names = LockedNames::default();
    if let Some(query) = &create.query {
        let seen = super::temporary::seen(context);
        let bind = super::default::bind_context(context, &seen);
        for (id, database, table) in plan_query(&bind, query)?.tables {
            if !context.temporary.has(id) {
                names.rely_on(&database, &table);
            }
        }
    }
    Ok(names)
}

/// A table that begins with a counter or with rows: they are written first, or with it.
fn make_with_contents(
    context: &DdlContext<'_>,
    mut table: Table,
    next: Option<u64>,
    create: &CreateTable,
) -> SqlResult<StatementOutcome> {
    let store = context.store;
    table.id = store.reserve_table_id(context.waiter)?;
    let made = next
        .map_or(Ok(()), |next| {
            let sequences = store.sequences();
            sequences.set(table.id, SequenceKind::AutoIncrement, next)
        })
        .and_then(|()| {
            store.edit(context.waiter, context.durability, &mut |edit| {
                edit.keep_reserved(table.id)?;
                super::touch_parents(edit, &table, &|_| true)?;
                super::ownership::put_checked(context, edit, table.clone())?;
                match &create.query {
                    None => Ok(done(0)),
                    Some(query) => fill(context, edit, &table, query, create),
                }
            })
        });
    if made.is_err()
        && let Err(error) = store.abandon_reserved(table.id)
    {
        tracing::warn!(%error, "what a failed CREATE TABLE wrote goes at the next start");
    }
    made
}

/// What CREATE TABLE defines.
pub(super) fn table_of(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    parsed: &Parsed,
    create: &CreateTable,
    (database, name): (&str, &str),
) -> SqlResult<Table> {
    let mut table = match &create.like {
        Some(CreateTableLikeKind::Plain(like) | CreateTableLikeKind::Parenthesized(like)) => {
            like_table(context, &like.name, database, name)?
        }
        None => define(context, catalog, parsed, create, database, name)?,
    };
    if create.temporary {
        table.blinding = Blinding::default();
    } else {
        super::blinding::decide(context, catalog, &mut table)?;
    }
    Ok(table)
}

/// False when the name is taken and IF NOT EXISTS was said.
pub(super) fn free_name(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    database: &str,
    name: &str,
    if_not_exists: bool,
) -> SqlResult<bool> {
    if is_system(database) {
        let text = format!("Access denied: '{database}' is computed and holds no other tables");
        return Err(SqlError::new(1044, "42000", text));
    }
    let home = catalog.database(database)?;
    let lower = name.to_lowercase();
    let is_taken = home.tables.contains_key(&lower)
        || home.views.contains_key(&lower)
        || home.materialized.contains_key(&lower);
    if !is_taken {
        return Ok(true);
    }
    let text = format!("Table '{name}' already exists");
    if if_not_exists {
        note(context, 1050, text);
        return Ok(false);
    }
    Err(SqlError::new(1050, "42S01", text))
}

pub(super) fn auto_increment_option(parsed: &Parsed) -> SqlResult<Option<u64>> {
    option(parsed, "AUTO_INCREMENT")
        .map(|text| {
            text.parse()
                .map_err(|_| SqlError::syntax(format!("AUTO_INCREMENT = {text}")))
        })
        .transpose()
}

fn option<'a>(parsed: &'a Parsed, key: &str) -> Option<&'a str> {
    let found = parsed
        .table_options
        .iter()
        .rev()
        .find(|(other, _)| other == key);
    found.map(|(_, value)| value.as_str())
}

/// An empty definition.
fn blank(database: &str, name: &str, collation: Collation, now: i64) -> Table {
    Table {
        id: TableId(0),
        database: database.to_string(),
        name: name.to_string(),
        schema_version: 1,
        columns: Vec::new(),
        primary_key: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation,
        comment: String::new(),
        data_subject: false,
        temporary: false,
        analyzed: None,
        blinding: Blinding::default(),
        copying: None,
        sealing: Sealing::default(),
        ownership_rules: Vec::new(),
        ownership: Ownership::default(),
        next_column_id: 1,
        next_index_id: 1,
        created_at: now,
    }
}

fn define(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    parsed: &Parsed,
    create: &CreateTable,
    database: &str,
    name: &str,
) -> SqlResult<Table> {
    let home = catalog.database(database)?;
    let chosen = collation(option(parsed, "CHARACTER SET"), option(parsed, "COLLATE"))?;
    let mut table = blank(
        &home.name,
        name,
        chosen.unwrap_or(home.collation),
        context.eval.now_micros,
    );
    table.comment = option(parsed, "COMMENT").unwrap_or_default().to_string();
    table.data_subject =
        parsed.annotations.data_subject || super::ownership::comment_says_subject(&table.comment);
    table.ownership.rules.clone_from(&parsed.annotations.rules);
    table
        .ownership
        .retention
        .clone_from(&parsed.annotations.retention);
    table.ownership.unowned_allowed =
        option(parsed, "UNOWNED").map_or(Ok(false), super::ownership::unowned_allowed)?;
    let mut builder = Builder::new(context, catalog, &parsed.annotations, table);
    builder.infers_owners = !create.temporary;
    for column in &create.columns {
        builder.add_column(column, &Place::Last)?;
    }
    if let Some(query) = &create.query {
        let seen = super::temporary::seen(context);
        let bind = super::default::bind_context(context, &seen);
        for column in super::selected::columns(&seen, &plan_query(&bind, query)?) {
            add_selected(&mut builder, column);
        }
    }
    builder.make_inline()?;
    let is_key = |constraint: &&sqlparser::ast::TableConstraint| {
        !matches!(constraint, sqlparser::ast::TableConstraint::ForeignKey(_))
    };
    for constraint in create.constraints.iter().filter(is_key) {
        builder.add_constraint(constraint)?;
    }
    for constraint in create.constraints.iter().filter(|c| !is_key(c)) {
        builder.add_constraint(constraint)?;
    }
    builder.finish()?;
    Ok(builder.table)
}

/// A column of CREATE TABLE … SELECT, unless the definition lists it already.
fn add_selected(builder: &mut Builder<'_>, column: Column) {
    if crate::statement::target::position(&builder.table, &column.name).is_some() {
        return;
    }
    let id = ColumnId(builder.table.next_column_id);
    builder.table.next_column_id += 1;
    builder.table.columns.push(Column { id, ..column });
}

fn like_table(
    context: &DdlContext<'_>,
    like: &sqlparser::ast::ObjectName,
    database: &str,
    name: &str,
) -> SqlResult<Table> {
    let (other_database, other) = relation(context.database, like)?;
    let catalog = super::temporary::seen(context);
    let mut table = (**catalog.table(&other_database, &other)?).clone();
    table.database.clone_from(&catalog.database(database)?.name);
    table.name = name.to_string();
    table.schema_version = 1;
    table.temporary = false;
    table.copying = None;
    table.foreign_keys.clear();
    table.ownership.rules.clear();
    table.ownership.retention = None;
    table.ownership.home_region = None;
    table.ownership_rules.clear();
    table.created_at = context.eval.now_micros;
    table.next_index_id = table
        .indexes
        .iter()
        .map(|index| index.id.0 + 1)
        .max()
        .unwrap_or(1);
    for (place, check) in table.checks.iter_mut().enumerate() {
        check.name = format!("{name}_chk_{}", place + 1);
    }
    for column in &mut table.columns {
        column.absent_value = None;
    }
    debug_assert!(table.indexes.iter().all(|index| index.id != IndexId(0)));
    Ok(table)
}

/// Fills a table from CREATE TABLE … SELECT by the INSERT that it is, in the transaction that makes
/// it: nobody sees one without the other, nor does a crash leave it.
fn fill(
    context: &DdlContext<'_>,
    edit: &Edit<'_>,
    table: &Table,
    query: &Query,
    create: &CreateTable,
) -> SqlResult<StatementOutcome> {
    let mut catalog = (*super::temporary::seen(context)).clone();
    if let Some(stored) = &mut catalog.stored {
        add_table(Arc::make_mut(stored), table);
    }
    add_table(&mut catalog, table);
    // The edit has made new versions of the tables that it refers to.
    for key in &table.foreign_keys {
        if let Ok(parent) = edit.catalog.table(&key.ref_database, &key.ref_table)
            && !context
                .temporary
                .get(&key.ref_database, &key.ref_table)
                .is_some_and(|own| own.temporary)
        {
            add_table(&mut catalog, parent);
        }
    }
    let place = (table.database.as_str(), table.name.as_str());
    let planned = insert_plan(context, &catalog, place, query, create)?;
    execute_in(context, edit.txn, &catalog, |exec| {
        run_modify(exec, &planned)
    })
}

fn add_table(catalog: &mut Catalog, table: &Table) {
    if let Some(home) = catalog.databases.get_mut(&table.database.to_lowercase()) {
        let tables = &mut Arc::make_mut(home).tables;
        tables.insert(table.name.to_lowercase(), Arc::new(table.clone()));
    }
}

/// The INSERT that CREATE TABLE … SELECT is, planned.
pub(super) fn insert_plan(
    context: &DdlContext<'_>,
    catalog: &Catalog,
    (database, name): (&str, &str),
    query: &Query,
    create: &CreateTable,
) -> SqlResult<Box<ModifyStatement>> {
    let bind = super::default::bind_context(context, catalog);
    let columns: Vec<String> = plan_query(&bind, query)?
        .columns
        .iter()
        .map(|meta| quote_name(&meta.name))
        .collect();
    let target = format!("{}.{}", quote_name(database), quote_name(name));
    let text = format!("INSERT INTO {target} ({}) SELECT 1", columns.join(", "));
    let mut parsed = parser::parse(&text, crate::types::SqlMode::default())?;
    let Some(sqlparser::ast::Statement::Insert(mut insert)) = parsed.pop().map(|p| p.statement)
    else {
        return Err(SqlError::internal("an INSERT is no INSERT"));
    };
    insert.source = Some(Box::new(query.clone()));
    insert.ignore = create.or_replace;
    let statement = sqlparser::ast::Statement::Insert(insert);
    let Some(StatementPlan::Modify(planned)) = plan(&bind, &statement)? else {
        return Err(SqlError::internal("an INSERT has no plan"));
    };
    Ok(planned)
}
