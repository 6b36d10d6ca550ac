//! EXPLAIN FORMAT=TREE: one line an operator, after an ANALYZE with figures.

use std::fmt::Write as _;

use super::{access_type, blinded_keys, collect_plans, key_name, key_of, own_predicates};
use crate::executor::{Analysis, NodeFigures};
use crate::plan::physical::{Join, JoinKind, Limit, Node, Scan, SetOp};
use crate::plan::{Expr, walk};

/// A line an operator, the topmost one at `depth`.
pub(super) fn lines(root: &Node, depth: usize, analysis: Option<&Analysis>) -> String {
    let mut tree = Tree {
        text: String::new(),
        analysis,
    };
    tree.node(root, depth);
    tree.text.trim_end().to_string()
}

struct Tree<'a> {
    text: String,
    analysis: Option<&'a Analysis>,
}

impl Tree<'_> {
    fn line(&mut self, node: &Node, depth: usize, what: &str) {
        let indent = "    ".repeat(depth);
        let _ = write!(self.text, "{indent}-> {what}");
        if let Node::Scan(scan) = node {
            let _ = write!(self.text, "  (rows={:.0})", scan.reads);
            if let Some(blinded) = blinded_keys(scan) {
                let _ = write!(self.text, "  ({blinded})");
            }
        }
        if let Some(analysis) = self.analysis {
            self.figures(analysis.of(node));
        }
        self.text.push('\n');
    }

    /// What an operator did, as MySQL shows it: times and rows of one loop on average.
    #[allow(clippy::cast_precision_loss)]
    fn figures(&mut self, figures: NodeFigures) {
        if figures.loops == 0 {
            self.text.push_str(" (never executed)");
            return;
        }
        let loops = figures.loops as f64;
        let millis = |micros: i64| micros as f64 / 1000.0 / loops;
        let _ = write!(
            self.text,
            " (actual time={:.3}..{:.3} rows={:.3} loops={})",
            millis(figures.first_micros),
            millis(figures.micros),
            figures.rows as f64 / loops,
            figures.loops
        );
    }

    /// An operator and those it reads; what only moves columns is left out.
    fn node(&mut self, node: &Node, depth: usize) {
        if matches!(
            node,
            Node::From { .. } | Node::Cut { .. } | Node::Project { .. }
        ) {
            for input in walk::inputs(node) {
                self.node(input, depth);
            }
            return;
        }
        let mut depth = depth;
        let predicates = own_predicates(node);
        if !predicates.is_empty() && !matches!(node, Node::Filter { .. }) {
            let indent = "    ".repeat(depth);
            let _ = writeln!(
                self.text,
                "{indent}-> Filter: {}",
                conditions(node, predicates)
            );
            depth += 1;
        }
        self.line(node, depth, &describe(node));
        for input in walk::inputs(node) {
            self.node(input, depth + 1);
        }
        self.subqueries(node, depth + 1);
    }

    /// Plans inside the expressions of this operator alone.
    fn subqueries(&mut self, node: &Node, depth: usize) {
        let mut found = Vec::new();
        let mut look = |expr: &Expr| collect_plans(expr, &mut found);
        match node {
            Node::Scan(scan) => scan.predicates.iter().for_each(&mut look),
            Node::Lateral(source) => look(&source.query),
            Node::Filter { predicates, .. } => predicates.iter().for_each(&mut look),
            _ => {}
        }
        for (root, correlated) in found {
            let indent = "    ".repeat(depth);
            let kind = if correlated {
                "dependent"
            } else {
                "run only once"
            };
            let _ = writeln!(self.text, "{indent}-> Select (subquery; {kind})");
            self.node(&root, depth + 1);
        }
    }
}

/// Conditions with the names of a table's columns, numbers elsewhere.
fn conditions(node: &Node, predicates: &[Expr]) -> String {
    let name = |slot: usize| match node {
        Node::Scan(scan) if scan.slots.contains(&slot) => {
            let column = &scan.table.columns[slot - scan.slots.start];
            if column.is_hidden() {
                column.shown_name().to_string()
            } else {
                format!("{}.{}", scan.alias, column.name)
            }
        }
        _ => format!("#{slot}"),
    };
    let texts: Vec<String> = predicates.iter().map(|p| p.describe_with(&name)).collect();
    texts.join(" and ")
}

