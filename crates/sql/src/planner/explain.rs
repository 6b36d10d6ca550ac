//! EXPLAIN: the tabular form clients know, and the tree with figures.

use std::fmt::Write as _;

use super::Plan;
use super::physical::{Access, JoinKind, KeyPart, Node, Scan, SetOp};
use super::walk;
use crate::binder::bigint;
use crate::executor::Analysis;
use crate::expr::Expr;
use crate::types::{Collation, ColumnMeta, DataType, Row, Value};

/// Which EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainFormat {
    /// One row a table, MySQL's columns.
    Traditional,
    /// Text, one line an operator.
    Tree,
    /// The rows of `Traditional` as one JSON document.
    Json,
}

fn text_meta(name: &str) -> ColumnMeta {
    ColumnMeta {
        schema: String::new(),
        table: String::new(),
        org_table: String::new(),
        name: name.to_string(),
        org_name: String::new(),
        ty: DataType::Varchar {
            length: 1024,
            collation: Collation::default(),
        },
        not_null: false,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}

/// Columns of the result of [`explain`].
#[must_use]
pub fn explain_columns(format: ExplainFormat) -> Vec<ColumnMeta> {
    match format {
        ExplainFormat::Tree | ExplainFormat::Json => vec![text_meta("EXPLAIN")],
        ExplainFormat::Traditional => [
            "id",
            "select_type",
            "table",
            "partitions",
            "type",
            "possible_keys",
            "key",
            "key_len",
            "ref",
            "rows",
            "filtered",
            "Extra",
        ]
        .into_iter()
        .map(|name| {
            let mut meta = text_meta(name);
            match name {
                "id" | "rows" => meta.ty = bigint(true),
                "filtered" => meta.ty = DataType::Double { unsigned: false },
                _ => {}
            }
            meta
        })
        .collect(),
    }
}

/// What the plan will do; with an analysis, what it did.
#[must_use]
pub fn explain(plan: &Plan, format: ExplainFormat, analysis: Option<&Analysis>) -> Vec<Row> {
    match format {
        ExplainFormat::Tree => {
            let mut tree = Tree {
                text: String::new(),
                analysis,
            };
            tree.node(&plan.root, 0);
            vec![vec![Value::Text(tree.text.trim_end().to_string())]]
        }
        ExplainFormat::Traditional => tabular(plan),
        ExplainFormat::Json => {
            let document = super::explain_json::document(&tabular(plan));
            vec![vec![Value::Text(format!("{document:#}"))]]
        }
    }
}

/// The operators below a line that is there already.
pub(super) fn tree_under(root: &Node) -> String {
    let mut tree = Tree {
        text: String::new(),
        analysis: None,
    };
    tree.node(root, 1);
    tree.text.trim_end().to_string()
}

pub(super) fn tabular(plan: &Plan) -> Vec<Row> {
    let mut table = Tabular {
        rows: Vec::new(),
        next_id: 1,
    };
    table.select(&plan.root, "SIMPLE");
    table.rows
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
            let _ = write!(self.text, "  (rows={:.0})", scan.estimate);
        }
        if let Some(analysis) = self.analysis {
            let figures = analysis.of(node);
            if figures.loops == 0 {
                self.text.push_str(" (never executed)");
            } else {
                #[allow(clippy::cast_precision_loss)]
                let millis = |micros: i64| micros as f64 / 1000.0 / figures.loops as f64;
                #[allow(clippy::cast_precision_loss)]
                let rows = figures.rows as f64 / figures.loops as f64;
                let _ = write!(
                    self.text,
                    " (actual time={:.3}..{:.3} rows={rows:.3} loops={})",
                    millis(figures.first_micros),
                    millis(figures.micros),
                    figures.loops
                );
            }
        }
        self.text.push('\n');
    }

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

fn collect_plans(expr: &Expr, found: &mut Vec<(Node, bool)>) {
    if let Some(plan) = walk::plan_of(expr) {
        found.push((plan.root.clone(), plan.correlated));
    }
    walk::for_each_child(expr, &mut |child| collect_plans(child, found));
}

