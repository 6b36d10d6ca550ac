//! Starts the processes of a run, and checks the books behind them.

use std::path::Path;

use manxdb_checkout::one_sided::{audit, load};
use manxdb_checkout::{Books, published};

use super::meet::{Meeting, plan, published as published_plan};
use super::part::{by_mail, by_tcp};
use crate::bench::processes::{self, Outcome, Process};
use crate::cli::{CheckoutShape, System};

fn start_all(
    part: &str,
    count: u16,
    directory: &Path,
    shape: &CheckoutShape,
) -> Result<Vec<Process>, String> {
    processes::start_all(part, count, |number| args(part, number, directory, shape))
}

fn args(part: &str, number: u16, directory: &Path, shape: &CheckoutShape) -> Vec<String> {
    let mut args: Vec<String> = ["bench", "checkout-part", part, &number.to_string()]
        .map(String::from)
        .into();
    let flags = [
        ("--directory", directory.display().to_string()),
        ("--system", super::name(shape.system).to_owned()),
        ("--clients", shape.clients.to_string()),
        ("--servers", shape.servers.to_string()),
        ("--products", shape.products.to_string()),
        ("--hot", shape.hot.unwrap_or(shape.products).to_string()),
        ("--versions", shape.versions.to_string()),
        ("--logs", shape.logs.to_string()),
        ("--seconds", shape.seconds.to_string()),
        ("--orders", shape.orders.to_string()),
        ("--seed", shape.seed.to_string()),
    ];
    args.extend(
        flags
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value]),
    );
    args
}

/// Runs a load on a system, and checks the books.
///
/// # Errors
/// Sizes that cannot be, processes that fail, books that are wrong.
pub fn measure(shape: &CheckoutShape) -> Result<Outcome, String> {
    let plan = plan(shape)?;
    let directory = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let directory = directory.path();
    let meeting = Meeting::new(directory, shape);
    let last = shape.clients;
    let memories = || meeting.memories(u64::from(last)).map_err(text);
    let mut servers = Vec::new();
    match shape.system {
        System::Rsi | System::RsiSerializable => {
            servers.extend(start_all("memory", shape.servers, directory, shape)?);
            load(memories()?, plan).map_err(text)?;
        }
        System::RsiPublished => {
            servers.extend(start_all("memory", shape.servers, directory, shape)?);
            published::load(memories()?, published_plan(shape)).map_err(text)?;
        }
        System::TradSi | System::TwoSided => {
            servers.extend(start_all("resource", shape.servers, directory, shape)?);
            servers.extend(start_all("manager", 1, directory, shape)?);
        }
    }
    let clients = start_all("client", shape.clients, directory, shape)?;
    let (outcome, _) = processes::run(&servers, clients)?;
    let found = match shape.system {
        System::Rsi | System::RsiSerializable => audit(memories()?, plan).map_err(text)?,
        System::RsiPublished => {
            published::audit(memories()?, published_plan(shape)).map_err(text)?
        }
        System::TradSi => books(by_tcp(&meeting).and_then(|mut shop| shop.audit()))?,
        System::TwoSided => books(by_mail(&meeting, last).and_then(|mut shop| shop.audit()))?,
    };
    let right = Books {
        sold: 3 * outcome.committed,
        orders: outcome.committed,
        locks: 0,
    };
    if found == right {
        Ok(outcome)
    } else {
        Err(format!("the books are wrong: {found:?}, not {right:?}"))
    }
}

fn books(audited: std::io::Result<(u64, u64)>) -> Result<Books, String> {
    let (sold, records) = audited.map_err(text)?;
    Ok(Books {
        sold,
        orders: records / 4,
        locks: 0,
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
