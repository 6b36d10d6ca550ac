//! The clients of a process, of which each does one transaction at a time.
//!
//! A client that meets the loss of a memory server with replicas goes on with its place in the next
//! epoch, and what it was doing is done once more; a commit only if it is not there.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use manxdb_core::check::deep;
use manxdb_fabric::Fabric;
use manxdb_rsi::rows::Client;
use manxdb_rsi::rows::collect::Collector;
use manxdb_rsi::{Closed, Owner, RecordAddress, Snapshot};
use manxdb_storage::StorageError;
use manxdb_txn::{Others, TxnError};
use parking_lot::{Condvar, Mutex};

use super::PORTION;
use super::failed as unreadable;
use super::gc::{Freed, SPARE, advance_watermark, step};
use crate::drive::{Driver, now};
use crate::memory::{JoinedClient, MemoryError, Source};

/// Nodes of the tree that a client should have for a commit beside those of its leaves: for what is
/// split above them.
const NODES_LEAST: u64 = 16;
/// Bytes of an entry of a node beside the key of a row, about: what tells a row from a piece of one, the
/// number of the piece, the length of the key, and the address of the record.
pub(super) const ENTRY_BYTES: u64 = 16;
/// Between two looks at places that are to be kept while others are taken.
const LOOK: Duration = Duration::from_millis(5);
/// Between two looks at whether statements are refused, of who waits for a client.
const REFUSAL_LOOK: Duration = Duration::from_millis(100);
/// Losses, one after the other, that one piece of work may meet.
const TRIES_MAX: u32 = 8;

/// What a commit may need room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) records: u64,
    /// Bytes of the entries of the tree that lead to them.
    pub(super) entries_bytes: u64,
}

impl Room {
    /// Nodes of so many bytes that its entries may split: a node that was split is half full.
    fn nodes(self, node_bytes: u64) -> u64 {
        NODES_LEAST + (2 * self.entries_bytes).div_ceil(node_bytes.max(1))
    }
}

/// A client; or nobody, where one has met a fault.
type Slot<F> = Option<Joined<F>>;

/// A client, with a place unless it is one for good.
enum Joined<F> {
    Fixed(Client<Driver<F>>),
    JoinedClient(JoinedClient<F>),
}

impl<F> Joined<F> {
    fn client(&mut self) -> &mut Client<Driver<F>> {
        match self {
            Self::Fixed(client) => client,
            Self::JoinedClient(member) => &mut member.client,
        }
    }
}

/// All clients of a process.
pub(super) struct Clients<F> {
    /// Those that nobody uses just now, in turn.
    idle: Mutex<VecDeque<Slot<F>>>,
    returned: Condvar,
    /// Where others come from; none: these are all.
    source: Option<Arc<dyn Source<F>>>,
    /// The owners of the places of all of them, also of those at work.
    owners: Mutex<BTreeSet<Owner>>,
    /// Those that have met a fault.
    faults: AtomicU64,
    /// What others may have.
    free: Mutex<Freed>,
}

impl<F: Fabric + Send> Clients<F> {
    /// These, for good.
    pub(super) fn fixed(clients: Vec<Client<Driver<F>>>) -> Self {
        let fixed = |client| Some(Joined::Fixed(client));
        Self {
            idle: Mutex::new(clients.into_iter().map(fixed).collect()),
            returned: Condvar::new(),
            source: None,
            owners: Mutex::default(),
            faults: AtomicU64::new(0),
            free: Mutex::default(),
        }
    }

