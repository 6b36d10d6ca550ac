//! The commit path `rsi`: SQL, and whatever else goes through [`manxdb_txn`], on rows in the memory
//! of servers.
//!
//! Several processes may open the same memory, each as clients of their own of the plan: they meet
//! at commits only. Row locks order the sessions of one process.
//!
//! | the trait's | here |
//! |---|---|
//! | snapshot | a vector; its version is a number of this process alone ([`snapshots`]) |
//! | reads of an intent | looked at again at the newest state, and validated by the commit |
//! | a value longer than a record | pieces of it are rows too, beside the row that counts them ([`long`]) |
//!
//! Keys of deleted rows are taken out when no snapshot in use sees them ([`tidy`]). A snapshot that is
//! older than the versions which memory keeps can read what has changed often no more, which is a
//! conflict.
//!
//! Where a log archiver writes to disk what is committed, an intent says when its commit counts as done
//! ([`durable`]).
//!
//! Over memory servers that run for long ([`RsiPath::open`]) clients have places that are kept, get
//! room when they need it, and are replaced when they have met a fault: what was under way then is
//! of unknown outcome or not done, and the next transaction is another client's. When a memory server
//! with replicas is lost they go on with what they were doing ([`clients`]).

mod clients;
mod durable;
mod gc;
mod long;
mod snapshots;

use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_core::check::deep;
use manxdb_fabric::{Fabric, Misuse};
use manxdb_rsi::rows::collect::Collector;
use manxdb_rsi::rows::{Client, Failure, Transaction};
use manxdb_rsi::{Abort, Await, Isolation, Snapshot as Vector, Span};
use manxdb_storage::{Direction, Durability, KeyRange, StorageError, Version};
use manxdb_txn::keys::ReadPoints;
use manxdb_txn::procedure::{Call, OneShard, Registry, Values};
use manxdb_txn::run_procedure::run_attempts;
use manxdb_txn::{
    CommitPath, Intent, LockTable, Others, ReadSet, Reply, Snapshot, TxnError, Waiter,
};
use parking_lot::Mutex;

use self::clients::{Clients, ENTRY_BYTES, Room};
pub(crate) use self::gc::advance_watermark;
use self::long::ROWS;
use self::snapshots::Snapshots;
use crate::drive::{Driver, now};
use crate::memory::{MemoryError, Source};
use crate::rows::{CallError, RowsPlan};

/// Tries of a commit whose reads still hold: others enter keys into the same leaves.
const TRIES_MAX: u32 = 64;
/// Rows of a range that are read at a time.
const PAGE: usize = 256;
/// Records that a client takes of those that have come free, at least.
const PORTION: u64 = 64;
/// How long a transaction may read at its snapshot, unless it is said.
pub const SNAPSHOT_AGE: Duration = Duration::from_secs(600);

type Page = Vec<(Vec<u8>, Vec<u8>)>;
type Rows<'c, F> = Transaction<'c, Driver<F>>;

/// Transactions on rows in the memory of servers.
pub struct RsiPath<F> {
    clients: Clients<F>,
    snapshots: Arc<Snapshots>,
    locks: LockTable,
    procedures: Registry,
    /// Bytes of a value that fits into a record.
    value_max: usize,
    collector: Mutex<Option<Collector>>,
    snapshot_age: Duration,
}

fn failed(failure: Failure<Misuse>) -> TxnError {
    let what = failure.to_string();
    match failure {
        _ if failure.is_unwritten() => StorageError::Full(what).into(),
        _ if failure.is_conflict() => TxnError::Conflict { what },
        Failure::NoRoom(_) => StorageError::Full(what).into(),
        Failure::Abort(Abort::TooLarge(size, limit)) => TxnError::TooLarge {
            size_bytes: usize::try_from(size).unwrap_or(usize::MAX),
            limit_bytes: usize::try_from(limit).unwrap_or(usize::MAX),
        },
        Failure::Abort(Abort::Damaged(_)) => StorageError::Corrupt(what).into(),
        Failure::Abort(_) | Failure::Carrier(_) => StorageError::Engine(what).into(),
    }
}

