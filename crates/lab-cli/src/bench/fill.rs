//! Makes the tables and their rows.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use manxdb_workloads::lobsters::{Scale, Schema, seed, views};

use super::link::{self, Link};
use crate::cli::SiteArgs;
use crate::fault::Fault;

/// How many INSERTs pass between two lines of progress.
const PROGRESS_EVERY: usize = 100;

/// What is made beside the rows.
pub struct Tables<'a> {
    /// With the owners of rows or without.
    pub schema: Schema,
    /// Their storage engine; the server's own if not given.
    pub engine: Option<&'a str>,
    /// Whether there are materialized views over them, and the indexes that those need.
    pub views: bool,
}

/// Makes the database when it is missing, the tables, and the rows, on so many connections at once.
///
/// # Errors
/// The server's; among them that the tables are there already.
pub fn run(site: &SiteArgs, scale: Scale, tables: &Tables<'_>, inflight: u16) -> Result<(), Fault> {
    let engine = tables
        .engine
        .map(engine_clause)
        .transpose()?
        .unwrap_or_default();
    let options = link::options(&site.url)?;
    let Some(name) = options.get_db_name() else {
        return Err(Fault::Other(format!(
            "--url {}: a database is missing",
            site.url
        )));
    };
    let quoted = name.replace('`', "``");
    let password = site.password.as_deref();
    let mut link = Link::open(&site.url, password, false)?;
    // A collation that every server has, so that comparisons cost the same.
    link.command(&format!(
        "CREATE DATABASE IF NOT EXISTS `{quoted}` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    ))?;
    link.command(&format!("USE `{quoted}`"))?;
    for statement in tables.schema.statements() {
        link.command(&format!("{statement}{engine}"))?;
    }
    if tables.views {
        for index in views::indexes() {
            link.command(index)?;
        }
    }
    let links: Result<Vec<Link>, Fault> = (1..inflight.max(1))
        .map(|_| Link::open(&site.url, password, true))
        .collect();
    let mut links = links?;
    links.push(link);
    let statements: Vec<String> = seed::statements(scale, site.seed).collect();
    send(&mut links, &statements)?;
    if let Some(link) = links.first_mut().filter(|_| tables.views) {
        for view in views::statements() {
            link.command(&view)?;
        }
    }
    eprintln!("bench: filled {name} at scale {}", scale.0);
    Ok(())
}

/// Sends INSERTs, each on a connection that is free: those of a table when all of the table before it
/// are done, as rows may name rows of earlier tables.
fn send(links: &mut [Link], statements: &[String]) -> Result<(), Fault> {
    let done = AtomicUsize::new(0);
    for of_table in statements.chunk_by(|one, other| table(one) == table(other)) {
        let next = AtomicUsize::new(0);
        let work = |link: &mut Link| -> mysql::Result<()> {
            while let Some(statement) = of_table.get(next.fetch_add(1, Ordering::Relaxed)) {
                link.command(statement)?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if done.is_multiple_of(PROGRESS_EVERY) {
                    eprintln!("bench: {done} of {} INSERTs", statements.len());
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = links
                .iter_mut()
                .map(|link| scope.spawn(move || work(link)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                let done = worker.join();
                done.unwrap_or_else(|_| Err(io::Error::other("a thread panicked").into()))
            })
        })?;
    }
    Ok(())
}

/// What an INSERT begins with, up to the names of columns: all of one table are alike in it.
fn table(statement: &str) -> &str {
    statement.split('(').next().unwrap_or_default()
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
