//! Counters and the slow-statement ring that the admin listener shows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Upper bounds of the latency histogram, microseconds; the last bucket is everything above.
pub const LATENCY_BOUNDS_MICROS: [i64; 16] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 5_000_000, 30_000_000,
];

/// Slow statements kept.
const SLOW_MAX: usize = 256;
/// Longest text kept of one, bytes.
const SLOW_TEXT_BYTES_MAX: usize = 4096;

/// What kind of statement was run, as counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatementKind {
    /// SELECT and its kin.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// REPLACE.
    Replace,
    /// CREATE, ALTER, DROP, TRUNCATE, RENAME.
    Ddl,
    /// SET.
    Set,
    /// SHOW, DESCRIBE, EXPLAIN.
    Show,
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// Everything else.
    Other,
}

/// All kinds with their Prometheus label and MySQL status counter, in counter order.
pub const STATEMENT_KINDS: [(StatementKind, &str, &str); 12] = [
    (StatementKind::Select, "select", "Com_select"),
    (StatementKind::Insert, "insert", "Com_insert"),
    (StatementKind::Update, "update", "Com_update"),
    (StatementKind::Delete, "delete", "Com_delete"),
    (StatementKind::Replace, "replace", "Com_replace"),
    (StatementKind::Ddl, "ddl", "Com_ddl"),
    (StatementKind::Set, "set", "Com_set_option"),
    (StatementKind::Show, "show", "Com_show"),
    (StatementKind::Begin, "begin", "Com_begin"),
    (StatementKind::Commit, "commit", "Com_commit"),
    (StatementKind::Rollback, "rollback", "Com_rollback"),
    (StatementKind::Other, "other", "Com_other"),
];

/// Where a statement's time went, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeSplit {
    /// Text to tree.
    pub parse: i64,
    /// Tree to plan.
    pub plan: i64,
    /// Waiting for row locks.
    pub lock_wait: i64,
    /// Running, without the parts named here.
    pub execute: i64,
    /// Commit: validation, log write, group commit.
    pub commit: i64,
    /// Handing rows to the frontend.
    pub send: i64,
}

impl TimeSplit {
    /// The parts with the names that operators see, in the order in which they are spent.
    #[must_use]
    pub const fn parts(&self) -> [(&'static str, i64); 6] {
        [
            ("parse", self.parse),
            ("plan", self.plan),
            ("lock_wait", self.lock_wait),
            ("execute", self.execute),
            ("commit", self.commit),
            ("send", self.send),
        ]
    }
}

/// How long statements of one kind took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindLatency {
    /// Statements by duration, bounds in [`LATENCY_BOUNDS_MICROS`], one more for the rest.
    pub buckets: [u64; 17],
    /// Sum of all durations, microseconds.
    pub sum_micros: u64,
}

impl KindLatency {
    /// Statements that ended.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// A statement that took longer than `long_query_time`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowStatement {
    /// Wall clock at its start, microseconds since 1970 UTC.
    pub started_at_micros: i64,
    /// Connection.
    pub connection: u64,
    /// Account.
    pub identity: String,
    /// Current database.
    pub database: Option<String>,
    /// Text, cut at 4 KiB.
    pub text: String,
    /// Whole duration, microseconds.
    pub total_micros: i64,
    /// Where it went.
    pub split: TimeSplit,
    /// Rows sent or changed.
    pub rows: u64,
    /// MySQL's error number, 0 for none.
    pub error: u16,
}

/// Counters since start. Plain numbers: rates are the reader's business.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    /// Statements by kind, in the order of [`STATEMENT_KINDS`].
    pub kinds: [KindLatency; 12],
    /// Where the time of all statements went.
    pub time: TimeSplit,
    /// Errors by MySQL number.
    pub errors: BTreeMap<u16, u64>,
    /// Sessions open now.
    pub connections: u64,
    /// Sessions ever opened.
    pub connections_total: u64,
    /// Transactions committed with writes.
    pub commits: u64,
    /// Transactions rolled back.
    pub rollbacks: u64,
    /// Conflicts met (before retry).
    pub conflicts: u64,
    /// Autocommitted statements run again after a conflict.
    pub retries: u64,
    /// Statements whose plan was cached.
    pub plan_cache_hits: u64,
    /// Statements that were parsed and planned.
    pub plan_cache_misses: u64,
    /// Statements slower than `long_query_time`.
    pub slow_statements: u64,
    /// Rows handed to frontends.
    pub rows_sent: u64,
}

