//! The warehouses at the start, and what is to be true of them at the end.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use manxdb_rack::rows::RowsPlan;
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::{Placement as _, ShardId};
use manxdb_txn::rows::{Base as _, NoRows, Rows};
use manxdb_workloads::Topology;
use manxdb_workloads::tpcc::{self, Template, Warehouses};

use super::{caller, topology};
use crate::cli::WarehousesShape;

/// Rows that are loaded in one transaction.
const PAGE: usize = 50;
/// What is wrong is told up to so many things.
const TOLD_MAX: usize = 5;

fn template(shape: &WarehousesShape) -> Arc<Template> {
    Arc::new(Template::new(shape.tpcc_scale.scale(), shape.seed))
}

fn rows_of_warehouse(template: &Arc<Template>, warehouses: u32, number: u32) -> Warehouses {
    let topology = Topology {
        regions: 1,
        shards_per_region: warehouses,
    };
    Warehouses::of_shard(Arc::clone(template), topology, warehouses, ShardId(number))
}

/// Rows of a warehouse at the start.
pub fn rows_of(shape: &WarehousesShape) -> u64 {
    let one = rows_of_warehouse(&template(shape), 1, 0);
    one.scan(&KeyRange::all(), Direction::Forward, usize::MAX)
        .len() as u64
}

/// Loads the warehouses, on all memory servers at once.
///
/// # Errors
/// The memory's.
pub fn load(directory: &Path, shape: &WarehousesShape, plan: RowsPlan) -> Result<(), String> {
    let template = template(shape);
    thread::scope(|scope| {
        let loaders: Vec<_> = (0..shape.servers)
            .map(|server| {
                let template = &template;
                scope.spawn(move || load_server(directory, shape, plan, server, template))
            })
            .collect();
        let ended = loaders.into_iter().map(|loader| {
            let panicked = |_| Err("a loader failed".to_owned());
            loader.join().unwrap_or_else(panicked)
        });
        ended.collect()
    })
}

fn load_server(
    directory: &Path,
    shape: &WarehousesShape,
    plan: RowsPlan,
    server: u16,
    template: &Arc<Template>,
) -> Result<(), String> {
    let mut loader = caller(directory, shape, plan, plan.loader(server))?;
    let every = usize::from(shape.servers);
    for number in (u32::from(server)..shape.warehouses).step_by(every) {
        let warehouse = rows_of_warehouse(template, shape.warehouses, number);
        let rows = warehouse.scan(&KeyRange::all(), Direction::Forward, usize::MAX);
        for page in rows.chunks(PAGE) {
            loader.load(page).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Checks the conditions of the standard.
///
/// # Errors
/// They do not hold, or the memory cannot be read.
pub fn check(directory: &Path, shape: &WarehousesShape, plan: RowsPlan) -> Result<(), String> {
    let topology = topology(shape);
    let mut auditor = caller(directory, shape, plan, shape.clients)?;
    let all = auditor.read_all(&KeyRange::all());
    let mut shards: Vec<Rows> = (0..shape.warehouses)
        .map(|_| Rows::new(Arc::new(NoRows)))
        .collect();
    for (key, value) in all.map_err(|error| error.to_string())? {
        let shard = usize::try_from(topology.shard_of(&key).0).unwrap_or(usize::MAX);
        if let Some(rows) = shards.get_mut(shard) {
            rows.write(key, Some(value));
        }
    }
    let wrong = tpcc::check(
        &shards,
        topology,
        shape.tpcc_scale.scale(),
        tpcc::PaymentSums::Tpcc,
    );
    if wrong.is_empty() {
        return Ok(());
    }
    let told = wrong.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>();
    Err(format!("the books are wrong: {}", told.join("; ")))
}
