//! Makes the tables and their rows.

use manxdb_workloads::lobsters::{Scale, Schema, seed};

use super::link::{self, Link};
use crate::cli::SiteArgs;
use crate::fault::Fault;

/// How many INSERTs pass between two lines of progress.
const PROGRESS_EVERY: usize = 100;

/// Makes the database when it is missing, the tables, and the rows.
///
/// # Errors
/// The server's; among them that the tables are there already.
pub fn run(
    site: &SiteArgs,
    scale: Scale,
    schema: Schema,
    engine: Option<&str>,
) -> Result<(), Fault> {
    let engine = engine.map(engine_clause).transpose()?.unwrap_or_default();
    let options = link::options(&site.url)?;
    let Some(name) = options.get_db_name() else {
        return Err(Fault::Other(format!(
            "--url {}: a database is missing",
            site.url
        )));
    };
    let quoted = name.replace('`', "``");
    let mut link = Link::open(&site.url, site.password.as_deref(), false)?;
    // A collation that every server has, so that comparisons cost the same.
    link.command(&format!(
        "CREATE DATABASE IF NOT EXISTS `{quoted}` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    ))?;
    link.command(&format!("USE `{quoted}`"))?;
    for statement in schema.statements() {
        link.command(&format!("{statement}{engine}"))?;
    }
    let statements: Vec<String> = seed::statements(scale, site.seed).collect();
    for (done, statement) in statements.iter().enumerate() {
        link.command(statement)?;
        if (done + 1) % PROGRESS_EVERY == 0 {
            eprintln!("bench: {} of {} INSERTs", done + 1, statements.len());
        }
    }
    eprintln!("bench: filled {name} at scale {}", scale.0);
    Ok(())
}

/// What stands behind CREATE TABLE (…) for tables of a storage engine, for example of MyRocks.
fn engine_clause(engine: &str) -> Result<String, Fault> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if engine.is_empty() || !engine.chars().all(is_word) {
        return Err(Fault::Other(format!(
            "--engine {engine} is not the name of a storage engine: letters, digits and _, for example ROCKSDB"
        )));
    }
    Ok(format!(" ENGINE={engine}"))
}