    /// So many, with places.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub(super) fn join(source: Arc<dyn Source<F>>, count: u16) -> Result<Self, MemoryError> {
        let all = Self {
            idle: Mutex::default(),
            returned: Condvar::new(),
            source: Some(source),
            owners: Mutex::default(),
            faults: AtomicU64::new(0),
            free: Mutex::default(),
        };
        let (over, nobody) = (AtomicBool::new(false), |_: &Snapshot| false);
        // To take them all may take longer than a lease: those that were taken are kept meanwhile.
        let taken = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    all.keep(&nobody);
                    thread::sleep(LOOK);
                }
            });
            let taken = (0..count.max(1)).try_for_each(|_| {
                let joined = all.one_more()?;
                all.idle.lock().push_back(joined);
                Ok(())
            });
            over.store(true, Ordering::Relaxed);
            taken
        });
        if let Err(error) = taken {
            all.leave(); // those who came before are nobody's
            return Err(error);
        }
        let with_place = all.idle.lock().iter().filter(|slot| slot.is_some()).count();
        assert_eq!(
            all.owners.lock().len(),
            with_place,
            "each client has a place of its own"
        );
        Ok(all)
    }

    fn one_more(&self) -> Result<Slot<F>, MemoryError> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        let member = source.join()?;
        let is_new = self.owners.lock().insert(member.owner);
        assert!(is_new, "a place is one client's: {:?}", member.owner);
        Ok(Some(Joined::JoinedClient(member)))
    }

    pub(super) fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Does something with a client that nobody else uses; once more when a memory server was lost
    /// over it, with how the client's session ended then. A client that has met another fault is
    /// over, and somebody else takes its turn next time.
    pub(super) fn with<T>(
        &self,
        mut work: impl FnMut(&mut Client<Driver<F>>, Option<Closed>) -> Result<T, TxnError>,
    ) -> Result<T, TxnError> {
        let mut slot = self.take()?;
        let mut closed = None;
        let mut tries = 0;
        let done = loop {
            let mut joined = match self.fill(slot) {
                Ok(joined) => joined,
                Err(error) => {
                    slot = None;
                    break Err(error);
                }
            };
            let done = work(joined.client(), closed.take());
            tries += 1;
            assert!(
                tries <= TRIES_MAX,
                "a piece of work meets {TRIES_MAX} losses at most"
            );
            let (left, heard) = self.judge(joined);
            slot = left;
            closed = match heard {
                Ok(Some(closed)) if done.is_err() && tries < TRIES_MAX => Some(closed),
                Err(error) => break done.map_err(|done| because(done, &error)),
                _ => break done,
            };
        };
        self.give_back(slot);
        done
    }

    /// A client that nobody uses, as soon as there is one.
    ///
    /// # Errors
    /// Statements are refused: nobody waits for clients that wait for memory.
    fn take(&self) -> Result<Slot<F>, TxnError> {
        loop {
            if let Some(lost) = self.source.as_ref().and_then(|source| source.lost()) {
                return Err(failed(MemoryError::Lost(lost)));
            }
            let mut idle = self.idle.lock();
            if let Some(slot) = idle.pop_front() {
                return Ok(slot);
            }
            self.returned.wait_for(&mut idle, REFUSAL_LOOK);
        }
    }

    fn give_back(&self, slot: Slot<F>) {
        self.idle.lock().push_back(slot);
        self.returned.notify_one();
    }

    fn fill(&self, slot: Slot<F>) -> Result<Joined<F>, TxnError> {
        if let Some(joined) = slot {
            return Ok(joined);
        }
        let joined = self.one_more().map_err(failed)?;
        joined.ok_or_else(|| StorageError::Engine("a client of this memory is over".into()).into())
    }

    /// The client, unless it has met a fault and does not go on; and how its session ended, if it
    /// goes on behind it.
    fn judge(&self, mut joined: Joined<F>) -> (Slot<F>, Result<Option<Closed>, MemoryError>) {
        let is_fine = joined.client().carrier_mut().fault().is_none();
        let (Some(source), Joined::JoinedClient(member), false) =
            (&self.source, &mut joined, is_fine)
        else {
            return (Some(joined), Ok(None));
        };
        self.faults.fetch_add(1, Ordering::Relaxed);
        let before = member.owner;
        let heard = source.go_on(member);
        let mut owners = self.owners.lock();
        owners.remove(&before);
        match heard {
            Ok(Some(closed)) => {
                assert_eq!(closed.owner, before, "a client hears of its own end");
                let is_new = owners.insert(member.owner);
                assert!(is_new, "a place is one client's: {:?}", member.owner);
                drop(owners);
                (Some(joined), Ok(Some(closed)))
            }
            other => (None, other), // what it was doing has met the fault, too
        }
    }

    /// Has room made for what a client may add; who only deletes needs none.
    pub(super) fn make_room(
        &self,
        client: &mut Client<Driver<F>>,
        room: Room,
    ) -> Result<(), TxnError> {
        let records = room.records;
        let Some(source) = self.source.as_ref().filter(|_| records > 0) else {
            return Ok(());
        };
        let wanted = (records, room.nodes(client.node_bytes()));
        self.recycle(client, wanted)?;
        match source.refill(client, wanted) {
            // Few commits split as many nodes; one that does says so.
            Err(MemoryError::NoRoom { .. }) if client.lacks((records, NODES_LEAST)) == (0, 0) => {
                Ok(())
            }
            done => done.map_err(failed),
        }
    }

    /// Gives a client what has come free, if it has not so many records and nodes left.
    fn recycle(&self, client: &mut Client<Driver<F>>, wanted: (u64, u64)) -> Result<(), TxnError> {
        let (records, nodes) = client.lacks(wanted);
        if (records, nodes) == (0, 0) {
            return Ok(());
        }
        let some = |free: &mut Vec<RecordAddress>, lacking: u64, least: u64| {
            let count = if lacking > 0 { lacking.max(least) } else { 0 };
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            free.split_off(free.len().saturating_sub(count))
        };
        let mut free = self.free.lock();
        let given = Freed {
            records: some(&mut free.records, records, PORTION),
            nodes: some(&mut free.nodes, nodes, NODES_LEAST),
        };
        drop(free);
        assert!(
            given.is_distinct(),
            "a place that has come free is given to one row or node"
        );
        client.recycle(given.records);
        now(client.recycle_nodes(&given.nodes)).map_err(unreadable)
    }

    /// Keeps the places of those that nobody uses just now, and heeds the bound of snapshots if all
    /// that are in use include it.
    pub(super) fn keep(&self, is_included: &dyn Fn(&Snapshot) -> bool) {
        let count = self.idle.lock().len();
        for _ in 0..count {
            let Some(slot) = self.idle.lock().pop_front() else {
                return;
            };
            let slot = slot.and_then(|mut joined| {
                let _ = joined.client().carrier_mut().keep(); // or it has met a fault
                if let Some(source) = &self.source {
                    let _ = advance_watermark(joined.client(), source.low_watermark(), is_included); // as above
                }
                self.judge(joined).0
            });
            self.give_back(slot);
        }
    }

    /// Collects for a while, unless there is enough; how many records have come free.
    pub(super) fn collect(&self, collector: &mut Collector) -> Result<usize, TxnError> {
        let Some(source) = &self.source else {
            return Ok(0);
        };
        if self.free.lock().records.len() >= SPARE {
            return Ok(0);
        }
        let freed = self.with(|client, _| step(collector, client, source.as_ref()))?;
        let count = freed.records.len();
        let mut free = self.free.lock();
        free.records.extend(freed.records);
        free.nodes.extend(freed.nodes);
        assert!(
            !deep() || free.is_distinct(),
            "what comes free was somebody's until then"
        );
        Ok(count)
    }

    /// One that collects; none where nobody has a place.
    pub(super) fn collector(&self) -> Option<Collector> {
        let source = self.source.as_ref()?;
        Some(Collector::new(source.low_watermark()))
    }

    /// Places, and clients that have met a fault.
    pub(super) fn counts(&self) -> (u64, u64) {
        let places = self.owners.lock().len() as u64;
        (places, self.faults.load(Ordering::Relaxed))
    }

    /// Ends all clients, then leaves their places: in this order, for whoever is let go of while it
    /// still has memory may be ended for it.
    pub(super) fn leave(&self) {
        self.idle.lock().clear();
        let owners = std::mem::take(&mut *self.owners.lock());
        if let Some(source) = &self.source {
            let _ = source.leave(&owners.into_iter().collect::<Vec<_>>()); // or their leases lapse
        }
    }

    /// Clients of all processes, by their numbers.
    fn present(&self) -> Result<Vec<u64>, TxnError> {
        let Some(source) = &self.source else {
            return Ok(Vec::new());
        };
        self.with(|client, _| source.present(client).map_err(failed))
    }

    fn own(&self) -> u64 {
        self.source.as_ref().map_or(0, |source| source.own())
    }
}

