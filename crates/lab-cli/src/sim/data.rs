//! A run as data: JSON with everything, CSV with every call. Times in microseconds.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use manxdb_core::Nanos;
use manxdb_lab::load::Made;
use manxdb_lab::scenario::Scenario;
use manxdb_lab::simulate::SimulationOutcome;
use manxdb_lab::why::Shares;
use manxdb_sim::Latencies;
use serde_json::{Map, Value, json};

use super::measure::{Class, Measure, measured};
use super::pick::name_of;
use crate::cli::SimRun;

/// Upper ends of a histogram's buckets, in microseconds; the last one has no end.
const BUCKETS: [u64; 16] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000,
];

/// Parameters and measurement.
pub fn json(
    args: &SimRun,
    scenario: &Scenario,
    measure: &Measure,
    outcome: &SimulationOutcome,
) -> String {
    let classes = Class::ALL.map(|class| (class.name().to_owned(), of_class(measure, class)));
    let messages = outcome.counters.messages();
    let messages = messages.into_iter().map(|(label, sent)| {
        let count = json!({ "own": sent.own, "region": sent.lan, "regions": sent.wan });
        (label.to_owned(), count)
    });
    let troubles = outcome.counters.troubles().iter();
    let troubles = troubles.map(|(name, count)| ((*name).to_owned(), json!(count)));
    let all = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "parameters": parameters(args, scenario),
        "seconds": measure.span.as_millis_f64() / 1e3,
        "calls_per_second": measure.rate(measure.count()),
        "classes": Value::Object(classes.into_iter().collect()),
        "asked_again": measure.asked_again,
        "events": outcome.counters.events,
        "messages": Value::Object(messages.collect()),
        "troubles": Value::Object(troubles.collect()),
        "busiest_server": { "node": outcome.busiest.0.0, "share": outcome.busiest.1 },
        "digest": format!("{:016x}", outcome.digest),
        "findings": outcome.findings,
    });
    format!("{all:#}\n")
}

fn parameters(args: &SimRun, scenario: &Scenario) -> Value {
    let faults: Vec<String> = scenario.faults.iter().map(ToString::to_string).collect();
    json!({
        "system": args.system.name(),
        "crossing": scenario.crossing.name(),
        "survive": scenario.survive.name(),
        "workload": format!("{:?}", scenario.workload),
        "payment_sums": format!("{:?}", scenario.payment_sums).to_lowercase(),
        "regions": args.regions,
        "shards_per_region": args.shards,
        "clients_per_shard": args.clients,
        "outstanding": args.outstanding,
        "lan_ms": args.lan_ms,
        "wan_ms": args.wan_ms,
        "lan_jitter_ms": args.lan_jitter_ms,
        "wan_jitter_ms": args.wan_jitter_ms,
        "clock_offset_ms": args.clock_offset_ms,
        "clock_drift_ppm": args.clock_drift_ppm,
        "cpu": format!("{:?}", args.cpu).to_lowercase(),
        "level": format!("{:?}", args.level).to_lowercase(),
        "seed": args.seed,
        "warm_up": args.warm_up,
        "faults": faults,
    })
}

fn micros(span: Nanos) -> f64 {
    span.as_millis_f64() * 1e3
}

fn summary(latencies: &Latencies) -> Value {
    let summary = latencies.clone().summary();
    json!({
        "mean": micros(summary.mean), "p50": micros(summary.p50), "p90": micros(summary.p90),
        "p95": micros(summary.p95), "p99": micros(summary.p99), "max": micros(summary.max),
    })
}

fn of_class(measure: &Measure, class: Class) -> Value {
    let calls = measure.of(class);
    json!({
        "calls": calls.latencies.len(),
        "refused": calls.refused,
        "given_up": calls.given_up,
        "aborts": calls.aborts,
        "per_second": measure.rate(calls.count()),
        "latency": summary(&calls.latencies),
        "parts": of_reasons(&calls.parts),
        "waits_at_replicas": of_reasons(&calls.waits),
    })
}

/// By reason: how many calls it took time of, how much of all, how much of each of them.
fn of_reasons(shares: &Shares) -> Value {
    let all = shares.largest_first().into_iter().map(|(reason, share)| {
        let value = json!({
            "calls": share.spans.len(),
            "sum": micros(share.sum),
            "of_these": summary(&share.spans),
            "histogram": histogram(&share.spans),
        });
        (reason.to_owned(), value)
    });
    Value::Object(all.collect::<Map<_, _>>())
}

/// Pairs of a bucket's upper end and its count, for buckets that are not empty.
fn histogram(spans: &Latencies) -> Vec<Value> {
    let mut counts = [0_u64; BUCKETS.len() + 1];
    for span in spans.all() {
        let bucket = BUCKETS.partition_point(|end| Nanos::from_micros(*end) < *span);
        counts[bucket] += 1;
    }
    let ends = BUCKETS.into_iter().map(Some).chain([None]);
    let filled = ends.zip(counts).filter(|(_, count)| *count > 0);
    filled.map(|(end, count)| json!([end, count])).collect()
}

/// A line for each measured call that took effect; the parts are columns and add up to its
/// latency.
pub fn csv(scenario: &Scenario, outcome: &SimulationOutcome) -> String {
    let (from, until) = scenario.span();
    let done = |made: &&Made| {
        let answer = made.answered.as_ref();
        answer.is_some_and(|(_, answer)| answer.given.is_ok())
    };
    let calls: Vec<&Made> = measured(&outcome.made, from, until).filter(done).collect();
    let reasons: BTreeSet<&str> = calls
        .iter()
        .flat_map(|made| made.why.parts.iter().map(|(reason, _)| *reason))
        .collect();
    let mut text = "call,class,procedure,home,asked,latency".to_owned();
    for reason in &reasons {
        let _ = write!(text, ",{reason}");
    }
    text.push('\n');
    for made in calls {
        let _ = write!(
            text,
            "{},{},{},{},{},{}",
            name_of(made),
            Class::of(made).name(),
            made.job.ask.procedure,
            made.job.ask.home.0,
            exact(Nanos(made.asked.0)),
            exact(made.latency().unwrap_or_default())
        );
        for reason in &reasons {
            let part = made.why.parts.iter().find(|(other, _)| other == reason);
            let _ = write!(
                text,
                ",{}",
                exact(part.map_or(Nanos::ZERO, |(_, span)| *span))
            );
        }
        text.push('\n');
    }
    text
}

/// Microseconds with all the digits there are.
fn exact(span: Nanos) -> String {
    format!("{}.{:03}", span.0 / 1_000, span.0 % 1_000)
}
