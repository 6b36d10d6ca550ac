//! A run as db_bench says it, and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Outcome;

/// What metrics of the pool's part begin with.
const POOL: &str = "manxdb_compaction_";

/// One JSON object. Times are seconds, of puts microseconds.
pub fn json(outcome: &Outcome) -> String {
    let (load_cpu, drain_cpu) = outcome.cpu.unzip();
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let counted = &outcome.counted;
    let value = json!({
        "puts": outcome.load.total(),
        "threads": outcome.load.threads,
        "seconds": outcome.elapsed.as_secs_f64(),
        "ops_per_second": rate(outcome),
        "latency_us": {
            "mean": outcome.puts.mean() / 1e3,
            "p50": micros(outcome, 0.5),
            "p99": micros(outcome, 0.99),
            "p99.9": micros(outcome, 0.999),
            "max": thousandth(outcome.puts.max()),
        },
        "stall_seconds": outcome.stalled.as_secs_f64(),
        "drain_seconds": outcome.drain.as_secs_f64(),
        "cpu_seconds": { "load": seconds(load_cpu), "drain": seconds(drain_cpu) },
        "flush_bytes": counted.flush_bytes,
        "compact_read_bytes": counted.compact_read_bytes,
        "compact_write_bytes": counted.compact_write_bytes,
        "pool": outcome.pool.as_ref().map(|numbers| pool(numbers)),
        "entries": outcome.contents.entries,
        "content_hash": format!("{:08x}", outcome.contents.hash),
    });
    format!("{value:#}")
}

/// What the pool did, by short names.
fn pool(numbers: &[(String, u64)]) -> Map<String, Value> {
    let mut all = Map::new();
    let mut local = Map::new();
    for (name, value) in numbers {
        let name = name.strip_prefix(POOL).unwrap_or(name);
        let reason = name.strip_prefix("local_total{reason=\"");
        match reason.and_then(|reason| reason.strip_suffix("\"}")) {
            Some(reason) => local.insert(reason.to_owned(), json!(value)),
            None => all.insert(name.to_owned(), json!(value)),
        };
    }
    all.insert("local".to_owned(), Value::Object(local));
    all
}

/// db_bench's line, and below it what that does not say.
pub fn text(outcome: &Outcome) -> String {
    let (total, seconds) = (outcome.load.total(), outcome.elapsed.as_secs_f64());
    let mut text = format!(
        "{:<12} : {:>11.3} micros/op {:.0} ops/sec {seconds:.3} seconds {total} operations; \
         {:>6.1} MB/s\n",
        "fillrandom",
        outcome.puts.mean() / 1e3,
        rate(outcome),
        float(outcome.load.bytes()) / f64::from(1 << 20) / seconds.max(1e-9),
    );
    let _ = writeln!(
        text,
        "Microseconds per write: P50 {:.2} P99 {:.2} P99.9 {:.2} Max {:.2}",
        micros(outcome, 0.5),
        micros(outcome, 0.99),
        micros(outcome, 0.999),
        thousandth(outcome.puts.max()),
    );
    let _ = writeln!(
        text,
        "Writes stalled {:.3} s, of all threads together; drained in {:.3} s",
        outcome.stalled.as_secs_f64(),
        outcome.drain.as_secs_f64()
    );
    if let Some((load, drain)) = outcome.cpu {
        let (load, drain) = (load.as_secs_f64(), drain.as_secs_f64());
        let _ = writeln!(
            text,
            "CPU of this process: load {load:.2} s, drain {drain:.2} s"
        );
    }
    for (name, value) in outcome
        .pool
        .iter()
        .flatten()
        .filter(|(_, value)| *value > 0)
    {
        let _ = writeln!(text, "{name} {value}");
    }
    let contents = &outcome.contents;
    let _ = write!(
        text,
        "Verified: {} entries are what was put, hash {:08x}",
        contents.entries, contents.hash
    );
    text
}

fn rate(outcome: &Outcome) -> f64 {
    float(outcome.load.total()) / outcome.elapsed.as_secs_f64().max(1e-9)
}

fn micros(outcome: &Outcome, share: f64) -> f64 {
    thousandth(outcome.puts.quantile(share))
}

fn thousandth(number: u64) -> f64 {
    float(number) / 1e3
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn float(number: u64) -> f64 {
    number as f64
}
