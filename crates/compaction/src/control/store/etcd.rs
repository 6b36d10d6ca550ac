//! The state of several control planes in etcd, one of which is the leader.
//!
//! The leader is the control plane that created the key `leader`, which is attached to its lease.
//! The key's create revision is the term, so terms rise for as long as etcd keeps its data. Every
//! write is a transaction that has no effect unless the key still has the revision of that term, so
//! a deposed leader writes nothing. The transaction also has no effect unless `written` has the
//! value that the previous write left: a write that was believed lost and arrives late, or is sent
//! twice, counts once and never undoes a later one.

use std::sync::Arc;
use std::time::Duration;

use manxdb_core::Nanos;
use manxdb_jobs::record::{Durable, Record};
use manxdb_jobs::{Lease, Term};
use parking_lot::Mutex;

use super::keys::{CURRENT, Keys, together};
use super::{Campaign, StoreError, new_of};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use manxdb_etcd::api::{Compare, KeyValue, TxnRequest, TxnResponse, response_op};
use manxdb_etcd::{Etcd, EtcdAddress, created_at, has_value, put, read};

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

/// Which lease of etcd's a term stands on.
type Held = Arc<Mutex<Option<(Term, i64)>>>;

/// The state in etcd.
pub struct EtcdStore {
    etcd: Etcd,
    settings: EtcdSettings,
    keys: Keys,
    held: Held,
    /// The state read at the election, and all writes since.
    durable: Durable,
    written: u64,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// Keeps the lease while the store is busy.
pub struct Renewer {
    etcd: Etcd,
    held: Held,
}

impl Renewer {
    /// Renews the lease of a term; `false` if it no longer exists.
    ///
    /// # Errors
    /// [`StoreError::Etcd`]: it is unknown whether the lease exists.
    pub fn renew(&mut self, term: Term) -> Result<bool, StoreError> {
        let held = *self.held.lock();
        match held {
            Some((present, lease)) if present == term => Ok(self.etcd.renew(lease)?),
            _ => Ok(false),
        }
    }
}

impl EtcdStore {
    /// Opens the state, and reads it once to verify access.
    ///
    /// # Errors
    /// [`StoreError`]: etcd does not answer or refuses access, or its data is damaged or of a newer
    /// release.
    pub fn open(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let mut store = Self {
            etcd: Etcd::new(&settings.address)?,
            keys: Keys::below(&settings.prefix),
            settings: settings.clone(),
            held: Held::default(),
            durable: Durable::default(),
            written: 0,
            #[cfg(feature = "mutants")]
            mutant: None,
        };
        store.read()?;
        Ok(store)
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Mutant) {
        self.mutant = Some(mutant);
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
        Ok(Renewer {
            etcd: Etcd::new(&self.settings.address)?,
            held: Arc::clone(&self.held),
        })
    }

