//! `manxdb bench tpcc --mysql`: TPC-C as programs for MySQL run it, on any MySQL server.
//!
//! | part | file |
//! |---|---|
//! | the nine tables | [`schema`] |
//! | the rows they begin with | [`fill`] |
//! | the five transactions | [`terminal`] |
//! | the terminals, and what came of them | [`drive`] |
//! | the conditions of consistency | [`check`] |

mod check;
mod drive;
mod fill;
mod report;
mod schema;
mod terminal;

use std::process::ExitCode;

use mysql::prelude::Queryable as _;
use mysql::{Conn, OptsBuilder};

use crate::cli::{TpccIsolation, TpccRun, TpccServer};
use crate::fault::Fault;

/// Port of a server that is named without one.
const PORT: u16 = 3306;
/// Most warehouses: their rows must fit a test machine.
const WAREHOUSES_MAX: u32 = 1_000;
/// Most threads.
const THREADS_MAX: u32 = 1_024;

/// Fills, runs and checks.
///
/// # Errors
/// A wrong argument, a server that does not answer, tables that were not filled. Workers that end
/// and conditions that do not hold are the exit code's.
pub fn run(args: &TpccRun, address: &str) -> Result<ExitCode, Fault> {
    let server = &args.server;
    within("--warehouses", server.warehouses, WAREHOUSES_MAX)?;
    within("--threads", server.threads, THREADS_MAX)?;
    let mut conn = database(server, address)?;
    let scale = server.tpcc_scale.scale();
    if !server.no_fill {
        fill::run(&mut conn, server.warehouses, scale, args.load.seed)?;
    }
    let outcome = drive::run(args, scale, || connect(server, address))?;
    let wrong = check::run(&mut conn, scale.orders_per_district)?;
    if let Some(path) = &args.load.json {
        let text = format!("{:#}\n", report::json(server, &outcome, &wrong));
        std::fs::write(path, text).map_err(|error| Fault::io(path.display().to_string(), error))?;
    }
    println!("{}", report::text(server, &outcome, &wrong));
    let is_good = wrong.is_empty() && outcome.ended == 0;
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn within(flag: &str, value: u32, most: u32) -> Result<(), Fault> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Fault::Other(format!("{flag} is 1 to {most}")))
}

/// A connection, with the database made when it is missing.
fn database(server: &TpccServer, address: &str) -> Result<Conn, Fault> {
    let mut conn = login(server, address, None)?;
    let name = server.database.replace('`', "``");
    conn.query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`"))?;
    conn.query_drop(format!("USE `{name}`"))?;
    Ok(conn)
}

/// A terminal's connection, at the level asked for.
fn connect(server: &TpccServer, address: &str) -> Result<Conn, Fault> {
    let mut conn = login(server, address, Some(&server.database))?;
    let level = match server.isolation {
        TpccIsolation::Default => return Ok(conn),
        TpccIsolation::ReadCommitted => "READ COMMITTED",
        TpccIsolation::RepeatableRead => "REPEATABLE READ",
        TpccIsolation::Serializable => "SERIALIZABLE",
    };
    conn.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
    Ok(conn)
}

fn login(server: &TpccServer, address: &str, database: Option<&str>) -> Result<Conn, Fault> {
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) => {
            let port = port
                .parse()
                .map_err(|_| Fault::Other(format!("--mysql {address}: '{port}' is no port")))?;
            (host, port)
        }
        None => (address, PORT),
    };
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(port)
        .user(Some(server.user.as_str()))
        .pass(server.password.as_deref())
        .db_name(database)
        .prefer_socket(false)
        .stmt_cache_size(256);
    Ok(Conn::new(options)?)
}
