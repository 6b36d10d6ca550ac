//! `manxdb bench`: load on a server, a cluster, the memory of a rack, or RocksDB itself.
//!
//! What is asked is in the crate `manxdb-workloads`; here are the connections, the threads and
//! the clock.

pub mod checkout;
pub mod cluster;
mod compare;
mod drive;
mod fill;
pub mod fillrandom;
pub mod histogram;
mod link;
mod measure;
mod memories;
pub mod olap;
mod processes;
pub mod recovery;
mod report;
mod sql_tpcc;
pub mod warehouses;

use std::process::ExitCode;

use manxdb_workloads::lobsters::{Kind, Scale, Schema};

use crate::cli::{LobstersCommand, SiteArgs};
use crate::fault::Fault;
use link::Link;
pub use measure::{Times, cpu_of};

/// Largest scale: keeps every id within INT and the rows within memory.
const SCALE_MAX: f64 = 100.0;

/// Runs a command on Lobsters.
///
/// # Errors
/// A server that does not answer or refuses a statement of the set-up; a wrong argument.
pub fn lobsters(command: &LobstersCommand) -> Result<ExitCode, Fault> {
    match command {
        LobstersCommand::Fill {
            site,
            annotated,
            engine,
            views,
            inflight,
        } => {
            let schema = if *annotated {
                Schema::Annotated
            } else {
                Schema::Plain
            };
            let tables = fill::Tables {
                schema,
                engine: engine.as_deref(),
                views: *views,
            };
            fill::run(site, scale(site)?, &tables, *inflight)?;
        }
        LobstersCommand::Run(args) => {
            let only = args.only.as_deref().map(kind).transpose()?;
            let outcome = drive::run(args, scale(&args.site)?, only)?;
            println!(
                "{}",
                if args.json {
                    report::json(&outcome, args.details)
                } else {
                    report::tables(&outcome)
                }
            );
        }
        LobstersCommand::Compare {
            site,
            against,
            pages,
            notifications,
        } => {
            let pages = (*pages, *notifications);
            return compare::run(site, against, pages, scale(site)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn scale(site: &SiteArgs) -> Result<Scale, Fault> {
    if site.scale > 0.0 && site.scale <= SCALE_MAX {
        return Ok(Scale(site.scale));
    }
    Err(Fault::Other(format!(
        "--scale {} is not above 0 and at most {SCALE_MAX}",
        site.scale
    )))
}

fn kind(name: &str) -> Result<Kind, Fault> {
    let names = Kind::ALL.map(Kind::name);
    let found = Kind::ALL
        .into_iter()
        .find(|kind| kind.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        Fault::Other(format!(
            "no kind of page is called '{name}': have {}",
            names.join(", ")
        ))
    })
}
