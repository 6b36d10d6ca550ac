//! What the page of a cluster shows, in JSON; times are seconds, as in metrics.

use std::collections::BTreeMap;

use manxdb_dast::waits::{self, LEDGER};
use manxdb_dast::{Crossing, Role};
use manxdb_gateway::admin::{count, seconds};
use serde_json::{Map, Value, json};

use super::latencies::Latencies;
use super::measured::{Class, ELSEWHERE, OfClass, OfLeader, SlowCall, Waits, merge_waits};
use super::metrics::signed_seconds;
use super::{GeoCluster, NodeSeen, Seen};
use crate::cluster::dast;

impl GeoCluster {
    /// What `/geo` shows: every node as it describes itself, and what regions have in sum.
    #[must_use]
    pub fn page(&self) -> Value {
        let seen = self.seen();
        let regions = 0..self.file.regions;
        let lacking = seen.lacking.iter().map(ToString::to_string);
        json!({
            "own": self.own,
            "crossing": self.file.crossing.name(),
            "is_ahead": self.file.crossing == Crossing::Ahead,
            "wan_ms": self.file.distances.wan_ms,
            "lan_ms": self.file.distances.lan_ms,
            "minute_seconds": minute_seconds(&seen),
            "lacking": lacking.collect::<Value>(),
            "regions": regions.map(|region| of_region(&seen, region)).collect::<Value>(),
            "pairs": pairs(&seen),
            "slowest": slowest(&seen),
            "nodes": seen.nodes.iter().map(of_node).collect::<Value>(),
            "messages": messages(&seen),
            "reasons": reasons(),
        })
    }
}

/// The reasons that there are, in the order of the page.
fn reasons() -> Value {
    let all = waits::ALL
        .into_iter()
        .filter(|reason| *reason != waits::ATTEMPT);
    all.chain([ELSEWHERE]).collect()
}

/// How long the last minute is: the longest that a replica has.
fn minute_seconds(seen: &Seen) -> f64 {
    let answering = seen
        .nodes
        .iter()
        .filter(|node| node.measured.replica.is_some());
    let longest = answering.map(|node| node.measured.minute_ms).max();
    seconds(longest.unwrap_or(0).saturating_mul(1_000))
}

fn of_region(seen: &Seen, region: u32) -> Value {
    let own = || {
        seen.nodes
            .iter()
            .filter(move |node| node.node.region == region)
    };
    let replicas = own().filter(|node| matches!(node.role, Role::Replica(_)));
    let leader = own().find(|node| node.state() == Some(dast::LEADS));
    let manager = leader.and_then(|node| node.measured.manager.as_ref());
    let leading = manager.and_then(|manager| manager.leading.as_ref());
    let classes = Class::ALL.map(|class| {
        let mut sum = OfClass::default();
        for replica in own().filter_map(|node| node.measured.replica.as_ref()) {
            sum.merge(replica.of(class));
        }
        if class == Class::CrossRegion {
            add_ledger(&mut sum, own());
        }
        (class.name().to_owned(), of_class(&sum))
    });
    let stretch = own().filter_map(|node| node.measured.replica.as_ref());
    let stretch = stretch.map(|replica| replica.stretch_max_micros).max();
    json!({
        "number": region,
        "leader": leader.map(|node| node.node.number),
        "view": manager.map(|manager| manager.view),
        "replicas": replicas.count(),
        "epoch": leading.map(|leading| leading.epoch),
        "live": leading.map(|leading| leading.live.len()),
        "closing": leading.map(|leading| leading.closing.clone()),
        "joining": leading.and_then(|leading| leading.joining),
        "bound": leading.and_then(bound),
        "fenced": leading.and_then(|leading| leading.fenced),
        "stretch_max": stretch.map(seconds),
        "classes": classes.into_iter().collect::<Map<_, _>>(),
    })
}

fn bound(leading: &OfLeader) -> Option<f64> {
    leading.bound_micros.map(signed_seconds)
}

/// Adds how long transactions waited for the managers of a region.
fn add_ledger<'n>(sum: &mut OfClass, nodes: impl Iterator<Item = &'n NodeSeen>) {
    for manager in nodes.filter_map(|node| node.measured.manager.as_ref()) {
        let of = |micros| Waits::from([(LEDGER.to_owned(), micros)]);
        merge_waits(&mut sum.waits, &of(manager.ledger_micros));
        merge_waits(&mut sum.minute_waits, &of(manager.minute_ledger_micros));
    }
}

fn of_class(of: &OfClass) -> Value {
    json!({
        "answered": of.answered.count(),
        "sum": seconds(of.answered.sum_micros()),
        "minute": of_minute(&of.minute),
        "waits": of_waits(&of.waits),
        "minute_waits": of_waits(&of.minute_waits),
        "open": of.open,
        "given_up": of.given_up,
    })
}