impl<F: Fabric + Send> Others for Clients<F> {
    fn me(&self) -> Result<u64, TxnError> {
        let own = self.own();
        if self.present()?.contains(&own) {
            return Ok(own);
        }
        Err(TxnError::Unknown("this process has no place".into()))
    }

    fn may_live(&self, who: u64) -> Result<bool, TxnError> {
        let present = self.present()?;
        Ok(present.contains(&who) || present.contains(&0))
    }

    fn is_alone(&self) -> Result<bool, TxnError> {
        let own = self.own();
        Ok(self.present()?.iter().all(|number| *number == own))
    }
}

/// Why something has failed, with why its client does not go on. Only a commit that had begun is of
/// unknown outcome.
fn because(done: TxnError, why: &MemoryError) -> TxnError {
    match done {
        TxnError::Unknown(what) => TxnError::Unknown(format!("{what}; {why}")),
        TxnError::Storage(StorageError::Engine(what)) => {
            StorageError::Engine(format!("{what}; {why}")).into()
        }
        other => other,
    }
}

fn failed(error: MemoryError) -> TxnError {
    let what = error.to_string();
    match error {
        MemoryError::NoRoom { .. } => StorageError::Full(what).into(),
        MemoryError::Own(failure) => unreadable(failure),
        _ => StorageError::Engine(what).into(),
    }
}
