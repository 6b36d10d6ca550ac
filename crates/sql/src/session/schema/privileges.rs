//! Who may do what, as tables.

use super::define::{C, Definition, NAME, def, text, yes_no};
use super::source::Source;
use crate::error::{SqlError, SqlResult};
use crate::session::accounts::{Account, Privileges, password};
use crate::types::{Row, Value};
use std::sync::Arc;

/// `USER_PRIVILEGES`, `SCHEMA_PRIVILEGES`, `TABLE_PRIVILEGES`.
pub(super) const INFORMATION: &[Definition] = &[
    Definition {
        name: "USER_PRIVILEGES",
        columns: &[
            ("GRANTEE", C::Text(292)),
            ("TABLE_CATALOG", NAME),
            ("PRIVILEGE_TYPE", NAME),
            ("IS_GRANTABLE", C::Text(3)),
        ],
        rows: user_privileges,
    },
    Definition {
        name: "SCHEMA_PRIVILEGES",
        columns: &[
            ("GRANTEE", C::Text(292)),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("PRIVILEGE_TYPE", NAME),
            ("IS_GRANTABLE", C::Text(3)),
        ],
        rows: schema_privileges,
    },
    Definition {
        name: "TABLE_PRIVILEGES",
        columns: &[
            ("GRANTEE", C::Text(292)),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("PRIVILEGE_TYPE", NAME),
            ("IS_GRANTABLE", C::Text(3)),
        ],
        rows: table_privileges,
    },
];

/// `mysql.user`, `mysql.db`, `mysql.tables_priv`, `mysql.role_edges`.
pub(super) const MYSQL: &[Definition] = &[
    Definition {
        name: "user",
        columns: &[
            ("Host", C::Text(255)),
            ("User", C::Text(32)),
            ("Select_priv", C::Text(1)),
            ("Insert_priv", C::Text(1)),
            ("Update_priv", C::Text(1)),
            ("Delete_priv", C::Text(1)),
            ("Create_priv", C::Text(1)),
            ("Drop_priv", C::Text(1)),
            ("Grant_priv", C::Text(1)),
            ("Super_priv", C::Text(1)),
            ("Create_user_priv", C::Text(1)),
            ("plugin", C::Text(64)),
            ("authentication_string", C::Long),
            ("password_expired", C::Text(1)),
            ("account_locked", C::Text(1)),
        ],
        rows: mysql_user,
    },
    Definition {
        name: "db",
        columns: &[
            ("Host", C::Text(255)),
            ("Db", NAME),
            ("User", C::Text(32)),
            ("Select_priv", C::Text(1)),
            ("Insert_priv", C::Text(1)),
            ("Update_priv", C::Text(1)),
            ("Delete_priv", C::Text(1)),
            ("Create_priv", C::Text(1)),
            ("Drop_priv", C::Text(1)),
            ("Grant_priv", C::Text(1)),
        ],
        rows: mysql_db,
    },
    // There are no roles; mariadb-dump --system=users asks who has one.
    super::empty::empty(
        "role_edges",
        &[
            ("FROM_HOST", C::Text(255)),
            ("FROM_USER", C::Text(32)),
            ("TO_HOST", C::Text(255)),
            ("TO_USER", C::Text(32)),
            ("WITH_ADMIN_OPTION", C::Text(1)),
        ],
    ),
    Definition {
        name: "tables_priv",
        columns: &[
            ("Host", C::Text(255)),
            ("Db", NAME),
            ("User", C::Text(32)),
            ("Table_name", NAME),
            ("Grantor", C::Text(288)),
            ("Timestamp", C::Time),
            ("Table_priv", C::Text(255)),
            ("Column_priv", C::Text(255)),
        ],
        rows: mysql_tables_priv,
    },
];

/// Accounts the session may see: all with SELECT everywhere, else its own.
fn visible(source: &Source<'_>) -> Vec<Arc<Account>> {
    let own = source.account();
    if own
        .global
        .has_any(Privileges::SELECT.with(Privileges::CREATE_USER))
    {
        return source
            .state
            .instance
            .accounts
            .load()
            .all
            .values()
            .cloned()
            .collect();
    }
    vec![own]
}

fn names(set: Privileges) -> Vec<&'static str> {
    let names = set.names();
    if names.is_empty() {
        vec!["USAGE"]
    } else {
        names
    }
}

