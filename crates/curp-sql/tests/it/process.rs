//! The process of a server: a CURP server, the client of its own commits, and the commit path over them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_core::{Nanos, NodeId};
use manxdb_curp_sql::commits::Mutant;
use manxdb_curp_sql::lease::LeaseTracker;
use manxdb_curp_sql::primary::Step;
use manxdb_curp_sql::{Commits, Owner, Primary, RowsView, SqlCommand};
use manxdb_sim::{Outside, SimTime};
use manxdb_storage::{
    Direction, Durability, Engine, KeyRange, MemoryEngine, StorageError, Version, WriteBatch,
};
use manxdb_txn::local::StagedGroup;
use manxdb_txn::mutants::Mutants;
use manxdb_txn::{
    CommitPath, Intent, IsolationLevel, LocalOptions, LocalPath, ReadSet, Reply, TxnError, TxnId,
};

use crate::setting::{Cluster, Defect, Setting};

/// A lease and the clock of its process.
#[derive(Default)]
struct Lease {
    now: AtomicU64,
    until: AtomicU64,
}

impl Lease {
    fn holds(&self) -> bool {
        self.now.load(Ordering::Relaxed) < self.until.load(Ordering::Relaxed)
    }
}

/// A server's turn as primary.
pub struct Reign {
    pub commits: Arc<Commits>,
    pub path: LocalPath,
    lease: Arc<Lease>,
    /// With that defect a group waits for nothing.
    waits: bool,
    pub groups: Vec<(StagedGroup, Vec<u64>)>,
}

/// The process of a server.
pub struct Process {
    pub server: NodeId,
    pub client: NodeId,
    pub primary: Primary,
    pub reign: Option<Reign>,
    leases: LeaseTracker,
}

pub fn account(number: u64) -> Vec<u8> {
    format!("account {number:03}").into_bytes()
}

pub fn marker(id: u64) -> Vec<u8> {
    format!("transfer {id:06}").into_bytes()
}

pub fn ready<T>(reply: Reply<Result<T, TxnError>>) -> Result<T, TxnError> {
    match reply {
        Reply::Ready(answer) => answer,
        Reply::Pending(_) => unreachable!("a local path answers at once"),
    }
}

/// Loads rows as a server does when it becomes primary.
fn engine_with(rows: &RowsView) -> Arc<MemoryEngine> {
    let engine = MemoryEngine::new();
    let mut writes = Vec::new();
    let read = rows.each_live(|key, version, value| {
        writes.push((version, key.to_vec(), Some(value.to_vec())));
        Ok::<_, StorageError>(())
    });
    read.unwrap();
    writes.sort_by_key(|(version, _, _)| *version);
    let batch = WriteBatch { writes };
    if !batch.writes.is_empty() {
        engine.append(&batch).unwrap();
    }
    Arc::new(engine)
}

impl Reign {
    /// Sets the clock of its process.
    pub fn set_clock(&self, now: SimTime) {
        self.lease.now.store(now.0, Ordering::Relaxed);
    }

    fn new(owner: Owner, rows: &RowsView, defect: Defect) -> Self {
        let lease = Arc::new(Lease::default());
        let of_reads = Arc::clone(&lease);
        let is_read = move || defect == Defect::NoLease || of_reads.holds();
        let commits = Commits::new(owner, Box::new(|| {}), Box::new(is_read));
        let commits = commits.with_mutant(match defect {
            Defect::PublishedOutOfOrder => Mutant::OutOfOrder,
            _ => Mutant::None,
        });
        let commits = Arc::new(commits);
        let engine = engine_with(rows);
        let confirm = Arc::clone(&commits) as Arc<dyn manxdb_txn::Confirm>;
        let path = LocalPath::open_confirmed(engine, LocalOptions::default(), confirm).unwrap();
        path.plant(Mutants {
            publish_unconfirmed: defect == Defect::PublishedUnconfirmed,
            ..Mutants::default()
        });
        Self {
            commits,
            path,
            lease,
            waits: defect != Defect::PublishedUnconfirmed,
            groups: Vec::new(),
        }
    }

    /// Whether a read now would be answered without waiting.
    pub fn may_read(&self, defect: Defect) -> bool {
        !self.commits.is_lost() && (defect == Defect::NoLease || self.lease.holds())
    }

