//! Random transactions on the commit path `rsi`, at every level, judged as those of the path of one
//! node are.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_fixtures::history::{Anomaly, Model, check};
use manxdb_fixtures::schedule::{Plan, run_on};
use manxdb_rack::path::RsiPath;
use manxdb_rack::rows::RowsPlan;
use manxdb_storage::{Direction, KeyRange, Version};
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::procedure::{Call, Values};
use manxdb_txn::{CommitPath, Intent, LockTable, ReadSet, Reply, Snapshot, TxnError, Waiter};

const SEEDS: u64 = 300;

const PLAN: RowsPlan = RowsPlan {
    servers: 2,
    clients: 3,
    log_copies: 1,
    versions: 8,
    value: 64,
    node: 256,
    loaded: 0,
    added: 60,
};

/// Memory, and a path to it.
fn on_a_rack<T>(work: impl FnOnce(Arc<RsiPath<SharedMemory>>) -> T) -> T {
    let directory = tempfile::tempdir().unwrap();
    let socket = |number| directory.path().join(format!("memory-{number}"));
    let bytes = PLAN.check().unwrap().bytes();
    let start = |number| MemoryServer::start(&socket(number), ServerId(number), bytes).unwrap();
    let _servers: Vec<MemoryServer> = (0..PLAN.servers).map(start).collect();
    let clients = (0..PLAN.clients).map(|client| {
        let mut memory = SharedMemory::default();
        for number in 0..PLAN.servers {
            memory.connect(&socket(number), u64::from(client)).unwrap();
        }
        (client, memory)
    });
    work(Arc::new(RsiPath::new(PLAN, clients).unwrap()))
}

/// Histories of many seeds, none of which shows more than `allowed`; how many show each.
fn only(isolation: IsolationLevel, model: Model, allowed: &[Anomaly]) -> BTreeMap<Anomaly, u64> {
    let (mut seeds, mut committed, mut all) = (BTreeMap::new(), 0, 0);
    for seed in 0..SEEDS {
        let plan = Plan::new(seed, isolation, model);
        let history = on_a_rack(|path| run_on(plan, path));
        let found = check(model, &history);
        let is_allowed = found.keys().all(|anomaly| allowed.contains(anomaly));
        assert!(is_allowed, "{plan:?}: {found:#?}\n{history:#?}");
        committed += history.iter().filter(|txn| txn.is_committed()).count();
        all += history.len();
        for anomaly in found.into_keys() {
            *seeds.entry(anomaly).or_insert(0) += 1;
        }
    }
    // A database that refuses everything would pass all of the above.
    assert!(committed * 100 > all * 40, "{committed} of {all}");
    seeds
}

#[test]
fn serializable_shows_no_anomaly_and_never_a_stale_state() {
    for model in [Model::List, Model::Register] {
        only(Serializable, model, &[]);
    }
}

#[test]
fn weaker_levels_show_what_they_may_and_no_more() {
    let of_repeatable_read = [
        Anomaly::SingleAntiDependency,
        Anomaly::ItemAntiDependency,
        Anomaly::PredicateAntiDependency,
        Anomaly::StaleRead,
    ];
    let of_read_committed = [&of_repeatable_read[..], &[Anomaly::InconsistentRead]].concat();
    for model in [Model::List, Model::Register] {
        let seeds = only(RepeatableRead, model, &of_repeatable_read);
        assert!(
            seeds.contains_key(&Anomaly::ItemAntiDependency),
            "{seeds:?}"
        );
        let seeds = only(ReadCommitted, model, &of_read_committed);
        assert!(seeds.contains_key(&Anomaly::InconsistentRead), "{seeds:?}");
    }
}

/// A path that forgets what transactions have read.
struct Careless(Arc<RsiPath<SharedMemory>>);

impl CommitPath for Careless {
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        self.0.snapshot()
    }

    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>> {
        self.0.get(at, key)
    }

    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Vec<(Vec<u8>, Vec<u8>)>, TxnError>> {
        self.0.scan(at, range, direction, limit)
    }

    fn submit(&self, mut intent: Intent) -> Reply<Result<Version, TxnError>> {
        intent.reads = ReadSet::default();
        self.0.submit(intent)
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        self.0.changed_since(range, since)
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        self.0.key_changed_since(key, since)
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        self.0.refresh(reads)
    }

    fn call(self: Arc<Self>, call: Call, waiter: Arc<dyn Waiter>) -> Reply<Called> {
        Arc::clone(&self.0).call(call, waiter)
    }

    fn locks(&self) -> Option<&LockTable> {
        self.0.locks()
    }
}

type Called = Result<Values, TxnError>;

#[test]
fn reads_that_nobody_validates_are_found() {
    for anomaly in [
        Anomaly::ItemAntiDependency,
        Anomaly::PredicateAntiDependency,
    ] {
        let shows = |seed| {
            let plan = Plan::new(seed, Serializable, Model::List);
            let history = on_a_rack(|path| run_on(plan, Arc::new(Careless(path))));
            check(Model::List, &history).contains_key(&anomaly)
        };
        assert!((0..SEEDS).any(shows), "{anomaly:?}");
    }
}