/// Why a commit has failed that had begun: where a server did not answer it may be there all the same.
fn interrupted(failure: Failure<Misuse>) -> TxnError {
    assert!(
        !failure.is_conflict(),
        "a commit that others were in the way of is tried again: {failure}"
    );
    match failure {
        Failure::Abort(Abort::Fault(_) | Abort::Over(_)) => TxnError::Unknown(failure.to_string()),
        failure => failed(failure),
    }
}

/// What comes of a commit that could not begin: others were in the way, or it ends there.
fn not_begun(failure: Failure<Misuse>) -> Result<Result<(), Failure<Misuse>>, TxnError> {
    if failure.is_conflict() {
        Ok(Err(failure))
    } else {
        Err(failed(failure))
    }
}

impl<F: Fabric + Send + 'static> RsiPath<F> {
    /// The path of a process that is these clients of a plan; so many transactions it does at a
    /// time.
    ///
    /// # Errors
    /// [`CallError`]: the plan has no such client, or there are none.
    pub fn new(
        plan: RowsPlan,
        clients: impl IntoIterator<Item = (u16, F)>,
    ) -> Result<Self, CallError> {
        let clients = clients.into_iter();
        let clients = clients.map(|(number, fabric)| plan.client(number, Driver::new(fabric)));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        if clients.is_empty() {
            return Err(CallError("a path needs at least one client".into()));
        }
        Ok(Self::of(Clients::fixed(clients), plan.value))
    }

    /// The path of a process with so many clients, at least one, on memory that others use too;
    /// `value` are the bytes of its rows.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn open(source: Arc<dyn Source<F>>, count: u16, value: u64) -> Result<Self, MemoryError> {
        let clients = Clients::join(source, count)?;
        Ok(Self::of(
            clients,
            usize::try_from(value).unwrap_or(usize::MAX),
        ))
    }

    fn of(clients: Clients<F>, value: usize) -> Self {
        Self {
            collector: Mutex::new(clients.collector()),
            clients,
            snapshots: Arc::default(),
            locks: LockTable::default(),
            procedures: Registry::default(),
            value_max: value.saturating_sub(long::TAG),
            snapshot_age: SNAPSHOT_AGE,
        }
    }

    /// The same where a transaction may read at its snapshot for so long; then what others have deleted
    /// may go. It hears that the snapshot is too old as soon as something has.
    #[must_use]
    pub fn with_snapshot_age(self, snapshot_age: Duration) -> Self {
        Self {
            snapshot_age,
            ..self
        }
    }

    /// Keeps the places of clients that nobody uses just now; those at work keep their own. To be
    /// called every eighth of a lease.
    pub fn keep(&self) {
        let is_included = |bound: &Vector| self.snapshots.include(bound, self.snapshot_age);
        self.clients.keep(&is_included);
    }

    /// Takes out keys of rows that no snapshot in use sees, for a while, if there is little room left
    /// for new ones. To be called now and then. How many have gone.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn collect_garbage(&self) -> Result<usize, TxnError> {
        match self.collector.lock().as_mut() {
            Some(collector) => self.clients.collect(collector),
            None => Ok(0),
        }
    }

    /// Places that it has, and clients that have met faults.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.clients.counts()
    }

    /// Leaves all places. Nothing is to be asked of it any more.
    pub fn leave(&self) {
        self.clients.leave();
    }

    /// The procedures that [`CommitPath::call`] finds.
    #[must_use]
    pub fn procedures(&self) -> &Registry {
        &self.procedures
    }

    /// Reads as a snapshot sees it.
    fn read<T>(
        &self,
        at: Version,
        work: impl Fn(&mut Rows<'_, F>) -> Result<T, TxnError>,
    ) -> Result<T, TxnError> {
        let vector = self.snapshots.find(at)?;
        self.clients.with(|client, _| {
            let mut rows = client.begin_at(Vector::clone(&vector), Isolation::Snapshot);
            work(&mut rows)
        })
    }

    /// Tries to commit what others are in the way of only by accident.
    fn commit(&self, intent: &Intent) -> Result<Version, TxnError> {
        let room = self.room_of(intent);
        let until = Instant::now() + durable::PATIENCE;
        let mut wait = None;
        let mut tries = 0;
        loop {
            tries += 1;
            let done = self.clients.with(|client, closed| {
                let cut_off = closed.zip(client.cut_off());
                if cut_off.is_some_and(|(closed, stamp)| closed.has(stamp)) {
                    wait = client.wait();
                    return Ok(Ok(()));
                }
                self.clients.make_room(client, room)?;
                match self.try_to_commit(client, intent)? {
                    Err(failure) if !failure.is_conflict() && intent.writes.is_empty() => {
                        Err(failed(failure))
                    }
                    Err(failure) if !failure.is_conflict() => Err(interrupted(failure)),
                    done => {
                        wait = client.wait();
                        Ok(done)
                    }
                }
            })?;
            match done {
                Ok(()) => {
                    if intent.durability == Durability::Sync && !intent.writes.is_empty() {
                        self.await_disk(wait)?;
                    }
                    return Ok(self.snapshots.next());
                }
                Err(failure) if failure.is_unwritten() => durable::may_try_again(until)?,
                Err(failure) if failure.is_conflict() && tries < TRIES_MAX => {}
                Err(failure) => return Err(failed(failure)),
            }
        }
    }

    /// What an intent may need room for, if all that it writes is new.
    fn room_of(&self, intent: &Intent) -> Room {
        let piece = self.value_max as u64 + 1;
        let written = intent.writes.iter();
        let written = written.filter_map(|(key, value)| Some((key, value.as_ref()?)));
        written.fold(Room::default(), |room, (key, value)| {
            let records = 1 + value.len() as u64 / piece + 1;
            Room {
                records: room.records + records,
                entries_bytes: room.entries_bytes + records * (key.len() as u64 + ENTRY_BYTES),
            }
        })
    }

    /// Waits until what somebody has seen is on disk for good, if anybody writes it there.
    fn await_disk(&self, wait: Option<Await>) -> Result<(), TxnError> {
        match wait {
            None => Ok(()),
            Some(wait) => durable::wait(&self.clients, &wait),
        }
    }

    /// One try. The outer error is final: a read is not true any more.
    fn try_to_commit(
        &self,
        client: &mut Client<Driver<F>>,
        intent: &Intent,
    ) -> Result<Result<(), Failure<Misuse>>, TxnError> {
        let mut rows = match now(client.begin(Isolation::Serializable)) {
            Ok(rows) => rows,
            Err(failure) => return not_begun(failure),
        };
        self.rely_on(&mut rows, &intent.reads)?;
        for (key, value) in &intent.writes {
            if let Err(failure) = long::write(&mut rows, key, value.as_deref(), self.value_max) {
                return not_begun(failure);
            }
        }
        Ok(now(rows.commit()).map(drop))
    }

    fn rely_on(&self, rows: &mut Rows<'_, F>, reads: &ReadSet) -> Result<(), TxnError> {
        for (key, version) in reads.points.iter() {
            let then = self.snapshots.find(version)?;
            now(rows.rely_on(&long::row(&key), &then)).map_err(failed)?;
        }
        for (range, version) in &reads.ranges {
            let then = self.snapshots.find(*version)?;
            let (low, high) = long::rows(range);
            now(rows.rely_on_range(&low, Some(&high), &then)).map_err(failed)?;
        }
        Ok(())
    }

    fn still_true(&self, reads: &ReadSet) -> Result<Snapshot, TxnError> {
        self.clients.with(|client, _| {
            let mut rows = now(client.begin(Isolation::Snapshot)).map_err(failed)?;
            self.rely_on(&mut rows, reads)?;
            Ok(self.snapshots.pin(rows.snapshot()))
        })
    }

    fn has_changed(&self, reads: &ReadSet) -> Result<bool, TxnError> {
        match self.still_true(reads) {
            Ok(_) => Ok(false),
            Err(TxnError::Conflict { .. }) => Ok(true),
            Err(failure) => Err(failure),
        }
    }
}

