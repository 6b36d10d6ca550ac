//! One transaction's way through the cluster as text: a column per node, a line per arrival.

use std::collections::BTreeMap;
use std::fmt::Write;

use manxdb_core::{Nanos, NodeId};

use crate::trace::{Kind, Row};

/// No line is wider.
const WIDTH: usize = 100;
/// For the time on the left.
const TIME_WIDTH: usize = 11;
/// For what arrived, on the right.
const LABEL_WIDTH: usize = 34;
/// More nodes share the last column.
const COLUMNS_MAX: usize = 13;

/// Where nodes are drawn.
struct Columns {
    /// The column of each node that has one of its own.
    of: BTreeMap<NodeId, usize>,
    count: usize,
    width: usize,
}

impl Columns {
    fn new(rows: &[&Row]) -> Self {
        let mut busy: BTreeMap<NodeId, usize> = BTreeMap::new();
        for row in rows {
            *busy.entry(row.node).or_default() += 1;
            if let Kind::Message(from) = row.kind {
                *busy.entry(from).or_default() += 1;
            }
        }
        let mut nodes: Vec<(NodeId, usize)> = busy.into_iter().collect();
        let crowded = nodes.len() > COLUMNS_MAX;
        if crowded {
            nodes.sort_by_key(|(node, count)| (std::cmp::Reverse(*count), *node));
            nodes.truncate(COLUMNS_MAX - 1);
            nodes.sort_unstable();
        }
        let count = nodes.len() + usize::from(crowded);
        let of = nodes.into_iter().map(|(node, _)| node);
        Self {
            of: of.enumerate().map(|(index, node)| (node, index)).collect(),
            count,
            width: ((WIDTH - TIME_WIDTH - LABEL_WIDTH) / count.max(1)).min(9),
        }
    }

    fn column(&self, node: NodeId) -> usize {
        self.of.get(&node).copied().unwrap_or(self.count - 1)
    }

    fn place(&self, node: NodeId) -> usize {
        self.column(node) * self.width
    }

    /// A line without events.
    fn empty(&self) -> Vec<char> {
        let line = (0..self.count * self.width).map(|index| {
            if index.is_multiple_of(self.width) {
                '│'
            } else {
                ' '
            }
        });
        line.collect()
    }

    fn head(&self) -> String {
        let mut names = vec![String::from("rest"); self.count];
        for (node, index) in &self.of {
            names[*index] = format!("n{}", node.0);
        }
        let fit = |name: &String| format!("{name:<width$.width$}", width = self.width);
        names.iter().map(fit).collect()
    }

    /// Whether the columns alone do not tell who sent and who received.
    fn hides(&self, row: &Row) -> bool {
        let known = |node| self.of.contains_key(&node);
        let sender = match row.kind {
            Kind::Message(from) => known(from),
            _ => true,
        };
        !known(row.node) || !sender
    }
}

/// Draws the rows about a transaction, for people by its `name`, and the faults among them.
///
/// `▶` and `◀` are messages that arrive, from the node with the dot; `↺` one to the sender itself;
/// `◆` a request, `◇` its answer, `*` a phase that the core marked, `✗` a fault.
pub fn timeline(rows: &[Row], txn: u64, name: &str) -> String {
    let about = |row: &&&Row| row.txn == Some(txn);
    // A mark is recorded when its step is taken, which may be before the step is done.
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.at);
    let mut ends = rows.iter().filter(about).map(|row| row.at);
    let start = ends.next();
    let (Some(start), Some(end)) = (start, ends.next_back().or(start)) else {
        return format!("nothing about transaction {name} was recorded\n");
    };
    rows.retain(|row| {
        let fault = row.kind == Kind::Fault && (start..=end).contains(&row.at);
        row.txn == Some(txn) || fault
    });
    let columns = Columns::new(&rows);
    let mut text = format!("transaction {name}, from {start}\n");
    let _ = writeln!(text, "{:>9}  {}", "ms", columns.head().trim_end());
    for row in rows {
        let at = row.at.since(start).as_millis_f64();
        let line: String = draw(row, &columns).into_iter().collect();
        let label: String = label(row, &columns).chars().take(LABEL_WIDTH).collect();
        let _ = writeln!(text, "{at:>9.3}  {line}{label}");
    }
    text
}

