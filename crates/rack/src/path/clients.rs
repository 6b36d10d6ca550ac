//! The clients of a process, of which each does one transaction at a time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_fabric::Fabric;
use manxdb_rsi::rows::Client;
use manxdb_rsi::{Name, Owner};
use manxdb_storage::StorageError;
use manxdb_txn::{Others, TxnError};
use parking_lot::{Condvar, Mutex};

use super::ROOM;
use crate::drive::Driver;
use crate::memory::{MemoryError, Source};

/// Nodes of the tree that a client should have for a commit: for the splits of one key.
const NODES_LEAST: u64 = 16;

/// A client; or nobody, where one has met a fault.
type Slot<F> = Option<Joined<F>>;

struct Joined<F> {
    client: Client<Driver<F>>,
    /// Whose place it has.
    owner: Option<Owner>,
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
}

impl<F: Fabric> Clients<F> {
    /// These, for good.
    pub(super) fn fixed(clients: Vec<Client<Driver<F>>>) -> Self {
        let joined = |client| {
            let owner = None;
            Some(Joined { client, owner })
        };
        Self {
            idle: Mutex::new(clients.into_iter().map(joined).collect()),
            returned: Condvar::new(),
            source: None,
            owners: Mutex::default(),
            faults: AtomicU64::new(0),
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
        };
        for _ in 0..count.max(1) {
            match all.one_more() {
                Ok(joined) => all.idle.lock().push_back(joined),
                Err(error) => {
                    all.leave(); // those who came before are nobody's
                    return Err(error);
                }
            }
        }
        Ok(all)
    }

    fn one_more(&self) -> Result<Slot<F>, MemoryError> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        let member = source.join()?;
        self.owners.lock().insert(member.owner);
        Ok(Some(Joined {
            client: member.client,
            owner: Some(member.owner),
        }))
    }

    pub(super) fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Does something with a client that nobody else uses. One that has met a fault is over, and
    /// somebody else takes its turn next time.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Client<Driver<F>>) -> Result<T, TxnError>,
    ) -> Result<T, TxnError> {
        let mut idle = self.idle.lock();
        let slot = loop {
            match idle.pop_front() {
                Some(slot) => break slot,
                None => self.returned.wait(&mut idle),
            }
        };
        drop(idle);
        let (slot, done) = match self.fill(slot) {
            Ok(mut joined) => {
                let done = work(&mut joined.client);
                (self.judge(joined), done)
            }
            Err(error) => (None, Err(error)),
        };
        self.idle.lock().push_back(slot);
        self.returned.notify_one();
        done
    }

    fn fill(&self, slot: Slot<F>) -> Result<Joined<F>, TxnError> {
        if let Some(joined) = slot {
            return Ok(joined);
        }
        let joined = self.one_more().map_err(|error| failed(&error))?;
        joined.ok_or_else(|| TxnError::Unknown("a client of this memory is over".into()))
    }

    /// The client, unless it has met a fault.
    fn judge(&self, mut joined: Joined<F>) -> Slot<F> {
        if self.source.is_none() || joined.client.carrier_mut().fault().is_none() {
            return Some(joined);
        }
        if let Some(owner) = joined.owner {
            self.owners.lock().remove(&owner);
        }
        self.faults.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Has room made for so many records that a client may write.
    pub(super) fn make_room(
        &self,
        client: &mut Client<Driver<F>>,
        records: u64,
    ) -> Result<(), TxnError> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        let (left, nodes) = client.left();
        if left >= records && nodes >= NODES_LEAST + records / 4 {
            return Ok(());
        }
        let wanted = records.max(ROOM);
        source
            .refill(client, wanted)
            .map_err(|error| failed(&error))
    }

    /// Keeps the places of those that nobody uses just now.
    pub(super) fn keep(&self) {
        let mut idle = self.idle.lock();
        for joined in idle.iter_mut().flatten() {
            let _ = joined.client.carrier_mut().keep(); // a fault is met by the next transaction
        }
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
        self.with(|client| source.present(client).map_err(|error| failed(&error)))
    }
}

impl<F: Fabric + Send> Others for Clients<F> {
    fn me(&self) -> Result<u64, TxnError> {
        // One that has lost its place is another one when it has a new one.
        let first = || {
            let owners = self.owners.lock();
            owners.first().map(|owner| Name::Owner(*owner).client())
        };
        if let Some(number) = first() {
            return Ok(number);
        }
        self.present()?; // takes a place
        first().ok_or_else(|| TxnError::Unknown("this process has no place".into()))
    }

    fn may_live(&self, who: u64) -> Result<bool, TxnError> {
        Ok(self.present()?.contains(&who))
    }

    fn is_alone(&self) -> Result<bool, TxnError> {
        let present = self.present()?;
        let owners = self.owners.lock();
        let own: BTreeSet<u64> = owners
            .iter()
            .map(|owner| Name::Owner(*owner).client())
            .collect();
        Ok(present.iter().all(|number| own.contains(number)))
    }
}

fn failed(error: &MemoryError) -> TxnError {
    let what = error.to_string();
    match error {
        MemoryError::NoRoom(_) => StorageError::Full(what).into(),
        _ => StorageError::Engine(what).into(),
    }
}
