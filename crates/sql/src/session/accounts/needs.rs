//! Which privileges a statement needs.

use sqlparser::ast::{
    AlterTableOperation, CreateTable, CreateTableLikeKind, ObjectName, ObjectNamePart, ObjectType,
    RenameTableNameKind, Statement, TableConstraint,
};

use super::{Need, Privileges};
use crate::catalog::TemporaryTables;
use crate::parser::{AlterAction, Parsed, Special};
use crate::statement::{Access, StatementPlan};

/// What `parsed` needs, checked at every run. Temporary tables are their session's own: using
/// them needs nothing.
pub(crate) fn of(
    parsed: &Parsed,
    plan: Option<&StatementPlan>,
    database: Option<&str>,
    temporary: &TemporaryTables,
) -> Vec<Need> {
    match plan {
        Some(StatementPlan::Query(plan)) => plan
            .tables
            .iter()
            .filter(|(id, ..)| !temporary.has(*id))
            .map(|(_, database, table)| Need::table(Privileges::SELECT, "SELECT", database, table))
            .collect(),
        Some(StatementPlan::Modify(modify)) => modify
            .access
            .iter()
            .filter(|(database, table, access)| {
                *access == Access::Select || temporary.get(database, table).is_none()
            })
            .map(|(database, table, access)| {
                let (privilege, verb) = match access {
                    Access::Insert => (Privileges::INSERT, "INSERT"),
                    Access::Update => (Privileges::UPDATE, "UPDATE"),
                    Access::Delete => (Privileges::DELETE, "DELETE"),
                    Access::Select => (Privileges::SELECT, "SELECT"),
                };
                Need::table(privilege, verb, database, table)
            })
            .collect(),
        None => {
            let mut needs = definition(parsed, database.unwrap_or_default());
            let makes = makes(parsed);
            needs.retain(|need| {
                let table = need.table.as_deref().unwrap_or_default();
                let read = need.any_of == Privileges::SELECT;
                makes && !read || temporary.get(&need.database, table).is_none()
            });
            needs
        }
    }
}

/// Whether the names a statement gives are of stored relations whatever temporary tables exist.
fn makes(parsed: &Parsed) -> bool {
    matches!(
        &parsed.statement,
        Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::AlterView { .. }
            | Statement::RenameTable(_)
    )
}

/// What DDL needs.
fn definition(parsed: &Parsed, current: &str) -> Vec<Need> {
    if let Some(special) = &parsed.special {
        return special_definition(special, current);
    }
    let on = |privilege, verb, name: &ObjectName| table_need(privilege, verb, name, current);
    match &parsed.statement {
        Statement::Drop {
            temporary: true, ..
        } => Vec::new(),
        Statement::CreateTable(create) => create_needs(create, current),
        Statement::CreateView(create) => {
            let mut needs = vec![on(Privileges::CREATE_VIEW, "CREATE VIEW", &create.name)];
            if create.or_replace {
                needs.push(on(Privileges::DROP, "DROP", &create.name));
            }
            needs
        }
        Statement::AlterView { name, .. } => vec![
            on(Privileges::CREATE_VIEW, "CREATE VIEW", name),
            on(Privileges::DROP, "DROP", name),
        ],
        Statement::CreateIndex(create) => vec![on(Privileges::INDEX, "INDEX", &create.table_name)],
        Statement::Truncate(truncate) => truncate
            .table_names
            .iter()
            .map(|target| on(Privileges::DROP, "DROP", &target.name))
            .collect(),
        Statement::RenameTable(renames) => renames
            .iter()
            .flat_map(|rename| {
                [
                    on(Privileges::ALTER, "ALTER", &rename.old_name),
                    on(Privileges::DROP, "DROP", &rename.old_name),
                    on(Privileges::CREATE, "CREATE", &rename.new_name),
                    on(Privileges::INSERT, "INSERT", &rename.new_name),
                ]
            })
            .collect(),
        Statement::Drop {
            object_type,
            names,
            table,
            ..
        } => drop_needs(*object_type, names, table.as_ref(), current),
        _ => Vec::new(),
    }
}

/// CREATE TABLE in all its forms; what a SELECT in it reads comes on top.
fn create_needs(create: &CreateTable, current: &str) -> Vec<Need> {
    let mut needs = Vec::new();
    if create.temporary {
        let (database, _) = split(&create.name, current);
        let verb = "CREATE TEMPORARY TABLES";
        needs.push(Need::database(
            Privileges::CREATE_TEMPORARY,
            verb,
            &database,
        ));
    } else {
        needs.push(table_need(
            Privileges::CREATE,
            "CREATE",
            &create.name,
            current,
        ));
        if create.query.is_some() {
            let name = &create.name;
            needs.push(table_need(Privileges::INSERT, "INSERT", name, current));
        }
    }
    if let Some(CreateTableLikeKind::Plain(like) | CreateTableLikeKind::Parenthesized(like)) =
        &create.like
    {
        let name = &like.name;
        needs.push(table_need(Privileges::SELECT, "SELECT", name, current));
    }
    let (home, _) = split(&create.name, current);
    needs.extend(create.constraints.iter().filter_map(|c| parent(c, &home)));
    needs
}

