//! What each process of a run does.

use std::io;
use std::process::ExitCode;
use std::thread;

use manxdb_rack::rows::CallOutcome;
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_workloads::tpcc::{self, Generator, Parameters};

use super::{ADDED_MOST, caller, plan, topology};
use crate::bench::memories;
use crate::bench::processes::{until_end, work};
use crate::cli::{WarehousesPart, WarehousesRole, WarehousesShape};
use crate::fault::Fault;

/// Runs one process of a run.
///
/// # Errors
/// Another one is not there or is gone; what decides the run makes no sense.
pub fn part(args: &WarehousesPart) -> Result<ExitCode, Fault> {
    let shape = serde_json::from_str(&args.shape)
        .map_err(|error| Fault::Other(format!("--shape: {error}")))?;
    let done = match args.role {
        WarehousesRole::Memory => memory(args, &shape),
        WarehousesRole::Terminal => terminal(args, &shape),
    };
    done.map(|()| ExitCode::SUCCESS)
        .map_err(|error| Fault::Other(error.to_string()))
}

fn memory(args: &WarehousesPart, shape: &WarehousesShape) -> io::Result<()> {
    let bytes = plan(shape).map_err(io::Error::other)?.bytes();
    let _server = memories::serve(&args.directory, args.number, bytes)?;
    until_end()
}

fn terminal(args: &WarehousesPart, shape: &WarehousesShape) -> io::Result<()> {
    let plan = plan(shape).map_err(io::Error::other)?;
    let mut caller = caller(&args.directory, shape, plan, args.number).map_err(io::Error::other)?;
    let procedures = Registry::default();
    for procedure in tpcc::procedures() {
        procedures.register(procedure);
    }
    let (topology, scale) = (topology(shape), shape.tpcc_scale.scale());
    let terminal = u32::from(args.number);
    let home = ShardId(terminal % shape.warehouses);
    let parameters = Parameters::standard();
    let mut calls = Generator::new(topology, scale, parameters, terminal, home, shape.seed);
    let mut pending = None;
    let mut date = 0;
    work(shape.seconds, shape.rows / ADDED_MOST, || {
        let request = match pending.take() {
            Some(request) => request,
            None => {
                date += 1;
                calls.next_request(date)
            }
        };
        let procedure = procedures
            .find(request.procedure)
            .map_err(io::Error::other)?;
        let verdict = caller.call(procedure.as_ref(), &request.args, &topology);
        match verdict.map_err(io::Error::other)? {
            CallOutcome::Committed => Ok(Some(request.procedure)),
            CallOutcome::Aborted => {
                pending = Some(request);
                thread::yield_now(); // whoever was there may wait for this processor
                Ok(None)
            }
        }
    })
}