    fn read(&self, at: Version, key: &[u8]) -> Option<Vec<u8>> {
        ready(self.path.get(at, key)).unwrap()
    }

    pub fn balance(&self, at: Version, number: u64) -> Option<i64> {
        let value = self.read(at, &account(number))?;
        let text = String::from_utf8(value).unwrap();
        Some(text.trim_end().parse().unwrap())
    }

    /// The markers of all transfers: (from, to, amount) by number.
    pub fn markers(&self, at: Version) -> BTreeMap<u64, (u64, u64, i64)> {
        let range = KeyRange::prefix(b"transfer ");
        let page = self.path.scan(at, &range, Direction::Forward, usize::MAX);
        let of = |(key, value): (Vec<u8>, Vec<u8>)| {
            let id = String::from_utf8(key).unwrap()[9..].parse().unwrap();
            let text = String::from_utf8(value).unwrap();
            let mut numbers = text.split(' ').map(|word| word.parse::<i64>().unwrap());
            let mut next = || numbers.next().unwrap();
            let (from, to) = (next(), next());
            let whole = |number| u64::try_from(number).unwrap();
            (id, (whole(from), whole(to), next()))
        };
        ready(page).unwrap().into_iter().map(of).collect()
    }

    pub fn stage(&mut self, id: u64, intents: Vec<Intent>) {
        let ids = vec![id; intents.len()];
        let group = self.path.stage_intents(intents);
        self.groups.push((group, ids));
    }

    /// Ends the groups that need not wait.
    pub fn finish(&mut self) -> Vec<(u64, Result<Version, TxnError>)> {
        let commits = Arc::clone(&self.commits);
        let mut over = Vec::new();
        let mut index = 0;
        while index < self.groups.len() {
            if !self.waits || commits.is_over(self.groups[index].0.last()) {
                let (group, ids) = self.groups.remove(index);
                over.extend(ids.into_iter().zip(self.path.finish(group)));
            } else {
                index += 1;
            }
        }
        over
    }
}

/// What a transaction writes.
pub fn intent(
    id: u64,
    reads: Vec<(Vec<u8>, Version)>,
    writes: BTreeMap<Vec<u8>, Vec<u8>>,
) -> Intent {
    Intent {
        txn: TxnId(id),
        isolation: IsolationLevel::Serializable,
        reads: ReadSet {
            points: reads.into(),
            ranges: Vec::new(),
        },
        writes: writes
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect(),
        durability: Durability::Sync,
        locks: Vec::new(),
    }
}

impl Process {
    pub fn new(setting: &Setting, server: u32) -> Self {
        Self {
            server: NodeId(server),
            client: NodeId(setting.client_of(server)),
            primary: Primary::default(),
            reign: None,
            leases: LeaseTracker::new(setting.options().lease),
        }
    }

    fn ask(&mut self, outside: &mut Outside<'_, Cluster>, command: &SqlCommand) {
        let id = outside.request(self.client, command.encode());
        self.primary.asked(id, command);
    }

    pub fn hand_over(&mut self, outside: &mut Outside<'_, Cluster>) {
        for command in self.primary.handed_over() {
            self.ask(outside, &command);
        }
    }

    pub fn is_client(&self, node: NodeId) -> bool {
        self.client == node
    }

    /// A round of its loop; whether a reign began.
    pub fn look(&mut self, outside: &mut Outside<'_, Cluster>, defect: Defect) -> bool {
        if !outside.is_up(self.server) || !outside.is_up(self.client) {
            return false;
        }
        let Some(server) = outside.core(self.server).and_then(|node| node.server()) else {
            return false;
        };
        let elected = server.elected();
        let step = self.primary.look(server);
        let until = self.leases.look(Nanos(outside.now().0), server.leases());
        if let Some(reign) = &self.reign {
            let reigns = elected.is_some_and(|epoch| self.primary.reigns_in(epoch));
            let until = if reigns { until.0 } else { 0 };
            reign.lease.until.store(until, Ordering::Relaxed);
        }
        match step {
            None => {}
            Some(Step::Ask(command)) => self.ask(outside, &command),
            Some(Step::Begin(owner, rows)) => {
                let reign = Reign::new(owner, &rows, defect);
                self.primary.begin(Arc::clone(&reign.commits));
                self.reign = Some(reign);
                return true;
            }
            Some(Step::End) => {} // its sessions are told when they next look
        }
        self.hand_over(outside);
        false
    }
}