fn draw(row: &Row, columns: &Columns) -> Vec<char> {
    let mut line = columns.empty();
    let to = columns.place(row.node);
    match row.kind {
        Kind::Message(from) if columns.place(from) == to => line[to] = '↺',
        Kind::Message(from) => {
            let from = columns.place(from);
            let (left, right) = (from.min(to), from.max(to));
            line[left + 1..right].fill('─');
            line[from] = '•';
            if from < to {
                line[to - 1] = '▶';
            } else {
                line[to + 1] = '◀';
            }
        }
        Kind::Request => line[to] = '◆',
        Kind::Reply => line[to] = '◇',
        Kind::Mark => line[to] = '*',
        Kind::Fault => line[to] = '✗',
    }
    line
}

fn label(row: &Row, columns: &Columns) -> String {
    let mut text = row.label.to_string();
    if columns.hides(row) {
        match row.kind {
            Kind::Message(from) => {
                let _ = write!(text, " n{}→n{}", from.0, row.node.0);
            }
            _ => {
                let _ = write!(text, " n{}", row.node.0);
            }
        }
    }
    if row.wait > Nanos::ZERO {
        let _ = write!(text, ", waits {:.3}", row.wait.as_millis_f64());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SimTime;

    fn row(micros: u64, node: u32, kind: Kind, label: &'static str) -> Row {
        Row {
            at: SimTime::from_micros(1_000_000 + micros),
            node: NodeId(node),
            kind,
            label,
            txn: Some(7),
            wait: Nanos::ZERO,
        }
    }

    #[test]
    fn a_transaction_is_drawn_over_its_nodes() {
        let message = |from| Kind::Message(NodeId(from));
        let mut rows = vec![
            row(0, 0, Kind::Request, "request"),
            row(2_500, 4, message(0), "prepare"),
            row(2_500, 0, message(0), "prepare"),
            row(2_600, 2, message(0), "other"),
            row(2_700, 2, Kind::Fault, "crash"),
            row(5_000, 0, message(4), "prepared"),
            row(5_100, 0, Kind::Mark, "decided"),
            row(5_200, 0, Kind::Reply, "reply"),
        ];
        rows[1].wait = Nanos::from_micros(30);
        rows[3].txn = Some(8);
        rows[4].txn = None;
        let drawn = "\
transaction seven, from 1.000000000s
       ms  n0       n2       n4
    0.000  ◆        │        │        request
    2.500  •────────────────▶│        prepare, waits 0.030
    2.500  ↺        │        │        prepare
    2.700  │        ✗        │        crash
    5.000  │◀────────────────•        prepared
    5.100  *        │        │        decided
    5.200  ◇        │        │        reply
";
        assert_eq!(timeline(&rows, 7, "seven"), drawn);
        assert_eq!(
            timeline(&rows, 9, "nine"),
            "nothing about transaction nine was recorded\n"
        );
    }

    #[test]
    fn many_nodes_share_a_column_and_no_line_is_too_wide() {
        let mut rows = Vec::new();
        for node in 0..40_u32 {
            let from = NodeId(if node < 10 { 39 } else { node - 10 });
            let kind = Kind::Message(from);
            let mut one = row(
                node.into(),
                node,
                kind,
                "a label that is rather long already",
            );
            one.wait = Nanos::from_millis(1);
            rows.push(one);
        }
        let text = timeline(&rows, 7, "seven");
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(text.contains("rest"), "{text}");
        assert_eq!(text.lines().count(), 42);
    }
}