/// A foreign key needs REFERENCES on its parent; `home` is the database of the child.
fn parent(constraint: &TableConstraint, home: &str) -> Option<Need> {
    let TableConstraint::ForeignKey(key) = constraint else {
        return None;
    };
    let table = &key.foreign_table;
    Some(table_need(
        Privileges::REFERENCES,
        "REFERENCES",
        table,
        home,
    ))
}

/// ALTER TABLE: as in MySQL, CREATE and INSERT on what it makes too, and DROP when that has
/// another name.
fn alter_needs(name: &ObjectName, actions: &[AlterAction], current: &str) -> Vec<Need> {
    let (home, _) = split(name, current);
    let mut needs = vec![table_need(Privileges::ALTER, "ALTER", name, current)];
    let mut made = table_need(Privileges::CREATE, "CREATE", name, current);
    for action in actions {
        let renamed = match action {
            AlterAction::RenameTable(to) => Some(to),
            AlterAction::Standard(operation) => match operation.as_ref() {
                AlterTableOperation::RenameTable {
                    table_name: RenameTableNameKind::As(to) | RenameTableNameKind::To(to),
                } => Some(to),
                AlterTableOperation::AddConstraint { constraint, .. } => {
                    needs.extend(parent(constraint, &home));
                    None
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(to) = renamed {
            needs.push(table_need(Privileges::DROP, "DROP", name, current));
            made = table_need(Privileges::CREATE, "CREATE", to, &home);
        }
    }
    needs.push(Need {
        any_of: Privileges::INSERT,
        verb: "INSERT",
        ..made.clone()
    });
    needs.push(made);
    needs
}

/// A view over a table needs some right to what is in it.
pub(crate) fn of_view(needs: Vec<Need>) -> Vec<Need> {
    let any_of = Privileges::SELECT
        .with(Privileges::INSERT)
        .with(Privileges::UPDATE)
        .with(Privileges::DELETE);
    let any = |need| Need {
        any_of,
        verb: "ANY",
        ..need
    };
    needs.into_iter().map(any).collect()
}

fn drop_needs(
    kind: ObjectType,
    names: &[ObjectName],
    table: Option<&ObjectName>,
    current: &str,
) -> Vec<Need> {
    match (kind, table) {
        (ObjectType::Index, Some(table)) => {
            vec![table_need(Privileges::INDEX, "INDEX", table, current)]
        }
        (ObjectType::Database | ObjectType::Schema, _) => names
            .iter()
            .map(|name| Need::database(Privileges::DROP, "DROP", &last_part(name)))
            .collect(),
        _ => names
            .iter()
            .map(|name| table_need(Privileges::DROP, "DROP", name, current))
            .collect(),
    }
}

fn special_definition(special: &Special, current: &str) -> Vec<Need> {
    match special {
        Special::CreateDatabase { name, .. } => {
            vec![Need::database(Privileges::CREATE, "CREATE", name)]
        }
        Special::AlterDatabase { name, .. } => {
            let name = name.as_deref().unwrap_or(current);
            vec![Need::database(Privileges::ALTER, "ALTER", name)]
        }
        Special::AlterTable { name, actions } => alter_needs(name, actions, current),
        Special::Maintain { tables, .. } => tables
            .iter()
            .flat_map(|table| {
                [
                    table_need(Privileges::SELECT, "SELECT", table, current),
                    table_need(Privileges::INSERT, "INSERT", table, current),
                ]
            })
            .collect(),
        Special::LockTables(locks) => locks
            .iter()
            .flat_map(|lock| {
                let (database, _) = split(&lock.table, current);
                [
                    Need::database(Privileges::LOCK_TABLES, "LOCK TABLES", &database),
                    table_need(Privileges::SELECT, "SELECT", &lock.table, current),
                ]
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn table_need(privilege: Privileges, verb: &'static str, name: &ObjectName, current: &str) -> Need {
    let (database, table) = split(name, current);
    Need::table(privilege, verb, &database, &table)
}

fn split(name: &ObjectName, current: &str) -> (String, String) {
    let parts: Vec<&str> = name
        .0
        .iter()
        .filter_map(ObjectNamePart::as_ident)
        .map(|ident| ident.value.as_str())
        .collect();
    match parts.as_slice() {
        [database, table] => ((*database).to_string(), (*table).to_string()),
        _ => (current.to_string(), last_part(name)),
    }
}

fn last_part(name: &ObjectName) -> String {
    name.0
        .last()
        .and_then(ObjectNamePart::as_ident)
        .map(|ident| ident.value.clone())
        .unwrap_or_default()
}
