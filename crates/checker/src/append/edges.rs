//! From what was observed to the graph of what must stand before what.

use std::collections::BTreeMap;

use super::observe::Observed;
use super::{Element, History, Key, Level, Outcome};
use crate::graph::{self, Kinds};

pub(super) type Graph = graph::Graph<Why>;

/// Why one transaction stands before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// `after` was appended next after `before`.
    WriteWrite {
        key: Key,
        before: Element,
        after: Element,
    },
    /// The later one read up to `element` of the earlier.
    WriteRead { key: Key, element: Element },
    /// The earlier one read everything before `element` of the later.
    ReadWrite { key: Key, element: Element },
    /// The later one follows in the same session.
    Session,
    /// The later one was invoked after the earlier had completed.
    Time,
}

/// All edges that `level` respects.
pub(super) fn build(history: &History, observed: &Observed, level: Level) -> Graph {
    let mut graph = Graph::new(history.transactions.len());
    add_overwrites(&mut graph, observed);
    add_reads(&mut graph, observed);
    if level >= Level::Session {
        add_sessions(&mut graph, history, observed);
    }
    if level >= Level::Strict {
        add_time(&mut graph, history, observed);
    }
    graph
}

/// The writer of an element; an invented one has none, and was reported.
fn writer(observed: &Observed, element: Element) -> Option<usize> {
    observed.origins.get(&element).map(|origin| origin.txn)
}

fn add_overwrites(graph: &mut Graph, observed: &Observed) {
    for (key, order) in &observed.orders {
        for pair in order.windows(2) {
            add_overwrite(graph, observed, *key, (pair[0], pair[1]));
        }
        let unseen = observed.unseen.get(key).into_iter().flatten();
        for (_, element) in unseen {
            if let Some(last) = order.last() {
                add_overwrite(graph, observed, *key, (*last, *element));
            }
        }
    }
}

fn add_overwrite(graph: &mut Graph, observed: &Observed, key: Key, pair: (Element, Element)) {
    let (before, after) = pair;
    let writers = (writer(observed, before), writer(observed, after));
    if let (Some(earlier), Some(later)) = writers {
        let why = Why::WriteWrite { key, before, after };
        graph.add(earlier, later, Kinds::WRITE_WRITE, why);
    }
}

fn add_reads(graph: &mut Graph, observed: &Observed) {
    let mut relays = BTreeMap::new();
    for read in &observed.reads {
        let order = observed.orders.get(&read.key);
        let order = order.map_or(&[][..], Vec::as_slice);
        let key = read.key;
        if let Some(element) = read.length.checked_sub(1).map(|last| order[last])
            && let Some(writer) = writer(observed, element)
        {
            let why = Why::WriteRead { key, element };
            graph.add(writer, read.txn, Kinds::WRITE_READ, why);
        }
        let Some(element) = order.get(read.length).copied() else {
            add_read_of_all_seen(graph, observed, &mut relays, (read.txn, key));
            continue;
        };
        if let Some(writer) = writer(observed, element) {
            let why = Why::ReadWrite { key, element };
            graph.add(read.txn, writer, Kinds::READ_WRITE, why);
        }
    }
}

/// A reader of everything that anyone saw of a list stands before all appends that nobody saw.
///
/// Its own are not among the later ones: if it saw nothing of others' after them, they may
/// stand anywhere, and a relay would lead back to it. Such a transaction gets edges of its own.
fn add_read_of_all_seen(
    graph: &mut Graph,
    observed: &Observed,
    relays: &mut BTreeMap<Key, usize>,
    (reader, key): (usize, Key),
) {
    let Some(unseen) = observed.unseen.get(&key) else {
        return;
    };
    let why = |element| Why::ReadWrite { key, element };
    if unseen.iter().any(|(txn, _)| *txn == reader) {
        for (txn, element) in unseen {
            graph.add(reader, *txn, Kinds::READ_WRITE, why(*element));
        }
        return;
    }
    let relay = *relays.entry(key).or_insert_with(|| {
        let relay = graph.add_relay();
        for (txn, element) in unseen {
            // The edge into the relay is the rw; this one is there for every search.
            graph.add(relay, *txn, Kinds::WRITE_WRITE, why(*element));
        }
        relay
    });
    graph.add(reader, relay, Kinds::READ_WRITE, why(0));
}

/// Transactions of each session in its order. One with unknown outcome may take effect at any
/// time after it was sent: it follows, but nothing follows it.
fn add_sessions(graph: &mut Graph, history: &History, observed: &Observed) {
    let mut by_time: Vec<usize> = (0..history.transactions.len())
        .filter(|txn| observed.effective[*txn])
        .collect();
    by_time.sort_by_key(|txn| history.transactions[*txn].invoked);
    let mut last_of: BTreeMap<u64, usize> = BTreeMap::new();
    for txn in by_time {
        let transaction = &history.transactions[txn];
        if let Some(last) = last_of.get(&transaction.session) {
            graph.add(*last, txn, Kinds::SESSION, Why::Session);
        }
        if transaction.outcome == Outcome::Ok {
            last_of.insert(transaction.session, txn);
        }
    }
}

/// One relay a completion, in a chain: who completed hangs before its relay, who was invoked
/// later behind the last one.
fn add_time(graph: &mut Graph, history: &History, observed: &Observed) {
    let mut moments = Vec::new();
    for (txn, transaction) in history.transactions.iter().enumerate() {
        if !observed.effective[txn] {
            continue;
        }
        // At one moment, invocations first: they do not follow the completions of that moment.
        moments.push((transaction.invoked, false, txn));
        if transaction.outcome == Outcome::Ok {
            moments.push((transaction.completed, true, txn));
        }
    }
    moments.sort_unstable();
    let mut last: Option<usize> = None;
    for (_, completes, txn) in moments {
        if completes {
            let relay = graph.add_relay();
            graph.add(txn, relay, Kinds::TIME, Why::Time);
            if let Some(last) = last {
                graph.add(last, relay, Kinds::TIME, Why::Time);
            }
            last = Some(relay);
        } else if let Some(last) = last {
            graph.add(last, txn, Kinds::TIME, Why::Time);
        }
    }
}
