//! What forgotten people have left in files, the keys of their rows and index entries and the commit log, goes
//! within `gdpr_purge_days`, and certificates say when that was seen.
//!
//! A deleted row leaves its key behind until compactions have come by, and nobody says when they do. So when
//! the first request is about to have been done for so many days, all files are rewritten once, for all
//! requests that are done by then ([`manxdb_txn::CommitPath::purge`], which also looks whether it worked).

use std::sync::atomic::{AtomicI64, Ordering};

use manxdb_ownership::proof::{AuditEvent, AuditKind};

use crate::error::SqlResult;
use crate::session::instance::Instance;
use crate::statement::owners::{audit, purges};
use crate::types::MICROS_PER_DAY;

/// Files are rewritten so long before the last day, or a tenth of the time where that is longer.
const AHEAD_DAYS: i64 = 1;
/// Pause after something was still there: all files are rewritten again then.
const PAUSE_MICROS: i64 = 3_600_000_000;

/// When files may be looked at again, in monotonic microseconds.
#[derive(Debug, Default)]
pub(in crate::session) struct NextPurge(AtomicI64);

/// When the files of a request that was done at a time are to be rewritten: `days` later at the latest.
fn begins_at(done_at_micros: i64, days: i64) -> i64 {
    assert!(days >= 0, "the variable has a least value");
    let ahead = AHEAD_DAYS.max(days / 10).min(days);
    ends_at(done_at_micros, days.saturating_sub(ahead))
}

/// The end of `days` days from the time when a request was done, microseconds since 1970.
pub(super) fn ends_at(done_at_micros: i64, days: i64) -> i64 {
    done_at_micros.saturating_add(days.saturating_mul(MICROS_PER_DAY))
}

impl Instance {
    /// Has what forgotten people have left in files go when the first of them is due; of how many requests it
    /// was seen to be gone. The process calls it now and then while it serves; it may take long.
    ///
    /// # Errors
    /// Storage: it is tried again at the next call.
    pub fn purge_forgotten(&self) -> SqlResult<usize> {
        let requests = {
            let txn = self.store.begin();
            txn.declare_read_only();
            purges::all(&txn)?
        };
        let days = self.globals.read().integer("gdpr_purge_days");
        let first = requests.iter().map(|(_, done_at)| *done_at).min();
        let due = first.map(|done_at| begins_at(done_at, days));
        if due.is_none_or(|due| self.host.wall_micros() < due) {
            return Ok(0);
        }
        let now = self.host.monotonic_micros();
        if now < self.next_purge.0.load(Ordering::Relaxed) {
            return Ok(0);
        }
        // The log ends with a commit of now: all before it can go with its file.
        if let Some((request, done_at)) = requests.first() {
            self.in_transaction(|txn| purges::touch(txn, *request, *done_at))?;
        }
        if !self.path.purge()? {
            self.next_purge
                .0
                .store(now + PAUSE_MICROS, Ordering::Relaxed);
            tracing::info!(
                "what was forgotten is not gone from all files yet: files are looked at again in an hour"
            );
            return Ok(0);
        }
        let mut purged = 0;
        for (request, done_at) in requests {
            let is_purged = self.in_transaction(|txn| {
                let is_there = purges::end(txn, request, done_at)?;
                if is_there {
                    let event = AuditEvent {
                        request: Some(request),
                        ..AuditEvent::new(AuditKind::Purged, self.audit_time())
                    };
                    audit::append_unlocked(txn, &event)?;
                }
                Ok(is_there)
            })?;
            purged += usize::from(is_purged);
        }
        self.mirror_audit()?;
        Ok(purged)
    }

    /// Ends [`Instance::purge_forgotten`] soon, for good: the server stops.
    pub fn stop_purging(&self) {
        self.path.stop_purging();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_rewritten_before_the_last_day() {
        let days = |allowed| begins_at(5, allowed) - 5;
        assert_eq!(days(0), 0);
        assert_eq!(days(1), 0);
        assert_eq!(days(2), MICROS_PER_DAY);
        assert_eq!(days(30), 27 * MICROS_PER_DAY);
        assert_eq!(begins_at(i64::MAX, 3_650), i64::MAX);
    }
}
