//! Which cycles there are, named by the weakest edges they need.

use super::edges::{Graph, Why};
use super::verdict::{Anomaly, Verdict};
use super::{History, Level, Transaction};
use crate::graph::{Hop, Kinds};

const WRITES: Kinds = Kinds::WRITE_WRITE;
const INFORMATION: Kinds = WRITES.and(Kinds::WRITE_READ);
const DATA: Kinds = INFORMATION.and(Kinds::READ_WRITE);
const IN_SESSION: Kinds = DATA.and(Kinds::SESSION);
const IN_TIME: Kinds = IN_SESSION.and(Kinds::TIME);

/// Looks with few kinds of edges first, so that a cycle is named by what it really needs. A
/// component in which one was found already is not searched with more.
pub(super) fn find(history: &History, graph: &Graph, level: Level, verdict: &mut Verdict) {
    let mut search = Search {
        history,
        graph,
        found: Vec::new(),
    };
    search.stage(WRITES, Anomaly::DirtyWrite, verdict);
    search.stage(INFORMATION, Anomaly::CircularInformation, verdict);
    search.stage(DATA, Anomaly::AntiDependency, verdict);
    if level >= Level::Session {
        search.stage(IN_SESSION, Anomaly::SessionOrder, verdict);
    }
    if level >= Level::Strict {
        search.stage(IN_TIME, Anomaly::RealTimeOrder, verdict);
    }
}

struct Search<'a> {
    history: &'a History,
    graph: &'a Graph,
    /// A node of each cycle found.
    found: Vec<usize>,
}

impl Search<'_> {
    fn stage(&mut self, kinds: Kinds, anomaly: Anomaly, verdict: &mut Verdict) {
        for members in self.graph.components(kinds) {
            let is_member = |node: &usize| members.binary_search(node).is_ok();
            if self.found.iter().any(is_member) {
                continue;
            }
            self.found.push(members[0]);
            let mut named = anomaly;
            let mut cycle = None;
            if anomaly == Anomaly::AntiDependency {
                let graph = self.graph;
                cycle = graph.cycle_with_one(&members, Kinds::READ_WRITE, INFORMATION);
                if cycle.is_some() {
                    named = Anomaly::SingleAntiDependency;
                }
            }
            let cycle = cycle.or_else(|| self.graph.shortest_cycle(&members, kinds));
            // A component of two nodes and more has a cycle.
            let cycle = cycle.unwrap_or_default();
            verdict.note(named, || self.tell(&cycle));
        }
    }

    /// One line for each step from transaction to transaction, beginning with one.
    fn tell(&self, cycle: &[Hop<Why>]) -> String {
        let is_txn = |node: usize| node < self.graph.transactions();
        let start = cycle.iter().position(|hop| is_txn(hop.from)).unwrap_or(0);
        let (head, rest) = cycle.split_at(start);
        let mut lines = Vec::new();
        let mut from = None;
        for hop in rest.iter().chain(head) {
            let from = from.get_or_insert(hop.from);
            if is_txn(hop.edge.to) {
                lines.push(self.tell_step(*from, hop.edge.to, hop.edge.why));
                *from = hop.edge.to;
            }
        }
        lines.join("\n")
    }

    fn tell_step(&self, from: usize, to: usize, why: Why) -> String {
        let transactions = &self.history.transactions;
        let (earlier, later) = (&transactions[from], &transactions[to]);
        let (first, second) = (earlier.name, later.name);
        let reason = match why {
            Why::WriteWrite { key, before, after } => {
                format!("ww: T{second} appended {after} to key {key} after T{first}'s {before}")
            }
            Why::WriteRead { key, element } => {
                format!("wr: T{second} read key {key} up to T{first}'s {element}")
            }
            Why::ReadWrite { key, element } => {
                format!("rw: T{first} read key {key} without T{second}'s {element}")
            }
            Why::Session => format!(
                "session: T{second} follows T{first} in session {}",
                later.session
            ),
            Why::Time => tell_times(earlier, later),
        };
        format!("T{first} before T{second}: {reason}")
    }
}

fn tell_times(earlier: &Transaction, later: &Transaction) -> String {
    let (first, second) = (earlier.name, later.name);
    format!(
        "time: T{first} completed at {}, T{second} was invoked at {}",
        earlier.completed, later.invoked
    )
}
