//! The state of several control planes in etcd, one of which is the leader.
//!
//! Who leads, and that nobody else writes, is up to [`manxdb_etcd::fence`]; what is written is here.

use std::time::Duration;

use manxdb_core::Nanos;
use manxdb_etcd::EtcdAddress;
use manxdb_etcd::fence::{self, Fence, FenceSettings, Won, Written};
use manxdb_etcd::put;
use manxdb_jobs::record::{Durable, Record};
use manxdb_jobs::{Lease, Term};

use super::keys::{CURRENT, Keys, together};
use super::{Campaign, StoreError, new_of};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;

/// Keys read at a time: as many of the largest values fit into an answer.
const PAGE: i64 = 32;

/// Where the state is in etcd, and how leadership is kept.
#[derive(Debug, Clone)]
pub struct EtcdSettings {
    /// Where etcd is.
    pub address: EtcdAddress,
    /// Before all keys.
    pub prefix: String,
    /// How long a leader that is not heard of keeps the others waiting.
    pub lease: Duration,
    /// What this control plane calls itself: where others reach it. Empty: where it listens.
    pub name: String,
}

/// The state in etcd.
pub struct EtcdStore {
    fence: Fence,
    settings: EtcdSettings,
    keys: Keys,
    /// The state read at the election, and all writes since.
    durable: Durable,
}

/// Keeps the lease while the store is busy.
pub struct Renewer(fence::Renewer);

impl Renewer {
    /// Renews the lease of a term; `false` if it no longer exists.
    ///
    /// # Errors
    /// [`StoreError::Etcd`]: it is unknown whether the lease exists.
    pub fn renew(&mut self, term: Term) -> Result<bool, StoreError> {
        Ok(self.0.renew(term.0)?)
    }
}

impl EtcdStore {
    /// Opens the state, and reads it once to verify access.
    ///
    /// # Errors
    /// [`StoreError`]: etcd does not answer or refuses access, or its data is damaged or of a newer
    /// release.
    pub fn open(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let keys = Keys::below(&settings.prefix);
        let fence = Fence::new(FenceSettings {
            address: settings.address.clone(),
            leader: keys.leader(),
            written: keys.written(),
            lease: settings.lease,
        })?;
        let mut store = Self {
            fence,
            keys,
            settings: settings.clone(),
            durable: Durable::default(),
        };
        store.read()?;
        Ok(store)
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Mutant) {
        match mutant {
            Mutant::WritesWhoeverLeads => self.fence.write_whoever_leads(),
        }
    }

    /// What this control plane calls itself; `otherwise`, from here on, if nothing was given.
    pub fn named(&mut self, otherwise: &str) -> &str {
        if self.settings.name.is_empty() {
            otherwise.clone_into(&mut self.settings.name);
        }
        &self.settings.name
    }

    /// The lease as the protocol sees it. etcd counts whole seconds.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease::of(Nanos::from_secs(self.settings.lease.as_secs()))
    }

    /// Keeps the lease, with a connection of its own.
    ///
    /// # Errors
    /// As [`Etcd::new`].
    pub fn renewer(&self) -> Result<Renewer, StoreError> {
        Ok(Renewer(self.fence.renewer()?))
    }

    /// All that is kept, and whether its format is said.
    fn read(&mut self) -> Result<(Durable, bool), StoreError> {
        let (mut from, behind) = self.keys.all();
        let (mut durable, mut has_format) = (Durable::default(), false);
        loop {
            let page = self.fence.range(&from, &behind, PAGE)?;
            for pair in &page.kvs {
                has_format |= self.keys.read(pair, &mut durable)?;
            }
            let Some(last) = page.kvs.last().filter(|_| page.more) else {
                return Ok((durable, has_format));
            };
            from.clone_from(&last.key);
            from.push(0); // the least key behind it
        }
    }

    /// Becomes the leader if there is none.
    ///
    /// # Errors
    /// [`StoreError`]: the leader is unknown. If this control plane became the leader, there is
    /// none once its lease has expired.
    pub fn campaign(&mut self) -> Result<Campaign, StoreError> {
        let term = match self.fence.campaign(&self.settings.name)? {
            Won::Taken(leader) => return Ok(Campaign::Taken(leader)),
            Won::Term(term) => Term(term),
        };
        match self.take_over(term) {
            Ok(()) => Ok(Campaign::Elected(term, self.durable.clone())),
            Err(error) => {
                self.resign(term);
                Err(error)
            }
        }
    }

    /// Reads what former leaders have left.
    fn take_over(&mut self, term: Term) -> Result<(), StoreError> {
        let (durable, has_format) = self.read()?;
        if !has_format {
            let format = vec![put(self.keys.format(), CURRENT.to_vec(), 0)];
            if !self.fence.put_while_leading(term.0, format)? {
                return Err(StoreError::Deposed(term));
            }
        }
        self.durable = durable;
        Ok(())
    }

    /// Writes records of a term, in parts that etcd takes: of a batch that is cut short the first
    /// ones are kept.
    ///
    /// # Errors
    /// As [`super::Store::write`].
    pub fn write(&mut self, term: Term, first: u64, records: &[Record]) -> Result<u64, StoreError> {
        if !self.fence.holds(term.0) {
            return Err(StoreError::Deposed(term));
        }
        loop {
            let written = self.fence.written();
            let new = new_of(written, first, records).filter(|new| !new.is_empty());
            let Some(new) = new else {
                return Ok(written);
            };
            let part = new.get(..together(&self.durable, new)).unwrap_or(new);
            let changes = self.keys.changes(&self.durable, part)?;
            let (count, queued) = (part.len() as u64, new.len() as u64);
            let kept = match self.fence.write(term.0, count, queued, changes)? {
                Written::Records(kept) => kept,
                Written::Deposed => return Err(StoreError::Deposed(term)),
            };
            let kept = usize::try_from(kept).unwrap_or(usize::MAX);
            for record in new.iter().take(kept) {
                self.durable.apply(record.clone());
            }
        }
    }

    /// Ends a leadership: another one may lead at once.
    pub fn resign(&mut self, term: Term) {
        if let Err(error) = self.fence.resign(term.0) {
            tracing::debug!(%error, "the lease runs out by itself");
        }
    }
}