fn of_minute(latencies: &Latencies) -> Value {
    let percentile = |percent| latencies.percentile_micros(percent).map(seconds);
    json!({
        "count": latencies.count(),
        "p50": percentile(50),
        "p99": percentile(99),
        "longest": percentile(100),
    })
}

fn of_waits(waits: &Waits) -> Value {
    let waits = waits.iter();
    let waits = waits.map(|(reason, micros)| (reason.clone(), json!(seconds(*micros))));
    Value::Object(waits.collect())
}

/// Each region with each other one, as its leader sees them; empty unless transactions are ordered ahead.
fn pairs(seen: &Seen) -> Value {
    let leaders = seen.nodes.iter().filter_map(|node| {
        let leading = node.measured.manager.as_ref()?.leading.as_ref()?;
        Some((node.node.region, leading))
    });
    let pairs = leaders.flat_map(|(region, leading)| {
        leading.pairs.iter().map(move |pair| {
            json!({
                "region": region,
                "other": pair.region,
                "lead": signed_seconds(pair.lead),
                "told": pair.told.map(signed_seconds),
                "heard": pair.heard.map(signed_seconds),
                "delay": pair.delay.map(signed_seconds),
                "silent": seconds(pair.silent),
            })
        })
    });
    pairs.collect()
}

/// Slow calls shown.
const SLOW_MAX: usize = 12;

/// The slowest calls of all replicas, the slowest first.
fn slowest(seen: &Seen) -> Value {
    let mut calls: Vec<(&NodeSeen, &SlowCall)> = Vec::new();
    for node in &seen.nodes {
        let replica = node.measured.replica.as_ref();
        calls.extend(
            replica
                .into_iter()
                .flat_map(|replica| &replica.slowest)
                .map(|call| (node, call)),
        );
    }
    calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.micros));
    // Of each class some: where cross-region calls are the slow ones, local ones are what is asked for.
    let of = |class: Class| {
        calls
            .iter()
            .filter(move |(_, call)| call.class == class)
            .take(SLOW_MAX / 2)
    };
    let shown = of(Class::Local).chain(of(Class::CrossRegion));
    let shown = shown.map(|(node, call)| {
        json!({
            "call": call.call,
            "procedure": call.procedure,
            "class": call.class.name(),
            "node": node.node.number,
            "region": node.node.region,
            "took": seconds(call.micros),
            "ago": seconds(call.ago_ms.saturating_mul(1_000)),
            "waits": of_waits(&call.waits),
        })
    });
    shown.collect()
}

fn of_node(seen: &NodeSeen) -> Value {
    let (node, status) = (&seen.node, seen.status.as_ref());
    let own = status.and_then(|status| status.nodes.first());
    let replica = seen.measured.replica.as_ref();
    let classes = replica.map(|replica| {
        let classes =
            Class::ALL.map(|class| (class.name().to_owned(), of_class(replica.of(class))));
        classes.into_iter().collect::<Map<_, _>>()
    });
    let records = status.and_then(|status| super::note(status, "records"));
    let in_file = node.admin.map(|address| format!("http://{address}"));
    json!({
        "number": node.number,
        "role": node.role,
        "region": node.region,
        "address": node.address.to_string(),
        "admin": seen.measured.admin.clone().or(in_file),
        "state": status.map(|_| seen.state().unwrap_or("answers")),
        "process": status.map(|status| status.process),
        "uptime": status.map(|status| seconds(status.uptime_ms.saturating_mul(1_000))),
        "life": own.map(|own| own.life),
        "records": records.and_then(|records| records.parse::<u64>().ok()),
        "stretch": replica.map(|replica| seconds(replica.stretch_micros)),
        "stretch_max": replica.map(|replica| seconds(replica.stretch_max_micros)),
        "classes": classes,
    })
}

/// Messages of all nodes to other processes by kind, the most frequent first.
fn messages(seen: &Seen) -> Value {
    let mut by_kind: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for node in &seen.nodes {
        let uptime = node.status.as_ref().map_or(0, |status| status.uptime_ms);
        for (kind, sent) in node.counters("sent ") {
            let (all, rate) = by_kind.entry(kind).or_default();
            *all = all.saturating_add(sent);
            *rate += count(sent) * 1_000.0 / count(uptime.max(1));
        }
    }
    let mut kinds: Vec<_> = by_kind.into_iter().collect();
    kinds.sort_by_key(|(kind, (all, _))| (std::cmp::Reverse(*all), *kind));
    let kinds = kinds.into_iter();
    kinds
        .map(|(kind, (sent, rate))| json!({ "kind": kind, "sent": sent, "rate": rate }))
        .collect()
}