#[derive(Debug, Default)]
struct KindCounters {
    buckets: [AtomicU64; 17],
    sum_micros: AtomicU64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    kinds: [KindCounters; 12],
    time: [AtomicI64; 6],
    errors: Mutex<BTreeMap<u16, u64>>,
    pub connections_total: AtomicU64,
    pub commits: AtomicU64,
    pub rollbacks: AtomicU64,
    pub conflicts: AtomicU64,
    pub retries: AtomicU64,
    pub plan_hits: AtomicU64,
    pub plan_misses: AtomicU64,
    pub rows_sent: AtomicU64,
    slow_total: AtomicU64,
    slow: Mutex<VecDeque<SlowStatement>>,
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Metrics {
    /// A statement ended after `micros`, which were spent like this.
    pub(crate) fn statement(&self, kind: StatementKind, micros: i64, split: &TimeSplit) {
        for (counter, (_, part)) in self.time.iter().zip(split.parts()) {
            if part > 0 {
                counter.fetch_add(part, Ordering::Relaxed);
            }
        }
        let Some(counters) = self.kinds.get(kind as usize) else {
            return;
        };
        let bucket = LATENCY_BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        if let Some(counter) = counters.buckets.get(bucket) {
            count(counter);
        }
        counters
            .sum_micros
            .fetch_add(u64::try_from(micros).unwrap_or(0), Ordering::Relaxed);
    }

    /// A statement failed.
    pub(crate) fn error(&self, code: u16) {
        *self.errors.lock().entry(code).or_default() += 1;
    }

    /// How often errors with these numbers were answered.
    pub(super) fn errors_of(&self, codes: &[u16]) -> u64 {
        let errors = self.errors.lock();
        codes.iter().filter_map(|code| errors.get(code)).sum()
    }

    /// A statement was slow.
    pub(crate) fn slow(&self, mut statement: SlowStatement) {
        let mut end = statement.text.len().min(SLOW_TEXT_BYTES_MAX);
        while !statement.text.is_char_boundary(end) {
            end -= 1;
        }
        statement.text.truncate(end);
        count(&self.slow_total);
        let mut ring = self.slow.lock();
        if ring.len() == SLOW_MAX {
            ring.pop_front();
        }
        ring.push_back(statement);
    }

    /// The slow ones kept, oldest first.
    pub(crate) fn slow_statements(&self) -> Vec<SlowStatement> {
        self.slow.lock().iter().cloned().collect()
    }

    /// All counters.
    pub(crate) fn snapshot(&self, connections: usize) -> MetricsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [parse, plan, lock_wait, execute, commit, send] =
            std::array::from_fn(|i| self.time[i].load(Ordering::Relaxed));
        MetricsSnapshot {
            kinds: std::array::from_fn(|kind| KindLatency {
                buckets: std::array::from_fn(|i| read(&self.kinds[kind].buckets[i])),
                sum_micros: read(&self.kinds[kind].sum_micros),
            }),
            time: TimeSplit {
                parse,
                plan,
                lock_wait,
                execute,
                commit,
                send,
            },
            errors: self.errors.lock().clone(),
            connections: connections as u64,
            connections_total: read(&self.connections_total),
            commits: read(&self.commits),
            rollbacks: read(&self.rollbacks),
            conflicts: read(&self.conflicts),
            retries: read(&self.retries),
            plan_cache_hits: read(&self.plan_hits),
            plan_cache_misses: read(&self.plan_misses),
            slow_statements: read(&self.slow_total),
            rows_sent: read(&self.rows_sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_counters() {
        for (position, (kind, _, _)) in STATEMENT_KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, position);
        }
    }

    #[test]
    fn durations_fall_into_the_bucket_whose_bound_they_do_not_pass() {
        let metrics = Metrics::default();
        let split = TimeSplit {
            parse: 3,
            commit: 40,
            ..TimeSplit::default()
        };
        metrics.statement(StatementKind::Select, 50, &split);
        metrics.statement(StatementKind::Select, 51, &split);
        metrics.statement(StatementKind::Select, 40_000_000, &split);
        metrics.statement(StatementKind::Insert, 50, &split);
        let seen = metrics.snapshot(0);
        let buckets = seen.kinds[0].buckets;
        assert_eq!((buckets[0], buckets[1], buckets[16]), (1, 1, 1));
        assert_eq!((seen.kinds[0].count(), seen.kinds[1].count()), (3, 1));
        assert_eq!(
            (seen.time.parse, seen.time.commit, seen.time.plan),
            (12, 160, 0)
        );
    }
}
