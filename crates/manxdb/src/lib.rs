//! ManxDB, the database with short tails: a server and the other roles of the program `manxdb`.
//!
//! | question | answered in |
//! |---|---|
//! | what can be asked on the command line | [`cli`] |
//! | which settings hold, and why | [`config`] |
//! | how a server is put together and taken apart | [`serve`] |
//! | clients of a running server | `sql`, `backup`, over `mysql_client` |
//! | a node of a commit path over several regions, or of a cluster that replicates Redis's keys | [`cluster`]; as a process: [`roles`] |
//! | a witness, in a process or in the data plane | [`witness`] |
//! | a process that holds rows in memory for servers | `memory` |
//! | whose the rows of a schema are, without a server | `compliance` |
//! | the compaction service's roles | `compactor` |
//! | which etcd, for services that keep their state there | `etcd` |
//! | log, signals, listeners, file descriptors, randomness | [`process`] |
//! | which commands another program carries out | `laboratory` |
//!
//! Benchmarks, experiments and simulations are not here: `manxdb-lab` (crates/lab-cli) uses this
//! library, never the other way round. Start reading at [`run`].
#![forbid(unsafe_code)]
// The binary is where the ban on clocks, files and sockets ends, and it talks to people.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod out;

mod backup;
pub mod cli;
pub mod cluster;
mod compactor;
mod compliance;
pub mod config;
mod etcd;
pub mod fault;
mod laboratory;
mod lock;
mod memory;
mod mysql_client;
mod notify;
pub mod process;
mod redis;
pub mod roles;
pub mod serve;
mod sql;
pub mod witness;

#[doc(hidden)]
pub use out::print as print_out;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use roles::CurpRole;

/// Runs the program with the arguments of this process.
pub fn run() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let done = if laboratory::is_asked(&arguments) {
        Err(laboratory::run())
    } else {
        let matches = cli::Cli::command().get_matches();
        match cli::Cli::from_arg_matches(&matches) {
            Ok(cli) => carry_out(cli, &matches),
            Err(error) => error.exit(),
        }
    };
    match done {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("manxdb: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(cli: cli::Cli, matches: &clap::ArgMatches) -> Result<ExitCode, fault::Fault> {
    let settings_matches = deepest(matches);
    match cli.command {
        cli::Command::Serve(args) => serve::run(&args, settings_matches),
        cli::Command::Sql(args) => sql::run(&args),
        cli::Command::Backup(command) => backup::run(&command),
        cli::Command::Compliance(command) => compliance::run(&command),
        cli::Command::Redis(command) => redis::run(&command),
        cli::Command::Bench | cli::Command::Lab | cli::Command::Sim => Err(laboratory::run()),
        cli::Command::Cluster(command) => roles::run_node(&command),
        cli::Command::Coordinator(args) => roles::run_coordinator(&args),
        cli::Command::Replica(args) => roles::run(CurpRole::Replica, &args),
        cli::Command::Witness(args) => roles::run_witness(&args),
        cli::Command::Proxy(args) => roles::run_proxy(&args),
        cli::Command::Compactor(command) => compactor::run(&command),
        cli::Command::Memory(args) => memory::run(&args, settings_matches),
        cli::Command::MemoryArchiver(args) => memory::keep(&args),
        cli::Command::Config(cli::ConfigCommand::Check { config }) => {
            config::check(config.as_deref())
        }
        cli::Command::Config(cli::ConfigCommand::Explain(args)) => {
            config::explain(&args, settings_matches)
        }
        cli::Command::Version => {
            println!(
                "manxdb {} ({})",
                env!("CARGO_PKG_VERSION"),
                manxdb_gateway::mysql::SERVER_VERSION
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The matches of the innermost subcommand, where its flags are.
fn deepest(matches: &clap::ArgMatches) -> &clap::ArgMatches {
    let mut at = matches;
    while let Some((_, inner)) = at.subcommand() {
        at = inner;
    }
    at
}
