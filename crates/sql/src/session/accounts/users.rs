//! CREATE USER, ALTER USER, DROP USER, RENAME USER and SET PASSWORD.

use std::sync::Arc;

use super::statements::Change;
use super::{Account, AccountKey, password};
use crate::error::{SqlError, SqlResult};
use crate::expr::WarningLevel;
use crate::parser::{AccountName, UserSpec};
use crate::session::session::Session;

impl Session {
    pub(super) fn create_users(
        &mut self,
        users: &[UserSpec],
        if_not_exists: bool,
        locked: Option<bool>,
    ) -> SqlResult<()> {
        self.require_user_admin()?;
        let accounts = self.accounts();
        let (mut change, mut failed) = (Change::default(), Vec::new());
        for spec in users {
            let key = self.key_of(&spec.account);
            let exists = accounts.all.contains_key(&key);
            if exists && if_not_exists {
                let text = format!("Authorization ID {} already exists.", key.quoted('\''));
                self.state.warn(WarningLevel::Note, 3163, text);
            } else if exists || change.put.iter().any(|account| account.key == key) {
                failed.push(key.quoted('\''));
            } else {
                let mut account = Account::new(key);
                account.locked = locked.unwrap_or(false);
                authenticate(&mut account, spec)?;
                change.put.push(account);
            }
        }
        fail("CREATE USER", &failed)?;
        self.apply(&change)
    }

    pub(super) fn alter_users(
        &mut self,
        users: &[UserSpec],
        if_exists: bool,
        locked: Option<bool>,
    ) -> SqlResult<()> {
        let own = self.state.account().key.clone();
        if locked.is_some() || users.iter().any(|spec| self.key_of(&spec.account) != own) {
            self.require_user_admin()?;
        }
        let accounts = self.accounts();
        let (mut change, mut failed) = (Change::default(), Vec::new());
        for spec in users {
            let key = self.key_of(&spec.account);
            match accounts.all.get(&key) {
                Some(found) => {
                    self.require_equal(found)?;
                    let mut account = (**found).clone();
                    account.locked = locked.unwrap_or(account.locked);
                    authenticate(&mut account, spec)?;
                    change.put.push(account);
                }
                None if if_exists => self.note_missing(&key),
                None => failed.push(key.quoted('\'')),
            }
        }
        fail("ALTER USER", &failed)?;
        self.apply(&change)
    }

    pub(super) fn drop_users(&mut self, names: &[AccountName], if_exists: bool) -> SqlResult<()> {
        self.require_user_admin()?;
        let accounts = self.accounts();
        let (mut change, mut failed) = (Change::default(), Vec::new());
        for name in names {
            let key = self.key_of(name);
            if let Some(found) = accounts.all.get(&key) {
                self.require_equal(found)?;
                change.delete.push(key);
            } else if if_exists {
                self.note_missing(&key);
            } else {
                failed.push(key.quoted('\''));
            }
        }
        fail("DROP USER", &failed)?;
        self.apply(&change)
    }

    pub(super) fn rename_users(&mut self, pairs: &[(AccountName, AccountName)]) -> SqlResult<()> {
        self.require_user_admin()?;
        let before = self.accounts();
        // One after the other, so that names can be swapped by way of a third.
        let mut accounts = before.all.clone();
        let mut failed = Vec::new();
        for (old, new) in pairs {
            let (old, new) = (self.key_of(old), self.key_of(new));
            match accounts.remove(&old) {
                Some(found) if !accounts.contains_key(&new) => {
                    self.require_equal(&found)?;
                    let renamed = Account {
                        key: new.clone(),
                        ..(*found).clone()
                    };
                    accounts.insert(new, Arc::new(renamed));
                }
                found => {
                    accounts.extend(found.map(|found| (old.clone(), found)));
                    failed.push(old.quoted('\''));
                }
            }
        }
        fail("RENAME USER", &failed)?;
        let changed = |key: &&AccountKey| accounts.get(*key) != before.all.get(*key);
        self.apply(&Change {
            delete: before.all.keys().filter(changed).cloned().collect(),
            put: accounts
                .iter()
                .filter(|(key, _)| changed(key))
                .map(|(_, account)| (**account).clone())
                .collect(),
        })
    }

    pub(super) fn set_password(&mut self, name: Option<&AccountName>, text: &str) -> SqlResult<()> {
        let own = self.state.account().key.clone();
        let key = name.map_or_else(|| own.clone(), |name| self.key_of(name));
        if key != own {
            self.require_user_admin()?;
        }
        let accounts = self.accounts();
        let found = accounts.all.get(&key).ok_or_else(|| {
            SqlError::new(
                1133,
                "42000",
                "Can't find any matching row in the user table",
            )
        })?;
        self.require_equal(found)?;
        let mut account = (**found).clone();
        account.verifier = password::verifier(&account.plugin, text);
        self.apply(&Change {
            put: vec![account],
            ..Change::default()
        })
    }
}

/// 1396 naming all that failed; nothing was done.
fn fail(operation: &str, failed: &[String]) -> SqlResult<()> {
    if failed.is_empty() {
        return Ok(());
    }
    Err(SqlError::new(
        1396,
        "HY000",
        format!("Operation {operation} failed for {}", failed.join(",")),
    ))
}

/// Applies IDENTIFIED to an account.
fn authenticate(account: &mut Account, spec: &UserSpec) -> SqlResult<()> {
    if let Some(plugin) = &spec.plugin {
        let plugin = plugin.to_lowercase();
        if plugin != password::DEFAULT_PLUGIN && plugin != password::NATIVE_PLUGIN {
            return Err(SqlError::new(
                1524,
                "HY000",
                format!("Plugin '{plugin}' is not loaded"),
            ));
        }
        account.plugin = plugin;
        account.verifier = Vec::new();
    }
    if let Some(text) = &spec.password {
        account.verifier = password::verifier(&account.plugin, text);
    }
    if let Some(hash) = &spec.verifier {
        account.verifier = password::from_hash(&account.plugin, hash)?;
    }
    Ok(())
}