fn own_predicates(node: &Node) -> &[Expr] {
    match node {
        Node::Scan(scan) => &scan.predicates,
        Node::Virtual(source) => &source.predicates,
        Node::Derived(source) => &source.predicates,
        Node::CteScan(source) => &source.predicates,
        Node::Filter { predicates, .. } => predicates,
        _ => &[],
    }
}

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
        Node::Filter { predicates, .. } => format!("Filter: {}", conditions(node, predicates)),
        Node::Join(join) => {
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
        Node::Limit { limit, .. } => {
            let count = limit
                .count
                .as_ref()
                .map_or("all".to_string(), Expr::describe);
            match &limit.offset {
                Some(offset) => format!("Limit/Offset: {count}/{} row(s)", offset.describe()),
                None => format!("Limit: {count} row(s)"),
            }
        }
        Node::SetOperation(operation) => {
            let op = match operation.op {
                SetOp::Union => "Union",
                SetOp::Except => "Except",
                SetOp::Intersect => "Intersect",
            };
            format!("{op}{}", if operation.all { " all" } else { "" })
        }
        Node::Recursive(_) => "Repeat until convergence".to_string(),
        Node::From { .. } | Node::Project { .. } | Node::Cut { .. } => String::new(),
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

fn key_name(scan: &Scan) -> &str {
    key_of(scan, &scan.access)
}

fn key_of<'s>(scan: &'s Scan, access: &Access) -> &'s str {
    access
        .index
        .map_or("PRIMARY", |at| scan.table.indexes[at].name.as_str())
}

fn access_type(access: &Access) -> &'static str {
    let constant = |expr: &Expr| {
        let mut own = true;
        walk::references(expr, &mut |(depth, _)| own &= depth > 0);
        own
    };
    let mut single = true;
    let mut span = false;
    let mut fixed = true;
    for part in &access.parts {
        match part {
            KeyPart::Points { values, .. } => {
                single &= values.len() == 1;
                fixed &= values.iter().all(constant);
            }
            KeyPart::Span { .. } => span = true,
        }
    }
    match (access.parts.is_empty(), access.unique, single && !span) {
        (true, ..) if access.index.is_some() => "index",
        (true, ..) => "ALL",
        (_, true, true) if fixed => "const",
        (_, true, true) => "eq_ref",
        (_, _, true) => "ref",
        _ => "range",
    }
}

struct Tabular {
    rows: Vec<Row>,
    next_id: u64,
}

