//! What the console shows of people and of requests about them, to accounts that have the privilege GDPR.
//!
//! | file | shows |
//! |---|---|
//! | [`tree`] | whose a person's rows are through which links, as a tree: counts, and keys of rows |
//! | [`certificates`] | certificates of requests, each with whether it verifies |
//!
//! The caller has checked who asks, by name and password. What the account may see is asked here, as for the
//! statements that answer the same.

pub(super) mod certificates;
pub(super) mod tree;

use std::sync::Arc;

use crate::catalog::{Catalog, Table};
use crate::error::{SqlError, SqlResult};
use crate::session::accounts::{Privileges, access};
use crate::session::instance::Instance;
use crate::session::session::Session;

/// Whether an account may see people of a database.
fn may_see(session: &Session, database: &str) -> bool {
    let need = access::Need::database(Privileges::GDPR, "GDPR", database);
    let account = session.state.account();
    access::check(&account, &need, &session.state.client.host).is_ok()
}

/// Tables of people that an account may see, by `database.table`.
fn kinds_of<'a>(session: &Session, catalog: &'a Catalog) -> Vec<(String, &'a Arc<Table>)> {
    let databases = catalog.stored().databases.values();
    let tables = databases.flat_map(|database| database.tables.values());
    let mut kinds: Vec<_> = tables
        .filter(|table| table.data_subject && may_see(session, &table.database))
        .map(|table| (format!("{}.{}", table.database, table.name), table))
        .collect();
    kinds.sort_by(|one, other| one.0.cmp(&other.0));
    kinds
}

/// 1044: there is nothing that the account may see.
fn denied(session: &Session) -> SqlError {
    let account = session.state.account();
    let text = format!(
        "Account {} may not see data of people: it needs the privilege GDPR, on the server or a database",
        account.key.quoted('\'')
    );
    SqlError::new(1044, "42000", text)
}

impl Instance {
    /// A session for one question of the account `identity`.
    ///
    /// # Errors
    /// 1044 when the account may see nobody's data.
    fn asked_by(self: &Arc<Self>, identity: &str) -> SqlResult<Session> {
        let session = self.own_session(identity);
        let databases = self.store.current();
        let mut databases = databases.stored().databases.values();
        let holds = databases.any(|database| may_see(&session, &database.name));
        let account = session.state.account();
        if holds || account.global.has_any(Privileges::GDPR) {
            return Ok(session);
        }
        Err(denied(&session))
    }
}
