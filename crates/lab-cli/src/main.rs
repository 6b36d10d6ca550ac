//! The laboratory: loads on servers and clusters, clusters on one machine, experiments and
//! simulations, as the program `manxdb-lab`.
//!
//! `cli` says what can be asked; `bench` are clients of running servers; `cluster` starts and watches
//! nodes; `sim` runs a cluster in virtual time, `lab` many. What is measured is a library of its own
//! (`manxdb-lab`, in crates/lab), or the server (`manxdb`), which knows nothing of this program.
#![forbid(unsafe_code)]
// The binary is where the ban on clocks, files and sockets ends, and it talks to people.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

#[macro_use(print, println)]
extern crate manxdb;

mod bench;
mod cli;
mod cluster;
mod fault;
mod lab;
mod sim;

use std::process::ExitCode;

use clap::Parser as _;

/// A statement allocates some dozens of small pieces and frees most of them on the same thread,
/// often others' too: the system's allocator spends a quarter of a statement's time on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("manxdb: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli) -> Result<ExitCode, fault::Fault> {
    match cli.command {
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
        cli::Command::Lab(command) => lab::run(&command),
        cli::Command::Sim(args) => sim::run(&args),
    }
}
