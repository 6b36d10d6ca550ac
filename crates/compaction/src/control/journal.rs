//! Log lines about a job. The job's name is its trace: unlike all other numbers of RocksDB and of
//! this crate, it is the same at the database (also in RocksDB's own log), the control plane and
//! the worker, and it is never reused.

use manxdb_jobs::election::{ToStore, Why};
use manxdb_jobs::message::Message;
use manxdb_jobs::record::Record;

/// The control plane writes a record.
fn of_record(record: &Record) {
    match record {
        Record::Job { job, spec } => {
            let facts = &spec.facts;
            tracing::debug!(
                trace = %job, start_level = facts.start_level, bytes = facts.bytes, "taken"
            );
        }
        Record::Leased {
            attempt, worker, ..
        } => {
            let worker = format!("{:016x}", worker.0);
            tracing::info!(trace = %attempt.job, %attempt, worker, "given to a worker");
        }
        Record::Released { job } => {
            tracing::info!(trace = %job, "an attempt failed or was lost; it waits again");
        }
        Record::Result { attempt, .. } => {
            tracing::info!(trace = %attempt.job, %attempt, "done; the database is told");
        }
        Record::Gone { database } => {
            let database = format!("{:016x}", database.0);
            tracing::debug!(database, "gone, and its account with it");
        }
        Record::Over { job } => tracing::debug!(trace = %job, "over"),
        Record::Banned { worker } => {
            let worker = format!("{:016x}", worker.0);
            tracing::error!(
                worker,
                "a database refused what this worker made; it gets nothing more"
            );
        }
    }
}

/// The control plane asks something of its store.
pub(super) fn of_store(word: &ToStore) {
    match word {
        ToStore::Write { records, .. } => records.iter().for_each(of_record),
        ToStore::Resign { term, why } => {
            let (term, is_asked, why) = (term.0, *why == Why::Ends, why.words());
            if is_asked {
                tracing::info!(term, why, "this control plane leads no more");
            } else {
                tracing::warn!(term, why, "this control plane leads no more");
            }
        }
        ToStore::Campaign { .. } | ToStore::Renew { .. } => {} // said all the time
    }
}

/// The control plane says something to a database or a worker.
pub(super) fn of_message(message: &Message) {
    if let Message::GoLocal { job, reason } = message {
        tracing::info!(trace = %job, reason = reason.word(), "sent home");
    }
}
