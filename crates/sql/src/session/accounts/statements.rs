//! CREATE USER and its kin. Every change is one transaction on the stored accounts; the ones in
//! memory are read anew after it.

use std::sync::Arc;

use super::privilege::{self, Level};
use super::{Account, AccountKey, Accounts, Privileges, access, password, store};
use crate::error::{SqlError, SqlResult};
use crate::expr::WarningLevel;
use crate::parser::{AccountName, GrantStatement, Parsed, Special, UserSpec};
use crate::session::session::Session;
use crate::statement::Outcome;

/// Accounts to write and to delete.
#[derive(Default)]
struct Change {
    put: Vec<Account>,
    delete: Vec<AccountKey>,
}

impl Session {
    /// Runs a statement about accounts; each commits what is open first.
    pub(crate) fn run_account_statement(
        &mut self,
        special: &Special,
        _parsed: &Parsed,
    ) -> SqlResult<Outcome> {
        self.commit()?;
        let instance = Arc::clone(self.instance());
        let _guard = instance.account_changes.lock();
        match special {
            Special::Users {
                alter: false,
                if_exists_clause,
                users,
                locked,
            } => {
                self.create_users(users, *if_exists_clause, *locked)?;
            }
            Special::Users {
                alter: true,
                if_exists_clause,
                users,
                locked,
            } => {
                self.alter_users(users, *if_exists_clause, *locked)?;
            }
            Special::DropUser {
                if_exists,
                accounts,
            } => self.drop_users(accounts, *if_exists)?,
            Special::RenameUser(pairs) => self.rename_users(pairs)?,
            Special::SetPassword { account, password } => {
                self.set_password(account.as_ref(), password)?;
            }
            Special::Grant(grant) => self.grant(grant)?,
            Special::Revoke(grant) => self.revoke(grant)?,
            _ => return Err(SqlError::not_supported("this statement")),
        }
        Ok(Outcome::default())
    }

    fn accounts(&self) -> Arc<Accounts> {
        self.instance().accounts.load_full()
    }

    fn key_of(&self, name: &AccountName) -> AccountKey {
        if name.current {
            return self.facts.account().key.clone();
        }
        let host = if name.host.is_empty() {
            "%".to_string()
        } else {
            name.host.to_lowercase()
        };
        AccountKey {
            user: name.user.clone(),
            host,
        }
    }

    /// The account SHOW GRANTS is about; another's needs SELECT on mysql.
    pub(crate) fn account_named(&self, name: Option<&AccountName>) -> SqlResult<Arc<Account>> {
        let own = self.facts.account();
        let Some(name) = name.filter(|name| !name.current) else {
            return Ok(own);
        };
        let key = self.key_of(name);
        if key != own.key && !own.on_database("mysql").has_any(Privileges::SELECT) {
            return Err(access::denied_database(
                &own,
                "mysql",
                &self.facts.client.host,
            ));
        }
        self.accounts().all.get(&key).cloned().ok_or_else(|| {
            SqlError::new(
                1141,
                "42000",
                format!(
                    "There is no such grant defined for user '{}' on host '{}'",
                    key.user, key.host
                ),
            )
        })
    }

    fn require_user_admin(&self) -> SqlResult<()> {
        access::require_global(
            &self.facts.account(),
            Privileges::CREATE_USER,
            "CREATE USER",
        )
    }

    /// Who is no superuser does nothing to one: what MySQL has SYSTEM_USER for.
    fn require_equal(&self, target: &Account) -> SqlResult<()> {
        let own = self.facts.account();
        if target.key == own.key || !target.global.has(Privileges::SUPER) {
            return Ok(());
        }
        access::require_global(&own, Privileges::SUPER, "SYSTEM_USER")
    }

    fn apply(&self, change: &Change) -> SqlResult<()> {
        let instance = self.instance();
        instance.in_transaction(|txn| {
            instance.store.count_account_change(txn)?;
            change
                .delete
                .iter()
                .try_for_each(|key| store::delete(txn, key))?;
            change
                .put
                .iter()
                .try_for_each(|account| store::put(txn, account))
        })?;
        instance.reload_accounts()
    }

