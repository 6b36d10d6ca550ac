//! SHOW STATUS and `COM_STATISTICS`.

use std::sync::atomic::Ordering;

use crate::session::host::ClientInfo;
use crate::session::instance::Instance;
use crate::session::metrics::{KindLatency, STATEMENT_KINDS};

/// All status values, sorted by name. Counters are the server's; what is said of encryption and
/// compression is of `client`'s own connection.
pub(crate) fn all(instance: &Instance, client: &ClientInfo) -> Vec<(String, String)> {
    let metrics = instance.metrics();
    let uptime = uptime_seconds(instance);
    let questions: u64 = metrics.kinds.iter().map(KindLatency::count).sum();
    let running = instance
        .processes
        .list()
        .iter()
        .filter(|process| process.activity().text.is_some())
        .count();
    let numbers: [(&str, u64); 21] = [
        ("Connections", metrics.connections_total),
        // Tables are neither opened nor flushed here; mycli and others ask all the same.
        ("Flush_commands", 0),
        ("Handler_commit", metrics.commits),
        ("Handler_rollback", metrics.rollbacks),
        ("Manxdb_conflicts", metrics.conflicts),
        ("Manxdb_plan_cache_entries", instance.plans.len() as u64),
        ("Manxdb_plan_cache_hits", metrics.plan_cache_hits),
        ("Manxdb_plan_cache_misses", metrics.plan_cache_misses),
        ("Manxdb_retries", metrics.retries),
        ("Manxdb_rows_sent", metrics.rows_sent),
        ("Open_tables", 0),
        ("Opened_tables", 0),
        (
            "Prepared_stmt_count",
            instance.prepared.load(Ordering::Relaxed),
        ),
        ("Queries", questions),
        ("Questions", questions),
        ("Slow_queries", metrics.slow_statements),
        ("Threads_connected", metrics.connections),
        ("Threads_created", metrics.connections_total),
        ("Threads_running", running as u64),
        ("Uptime", uptime),
        ("Uptime_since_flush_status", uptime),
    ];
    let mut list: Vec<(String, String)> = numbers
        .into_iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    for ((_, _, name), value) in STATEMENT_KINDS.iter().zip(&metrics.kinds) {
        list.push(((*name).to_string(), value.count().to_string()));
    }
    list.extend(connection(client).map(|(name, value)| (name.to_string(), value)));
    list.sort();
    list
}

fn connection(client: &ClientInfo) -> [(&'static str, String); 5] {
    let tls = client.tls.as_ref();
    let compression = client.compression;
    let on = if compression.is_some() { "ON" } else { "OFF" };
    [
        ("Compression", on.to_string()),
        (
            "Compression_algorithm",
            compression.map_or_else(String::new, |state| state.algorithm.to_string()),
        ),
        (
            "Compression_level",
            compression.map_or(0, |state| state.level).to_string(),
        ),
        (
            "Ssl_cipher",
            tls.map_or_else(String::new, |state| state.cipher.clone()),
        ),
        (
            "Ssl_version",
            tls.map_or_else(String::new, |state| state.version.clone()),
        ),
    ]
}

fn uptime_seconds(instance: &Instance) -> u64 {
    let micros = instance.host.monotonic_micros() - instance.opened_at;
    u64::try_from(micros / 1_000_000).unwrap_or(0)
}

/// `COM_STATISTICS`.
pub(crate) fn statistics(instance: &Instance) -> String {
    let metrics = instance.metrics();
    let questions: u64 = metrics.kinds.iter().map(KindLatency::count).sum();
    let uptime = uptime_seconds(instance);
    format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  \
         Flush tables: 0  Open tables: 0  Queries per second avg: {}",
        metrics.connections,
        metrics.slow_statements,
        questions / uptime.max(1)
    )
}
