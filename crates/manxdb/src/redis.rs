//! `manxdb redis check`: the rows of Redis keys in a data directory that no server uses.

use std::process::ExitCode;

use manxdb_gateway::redis::check_rows;
use manxdb_storage::{Options, RocksEngine};

use crate::cli::RedisCommand;
use crate::fault::Fault;

/// Runs one command.
///
/// # Errors
/// The directory is not there, or in use, or its store cannot be read.
pub fn run(command: &RedisCommand) -> Result<ExitCode, Fault> {
    let RedisCommand::Check { data } = command;
    if !data.exists() {
        let data = data.display();
        return Err(Fault::Other(format!("there is no data directory {data}")));
    }
    let engine = RocksEngine::open(data, &Options::default())?;
    let report = check_rows(&engine)?;
    for finding in &report.findings {
        println!("{finding}");
    }
    println!(
        "{} keys, {} rows of elements: {} findings",
        report.keys,
        report.elements,
        report.findings.len()
    );
    Ok(ExitCode::from(u8::from(!report.findings.is_empty())))
}
