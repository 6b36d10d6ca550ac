//! Leadership among several processes, and writes that have an effect only while their author leads.
//!
//! The leader is the process that created the key `leader`, which is attached to its lease. The key's
//! create revision is the term, so terms rise for as long as etcd keeps its data. Every write is a
//! transaction that has no effect unless the key still has the revision of that term, so a deposed
//! leader writes nothing. The transaction also has no effect unless `written` has the value that the
//! previous write left: a write that was believed lost and arrives late, or is sent twice, counts
//! once and never undoes a later one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::{
    Compare, KeyValue, RangeResponse, RequestOp, TxnRequest, TxnResponse, response_op,
};
use crate::{Etcd, EtcdAddress, EtcdError, created_at, has_value, put, read};

/// Where leadership is kept, and for how long.
#[derive(Debug, Clone)]
pub struct FenceSettings {
    /// Where etcd is.
    pub address: EtcdAddress,
    /// The key of the leader.
    pub leader: Vec<u8>,
    /// The key that counts the leader's records.
    pub written: Vec<u8>,
    /// How long a leader that is not heard of keeps the others waiting; etcd counts whole seconds.
    pub lease: Duration,
}

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Won {
    /// We lead in this term, which is never 0. No other process can write from here on.
    Term(u64),
    /// Another process leads, by this name.
    Taken(String),
}

/// How a fenced write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// As many records are kept of those that were given, or of an earlier attempt to write them
    /// with others: then it may be more.
    Records(u64),
    /// The term is over, or somebody else has written below the keys: nothing was written.
    Deposed,
}

/// Which lease of etcd's a term stands on.
#[derive(Debug, Clone, Default)]
struct Held(Arc<Mutex<Option<(u64, i64)>>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, Option<(u64, i64)>> {
        // Whole at all times: it is read and replaced in one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, term: u64) -> Option<i64> {
        let held = *self.lock();
        held.filter(|(present, _)| *present == term)
            .map(|(_, lease)| lease)
    }
}

/// One of the processes that contend for the leadership, for one thread.
pub struct Fence {
    etcd: Etcd,
    settings: FenceSettings,
    held: Held,
    /// Records of this term that are kept.
    written: u64,
    #[cfg(feature = "mutants")]
    writes_whoever_leads: bool,
}

/// Keeps the lease while the other connection is busy.
pub struct Renewer {
    etcd: Etcd,
    held: Held,
}

impl Renewer {
    /// Renews the lease of a term; `false` if it no longer exists.
    ///
    /// # Errors
    /// [`EtcdError`]: it is unknown whether the lease exists.
    pub fn renew(&mut self, term: u64) -> Result<bool, EtcdError> {
        match self.held.of(term) {
            Some(lease) => self.etcd.renew(lease),
            None => Ok(false),
        }
    }
}

impl Fence {
    /// A contender; it connects with the first call.
    ///
    /// # Errors
    /// As [`Etcd::new`].
    pub fn new(settings: FenceSettings) -> Result<Self, EtcdError> {
        Ok(Self {
            etcd: Etcd::new(&settings.address)?,
            settings,
            held: Held::default(),
            written: 0,
            #[cfg(feature = "mutants")]
            writes_whoever_leads: false,
        })
    }

    /// Plants a defect: etcd accepts a write whether its author leads or not.
    #[cfg(feature = "mutants")]
    pub fn write_whoever_leads(&mut self) {
        self.writes_whoever_leads = true;
    }

    /// Keeps the lease, with a connection of its own.
    ///
    /// # Errors
    /// As [`Etcd::new`].
    pub fn renewer(&self) -> Result<Renewer, EtcdError> {
        Ok(Renewer {
            etcd: Etcd::new(&self.settings.address)?,
            held: self.held.clone(),
        })
    }

    /// Records of the present term that are kept.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether a term is the one that this process was elected for and has not given back. It may be
    /// over all the same.
    #[must_use]
    pub fn holds(&self, term: u64) -> bool {
        self.held.of(term).is_some()
    }

