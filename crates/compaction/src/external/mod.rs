//! Databases of other programs, of which the service knows only their files.
//!
//! | question | answered in |
//! |---|---|
//! | one service for all databases that a program opens | [`external_dbs`] |
//! | what the service reads of one database | [`external_db`] |
//! | whether a worker can compact a column family | [`compatibility`] |

mod compatibility;
mod external_db;
mod external_dbs;

pub use external_dbs::{ExternalDbOptions, ExternalDbs};