fn describe(node: &Node) -> String {
    match node {
        Node::Single => "Rows fetched before execution".to_string(),
        Node::Values(rows) => format!("Rows of values: {}", rows.len()),
        Node::Scan(scan) => describe_scan(scan),
        Node::Virtual(source) => format!("Table scan on {} (computed)", source.alias),
        Node::Derived(source) if source.keep => format!("Materialize {}", source.alias),
        Node::Derived(source) => format!("Derived table {}", source.alias),
        Node::CteScan(source) => format!("Scan new records on {}", source.alias),
        Node::Lateral(source) => format!("Lateral derived table {}", source.alias),
        Node::JsonTable(_) => "Materialize table function".to_string(),
        Node::Filter { predicates, .. } => format!("Filter: {}", conditions(node, predicates)),
        Node::Join(join) => describe_join(join),
        Node::Aggregate(aggregate) if aggregate.global => "Aggregate".to_string(),
        Node::Aggregate(aggregate) => format!("Group aggregate: {} keys", aggregate.keys.len()),
        Node::Window(window) => format!("Window functions: {}", window.calls.len()),
        Node::Distinct { .. } => "Remove duplicates".to_string(),
        Node::Sort { keys, limit, .. } => {
            let top = if limit.is_some() {
                ", limit input to the first rows"
            } else {
                ""
            };
            format!("Sort: {} keys{top}", keys.len())
        }
        Node::Limit { limit, .. } => describe_limit(limit),
        Node::SetOperation(operation) => {
            let op = match operation.op {
                SetOp::Union => "Union",
                SetOp::Except => "Except",
                SetOp::Intersect => "Intersect",
            };
            format!("{op}{}", if operation.all { " all" } else { "" })
        }
        Node::Recursive(_) => "Repeat until convergence".to_string(),
        Node::View(lookup) => {
            let keys: usize = lookup.keys.iter().map(Vec::len).product();
            let often = if keys > 1 {
                format!(", {keys} keys")
            } else {
                String::new()
            };
            format!("View lookup on {}{often}, else:", lookup.view.shown())
        }
        Node::ViewRows => "Rows of the view".to_string(),
        Node::Before(_) => "Before the commit".to_string(),
        Node::From { .. } | Node::Project { .. } | Node::Cut { .. } => String::new(),
    }
}

fn describe_join(join: &Join) -> String {
    let kind = match join.kind {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
        JoinKind::Semi => "semijoin",
        JoinKind::Anti => "antijoin",
    };
    match &join.hash {
        None => format!("Nested loop {kind}"),
        Some(keys) if keys.pairs.is_empty() => format!("Hash {kind} (no condition)"),
        Some(keys) => {
            let pairs: Vec<String> = keys
                .pairs
                .iter()
                .map(|(a, b, _)| {
                    let name = |slot: usize| format!("#{slot}");
                    format!("{} = {}", a.describe_with(&name), b.describe_with(&name))
                })
                .collect();
            format!("Hash {kind} ({})", pairs.join(" and "))
        }
    }
}

fn describe_limit(limit: &Limit) -> String {
    let count = limit
        .count
        .as_ref()
        .map_or("all".to_string(), Expr::describe);
    match &limit.offset {
        Some(offset) => format!("Limit/Offset: {count}/{} row(s)", offset.describe()),
        None => format!("Limit: {count} row(s)"),
    }
}

fn describe_scan(scan: &Scan) -> String {
    let mut key = key_name(scan).to_string();
    for other in &scan.alternatives {
        key.push_str(" or ");
        key.push_str(key_of(scan, other));
    }
    let reverse = if scan.access.reverse {
        " (reverse)"
    } else {
        ""
    };
    let (index, one) = if scan.access.covers {
        ("Covering index", "Single-row covering index")
    } else {
        ("Index", "Single-row index")
    };
    match access_type(&scan.access) {
        "const" | "eq_ref" => format!("{one} lookup on {} using {key}", scan.alias),
        "range" => format!("{index} range scan on {} using {key}{reverse}", scan.alias),
        "ref" => format!("{index} lookup on {} using {key}{reverse}", scan.alias),
        "index" => format!("{index} scan on {} using {key}{reverse}", scan.alias),
        _ => format!("Table scan on {}{reverse}", scan.alias),
    }
}
