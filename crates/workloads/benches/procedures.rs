//! What drawing and running one transaction costs, without any protocol: nanoseconds of
//! processor time.
//! `cargo bench -p manxdb-workloads`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

use std::sync::Arc;

use manxdb_txn::procedure::{Procedure, ShardId};
use manxdb_txn::rows::{Base, NoRows, Rows, run_serially};
use manxdb_workloads::append::{self, Append, Settings};
use manxdb_workloads::tpca::{self, Increment};
use manxdb_workloads::tpcc::{self, Parameters, Scale, Template, Warehouses};
use manxdb_workloads::{Request, Topology, Zipf, payment};

const TOPOLOGY: Topology = Topology {
    regions: 3,
    shards_per_region: 5,
};

const REQUESTS: u64 = 200_000;

/// Processor time of this thread in nanoseconds, as Linux counts it: others may use the machine
/// as well.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn measure(
    what: &str,
    bases: impl Fn(ShardId) -> Arc<dyn Base>,
    procedures: &[Arc<dyn Procedure>],
    mut next: impl FnMut(u64) -> Request,
) {
    let shards = (0..TOPOLOGY.shards()).map(ShardId);
    let mut rows: Vec<Rows> = shards.map(|shard| Rows::new(bases(shard))).collect();
    let started = cpu();
    let requests: Vec<Request> = (1..=REQUESTS).map(&mut next).collect();
    let drawn = cpu();
    let mut pieces = 0;
    for request in &requests {
        let find = |procedure: &&Arc<dyn Procedure>| procedure.name() == request.procedure;
        let procedure = procedures.iter().find(find).unwrap();
        let values = run_serially(&**procedure, &TOPOLOGY, &request.args, &mut rows);
        pieces += values.unwrap().len();
    }
    let ran = cpu();
    let mut touches = 0;
    for request in &requests {
        let find = |procedure: &&Arc<dyn Procedure>| procedure.name() == request.procedure;
        let procedure = procedures.iter().find(find).unwrap();
        for piece in procedure.plan(&request.args, &TOPOLOGY).unwrap() {
            touches += procedure.touches(&piece, &request.args).len();
        }
    }
    let planned = cpu();
    let each = |span: u64| span / REQUESTS;
    println!(
        "{what:10} draw {:>6} ns   run {:>6} ns   plan and touches {:>6} ns   ({} values, {} touches a transaction)",
        each(drawn - started),
        each(ran - drawn),
        each(planned - ran),
        pieces as u64 / REQUESTS,
        touches as u64 / REQUESTS,
    );
}

fn main() {
    let shards = u64::from(TOPOLOGY.shards());
    let home = |number: u64| usize::try_from(number % shards).unwrap();
    let homes = || (0..TOPOLOGY.shards()).map(ShardId);
    let nothing = |_| Arc::new(NoRows) as Arc<dyn Base>;

    let settings = Settings {
        lists_per_shard: 10_000,
        ..Settings::default()
    };
    let mut clients: Vec<_> = homes()
        .map(|at| append::Generator::new(TOPOLOGY, settings, at.0, at, 1))
        .collect();
    measure("append", nothing, &[Arc::new(Append)], |n| {
        clients[home(n)].next_request()
    });

    let zipf = Arc::new(Zipf::new(tpca::KEYS, 0.9, TOPOLOGY.shards()));
    let mut clients: Vec<_> = homes()
        .map(|at| tpca::Generator::new(TOPOLOGY, zipf.clone(), 0.1, at.0, at, 1))
        .collect();
    measure("tpca", nothing, &[Arc::new(Increment)], |n| {
        clients[home(n)].next_request()
    });

    let started = cpu();
    let scale = Scale::full();
    let template = Arc::new(Template::new(scale, 1));
    println!(
        "a full warehouse is filled in {} ms",
        (cpu() - started) / 1_000_000
    );
    let warehouse = |at| {
        let base = Warehouses::of_shard(template.clone(), TOPOLOGY, TOPOLOGY.shards(), at);
        Arc::new(base) as Arc<dyn Base>
    };
    for (what, parameters) in [
        ("tpcc", Parameters::as_published()),
        ("standard", Parameters::standard()),
    ] {
        let mut clients: Vec<_> = homes()
            .map(|at| tpcc::Generator::new(TOPOLOGY, scale, parameters, at.0, at, 1))
            .collect();
        measure(what, warehouse, &tpcc::procedures(), |n| {
            clients[home(n)].next_request(n)
        });
    }
    let mut clients: Vec<_> = homes()
        .map(|at| payment::Generator::new(TOPOLOGY, scale, 0.5, at.0, at, 1))
        .collect();
    measure("payment", warehouse, &tpcc::procedures(), |n| {
        clients[home(n)].next_request(n)
    });
}