    /// Keys from `from` to before `to`, at most `limit` of them. A linearizable read.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        limit: i64,
    ) -> Result<RangeResponse, EtcdError> {
        self.etcd.range(from, to, limit)
    }

    /// Becomes the leader, called `name`, if there is none.
    ///
    /// # Errors
    /// [`EtcdError`]: the leader is unknown. If this process became the leader, there is none once
    /// its lease has expired.
    pub fn campaign(&mut self, name: &str) -> Result<Won, EtcdError> {
        if let Some(leader) = self.etcd.get(&self.settings.leader)? {
            return Ok(Won::Taken(text(&leader)));
        }
        let seconds = i64::try_from(self.settings.lease.as_secs()).unwrap_or(i64::MAX);
        let lease = self.etcd.grant(seconds)?;
        let won = self.take(name, lease);
        if !matches!(won, Ok(Won::Term(_))) {
            *self.held.lock() = None;
            let _ = self.etcd.revoke(lease); // it ends by itself
        }
        won
    }

    fn take(&mut self, name: &str, lease: i64) -> Result<Won, EtcdError> {
        let txn = self.etcd.txn(&TxnRequest {
            compare: vec![created_at(self.settings.leader.clone(), 0)],
            success: vec![
                put(self.settings.leader.clone(), name.into(), lease),
                put(self.settings.written.clone(), number(0), 0),
            ],
            failure: vec![read(self.settings.leader.clone())],
        })?;
        if !txn.succeeded {
            return Ok(Won::Taken(found(&txn, 0).map(text).unwrap_or_default()));
        }
        let revision = txn.header.map_or(0, |header| header.revision);
        if revision <= 0 {
            // As a condition, 0 would say that nobody leads.
            let why = "it wrote a leader without saying at which revision".to_owned();
            return Err(EtcdError::Refused(self.etcd.member(), why));
        }
        let term = revision.cast_unsigned();
        *self.held.lock() = Some((term, lease));
        self.written = 0;
        Ok(Won::Term(term))
    }

    /// The condition that holds while this process leads.
    fn leads(&self, term: u64) -> Compare {
        created_at(self.settings.leader.clone(), term.cast_signed())
    }

    /// The preconditions of a write: this process leads, and the previous write is the last one.
    fn conditions(&self, term: u64) -> Vec<Compare> {
        let is_next = has_value(self.settings.written.clone(), number(self.written));
        #[cfg(feature = "mutants")]
        if self.writes_whoever_leads {
            return vec![is_next];
        }
        vec![self.leads(term), is_next]
    }

    /// Writes what `changes` says if the term is not over, without counting it; whether it was
    /// written.
    ///
    /// # Errors
    /// [`EtcdError`]: it may have been written all the same.
    pub fn put_while_leading(
        &mut self,
        term: u64,
        changes: Vec<RequestOp>,
    ) -> Result<bool, EtcdError> {
        let txn = self.etcd.txn(&TxnRequest {
            compare: vec![self.leads(term)],
            success: changes,
            failure: Vec::new(),
        })?;
        Ok(txn.succeeded)
    }

    /// Writes the next `records` records of a term, which make these changes, in one transaction.
    /// `queued` counts them and those behind them that an earlier attempt may have written with them.
    ///
    /// # Errors
    /// [`EtcdError`]: it is unknown what was written; the same records may be written again, with
    /// others after them.
    pub fn write(
        &mut self,
        term: u64,
        records: u64,
        queued: u64,
        mut changes: Vec<RequestOp>,
    ) -> Result<Written, EtcdError> {
        assert!(
            records <= queued,
            "what is written is a part of what is queued"
        );
        if !self.holds(term) {
            return Ok(Written::Deposed);
        }
        let after = number(self.written + records);
        changes.push(put(self.settings.written.clone(), after, 0));
        let txn = self.etcd.txn(&TxnRequest {
            compare: self.conditions(term),
            success: changes,
            failure: vec![
                read(self.settings.leader.clone()),
                read(self.settings.written.clone()),
            ],
        })?;
        let kept = if txn.succeeded {
            Some(records)
        } else {
            self.kept_before(term, queued, &txn)
        };
        let Some(kept) = kept else {
            return Ok(Written::Deposed);
        };
        self.written += kept;
        Ok(Written::Records(kept))
    }

    /// Records that an earlier attempt wrote without saying so, if the term is not over. More than
    /// are queued were written by somebody else.
    fn kept_before(&self, term: u64, queued: u64, txn: &TxnResponse) -> Option<u64> {
        let leader = found(txn, 0).map(|pair| pair.create_revision.cast_unsigned());
        let written = found(txn, 1).and_then(|pair| parse(&pair.value))?;
        let more = written.checked_sub(self.written)?;
        (leader == Some(term) && (1..=queued).contains(&more)).then_some(more)
    }

    /// Ends a leadership: another one may lead at once.
    ///
    /// # Errors
    /// [`EtcdError`]: the lease runs out by itself.
    pub fn resign(&mut self, term: u64) -> Result<(), EtcdError> {
        let held = self.held.lock().take_if(|(present, _)| *present == term);
        match held {
            Some((_, lease)) => self.etcd.revoke(lease),
            None => Ok(()),
        }
    }
}

fn text(leader: &KeyValue) -> String {
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