/// A page of a range, whole values.
fn page<F: Fabric>(
    rows: &mut Rows<'_, F>,
    range: &KeyRange,
    direction: Direction,
    limit: usize,
) -> Result<Page, TxnError> {
    let (low, high) = long::rows(range);
    let mut span = Span {
        low,
        high: Some(high),
        descending: direction == Direction::Reverse,
        limit: limit.min(PAGE),
    };
    let mut page = Page::new();
    while page.len() < limit {
        span.limit = (limit - page.len()).min(PAGE);
        let found = now(rows.scan(span.clone())).map_err(failed)?;
        assert!(
            found.len() <= span.limit,
            "a page has no more rows than were asked for"
        );
        let is_last = found.len() < span.limit;
        if let Some((key, _)) = found.last() {
            span.begin_behind(key);
        }
        for (key, value) in found {
            assert_eq!(key.first(), Some(&ROWS), "a range of rows has rows alone");
            let key = key.strip_prefix(&[ROWS]).unwrap_or(&key).to_vec();
            let is_next = || {
                page.last().is_none_or(|(last, _)| match direction {
                    Direction::Forward => *last < key,
                    Direction::Reverse => *last > key,
                })
            };
            assert!(
                !deep() || is_next(),
                "each row of a range is read once, in its order"
            );
            let value = long::whole(rows, &key, &value)?;
            page.push((key, value));
        }
        if is_last {
            break;
        }
    }
    assert!(
        page.len() <= limit,
        "pages make up no more rows than were asked for: {} of {limit}",
        page.len()
    );
    Ok(page)
}

