//! Who must stand before whom, and where that goes round in a circle.

use super::order::Order;
use super::verdict::{Anomaly, Verdict};
use super::{History, Key, Level, Version};
use crate::graph::{Graph, Hop, Kinds};

const WRITES: Kinds = Kinds::WRITE_WRITE;
const INFORMATION: Kinds = WRITES.and(Kinds::WRITE_READ);
const DATA: Kinds = INFORMATION.and(Kinds::READ_WRITE);

/// Why one transaction stands before another.
#[derive(Debug, Clone, Copy)]
struct Why {
    what: &'static str,
    key: Key,
    version: Version,
}

/// Names each cycle by the weakest edges that it needs.
pub(super) fn find(history: &History, order: &Order, level: Level, verdict: &mut Verdict) {
    let graph = build(history, order);
    let mut found: Vec<usize> = Vec::new();
    let stages = [
        (WRITES, Anomaly::DirtyWrite),
        (INFORMATION, Anomaly::CircularInformation),
        (DATA, Anomaly::AntiDependency),
    ];
    for (kinds, anomaly) in stages {
        for members in graph.components(kinds) {
            if found.iter().any(|node| members.contains(node)) {
                continue;
            }
            found.extend(members.first());
            if anomaly != Anomaly::AntiDependency {
                let cycle = graph.shortest_cycle(&members, kinds).unwrap_or_default();
                verdict.note(anomaly, || tell(history, &cycle));
                continue;
            }
            let single = graph.cycle_with_one(&members, Kinds::READ_WRITE, INFORMATION);
            if let Some(cycle) = single {
                verdict.note(Anomaly::SingleAntiDependency, || tell(history, &cycle));
            } else if level == Level::Snapshot {
                verdict.count_skew();
            } else {
                let cycle = graph.shortest_cycle(&members, kinds).unwrap_or_default();
                verdict.note(anomaly, || tell(history, &cycle));
            }
        }
    }
}

fn build(history: &History, order: &Order) -> Graph<Why> {
    let mut graph = Graph::new(history.transactions.len());
    for (key, chain) in &order.chains {
        let key = *key;
        for pair in chain.windows(2) {
            let writer = |version| order.writers.get(&(key, version)).copied();
            if let Some((earlier, later)) = writer(pair[0]).zip(writer(pair[1])) {
                let version = pair[1];
                let what = "wrote before it";
                graph.add(earlier, later, WRITES, Why { what, key, version });
            }
        }
    }
    for (txn, transaction) in history.transactions.iter().enumerate() {
        if !order.effective[txn] {
            continue;
        }
        for read in &transaction.reads {
            let (key, version) = (read.key, read.version);
            if let Some(writer) = order.writers.get(&(key, version)) {
                let what = "was read by it";
                graph.add(*writer, txn, Kinds::WRITE_READ, Why { what, key, version });
            }
            let Some(version) = order.after(key, version) else {
                continue;
            };
            if let Some(writer) = order.writers.get(&(key, version)) {
                let what = "read what was before it";
                graph.add(txn, *writer, Kinds::READ_WRITE, Why { what, key, version });
            }
        }
    }
    graph
}

fn tell(history: &History, cycle: &[Hop<Why>]) -> String {
    let step = |hop: &Hop<Why>| {
        let name = |txn: usize| history.transactions.get(txn).map_or(0, |txn| txn.name);
        let Why { what, key, version } = hop.edge.why;
        let (from, to) = (name(hop.from), name(hop.edge.to));
        format!("T{from} before T{to}: {what} ({version:?} of key {key})")
    };
    cycle.iter().map(step).collect::<Vec<_>>().join("\n")
}
