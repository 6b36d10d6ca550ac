//! A measurement as JSON for scripts and as tables for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::drive::Outcome;
use super::measure::Times;

/// Everything, times in microseconds; with each page's if there shall be details.
pub fn json(outcome: &Outcome, details: bool) -> String {
    let pages = count(&outcome.seen.pages);
    let seconds = outcome.elapsed.as_secs_f64();
    let mut all = json!({
        "rate": outcome.rate,
        "seconds": seconds,
        "pages": pages,
        "pages_per_second": ratio(pages, seconds),
        "statements_run": count(&outcome.seen.statements),
        "server_cpu_seconds": outcome.server_cpu.map(|cpu| cpu.as_secs_f64()),
        "client_cpu_seconds": outcome.client_cpu.map(|cpu| cpu.as_secs_f64()),
        "failures": outcome.seen.failures,
        "page": table(&outcome.seen.pages),
        "statement": table(&outcome.seen.statements),
    });
    if details {
        let pages = outcome.seen.pages.iter();
        let times = pages.map(|(name, times)| ((*name).to_owned(), json!(times.micros())));
        all["page_micros"] = Value::Object(times.collect());
        let (version, bytes) = outcome.server.clone().unwrap_or_default();
        all["server"] = json!({"version": version, "table_bytes": bytes});
    }
    if let Some(answers) = &outcome.seen.answers {
        let (bytes, of_work) = answers.sizes();
        all["answer_bytes"] = json!({"all": bytes, "of_work": of_work});
    }
    all.to_string()
}

fn table(times: &BTreeMap<&'static str, Times>) -> Value {
    let rows = times.iter().map(|(name, times)| {
        let [p50, p95, p99, max] = times.percentiles([50, 95, 99, 100]);
        let row = json!({"count": times.count(), "mean": times.mean(), "p50": p50, "p95": p95,
            "p99": p99, "max": max});
        ((*name).to_owned(), row)
    });
    Value::Object(rows.collect())
}

/// The same, aligned.
pub fn tables(outcome: &Outcome) -> String {
    let pages = count(&outcome.seen.pages);
    let statements = count(&outcome.seen.statements);
    let seconds = outcome.elapsed.as_secs_f64();
    let mut text = format!(
        "{pages} pages in {seconds:.1} s: {:.1} a second{}; {statements} statements\n",
        ratio(pages, seconds),
        outcome
            .rate
            .map(|rate| format!(" of {rate:.1} asked for"))
            .unwrap_or_default(),
    );
    for (who, cpu) in [
        ("server", outcome.server_cpu),
        ("client", outcome.client_cpu),
    ] {
        if let Some(cpu) = cpu {
            let _ = writeln!(
                text,
                "{who} CPU: {:.0} us a page, {:.1} us a statement",
                micros(cpu, pages),
                micros(cpu, statements)
            );
        }
    }
    for (title, times) in [
        ("page", &outcome.seen.pages),
        ("statement", &outcome.seen.statements),
    ] {
        let _ = writeln!(
            text,
            "\n{title:30} {:>8} {:>9} {:>9} {:>9} {:>9} us",
            "count", "mean", "p50", "p95", "p99"
        );
        for (name, times) in times {
            let [p50, p95, p99] = times.percentiles([50, 95, 99]);
            let (count, mean) = (times.count(), times.mean());
            let _ = writeln!(
                text,
                "{name:30} {count:>8} {mean:>9.0} {p50:>9} {p95:>9} {p99:>9}"
            );
        }
    }
    for (message, count) in &outcome.seen.failures {
        let _ = writeln!(text, "FAILED {count} times: {message}");
    }
    text
}

fn count(times: &BTreeMap<&'static str, Times>) -> usize {
    times.values().map(Times::count).sum()
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn ratio(count: usize, seconds: f64) -> f64 {
    count as f64 / seconds.max(1e-9)
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}