impl<F: Fabric + Send + 'static> CommitPath for RsiPath<F> {
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        Reply::Ready(self.clients.with(|client, _| {
            let vector = now(client.snapshot()).map_err(failed)?;
            Ok(self.snapshots.pin(&vector))
        }))
    }

    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>> {
        Reply::Ready(self.read(
            at,
            |rows| match now(rows.read(&long::row(key))).map_err(failed)? {
                Some(value) => long::whole(rows, key, &value).map(Some),
                None => Ok(None),
            },
        ))
    }

    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Page, TxnError>> {
        Reply::Ready(self.read(at, |rows| page(rows, range, direction, limit)))
    }

    fn submit(&self, intent: Intent) -> Reply<Result<Version, TxnError>> {
        Reply::Ready(self.commit(&intent))
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        let reads = ReadSet {
            points: ReadPoints::default(),
            ranges: vec![(range.clone(), since)],
        };
        Reply::Ready(self.has_changed(&reads))
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        let reads = ReadSet {
            points: vec![(key.to_vec(), since)].into(),
            ranges: Vec::new(),
        };
        Reply::Ready(self.has_changed(&reads))
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        Reply::Ready(self.still_true(reads))
    }

    fn call(
        self: Arc<Self>,
        call: Call,
        waiter: Arc<dyn Waiter>,
    ) -> Reply<Result<Values, TxnError>> {
        let procedure = match self.procedures.find(&call.procedure) {
            Ok(procedure) => procedure,
            Err(unknown) => return Reply::Ready(Err(unknown)),
        };
        let path: Arc<dyn CommitPath> = self;
        let answer = run_attempts(&path, procedure.as_ref(), &OneShard, &call, &waiter);
        Reply::Ready(answer)
    }

    fn locks(&self) -> Option<&LockTable> {
        Some(&self.locks)
    }

    fn others(&self) -> Option<&dyn Others> {
        self.clients.has_source().then_some(&self.clients as _)
    }
}
