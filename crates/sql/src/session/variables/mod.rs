//! System variables: what exists, what it may hold, who holds which value.
//!
//! [`definition`] is the table of them; [`store`] holds values, global and per session;
//! [`settings`] is the typed form that execution reads; [`charset`] knows character sets and
//! collations; [`sql_mode`] reads and writes the mode list.

pub(crate) mod charset;
mod check;
mod definition;
mod settings;
pub(crate) mod sql_mode;
mod store;
mod table;

pub(crate) use check::check;
pub(crate) use definition::{Scope, find, type_of};
pub use settings::FrontendTimeouts;
pub(crate) use settings::{Settings, isolation, isolation_name};
pub(crate) use store::{Values, shown};
pub(crate) use table::DEFINITIONS;