    fn create_users(
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
                self.facts.warn(WarningLevel::Note, 3163, text);
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

    fn alter_users(
        &mut self,
        users: &[UserSpec],
        if_exists: bool,
        locked: Option<bool>,
    ) -> SqlResult<()> {
        let own = self.facts.account().key.clone();
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

    fn note_missing(&self, key: &AccountKey) {
        let text = format!("Authorization ID {} does not exist.", key.quoted('\''));
        self.facts.warn(WarningLevel::Note, 3162, text);
    }

    fn drop_users(&mut self, names: &[AccountName], if_exists: bool) -> SqlResult<()> {
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

    fn rename_users(&mut self, pairs: &[(AccountName, AccountName)]) -> SqlResult<()> {
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

    fn set_password(&mut self, name: Option<&AccountName>, text: &str) -> SqlResult<()> {
        let own = self.facts.account().key.clone();
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

    /// Where a GRANT holds.
    fn place(&self, grant: &GrantStatement) -> SqlResult<Place> {
        let database = if grant.current_database {
            Some(self.facts.require_database()?)
        } else {
            grant.database.clone()
        };
        Ok(match (database, &grant.table) {
            (None, _) => Place::Global,
            (Some(database), None) => Place::Database(database.to_lowercase()),
            (Some(database), Some(table)) => {
                Place::Table(database.to_lowercase(), table.to_lowercase())
            }
        })
    }

    /// Who grants must hold what is granted, with GRANT OPTION.
    fn check_grantor(&self, place: &Place, set: Privileges) -> SqlResult<()> {
        let own = self.facts.account();
        let held = match place {
            Place::Global => own.global,
            Place::Database(database) => own.on_database(database),
            Place::Table(database, table) => own.on_table(database, table),
        };
        if held.has(set.with(Privileges::GRANT_OPTION)) {
            return Ok(());
        }
        Err(match place {
            Place::Global => SqlError::new(
                1045,
                "28000",
                format!(
                    "Access denied for user {} (using password: YES)",
                    own.key.quoted('\'')
                ),
            ),
            Place::Database(database) => {
                access::denied_database(&own, database, &self.facts.client.host)
            }
            Place::Table(_, table) => SqlError::new(
                1142,
                "42000",
                format!(
                    "GRANT command denied to user '{}'@'{}' for table '{table}'",
                    own.key.user, self.facts.client.host
                ),
            ),
        })
    }

    fn grant(&mut self, grant: &GrantStatement) -> SqlResult<()> {
        let place = self.place(grant)?;
        let mut set = privilege::from_names(&grant.privileges, place.level())?;
        if grant.grant_option {
            set = set.with(Privileges::GRANT_OPTION);
        }
        self.check_grantor(&place, set)?;
        if let Place::Table(database, table) = &place {
            let catalog = self.instance().store.current();
            let known = catalog.view(database, table).is_some()
                || catalog.table(database, table).is_ok()
                || set.has_any(Privileges::CREATE);
            if !known {
                return Err(SqlError::no_such_table(database, table));
            }
        }
        let mut change = Change::default();
        for spec in &grant.accounts {
            let mut account = self.granted_account(spec)?;
            place.update(&mut account, |held| held.with(set));
            change.put.push(account);
        }
        self.apply(&change)
    }

    fn granted_account(&self, spec: &UserSpec) -> SqlResult<Account> {
        let key = self.key_of(&spec.account);
        match self.accounts().all.get(&key) {
            Some(found) => Ok((**found).clone()),
            None => Err(SqlError::new(
                1410,
                "42000",
                "You are not allowed to create a user with GRANT",
            )),
        }
    }

    fn revoke(&mut self, grant: &GrantStatement) -> SqlResult<()> {
        // REVOKE ALL PRIVILEGES, GRANT OPTION FROM x: everything, everywhere.
        let everything = grant.database.is_none()
            && !grant.current_database
            && grant.privileges.iter().any(|name| name == "GRANT OPTION")
            && grant.privileges.iter().any(|name| name.starts_with("ALL"));
        let place = self.place(grant)?;
        let set = privilege::from_names(&grant.privileges, place.level())?;
        if everything {
            self.require_user_admin()?;
        } else {
            self.check_grantor(&place, set)?;
        }
        let mut change = Change::default();
        for spec in &grant.accounts {
            let key = self.key_of(&spec.account);
            let Some(found) = self.accounts().all.get(&key).cloned() else {
                if grant.if_exists {
                    self.note_missing(&key);
                    continue;
                }
                return Err(if everything {
                    cannot_revoke_all()
                } else {
                    no_such_grant(&key)
                });
            };
            self.require_equal(&found)?;
            let mut account = (*found).clone();
            if everything {
                account.global = Privileges::NONE;
                account.databases.clear();
                account.tables.clear();
            } else if let Some(error) = place.nothing_granted(&account) {
                if !grant.if_exists {
                    return Err(error);
                }
                self.facts
                    .warn(WarningLevel::Warning, error.code, error.message);
                continue;
            } else {
                place.update(&mut account, |held| held.without(set));
            }
            change.put.push(account);
        }
        self.apply(&change)
    }
}

fn no_such_grant(key: &AccountKey) -> SqlError {
    SqlError::new(
        1141,
        "42000",
        format!(
            "There is no such grant defined for user '{}' on host '{}'",
            key.user, key.host
        ),
    )
}

fn no_such_table_grant(key: &AccountKey, table: &str) -> SqlError {
    SqlError::new(
        1147,
        "42000",
        format!(
            "There is no such grant defined for user '{}' on host '{}' on table '{table}'",
            key.user, key.host
        ),
    )
}

/// 1269: REVOKE ALL PRIVILEGES, GRANT OPTION from somebody unknown.
fn cannot_revoke_all() -> SqlError {
    SqlError::new(
        1269,
        "HY000",
        "Can't revoke all privileges for one or more of the requested users",
    )
}

/// Where a privilege is held.
enum Place {
    Global,
    Database(String),
    Table(String, String),
}

impl Place {
    fn level(&self) -> Level {
        match self {
            Place::Global => Level::Global,
            Place::Database(_) => Level::Database,
            Place::Table(..) => Level::Table,
        }
    }

    /// The error of a REVOKE where the account holds nothing at all; as in MySQL, revoking one
    /// privilege where others are held is none, and neither is revoking one held nowhere on `*.*`.
    fn nothing_granted(&self, account: &Account) -> Option<SqlError> {
        match self {
            Place::Global => None,
            Place::Database(database) if account.databases.contains_key(database) => None,
            Place::Database(_) => Some(no_such_grant(&account.key)),
            Place::Table(database, table) => {
                let place = (database.clone(), table.clone());
                let none = !account.tables.contains_key(&place);
                none.then(|| no_such_table_grant(&account.key, table))
            }
        }
    }

    fn update(&self, account: &mut Account, change: impl Fn(Privileges) -> Privileges) {
        match self {
            Place::Global => account.global = change(account.global),
            Place::Database(database) => {
                let held = account.databases.entry(database.clone()).or_default();
                *held = change(*held);
            }
            Place::Table(database, table) => {
                let place = (database.clone(), table.clone());
                let held = account.tables.entry(place).or_default();
                *held = change(*held);
            }
        }
        account.databases.retain(|_, set| *set != Privileges::NONE);
        account.tables.retain(|_, set| *set != Privileges::NONE);
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
