//! What a run says, for people and as JSON.

use serde_json::{Value, json};

use super::drive::Outcome;
use crate::bench::histogram::Histogram;
use crate::cli::TpccServer;

const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The report as lines of text.
pub fn text(server: &TpccServer, outcome: &Outcome, wrong: &[String]) -> String {
    let mut lines = vec![format!(
        "{} warehouses, {} threads, {} s at {}: {:.0} NewOrder/min, {} of {} workers ended early",
        server.warehouses,
        server.threads,
        outcome.elapsed.as_secs_f64(),
        server.isolation.name(),
        outcome.per_minute(),
        outcome.ended,
        server.threads,
    )];
    lines.push(format!(
        "{:12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "transaction", "committed", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"
    ));
    for (name, count) in &outcome.committed {
        let times = outcome.times.get(name).cloned().unwrap_or_default();
        let shares = SHARES.map(|(_, share)| format!("{:>9.2}", millis(times.quantile(share))));
        let (shares, max) = (shares.join(" "), millis(times.max()));
        lines.push(format!("{name:12} {count:>9} {shares} {max:>9.2}"));
    }
    lines.push(format!("rolled back as planned: {}", outcome.rolled_back));
    for ((name, code), count) in &outcome.errors {
        lines.push(format!("error {code} of {name}: {count}"));
    }
    lines.extend(
        outcome
            .last_error
            .iter()
            .map(|error| format!("a worker ended: {error}")),
    );
    if wrong.is_empty() {
        lines.push("the conditions of consistency hold".to_owned());
    }
    lines.extend(wrong.iter().map(|what| format!("does not hold: {what}")));
    lines.join("\n")
}

/// The report as JSON; times in milliseconds.
pub fn json(server: &TpccServer, outcome: &Outcome, wrong: &[String]) -> Value {
    let times = |times: &Histogram| {
        let shares =
            SHARES.map(|(name, share)| (name.to_owned(), json!(millis(times.quantile(share)))));
        Value::Object(shares.into_iter().collect())
    };
    let transactions = outcome.committed.iter().map(|(name, count)| {
        let times = outcome.times.get(name).map(times);
        (
            (*name).to_owned(),
            json!({ "committed": count, "ms": times }),
        )
    });
    let errors = outcome
        .errors
        .iter()
        .map(|((name, code), count)| json!({ "transaction": name, "code": code, "count": count }));
    json!({
        "warehouses": server.warehouses,
        "threads": server.threads,
        "isolation": server.isolation.name(),
        "seconds": outcome.elapsed.as_secs_f64(),
        "new_orders_per_minute": outcome.per_minute(),
        "transactions": Value::Object(transactions.collect()),
        "rolled_back": outcome.rolled_back,
        "errors": errors.collect::<Vec<_>>(),
        "workers_ended": outcome.ended,
        "last_error": outcome.last_error,
        "does_not_hold": wrong,
    })
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn millis(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}
