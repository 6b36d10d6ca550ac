//! `manxdb bench rack-recovery`: customers in rows in one-sided memory, while one of them and a memory
//! server are killed; or without kills, for what replicas and logs cost.
//!
//! | question | answered in |
//! |---|---|
//! | what comes of a run, and what its timeline says | [`timeline`] |
//! | who starts, kills and judges | [`run`](mod@run) |
//! | what each process does | [`part`](mod@part) |
//! | how a client dies with locks | [`mortal`] |
//! | where commits are noted | [`board`] |
//! | how many orders a client may place | [`share`] |

mod board;
mod mortal;
mod part;
mod run;
mod share;
mod timeline;

use std::path::Path;
use std::process::ExitCode;

use manxdb_core::Nanos;
use manxdb_fabric::shm::SharedMemory;
use manxdb_rack::memory::{Geometry, Plan};
use manxdb_rack::rows::RowsPlan;
use manxdb_rsi::Layout;
use serde_json::json;

pub use self::part::part;
pub use self::run::measure;
#[cfg(test)]
pub use self::timeline::{Death, Loss};
pub use self::timeline::{Effect, Outcome};
use super::memories;
use crate::cli::{RecoveryRun, RecoveryShape};
use crate::fault::Fault;

/// Versions of a row.
const VERSIONS: u16 = 4;
/// Versions of a node of the tree.
const NODE_VERSIONS: usize = 2;
/// Bytes of a node: keys have 12.
const NODE: u64 = 600;
/// Bytes of a log: a checkout takes far less than half.
const LOG: u64 = 64 << 10;
/// Records of an order.
const RECORDS: u64 = 4;
/// In memory that others use too, nodes to so many records.
const NODES_A_LOT: u64 = 96;
const RECORDS_A_LOT: u64 = 256;

/// Runs processes, and says what came of it.
///
/// # Errors
/// Sizes that cannot be, processes that fail, books that are wrong.
pub fn run(args: &RecoveryRun) -> Result<ExitCode, Fault> {
    let outcome = measure(&args.shape).map_err(Fault::Other)?;
    if args.json {
        println!("{:#}", json!({ "shape": args.shape, "outcome": outcome }));
    } else {
        println!("{}", text(&args.shape, &outcome));
    }
    Ok(ExitCode::SUCCESS)
}

/// The memory that others would use too.
fn geometry(shape: &RecoveryShape) -> Result<Geometry, String> {
    let (servers, replicas) = (u64::from(shape.servers), u64::from(shape.replicas));
    let layout = |versions: u16, bytes: u64| {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let layout = Layout::new(versions.into(), bytes).map_err(|error| error.to_string())?;
        Ok::<_, String>(layout.with_overflow().bytes().next_multiple_of(64) as u64)
    };
    let node = layout(u16::try_from(NODE_VERSIONS).unwrap_or(2), NODE)?;
    let record = layout(VERSIONS, shape.row_bytes.into())? + node * NODES_A_LOT / RECORDS_A_LOT;
    let rows = shape.products + RECORDS * shape.orders;
    // What one server has must find room on the others, and nobody uses all that he has taken.
    let share = rows * record * replicas / servers.saturating_sub(1).max(1);
    let bytes = share / 4 * 5 + (64 << 20);
    let geometry = Geometry {
        servers: shape.servers,
        replicas: shape.replicas,
        bytes: bytes.next_multiple_of(64),
        places: shape.clients + 2,
        log_copies: shape.logs,
        log_bytes: LOG,
        log_slots: 1,
        versions: VERSIONS,
        value: shape.row_bytes.into(),
        node: NODE,
        lease: Nanos::from_millis(shape.lease_ms.into()),
    };
    Plan::of(geometry).map_err(|error| error.to_string())?;
    Ok(geometry)
}

/// The memory of a run that logs nothing: nobody comes or goes.
fn rows_plan(shape: &RecoveryShape) -> Result<RowsPlan, String> {
    if shape.replicas != 1 {
        return Err(format!("{} replicas need as many logs", shape.replicas));
    }
    let plan = RowsPlan {
        servers: shape.servers,
        // One more looks through the books.
        clients: shape.clients + 1,
        log_copies: 0,
        versions: VERSIONS.into(),
        value: shape.row_bytes.into(),
        node: usize::try_from(NODE).unwrap_or(usize::MAX),
        loaded: shape.products,
        added: shape.orders.div_ceil(shape.clients.into()) * RECORDS,
    };
    plan.check().map_err(|error| error.to_string())
}

/// Connects to all servers of such a run, as one of its threads.
fn reach(directory: &Path, shape: &RecoveryShape, thread: u16) -> Result<SharedMemory, String> {
    let memory = memories::connect(directory, shape.servers, thread.into());
    let memory = memory.map_err(|error| error.to_string())?;
    if shape.populate {
        memory.populate().map_err(|error| error.to_string())?;
    }
    Ok(memory)
}

fn text(shape: &RecoveryShape, outcome: &Outcome) -> String {
    let mut text = format!(
        "{} clients, {} replicas, {} logs: {:.0} checkouts a second, {} aborted; CPU a checkout: \
         clients {:.2} µs, servers {:.2} µs; the longest time of a client without a commit {:.0} ms; \
         {} checkouts, the books are right",
        shape.clients,
        shape.replicas,
        shape.logs,
        outcome.rate(),
        outcome.aborted,
        outcome.client_cpu_us(),
        outcome.server_cpu_us(),
        outcome.longest_ms,
        outcome.committed(),
    );
    if let (Some(death), Some(effect)) = (outcome.death, outcome.death_effect()) {
        let who = if death.led {
            "which led"
        } else {
            "which did not lead"
        };
        text += &format!(
            "\nclient {}, {who}, killed after {:.0} ms: its locks are recovered after {:.0} ms ({:.2} \
             leases); {}",
            death.client,
            death.at_ms,
            death.locks_ms,
            death.locks_ms / f64::from(shape.lease_ms),
            said(effect),
        );
    }
    if let (Some(loss), Some(effect)) = (outcome.loss, outcome.loss_effect()) {
        let agreed = loss.agreed_ms.unwrap_or(f64::NAN);
        text += &format!(
            "\nmemory server {} killed after {:.0} ms: agreed on after {agreed:.0} ms; {}",
            loss.server,
            loss.at_ms,
            said(effect),
        );
    }
    text
}

fn said(effect: Effect) -> String {
    let or_never =
        |ms: Option<f64>| ms.map_or("never".to_owned(), |ms| format!("after {ms:.0} ms"));
    format!(
        "nobody commits for {:.0} ms; 90 % of what was done before is done again {}, and each of the \
         others has committed again {}; {:.0} checkouts a second before, {:.0} afterwards",
        effect.silent_ms,
        or_never(effect.back_ms),
        or_never(effect.all_ms),
        effect.before,
        effect.after,
    )
}