#[allow(clippy::unnecessary_wraps)] // the shape of every rows function
fn user_privileges(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for account in visible(source) {
        let grantable = account.global.has(Privileges::GRANT_OPTION);
        for name in names(account.global) {
            rows.push(vec![
                text(account.key.quoted('\'')),
                def(),
                text(name),
                yes_no(grantable),
            ]);
        }
    }
    Ok(rows)
}

#[allow(clippy::unnecessary_wraps)]
fn schema_privileges(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for account in visible(source) {
        for (database, set) in &account.databases {
            let grantable = set.has(Privileges::GRANT_OPTION);
            for name in names(*set) {
                let grantee = text(account.key.quoted('\''));
                rows.push(vec![
                    grantee,
                    def(),
                    text(&**database),
                    text(name),
                    yes_no(grantable),
                ]);
            }
        }
    }
    Ok(rows)
}

#[allow(clippy::unnecessary_wraps)]
fn table_privileges(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for account in visible(source) {
        for ((database, table), set) in &account.tables {
            let grantable = yes_no(set.has(Privileges::GRANT_OPTION));
            for name in names(*set) {
                rows.push(vec![
                    text(account.key.quoted('\'')),
                    def(),
                    text(&**database),
                    text(&**table),
                    text(name),
                    grantable.clone(),
                ]);
            }
        }
    }
    Ok(rows)
}

fn require_select(source: &Source<'_>, table: &str) -> SqlResult<()> {
    let account = source.account();
    if account.on_table("mysql", table).has_any(Privileges::SELECT) {
        return Ok(());
    }
    Err(SqlError::new(
        1142,
        "42000",
        format!(
            "SELECT command denied to user '{}'@'{}' for table '{table}'",
            account.key.user, source.state.client.host
        ),
    ))
}

fn flag(set: Privileges, one: Privileges) -> Value {
    text(if set.has(one) { "Y" } else { "N" })
}

fn data_flags(set: Privileges) -> [Value; 7] {
    [
        Privileges::SELECT,
        Privileges::INSERT,
        Privileges::UPDATE,
        Privileges::DELETE,
        Privileges::CREATE,
        Privileges::DROP,
        Privileges::GRANT_OPTION,
    ]
    .map(|one| flag(set, one))
}

fn mysql_user(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    require_select(source, "user")?;
    let row = |account: &Arc<Account>| {
        let mut row = vec![text(&*account.key.host), text(&*account.key.user)];
        row.extend(data_flags(account.global));
        row.extend([
            flag(account.global, Privileges::SUPER),
            flag(account.global, Privileges::CREATE_USER),
            text(&*account.plugin),
            text(password::shown(&account.plugin, &account.verifier)),
            text("N"),
            text(if account.locked { "Y" } else { "N" }),
        ]);
        row
    };
    Ok(source
        .state
        .instance
        .accounts
        .load()
        .all
        .values()
        .map(row)
        .collect())
}

fn mysql_db(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    require_select(source, "db")?;
    let mut rows = Vec::new();
    for account in source.state.instance.accounts.load().all.values() {
        for (database, set) in &account.databases {
            let mut row = vec![
                text(&*account.key.host),
                text(&**database),
                text(&*account.key.user),
            ];
            row.extend(data_flags(*set));
            rows.push(row);
        }
    }
    Ok(rows)
}

fn mysql_tables_priv(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    require_select(source, "tables_priv")?;
    let mut rows = Vec::new();
    for account in source.state.instance.accounts.load().all.values() {
        for ((database, table), set) in &account.tables {
            let mut names: Vec<String> = set.names().into_iter().map(member).collect();
            if set.has(Privileges::GRANT_OPTION) {
                names.push("Grant".to_string());
            }
            rows.push(vec![
                text(&*account.key.host),
                text(&**database),
                text(&*account.key.user),
                text(&**table),
                text(""), // who granted is not kept
                Value::Null,
                text(names.join(",")),
                text(""),
            ]);
        }
    }
    Ok(rows)
}

/// A privilege as `mysql.tables_priv` spells it.
fn member(privilege: &str) -> String {
    if privilege == "CREATE VIEW" {
        return "Create View".to_string();
    }
    let (first, rest) = privilege.split_at(privilege.len().min(1));
    format!("{first}{}", rest.to_lowercase())
}