    /// All that is kept, and whether its format is said.
    fn read(&mut self) -> Result<(Durable, bool), StoreError> {
        let (mut from, behind) = self.keys.all();
        let (mut durable, mut has_format) = (Durable::default(), false);
        loop {
            let page = self.etcd.range(&from, &behind, PAGE)?;
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
        if let Some(leader) = self.etcd.get(&self.keys.leader())? {
            return Ok(Campaign::Taken(name(&leader)));
        }
        let seconds = i64::try_from(self.settings.lease.as_secs()).unwrap_or(i64::MAX);
        let lease = self.etcd.grant(seconds)?;
        let elected = self.take(lease);
        if !matches!(elected, Ok(Campaign::Elected(..))) {
            *self.held.lock() = None;
            let _ = self.etcd.revoke(lease); // it ends by itself
        }
        elected
    }

    fn take(&mut self, lease: i64) -> Result<Campaign, StoreError> {
        let txn = self.etcd.txn(&TxnRequest {
            compare: vec![created_at(self.keys.leader(), 0)],
            success: vec![
                put(self.keys.leader(), self.settings.name.clone().into(), lease),
                put(self.keys.written(), number(0), 0),
            ],
            failure: vec![read(self.keys.leader())],
        })?;
        if !txn.succeeded {
            let leader = found(&txn, 0);
            return Ok(Campaign::Taken(leader.map(name).unwrap_or_default()));
        }
        let revision = txn.header.map_or(0, |header| header.revision);
        let term = Term(revision.cast_unsigned());
        *self.held.lock() = Some((term, lease));
        // No other control plane can write from here on.
        let (durable, has_format) = self.read()?;
        if !has_format {
            self.say_format(term)?;
        }
        self.durable = durable;
        self.written = 0;
        Ok(Campaign::Elected(term, self.durable.clone()))
    }

    fn say_format(&mut self, term: Term) -> Result<(), StoreError> {
        let txn = self.etcd.txn(&TxnRequest {
            compare: vec![self.leads(term)],
            success: vec![put(self.keys.format(), CURRENT.to_vec(), 0)],
            failure: Vec::new(),
        })?;
        if txn.succeeded {
            Ok(())
        } else {
            Err(StoreError::Deposed(term))
        }
    }

    /// The condition that holds while this control plane leads.
    fn leads(&self, term: Term) -> Compare {
        created_at(self.keys.leader(), term.0.cast_signed())
    }

    /// Writes records of a term, in parts that etcd takes: of a batch that is cut short the first
    /// ones are kept.
    ///
    /// # Errors
    /// As [`super::Store::write`].
    pub fn write(&mut self, term: Term, first: u64, records: &[Record]) -> Result<u64, StoreError> {
        let is_present = self.held.lock().is_some_and(|(present, _)| present == term);
        if !is_present {
            return Err(StoreError::Deposed(term));
        }
        while let Some(new) = new_of(self.written, first, records).filter(|new| !new.is_empty()) {
            let part = new.get(..together(&self.durable, new)).unwrap_or(new);
            let kept = self.write_part(term, part)?;
            let kept = usize::try_from(kept).ok().and_then(|kept| new.get(..kept));
            let Some(kept) = kept else {
                return Err(StoreError::Deposed(term)); // somebody else has written there
            };
            for record in kept {
                self.durable.apply(record.clone());
            }
            self.written += kept.len() as u64;
        }
        Ok(self.written)
    }

    /// The preconditions of a write: this control plane leads, and the previous write is the last
    /// one.
    fn conditions(&self, term: Term) -> Vec<Compare> {
        let is_next = has_value(self.keys.written(), number(self.written));
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::WritesWhoeverLeads) {
            return vec![is_next];
        }
        vec![self.leads(term), is_next]
    }

    /// Writes what fits into a transaction; how many records are kept then. More than were given
    /// when an earlier attempt had written them without saying so.
    fn write_part(&mut self, term: Term, records: &[Record]) -> Result<u64, StoreError> {
        let after = self.written + records.len() as u64;
        let mut success = self.keys.changes(&self.durable, records)?;
        success.push(put(self.keys.written(), number(after), 0));
        let txn = self.etcd.txn(&TxnRequest {
            compare: self.conditions(term),
            success,
            failure: vec![read(self.keys.leader()), read(self.keys.written())],
        })?;
        if txn.succeeded {
            return Ok(records.len() as u64);
        }
        let leader = found(&txn, 0).map(|pair| pair.create_revision.cast_unsigned());
        let written = found(&txn, 1).and_then(|pair| parse(&pair.value));
        let more = written.and_then(|written| written.checked_sub(self.written));
        match more {
            Some(more) if leader == Some(term.0) && more > 0 => Ok(more),
            _ => Err(StoreError::Deposed(term)),
        }
    }

    /// Ends a leadership: another one may lead at once.
    pub fn resign(&mut self, term: Term) {
        let held = self.held.lock().take_if(|(present, _)| *present == term);
        if let Some((_, lease)) = held
            && let Err(error) = self.etcd.revoke(lease)
        {
            tracing::debug!(%error, "the lease runs out by itself");
        }
    }
}

fn name(leader: &KeyValue) -> String {
    String::from_utf8_lossy(&leader.value).into_owned()
}

fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn parse(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The key that the read at `place` of a transaction found.
fn found(txn: &TxnResponse, place: usize) -> Option<&KeyValue> {
    match txn.responses.get(place)?.response.as_ref()? {
        response_op::Response::ResponseRange(range) => range.kvs.first(),
        _ => None,
    }
}
