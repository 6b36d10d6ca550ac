//! GRANT and REVOKE, at the three levels where a privilege is held.

use super::privilege::{self, Level};
use super::statements::Change;
use super::{Account, AccountKey, Privileges, access};
use crate::error::{SqlError, SqlResult};
use crate::expr::WarningLevel;
use crate::parser::{GrantStatement, UserSpec};
use crate::session::session::Session;

impl Session {
    pub(super) fn grant(&mut self, grant: &GrantStatement) -> SqlResult<()> {
        let place = self.place(grant)?;
        let mut set = privilege::from_names(&grant.privileges, place.level())?;
        if grant.grant_option {
            set = set.with(Privileges::GRANT_OPTION);
        }
        self.check_grantor(&place, set)?;
        self.check_known(&place, set)?;
        let mut change = Change::default();
        for spec in &grant.accounts {
            let mut account = self.granted_account(spec)?;
            place.update(&mut account, |held| held.with(set));
            change.put.push(account);
        }
        self.apply(&change)
    }

    pub(super) fn revoke(&mut self, grant: &GrantStatement) -> SqlResult<()> {
        let everything = is_everything(grant);
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
                self.state
                    .warn(WarningLevel::Warning, error.code, error.message);
                continue;
            } else {
                place.update(&mut account, |held| held.without(set));
            }
            change.put.push(account);
        }
        self.apply(&change)
    }

    /// Where a GRANT holds.
    fn place(&self, grant: &GrantStatement) -> SqlResult<Place> {
        let database = if grant.current_database {
            Some(self.state.require_database()?)
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

    /// A table must be there, but for the privilege to create it.
    fn check_known(&self, place: &Place, set: Privileges) -> SqlResult<()> {
        let Place::Table(database, table) = place else {
            return Ok(());
        };
        let catalog = self.instance().store.current();
        let known = catalog.view(database, table).is_some()
            || catalog.table(database, table).is_ok()
            || set.has_any(Privileges::CREATE);
        if !known {
            return Err(SqlError::no_such_table(database, table));
        }
        Ok(())
    }

    /// Who grants must hold what is granted, with GRANT OPTION.
    fn check_grantor(&self, place: &Place, set: Privileges) -> SqlResult<()> {
        let own = self.state.account();
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
                access::denied_database(&own, database, &self.state.client.host)
            }
            Place::Table(_, table) => SqlError::new(
                1142,
                "42000",
                format!(
                    "GRANT command denied to user '{}'@'{}' for table '{table}'",
                    own.key.user, self.state.client.host
                ),
            ),
        })
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
}

/// REVOKE ALL PRIVILEGES, GRANT OPTION FROM x: everything, everywhere.
fn is_everything(grant: &GrantStatement) -> bool {
    grant.database.is_none()
        && !grant.current_database
        && grant.privileges.iter().any(|name| name == "GRANT OPTION")
        && grant.privileges.iter().any(|name| name.starts_with("ALL"))
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

/// 1141.
pub(super) fn no_such_grant(key: &AccountKey) -> SqlError {
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
