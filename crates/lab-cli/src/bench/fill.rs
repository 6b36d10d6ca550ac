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
pub fn run(site: &SiteArgs, scale: Scale, schema: Schema) -> Result<(), Fault> {
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
        link.command(&statement)?;
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
