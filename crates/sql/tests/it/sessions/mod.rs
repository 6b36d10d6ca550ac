//! What a session promises: transactions, autocommit, savepoints, retries, variables, accounts.

mod accounts;
mod auto_analyze;
mod limits;
mod locks;
mod prepared;
mod spill;
mod statements;
mod transactions;

/// A database with one table of two rows, in use.
fn shop(client: &mut manxdb_fixtures::sql::Client) {
    client.run("CREATE DATABASE shop");
    client.run("USE shop");
    client.run("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    client.run("INSERT INTO t VALUES (1, 10), (2, 20)");
}
