//! Materialized views: a query that a view answers is answered as without it, at every snapshot,
//! whatever commits, evicts or changes the tables.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod automatic;
mod joins;
mod large;
mod paths;
mod random;
mod refused;
mod several;
mod statements;
mod top;

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance};
use manxdb_sql::session::Instance;

pub const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE TABLE item (id INT PRIMARY KEY, owner INT, kind INT NOT NULL, price DECIMAL(8,2), \
        name VARCHAR(20), made DATETIME, KEY by_owner (owner))";

/// An instance with [`SCHEMA`] and a session on it.
pub fn fresh() -> (Arc<Instance>, Client) {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    (instance, client)
}

/// Hits and misses of a view.
pub fn counts(client: &mut Client, view: &str) -> (u64, u64) {
    let rows = client.rows("SHOW MATERIALIZED VIEWS");
    let row = rows.iter().find(|row| row[1] == view).expect("the view");
    (row[5].parse().unwrap(), row[6].parse().unwrap())
}

/// A query and its rows, in order of their text.
pub fn sorted(client: &mut Client, query: &str) -> Vec<Vec<String>> {
    let mut rows = client.rows(query);
    rows.sort();
    rows
}
