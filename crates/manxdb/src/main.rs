//! ManxDB, the database with short tails: one binary, all roles.
//!
//! `cli` says what can be asked, `config` which settings hold, `serve` wires the rooms
//! together; `sql`, `backup` and `bench` are clients of a running server; `cluster` runs nodes of
//! one of the commit paths over several regions; `memory` holds rows for servers; `sim` runs one in virtual time, `lab` many.
#![forbid(unsafe_code)]
// The binary is where the ban on clocks, files and sockets ends, and it talks to people.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod out;

mod backup;
mod bench;
mod cli;
mod cluster;
mod compactor;
mod config;
mod fault;
mod lab;
mod lock;
mod memory;
mod notify;
mod serve;
mod sim;
mod sql;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

/// A statement allocates some dozens of small pieces and frees most of them on the same thread,
/// often others' too: the system's allocator spends a quarter of a statement's time on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = cli::Cli::command().get_matches();
    let cli = match cli::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match run(cli, &matches) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("manxdb: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli, matches: &clap::ArgMatches) -> Result<ExitCode, fault::Fault> {
    let settings_matches = deepest(matches);
    match cli.command {
        cli::Command::Serve(args) => serve::run(&args, settings_matches),
        cli::Command::Sql(args) => sql::run(&args),
        cli::Command::Backup(command) => backup::run(&command),
        cli::Command::Bench(cli::BenchCommand::Lobsters(command)) => bench::lobsters(&command),
        cli::Command::Bench(cli::BenchCommand::Append(args)) => bench::cluster::append(&args),
        cli::Command::Bench(cli::BenchCommand::Tpcc(args)) => bench::cluster::tpcc(&args),
        cli::Command::Bench(cli::BenchCommand::Payment(args)) => bench::cluster::payment(&args),
        cli::Command::Bench(cli::BenchCommand::Tpca(args)) => bench::cluster::tpca(&args),
        cli::Command::Bench(cli::BenchCommand::Fillrandom(args)) => bench::fillrandom::run(&args),
        cli::Command::Bench(cli::BenchCommand::Checkout(args)) => bench::checkout::run(&args),
        cli::Command::Bench(cli::BenchCommand::CheckoutPart(args)) => bench::checkout::part(&args),
        cli::Command::Bench(cli::BenchCommand::RackTpcc(args)) => bench::warehouses::run(&args),
        cli::Command::Bench(cli::BenchCommand::RackTpccPart(args)) => {
            bench::warehouses::part(&args)
        }
        cli::Command::Bench(cli::BenchCommand::RackRecovery(args)) => bench::recovery::run(&args),
        cli::Command::Bench(cli::BenchCommand::RackRecoveryPart(args)) => {
            bench::recovery::part(&args)
        }
        cli::Command::Bench(cli::BenchCommand::Olap(args)) => bench::olap::run(&args),
        cli::Command::Bench(cli::BenchCommand::OlapNode(args)) => bench::olap::node(&args),
        cli::Command::Cluster(command) => cluster::run(&command),
        cli::Command::Compactor(command) => compactor::run(&command),
        cli::Command::Lab(command) => lab::run(&command),
        cli::Command::Memory(args) => memory::run(&args, settings_matches),
        cli::Command::MemoryKeeper(args) => memory::keep(&args),
        cli::Command::Sim(args) => sim::run(&args),
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
