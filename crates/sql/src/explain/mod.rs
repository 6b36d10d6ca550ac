//! EXPLAIN: the tabular form clients know, the same as JSON, and the tree with figures.

mod change;
mod json;
mod table;
mod tree;

pub use change::{Change, explain_change, explain_modify};

use crate::executor::Analysis;
use crate::plan::physical::{Access, KeyPart, Node, Scan};
use crate::plan::{Expr, Plan, walk};
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
        ExplainFormat::Traditional => table::COLUMNS
            .into_iter()
            .map(|name| {
                let mut meta = text_meta(name);
                match name {
                    "id" | "rows" => meta.ty = DataType::BIGINT_UNSIGNED,
                    "filtered" => meta.ty = DataType::DOUBLE,
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
        ExplainFormat::Tree => vec![vec![Value::Text(tree::lines(&plan.root, 0, analysis))]],
        ExplainFormat::Traditional => table::rows(plan),
        ExplainFormat::Json => {
            let document = json::document(&table::rows(plan));
            vec![vec![Value::Text(format!("{document:#}"))]]
        }
    }
}

/// Plans in an expression, and whether they read rows outside.
fn collect_plans(expr: &Expr, found: &mut Vec<(Node, bool)>) {
    if let Some(plan) = walk::plan_of(expr) {
        found.push((plan.root.clone(), plan.correlated));
    }
    walk::for_each_child(expr, &mut |child| collect_plans(child, found));
}

/// Conditions that the operator itself checks.
fn own_predicates(node: &Node) -> &[Expr] {
    match node {
        Node::Scan(scan) => &scan.predicates,
        Node::Virtual(source) => &source.predicates,
        Node::Derived(source) => &source.predicates,
        Node::CteScan(source) => &source.predicates,
        Node::Lateral(source) => &source.predicates,
        Node::Filter { predicates, .. } => predicates,
        _ => &[],
    }
}

/// Which keys give no range and no order because they are blinded, where a better way in is missing.
fn blinded_keys(scan: &Scan) -> Option<String> {
    if scan.blinded.is_empty() || scan.access.unique {
        return None;
    }
    let names = scan.blinded.join(", ");
    Some(format!("Blinded, no range or order: {names}"))
}

fn key_name(scan: &Scan) -> &str {
    key_of(scan, &scan.access)
}

fn key_of<'s>(scan: &'s Scan, access: &Access) -> &'s str {
    access
        .index
        .map_or("PRIMARY", |at| scan.table.indexes[at].name.as_str())
}

/// How a table is read, in MySQL's words for `type`.
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
