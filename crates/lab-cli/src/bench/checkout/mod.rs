//! `manxdb bench checkout`: customers in a rack, on one-sided memory or on what it is compared
//! with.
//!
//! Each server and each client is a process of its own, started here. They meet in a directory,
//! where servers leave their sockets or say their ports. Clients begin together when they are told
//! to, and say what they have done; then the books are checked.

mod meet;
mod part;
mod run;

use std::process::ExitCode;

use serde_json::json;

pub use self::part::part;
pub use self::run::measure;
pub use super::processes::Outcome;
use crate::cli::{CheckoutRun, CheckoutShape, System};
use crate::fault::Fault;

/// Runs processes, and says what came of it.
///
/// # Errors
/// Sizes that cannot be, processes that fail, books that are wrong.
pub fn run(args: &CheckoutRun) -> Result<ExitCode, Fault> {
    let outcome = measure(&args.shape).map_err(Fault::Other)?;
    if args.json {
        println!("{:#}", json(&args.shape, &outcome));
    } else {
        println!("{}", text(&args.shape, &outcome));
    }
    Ok(ExitCode::SUCCESS)
}

fn json(shape: &CheckoutShape, outcome: &Outcome) -> serde_json::Value {
    json!({
        "system": name(shape.system),
        "clients": shape.clients,
        "servers": shape.servers,
        "products": shape.products,
        "hot": shape.hot,
        "logs": shape.logs,
        "seconds": outcome.seconds,
        "committed": outcome.committed,
        "aborted": outcome.aborted,
        "per_second": outcome.rate(),
        "p50_us": outcome.p50_us,
        "p99_us": outcome.p99_us,
        "client_cpu_us": outcome.client_cpu_us(),
        "server_cpu_us": outcome.server_cpu_us(),
    })
}

fn text(shape: &CheckoutShape, outcome: &Outcome) -> String {
    format!(
        "{}, {} clients: {:.0} checkouts a second, {} aborted; p50 {:.1} µs, p99 {:.1} µs; CPU a \
         checkout: clients {:.2} µs, servers {:.2} µs; {} checkouts, the books are right",
        name(shape.system),
        shape.clients,
        outcome.rate(),
        outcome.aborted,
        outcome.p50_us,
        outcome.p99_us,
        outcome.client_cpu_us(),
        outcome.server_cpu_us(),
        outcome.committed,
    )
}

/// As on the command line.
pub fn name(system: System) -> &'static str {
    match system {
        System::Rsi => "rsi",
        System::RsiSerializable => "rsi-serializable",
        System::RsiPublished => "rsi-published",
        System::TwoSided => "two-sided",
        System::TradSi => "trad-si",
    }
}
