//! A run as text.

use std::fmt::Write as _;

use manxdb_core::Nanos;
use manxdb_lab::scenario::Scenario;
use manxdb_lab::simulate::SimulationOutcome;
use manxdb_lab::why::Shares;

use super::measure::{Class, Measure};
use super::pick::{Place, name_of, pick};
use crate::cli::SimRun;

/// What is run, in a line or two.
pub fn head(args: &SimRun, scenario: &Scenario) -> String {
    let jitter = |ms: f64| {
        if ms > 0.0 {
            format!(" ± {ms}")
        } else {
            String::new()
        }
    };
    let mut text = format!(
        "{} under {}: {} × {} × {} replicas, {} a shard",
        args.system.name(),
        scenario.workload.name(),
        counted(args.regions, "region"),
        counted(args.shards, "shard"),
        manxdb_common::topology::COPIES,
        counted(args.clients, "client"),
    );
    if args.outstanding > 1 {
        let _ = write!(text, " with {} calls each", args.outstanding);
    }
    let _ = write!(
        text,
        "\n{}{} ms within a region, {}{} ms between regions, there and back; seed {}",
        args.lan_ms,
        jitter(args.lan_jitter_ms),
        args.wan_ms,
        jitter(args.wan_jitter_ms),
        args.seed
    );
    for fault in &scenario.faults {
        let _ = write!(text, "\nfault: {fault}");
    }
    text.push('\n');
    text
}

fn counted(count: u32, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// The table of a run under way, or at its end.
pub fn table(measure: &Measure) -> String {
    let mut text = format!(
        "\n{:13} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} ms\n",
        "",
        "calls",
        "refused",
        "given up",
        "aborts",
        "a second",
        "mean",
        "p50",
        "p90",
        "p95",
        "p99",
        "max"
    );
    for class in Class::ALL {
        let calls = measure.of(class);
        let summary = calls.latencies.clone().summary();
        let _ = write!(
            text,
            "{:13} {:>8} {:>8} {:>8} {:>8} {:>9.1}",
            class.name(),
            summary.count,
            calls.refused,
            calls.given_up,
            calls.aborts,
            measure.rate(calls.count())
        );
        let spans = [
            summary.mean,
            summary.p50,
            summary.p90,
            summary.p95,
            summary.p99,
            summary.max,
        ];
        for span in spans {
            let _ = write!(text, " {:>9.3}", span.as_millis_f64());
        }
        text.push('\n');
    }
    for class in Class::ALL {
        let calls = measure.of(class);
        let count = calls.latencies.len();
        if count == 0 {
            continue;
        }
        let _ = writeln!(
            text,
            "\n{:32} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
            class.name(),
            "mean ms",
            "share %",
            "calls %",
            "p50",
            "p95",
            "p99",
            "max"
        );
        shares(&mut text, &calls.parts, count, "");
        shares(&mut text, &calls.waits, count, "waits: ");
    }
    text
}

/// A line for each reason: its mean over all calls and its share of their time; then how many
/// calls it took time of, and how much of each of those.
#[allow(clippy::cast_precision_loss)] // far below 2^53
fn shares(text: &mut String, shares: &Shares, count: usize, before: &str) {
    let sum = shares.sum().0.max(1) as f64;
    for (reason, share) in shares.largest_first() {
        let mut spans = share.spans;
        let summary = spans.summary();
        let reason = format!("{before}{reason}");
        let _ = write!(
            text,
            "  {reason:<30.30} {:>9.3}",
            share.sum.as_millis_f64() / count as f64
        );
        if before.is_empty() {
            let _ = write!(text, " {:>8.1}", share.sum.0 as f64 * 100.0 / sum);
        } else {
            let _ = write!(text, " {:>8}", "");
        }
        let _ = write!(
            text,
            " {:>9.1}",
            summary.count as f64 * 100.0 / count as f64
        );
        for span in [summary.p50, summary.p95, summary.p99, summary.max] {
            let _ = write!(text, " {:>9.3}", span.as_millis_f64());
        }
        text.push('\n');
    }
}

/// What is said below the table once a run is over.
pub fn end(scenario: &Scenario, measure: &Measure, outcome: &SimulationOutcome) -> String {
    let sent = outcome.counters.sent_in_all();
    let (busiest, share) = outcome.busiest;
    let mut text = format!(
        "\n{:.1} calls a second over {:.3} s of virtual time; {} events, {} messages within \
         regions and {} between them; the busiest server is n{}, {:.0} % of its time\n",
        measure.rate(measure.count()),
        measure.span.as_millis_f64() / 1e3,
        outcome.counters.events,
        sent.lan,
        sent.wan,
        busiest.0,
        share * 100.0
    );
    for (name, count) in outcome.counters.troubles() {
        let _ = writeln!(text, "{name}: {count}");
    }
    if measure.asked_again > 0 {
        let _ = writeln!(
            text,
            "{} calls were asked more than once",
            measure.asked_again
        );
    }
    for class in Class::ALL {
        let (from, until) = scenario.span();
        if let Some(slowest) = pick(&outcome.made, (from, until), class, Place::Slowest) {
            let latency = slowest.latency().unwrap_or(Nanos::ZERO);
            let _ = writeln!(
                text,
                "the slowest {} call is {} with {:.3} ms: --timeline {} draws it",
                class.name(),
                name_of(slowest),
                latency.as_millis_f64(),
                name_of(slowest)
            );
        }
    }
    for finding in &outcome.findings {
        let _ = writeln!(text, "WRONG: {finding}");
    }
    if outcome.findings.is_empty() {
        let rows = match scenario.workload {
            manxdb_workloads::Workload::Append(_) => "the history is as promised",
            _ => "the workload's rows are consistent",
        };
        let _ = writeln!(
            text,
            "checked: every call ended, replicas are equal, {rows}"
        );
    }
    text
}
