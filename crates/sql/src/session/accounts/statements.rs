//! Statements about accounts: what they have in common. Every change is one transaction on the
//! stored accounts; the ones in memory are read anew after it.

use std::sync::Arc;

use super::grants::no_such_grant;
use super::{Account, AccountKey, Accounts, Privileges, access, store};
use crate::error::{SqlError, SqlResult};
use crate::expr::WarningLevel;
use crate::parser::{AccountName, Special};
use crate::session::session::Session;
use crate::statement::StatementOutcome;

/// Accounts to write and to delete.
#[derive(Default)]
pub(super) struct Change {
    pub(super) put: Vec<Account>,
    pub(super) delete: Vec<AccountKey>,
}

impl Session {
    /// Runs a statement about accounts; each commits what is open first.
    pub(crate) fn run_account_statement(
        &mut self,
        special: &Special,
    ) -> SqlResult<StatementOutcome> {
        self.commit()?;
        let instance = Arc::clone(self.instance());
        let _guard = instance.account_changes.lock();
        match special {
            Special::Users {
                alter: false,
                if_exists_clause,
                users,
                locked,
            } => self.create_users(users, *if_exists_clause, *locked)?,
            Special::Users {
                alter: true,
                if_exists_clause,
                users,
                locked,
            } => self.alter_users(users, *if_exists_clause, *locked)?,
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
        Ok(StatementOutcome::default())
    }

    pub(super) fn accounts(&self) -> Arc<Accounts> {
        self.instance().accounts.load_full()
    }

    /// Whom a statement names; without a host, the one of every host.
    pub(super) fn key_of(&self, name: &AccountName) -> AccountKey {
        if name.current {
            return self.state.account().key.clone();
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
        let own = self.state.account();
        let Some(name) = name.filter(|name| !name.current) else {
            return Ok(own);
        };
        let key = self.key_of(name);
        if key != own.key && !own.on_database("mysql").has_any(Privileges::SELECT) {
            return Err(access::denied_database(
                &own,
                "mysql",
                &self.state.client.host,
            ));
        }
        let accounts = self.accounts();
        let found = accounts.all.get(&key).cloned();
        found.ok_or_else(|| no_such_grant(&key))
    }

    pub(super) fn require_user_admin(&self) -> SqlResult<()> {
        access::require_global(
            &self.state.account(),
            Privileges::CREATE_USER,
            "CREATE USER",
        )
    }

    /// Who is no superuser does nothing to one: what MySQL has SYSTEM_USER for.
    pub(super) fn require_equal(&self, target: &Account) -> SqlResult<()> {
        let own = self.state.account();
        if target.key == own.key || !target.global.has(Privileges::SUPER) {
            return Ok(());
        }
        access::require_global(&own, Privileges::SUPER, "SYSTEM_USER")
    }

    pub(super) fn apply(&self, change: &Change) -> SqlResult<()> {
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

    pub(super) fn note_missing(&self, key: &AccountKey) {
        let text = format!("Authorization ID {} does not exist.", key.quoted('\''));
        self.state.warn(WarningLevel::Note, 3162, text);
    }
}
