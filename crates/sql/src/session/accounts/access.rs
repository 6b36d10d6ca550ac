//! May this account do that?

use super::privilege::Privileges;
use super::record::Account;
use crate::error::{SqlError, SqlResult};

/// A privilege a statement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// Any of these suffices.
    pub any_of: Privileges,
    /// Verb in error 1142: `SELECT`, `INSERT`, …
    pub verb: &'static str,
    /// Database.
    pub database: String,
    /// Table; `None` asks for the database itself.
    pub table: Option<String>,
}

impl Need {
    /// A privilege on a table.
    pub(crate) fn table(
        privilege: Privileges,
        verb: &'static str,
        database: &str,
        table: &str,
    ) -> Self {
        Self {
            any_of: privilege,
            verb,
            database: database.to_string(),
            table: Some(table.to_string()),
        }
    }

    /// A privilege on a database.
    pub(crate) fn database(privilege: Privileges, verb: &'static str, database: &str) -> Self {
        Self {
            any_of: privilege,
            verb,
            database: database.to_string(),
            table: None,
        }
    }
}

/// Databases everybody may read: what they show is filtered row by row.
pub(crate) fn is_virtual(database: &str) -> bool {
    database.eq_ignore_ascii_case("information_schema")
        || database.eq_ignore_ascii_case("performance_schema")
}

/// Checks one need.
///
/// # Errors
/// 1142 for a table, 1044 for a database.
pub(crate) fn check(account: &Account, need: &Need, client_host: &str) -> SqlResult<()> {
    if account.global.has_any(need.any_of) {
        return Ok(());
    }
    if need.database.is_empty() {
        // None is selected: the statement itself fails with 1046.
        return Ok(());
    }
    if is_virtual(&need.database) {
        return virtual_access(account, need, client_host);
    }
    let holds = match &need.table {
        Some(table) => account.on_table(&need.database, table),
        None => account.on_database(&need.database),
    };
    if holds.has_any(need.any_of) {
        return Ok(());
    }
    Err(denied(account, need, client_host))
}

fn virtual_access(account: &Account, need: &Need, client_host: &str) -> SqlResult<()> {
    if need.any_of == Privileges::SELECT {
        return Ok(());
    }
    Err(denied_database(account, &need.database, client_host))
}

fn denied(account: &Account, need: &Need, client_host: &str) -> SqlError {
    let Some(table) = &need.table else {
        return denied_database(account, &need.database, client_host);
    };
    let user = &account.key.user;
    SqlError::new(
        1142,
        "42000",
        format!(
            "{} command denied to user '{user}'@'{client_host}' for table '{table}'",
            need.verb
        ),
    )
}

/// 1044.
pub(crate) fn denied_database(account: &Account, database: &str, _client_host: &str) -> SqlError {
    SqlError::new(
        1044,
        "42000",
        format!(
            "Access denied for user {} to database '{database}'",
            account.key.quoted('\'')
        ),
    )
}

/// 1227 when the account lacks a server privilege.
///
/// # Errors
/// 1227.
pub(crate) fn require_global(account: &Account, any_of: Privileges, names: &str) -> SqlResult<()> {
    if account.global.has_any(any_of) {
        return Ok(());
    }
    Err(SqlError::new(
        1227,
        "42000",
        format!(
            "Access denied; you need (at least one of) the {names} privilege(s) for this operation"
        ),
    ))
}

/// LIKE as host and database patterns mean it: `%`, `_` and `\` before either.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    like_at(&pattern, &text)
}

fn like_at(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('%') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('_') => {
                p += 1;
                t += 1;
                continue;
            }
            Some('\\') if pattern.get(p + 1) == text.get(t) => {
                p += 2;
                t += 1;
                continue;
            }
            Some(c) if *c == text[t] => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = retry else {
            return false;
        };
        retry = Some((after, from + 1));
        p = after;
        t = from + 1;
    }
    pattern[p.min(pattern.len())..].iter().all(|c| *c == '%')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::accounts::AccountKey;

    #[test]
    fn patterns_match_as_like_does() {
        assert!(like("%", "") && like("10.%", "10.0.0.1") && like("a_c", "abc"));
        assert!(like("my\\_app", "my_app") && !like("my\\_app", "myxapp"));
        assert!(like("%a%b", "xxaxxb") && !like("%a%b", "xxaxx"));
    }

    #[test]
    fn a_privilege_counts_at_its_level_and_above() {
        let mut account = Account::new(AccountKey {
            user: "u".into(),
            host: "%".into(),
        });
        let need = Need::table(Privileges::SELECT, "SELECT", "Shop", "Orders");
        let error = check(&account, &need, "localhost").unwrap_err();
        assert_eq!(error.code, 1142);
        assert_eq!(
            error.message,
            "SELECT command denied to user 'u'@'localhost' for table 'Orders'"
        );
        account
            .tables
            .insert(("shop".into(), "orders".into()), Privileges::SELECT);
        assert!(check(&account, &need, "localhost").is_ok());
        account.tables.clear();
        account.databases.insert("sh%".into(), Privileges::SELECT);
        assert!(check(&account, &need, "localhost").is_ok());
    }
}
