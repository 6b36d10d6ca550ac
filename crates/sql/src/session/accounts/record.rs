//! An account as stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::privilege::Privileges;

/// `user@host`: users compare with case, hosts are lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct AccountKey {
    /// User; empty matches any.
    pub user: String,
    /// Host pattern with `%` and `_`.
    pub host: String,
}

impl AccountKey {
    /// `user@host`, as `CURRENT_USER()` writes it.
    pub(crate) fn identity(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }

    /// `'user'@'host'`, as errors and SHOW GRANTS write it.
    pub(crate) fn quoted(&self, quote: char) -> String {
        let twice = format!("{quote}{quote}");
        let user = self.user.replace(quote, &twice);
        let host = self.host.replace(quote, &twice);
        format!("{quote}{user}{quote}@{quote}{host}{quote}")
    }
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Who.
    pub key: AccountKey,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// What proves the password; empty for none.
    pub verifier: Vec<u8>,
    /// ACCOUNT LOCK.
    pub locked: bool,
    /// Privileges everywhere.
    pub global: Privileges,
    /// Privileges by database, lower case, possibly a pattern.
    pub databases: BTreeMap<String, Privileges>,
    /// Privileges by (database, table), lower case.
    pub tables: BTreeMap<(String, String), Privileges>,
}

impl Account {
    /// An account without password or privileges.
    pub(crate) fn new(key: AccountKey) -> Self {
        Self {
            key,
            plugin: super::password::DEFAULT_PLUGIN.to_string(),
            verifier: Vec::new(),
            locked: false,
            global: Privileges::NONE,
            databases: BTreeMap::new(),
            tables: BTreeMap::new(),
        }
    }

    /// What holds on a database: everywhere plus there.
    pub(crate) fn on_database(&self, database: &str) -> Privileges {
        let database = database.to_lowercase();
        let there = self
            .databases
            .iter()
            .filter(|(pattern, _)| **pattern == database || super::access::like(pattern, &database))
            .fold(Privileges::NONE, |sum, (_, one)| sum.with(*one));
        self.global.with(there)
    }

    /// What holds on a table: everywhere, its database, and there.
    pub(crate) fn on_table(&self, database: &str, table: &str) -> Privileges {
        let there = self
            .tables
            .get(&(database.to_lowercase(), table.to_lowercase()))
            .copied()
            .unwrap_or_default();
        self.on_database(database).with(there)
    }

    /// Whether anything in the database is visible.
    pub(crate) fn sees_database(&self, database: &str) -> bool {
        let database = database.to_lowercase();
        self.on_database(&database) != Privileges::NONE
            || self
                .tables
                .iter()
                .any(|((name, _), set)| *name == database && set.0 != 0)
    }
}
