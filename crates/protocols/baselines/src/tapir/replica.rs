//! A replica of a shard under TAPIR.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::node::ReplicaOf;
use manxdb_common::{CallId, Conflicts};
use manxdb_core::check::ensure;
use manxdb_core::{NodeId, Work};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;

use super::execute::execute;
use super::message::{Execute, ReadWriteSet, TapirMessage, Timestamp, Vote};
use super::store::Store;
use super::{Out, Tapir, TapirShared};

/// What is kept of a transaction that is to commit, until it has or has not.
#[derive(Debug)]
pub(super) struct Record {
    attempt: u32,
    pub(super) timestamp: Timestamp,
    pub(super) sets: Arc<ReadWriteSet>,
    /// What this replica said.
    vote: Vote,
}

/// One replica of one shard.
pub struct Replica {
    shard: ShardId,
    pub(super) shared: Arc<TapirShared>,
    pub(super) store: Store,
    pub(super) records: BTreeMap<CallId, Record>,
    /// What those touch that this replica let pass: they are prepared.
    prepared: Conflicts<CallId>,
}

impl ReplicaOf<Tapir> for Replica {
    fn new(shard: ShardId, shared: Arc<TapirShared>, rows: Rows) -> Self {
        Self {
            shard,
            shared,
            store: Store::new(rows),
            records: BTreeMap::new(),
            prepared: Conflicts::default(),
        }
    }

    fn on_message(&mut self, from: NodeId, message: TapirMessage, out: &mut Out) {
        let shard = self.shard.0;
        match message {
            TapirMessage::Execute(asked) => self.execute(from, &asked, out),
            TapirMessage::Prepare {
                id,
                attempt,
                timestamp,
                sets,
            } => {
                let Some(vote) = self.prepare(id, attempt, timestamp, sets, out) else {
                    return;
                };
                let voted = TapirMessage::Voted {
                    id,
                    attempt,
                    shard,
                    vote,
                };
                out.send(from, voted);
            }
            TapirMessage::Finalize { id, attempt, .. } => {
                let record = self.records.get(&id);
                if record.is_some_and(|record| record.attempt == attempt) {
                    let kept = TapirMessage::Finalized { id, attempt, shard };
                    out.send(from, kept);
                }
            }
            TapirMessage::Commit { id, timestamp } => self.commit(id, timestamp, out),
            TapirMessage::Abort { id } => {
                if let Some(record) = self.forget(id) {
                    out.work(Store::work_of(&record.sets));
                }
            }
            // What clients are told.
            TapirMessage::Executed { .. }
            | TapirMessage::Voted { .. }
            | TapirMessage::Finalized { .. } => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        self.store.check()?;
        let passed = self.records.iter();
        let passed = passed.filter(|(_, record)| record.vote == Vote::Ok);
        ensure(passed.map(|(id, _)| *id).eq(self.prepared.names()), || {
            "T7: what passed is not what is prepared".into()
        })?;
        for (id, record) in &self.records {
            let is_behind = record.timestamp > record.sets.newest_seen();
            ensure(is_behind || record.vote != Vote::Ok, || {
                format!("T1: {id:?} has read what is behind it")
            })?;
            ensure(record.timestamp.client == id.client.0, || {
                format!(
                    "T8: {id:?} has a timestamp of client {}",
                    record.timestamp.client
                )
            })?;
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        self.store.digest()
    }
}

impl Replica {
    fn execute(&mut self, from: NodeId, asked: &Execute, out: &mut Out) {
        let ran = execute(&self.shared, self.shard, &mut self.store, asked);
        if let Ok(executed) = &ran {
            out.work(Work {
                pieces: executed.sets.steps,
                ..Work::default()
            });
        }
        let executed = TapirMessage::Executed {
            id: asked.planned.id(),
            attempt: asked.attempt,
            shard: self.shard.0,
            ran: Box::new(ran),
        };
        out.send(from, executed);
    }

    /// Lets a transaction pass, or not; nothing to say to a try that is over.
    fn prepare(
        &mut self,
        id: CallId,
        attempt: u32,
        timestamp: Timestamp,
        sets: Arc<ReadWriteSet>,
        out: &mut Out,
    ) -> Option<Vote> {
        let known = self.records.get(&id);
        if known.is_some_and(|record| record.attempt >= attempt) {
            return None;
        }
        // The same at another timestamp.
        self.forget(id);
        out.work(Store::work_of(&sets));
        let touches = sets.touches();
        let vote = self.vote(timestamp, &sets, &self.prepared.clashing(&touches));
        if vote == Vote::Ok {
            self.prepared.add(id, touches);
        }
        let record = Record {
            attempt,
            timestamp,
            sets,
            vote,
        };
        let before = self.records.insert(id, record);
        assert!(before.is_none(), "T5: a transaction has one record");
        Some(vote)
    }

    fn commit(&mut self, id: CallId, timestamp: Timestamp, out: &mut Out) {
        let known = self.records.get(&id);
        if known.is_none_or(|record| record.timestamp != timestamp) {
            return;
        }
        // A replica that did not let it pass keeps what it writes all the same.
        let Some(record) = self.forget(id) else {
            return;
        };
        out.work(Store::work_of(&record.sets));
        self.store.commit(&record.sets, timestamp);
    }

    fn forget(&mut self, id: CallId) -> Option<Record> {
        let record = self.records.remove(&id)?;
        let touched = self.prepared.remove(id);
        assert!(
            touched.is_some() == (record.vote == Vote::Ok),
            "T7: what passed is prepared"
        );
        Some(record)
    }

    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.store.rows
    }
}