impl Tabular {
    /// One SELECT and what is nested in it.
    fn select(&mut self, root: &Node, kind: &str) {
        if let Node::SetOperation(operation) = root {
            self.select(&operation.left, "PRIMARY");
            self.select(&operation.right, "UNION");
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let mut extra = Vec::new();
        let mut nested = Vec::new();
        let before = self.rows.len();
        self.walk(root, id, kind, &mut extra, &mut nested);
        if self.rows.len() == before {
            self.rows.push(no_table(id, kind));
        } else if let Some(Value::Text(text)) = self.rows[before].last_mut() {
            for note in extra {
                if !text.is_empty() {
                    text.push_str("; ");
                }
                text.push_str(note);
            }
        }
        for (node, kind) in nested {
            self.select(&node, kind);
        }
    }

    fn walk(
        &mut self,
        node: &Node,
        id: u64,
        kind: &str,
        extra: &mut Vec<&'static str>,
        nested: &mut Vec<(Node, &'static str)>,
    ) {
        match node {
            Node::Scan(scan) => self.rows.push(scan_row(scan, id, kind)),
            Node::Virtual(source) => self.rows.push(plain_row(id, kind, &source.alias)),
            Node::CteScan(source) => self.rows.push(plain_row(id, kind, &source.alias)),
            Node::Derived(source) => {
                let name = format!("<derived:{}>", source.alias);
                self.rows.push(plain_row(id, kind, &name));
                nested.push((source.node.clone(), "DERIVED"));
                return Self::note_subqueries(node, nested);
            }
            Node::SetOperation(_) => {
                nested.push((node.clone(), "UNION"));
                return;
            }
            Node::Sort { .. } => extra.push("Using filesort"),
            Node::Aggregate(aggregate) if !aggregate.global => extra.push("Using temporary"),
            Node::Distinct { .. } => extra.push("Using temporary"),
            _ => {}
        }
        Self::note_subqueries(node, nested);
        for input in walk::inputs(node) {
            self.walk(input, id, kind, extra, nested);
        }
    }

    fn note_subqueries(node: &Node, nested: &mut Vec<(Node, &'static str)>) {
        let mut found = Vec::new();
        match node {
            Node::Project { expressions, .. } => {
                for expr in expressions {
                    collect_plans(expr, &mut found);
                }
            }
            _ => {
                for expr in own_predicates(node) {
                    collect_plans(expr, &mut found);
                }
            }
        }
        for (root, correlated) in found {
            let kind = if correlated {
                "DEPENDENT SUBQUERY"
            } else {
                "SUBQUERY"
            };
            nested.push((root, kind));
        }
    }
}

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

pub(super) fn no_table(id: u64, kind: &str) -> Row {
    let mut row = vec![Value::Null; 12];
    row[0] = Value::UInt(id);
    row[1] = text(kind);
    row[11] = text("No tables used");
    row
}

fn plain_row(id: u64, kind: &str, table: &str) -> Row {
    let mut row = no_table(id, kind);
    row[2] = text(table);
    row[4] = text("ALL");
    row[9] = Value::UInt(100);
    row[10] = Value::Double(100.0);
    row[11] = text("");
    row
}

fn scan_row(scan: &Scan, id: u64, kind: &str) -> Row {
    let mut row = plain_row(id, kind, &scan.alias);
    let ty = access_type(&scan.access);
    row[4] = text(ty);
    if !scan.possible.is_empty() {
        row[5] = text(scan.possible.join(","));
    }
    if ty != "ALL" {
        row[6] = text(key_name(scan));
        row[7] = text(key_length(scan).to_string());
    }
    if matches!(ty, "const" | "eq_ref" | "ref") {
        let parts = scan.access.parts.len();
        row[8] = text(vec![if ty == "const" { "const" } else { "func" }; parts].join(","));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    {
        row[9] = Value::UInt(scan.estimate.max(1.0) as u64);
    }
    let mut extra = Vec::new();
    if scan.predicates.len() > scan.access.parts.len() || ty == "range" {
        extra.push("Using where");
    }
    if scan.access.covers {
        extra.push("Using index");
    }
    row[11] = text(extra.join("; "));
    row
}

/// Bytes of the key columns used, as MySQL counts them.
fn key_length(scan: &Scan) -> u32 {
    let columns: Vec<usize> = match scan.access.index {
        None => scan.table.primary_key.clone(),
        Some(at) => scan.table.indexes[at]
            .columns
            .iter()
            .map(|c| c.column)
            .collect(),
    };
    let used = if scan.access.parts.is_empty() {
        columns.len()
    } else {
        scan.access.parts.len()
    };
    columns
        .into_iter()
        .take(used)
        .map(|at| {
            let column = &scan.table.columns[at];
            let bytes = match &column.ty {
                DataType::Int { width, .. } => u32::from(width.bytes()),
                DataType::Char { length, .. } => length * 4,
                DataType::Varchar { length, .. } => length * 4 + 2,
                DataType::Binary { length } => *length,
                DataType::Varbinary { length } => length + 2,
                DataType::Date => 3,
                DataType::Year => 1,
                DataType::Bit { width } => crate::types::bit_bytes(*width),
                DataType::Timestamp { .. } => 4,
                DataType::DateTime { .. } => 5,
                _ => 8,
            };
            bytes + u32::from(!column.not_null)
        })
        .sum()
}
