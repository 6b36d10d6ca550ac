//! `manxdb bench rack-tpcc`: TPC-C on rows in one-sided memory.
//!
//! Each memory server and each terminal is a process of its own. Whoever starts them loads the
//! warehouses, tells the terminals to go, and checks the conditions of the standard at the end.

mod books;
mod part;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use manxdb_fabric::shm::SharedMemory;
use manxdb_rack::rows::{Caller, RowsPlan};
use manxdb_rsi::Isolation;
use manxdb_workloads::{Topology, tpcc};
use serde_json::json;

pub use self::part::part;
use crate::bench::memories;
use crate::bench::processes::{self, Outcome};
use crate::cli::{WarehousesRun, WarehousesShape};
use crate::fault::Fault;

/// Bytes of the longest row: that of a customer whose credit is bad has a history of up to 500.
const VALUE: usize = 600;
/// Bytes of a node of the tree of keys.
const NODE: usize = 600;
/// Rows of a transaction that adds the most: an order with fifteen lines, and what stands beside
/// them.
const ADDED_MOST: u64 = 24;

/// Runs processes, and says what came of it.
///
/// # Errors
/// Sizes that cannot be, processes that fail, books that are wrong.
pub fn run(args: &WarehousesRun) -> Result<ExitCode, Fault> {
    let (outcome, kinds) = measure(&args.shape).map_err(Fault::Other)?;
    if args.json {
        println!("{:#}", report(&args.shape, &outcome, &kinds));
    } else {
        println!("{}", text(&args.shape, &outcome, &kinds));
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(shape: &WarehousesShape) -> Result<(Outcome, BTreeMap<String, u64>), String> {
    let plan = plan(shape)?;
    let directory = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let directory = directory.path();
    let said = serde_json::to_string(shape).map_err(|error| error.to_string())?;
    let args = |role: &str, number: u16| -> Vec<String> {
        let number = number.to_string();
        let directory = directory.display().to_string();
        let words = ["bench", "rack-tpcc-part", role, &number, "--directory"];
        let words = words.map(String::from).into_iter();
        words
            .chain([directory, "--shape".into(), said.clone()])
            .collect()
    };
    let servers = processes::start_all("memory", shape.servers, |number| args("memory", number))?;
    books::load(directory, shape, plan)?;
    let terminals =
        processes::start_all("terminal", shape.clients, |number| args("terminal", number))?;
    let came = processes::run(&servers, terminals)?;
    books::check(directory, shape, plan)?;
    Ok(came)
}

/// Where everything is.
fn plan(shape: &WarehousesShape) -> Result<RowsPlan, String> {
    let rows = books::rows_of(shape);
    let plan = RowsPlan {
        servers: shape.servers,
        // One more checks the books.
        clients: shape.clients + 1,
        log_copies: shape.logs,
        versions: usize::from(shape.versions),
        value: VALUE,
        node: NODE,
        loaded: rows * u64::from(shape.warehouses.div_ceil(u32::from(shape.servers))),
        added: shape.rows,
    };
    plan.check().map_err(|error| error.to_string())
}

/// A warehouse a shard, all in this rack.
fn topology(shape: &WarehousesShape) -> Topology {
    Topology {
        regions: 1,
        shards_per_region: shape.warehouses,
    }
}

/// A thread of the plan.
fn caller(
    directory: &Path,
    shape: &WarehousesShape,
    plan: RowsPlan,
    thread: u16,
) -> Result<Caller<SharedMemory>, String> {
    let memory = memories::connect(directory, shape.servers, u64::from(thread));
    let memory = memory.map_err(|error| error.to_string())?;
    let isolation = if shape.snapshot {
        Isolation::Snapshot
    } else {
        Isolation::Serializable
    };
    Caller::new(memory, plan, thread, isolation).map_err(|error| error.to_string())
}

fn report(
    shape: &WarehousesShape,
    outcome: &Outcome,
    kinds: &BTreeMap<String, u64>,
) -> serde_json::Value {
    json!({
        "shape": shape,
        "seconds": outcome.seconds,
        "committed": outcome.committed,
        "kinds": kinds,
        "aborted": outcome.aborted,
        "per_second": outcome.rate(),
        "p50_us": outcome.p50_us,
        "p99_us": outcome.p99_us,
        "client_cpu_us": outcome.client_cpu_us(),
        "server_cpu_us": outcome.server_cpu_us(),
    })
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn text(shape: &WarehousesShape, outcome: &Outcome, kinds: &BTreeMap<String, u64>) -> String {
    let orders = kinds.get(tpcc::NEW_ORDER).copied().unwrap_or(0);
    format!(
        "{} warehouses, {} terminals: {:.0} transactions a second, {:.0} new orders among them, {} \
         aborted; p50 {:.1} µs, p99 {:.1} µs; CPU a transaction: terminals {:.2} µs, servers {:.2} \
         µs; {} transactions, the books are right",
        shape.warehouses,
        shape.clients,
        outcome.rate(),
        orders as f64 / outcome.seconds.max(f64::MIN_POSITIVE),
        outcome.aborted,
        outcome.p50_us,
        outcome.p99_us,
        outcome.client_cpu_us(),
        outcome.server_cpu_us(),
        outcome.committed,
    )
}
