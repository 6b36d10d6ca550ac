//! TPC-C on one-sided memory: many terminals at once, and then the books of the standard are right.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // threads stand for processes

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_rack::rows::{CallOutcome, Caller, RowsPlan};
use manxdb_rsi::Isolation;
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::{Base as _, NoRows, Rows};
use manxdb_workloads::Topology;
use manxdb_workloads::tpcc::{self, Generator, Parameters, Scale, Template, Warehouses};

/// Warehouses, each with a terminal and a half.
const WAREHOUSES: u32 = 2;
const TERMINALS: u16 = 3;
const CALLS: u64 = 150;
const SEED: u64 = 11;

const TOPOLOGY: Topology = Topology {
    regions: 1,
    shards_per_region: WAREHOUSES,
};

const PLAN: RowsPlan = RowsPlan {
    servers: 2,
    clients: TERMINALS + 1,
    log_copies: 2,
    versions: 2,
    value: 600,
    node: 600,
    loaded: 4_000,
    added: 8_000,
};

fn start(directory: &Path, plan: RowsPlan) -> (Vec<MemoryServer>, Vec<PathBuf>) {
    let path = |server: u16| directory.join(format!("memory-{server}"));
    let start =
        |server| MemoryServer::start(&path(server), ServerId(server), plan.bytes()).unwrap();
    let servers = (0..plan.servers).map(start).collect();
    (servers, (0..plan.servers).map(path).collect())
}

fn caller(paths: &[PathBuf], plan: RowsPlan, thread: u16) -> Caller<SharedMemory> {
    let mut memory = SharedMemory::default();
    for path in paths {
        memory.connect(path, u64::from(thread)).unwrap();
    }
    Caller::new(memory, plan, thread, Isolation::Serializable).unwrap()
}

/// Each loader loads the warehouses of its server.
fn load(paths: &[PathBuf], plan: RowsPlan) {
    let template = Arc::new(Template::new(Scale::tiny(), SEED));
    thread::scope(|scope| {
        for server in 0..plan.servers {
            let mut loader = caller(paths, plan, plan.loader(server));
            let shard = ShardId(u32::from(server));
            let warehouses =
                Warehouses::of_shard(Arc::clone(&template), TOPOLOGY, WAREHOUSES, shard);
            scope.spawn(move || {
                let all = warehouses.scan(&KeyRange::all(), Direction::Forward, usize::MAX);
                for page in all.chunks(50) {
                    loader.load(page).unwrap();
                }
            });
        }
    });
}

/// A terminal's work: how many of each procedure are committed.
fn work(caller: &mut Caller<SharedMemory>, terminal: u16) -> BTreeMap<String, u64> {
    let procedures = Registry::default();
    for procedure in tpcc::procedures() {
        procedures.register(procedure);
    }
    let home = ShardId(u32::from(terminal) % WAREHOUSES);
    let (scale, parameters) = (Scale::tiny(), Parameters::standard());
    let terminal = u32::from(terminal);
    let mut calls = Generator::new(TOPOLOGY, scale, parameters, terminal, home, SEED);
    let mut committed = BTreeMap::new();
    for number in 0..CALLS {
        let request = calls.next_request(number + 1);
        let procedure = procedures.find(request.procedure).unwrap();
        loop {
            let verdict = caller.call(procedure.as_ref(), &request.args, &TOPOLOGY);
            match verdict.unwrap() {
                CallOutcome::Committed => break,
                CallOutcome::Aborted => thread::yield_now(),
            }
        }
        *committed.entry(request.procedure.to_owned()).or_insert(0) += 1;
    }
    committed
}

/// What is wrong with the books.
fn audit(caller: &mut Caller<SharedMemory>) -> Vec<String> {
    let mut shards: Vec<Rows> = (0..WAREHOUSES)
        .map(|_| Rows::new(Arc::new(NoRows)))
        .collect();
    for (key, value) in caller.read_all(&KeyRange::all()).unwrap() {
        use manxdb_txn::procedure::Placement as _;
        let shard = TOPOLOGY.shard_of(&key).0 as usize;
        shards[shard].write(key, Some(value));
    }
    tpcc::check(&shards, TOPOLOGY, Scale::tiny(), tpcc::PaymentSums::Tpcc)
}

#[test]
fn the_books_of_the_standard_are_right() {
    let directory = tempfile::tempdir().unwrap();
    let plan = PLAN.check().unwrap();
    let (_servers, paths) = start(directory.path(), plan);
    load(&paths, plan);
    let mut auditor = caller(&paths, plan, TERMINALS);
    assert_eq!(audit(&mut auditor), Vec::<String>::new());
    let all = Mutex::<BTreeMap<String, u64>>::default();
    thread::scope(|scope| {
        for terminal in 0..TERMINALS {
            let (all, mut caller) = (&all, caller(&paths, plan, terminal));
            scope.spawn(move || {
                for (name, count) in work(&mut caller, terminal) {
                    *all.lock().unwrap().entry(name).or_insert(0) += count;
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(all.values().sum::<u64>(), u64::from(TERMINALS) * CALLS);
    assert_eq!(audit(&mut auditor), Vec::<String>::new());
}

#[test]
fn books_that_are_wrong_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let plan = PLAN.check().unwrap();
    let (_servers, paths) = start(directory.path(), plan);
    load(&paths, plan);
    let mut auditor = caller(&paths, plan, TERMINALS);
    let mut rows = auditor.read_all(&KeyRange::all()).unwrap();
    let mut lost = rows.swap_remove(rows.len() / 2);
    lost.1.fill(0);
    auditor.load(&[lost]).unwrap();
    assert_ne!(audit(&mut auditor), Vec::<String>::new());
}
