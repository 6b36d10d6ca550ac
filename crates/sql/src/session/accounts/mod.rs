//! Who may log in, and what they may do.
//!
//! An account is `user@host-pattern` with a verifier and privileges at three levels: everywhere,
//! on a database, on a table. [`record`] is what is stored, [`privilege`] the names, [`store`]
//! reads and writes records and picks the account of a login, [`access`] answers "may this
//! session?", [`users`] runs CREATE USER and its kin, [`grants`] GRANT and REVOKE, on what
//! [`statements`] gives both; [`show`] writes SHOW GRANTS.

pub(crate) mod access;
mod grants;
pub(crate) mod needs;
pub(crate) mod password;
pub(crate) mod privilege;
mod record;
pub(crate) mod show;
mod statements;
pub(crate) mod store;
mod users;

pub(crate) use access::Need;
pub(crate) use privilege::Privileges;
pub(crate) use record::{Account, AccountKey};
pub(crate) use store::Accounts;
