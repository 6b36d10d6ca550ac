//! The tabular EXPLAIN: a row for each table, and for each SELECT that reads none.

use super::{access_type, collect_plans, key_name, own_predicates};
use crate::catalog::Column;
use crate::plan::physical::{Node, Scan};
use crate::plan::{Plan, walk};
use crate::types::{DataType, Row, Value, bit_bytes};

/// Columns, under MySQL's names.
pub(super) const COLUMNS: [&str; 12] = [
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
];
// Their places.
pub(super) const ID: usize = 0;
pub(super) const SELECT_TYPE: usize = 1;
pub(super) const TABLE: usize = 2;
pub(super) const ACCESS: usize = 4;
pub(super) const POSSIBLE_KEYS: usize = 5;
pub(super) const KEY: usize = 6;
pub(super) const KEY_LENGTH: usize = 7;
pub(super) const REF: usize = 8;
pub(super) const ROWS: usize = 9;
pub(super) const FILTERED: usize = 10;
pub(super) const EXTRA: usize = 11;

/// The rows of a plan.
pub(super) fn rows(plan: &Plan) -> Vec<Row> {
    let mut table = Tabular {
        rows: Vec::new(),
        next_id: 1,
    };
    table.select(&plan.root, "SIMPLE");
    table.rows
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

    /// The tables of one SELECT: notes for its first row, and SELECTs of their own.
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
            Node::Lateral(source) => {
                let name = format!("<derived:{}>", source.alias);
                self.rows.push(plain_row(id, kind, &name));
                if let Some(plan) = walk::plan_of(&source.query) {
                    nested.push((plan.root.clone(), "DEPENDENT DERIVED"));
                }
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

pub(super) fn no_table(id: u64, kind: &str) -> Row {
    let mut row = vec![Value::Null; COLUMNS.len()];
    row[ID] = Value::UInt(id);
    row[SELECT_TYPE] = text(kind);
    row[EXTRA] = text("No tables used");
    row
}

fn plain_row(id: u64, kind: &str, table: &str) -> Row {
    let mut row = no_table(id, kind);
    row[TABLE] = text(table);
    row[ACCESS] = text("ALL");
    row[ROWS] = Value::UInt(100);
    row[FILTERED] = Value::Double(100.0);
    row[EXTRA] = text("");
    row
}

fn scan_row(scan: &Scan, id: u64, kind: &str) -> Row {
    let mut row = plain_row(id, kind, &scan.alias);
    let ty = access_type(&scan.access);
    row[ACCESS] = text(ty);
    if !scan.possible.is_empty() {
        row[POSSIBLE_KEYS] = text(scan.possible.join(","));
    }
    if ty != "ALL" {
        row[KEY] = text(key_name(scan));
        row[KEY_LENGTH] = text(key_length(scan).to_string());
    }
    if matches!(ty, "const" | "eq_ref" | "ref") {
        let parts = scan.access.parts.len();
        row[REF] = text(vec![if ty == "const" { "const" } else { "func" }; parts].join(","));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    {
        row[ROWS] = Value::UInt(scan.reads.max(1.0) as u64);
    }
    if scan.reads > 0.0 {
        let percent = (scan.estimate / scan.reads * 100.0).clamp(0.0, 100.0);
        row[FILTERED] = Value::Double((percent * 100.0).round() / 100.0);
    }
    let mut extra = Vec::new();
    if scan.predicates.len() > scan.access.parts.len() || ty == "range" {
        extra.push("Using where");
    }
    if scan.access.covers {
        extra.push("Using index");
    }
    let blinded = super::blinded_keys(scan);
    extra.extend(blinded.as_deref());
    row[EXTRA] = text(extra.join("; "));
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
        .map(|at| key_column_length(&scan.table.columns[at]))
        .sum()
}

fn key_column_length(column: &Column) -> u32 {
    let bytes = match &column.ty {
        DataType::Int { width, .. } => u32::from(width.bytes()),
        DataType::Char { length, .. } => length * 4,
        DataType::Varchar { length, .. } => length * 4 + 2,
        DataType::Binary { length } => *length,
        DataType::Varbinary { length } => length + 2,
        DataType::Date => 3,
        DataType::Year => 1,
        DataType::Bit { width } => bit_bytes(*width),
        DataType::Timestamp { .. } => 4,
        DataType::DateTime { .. } => 5,
        _ => 8,
    };
    bytes + u32::from(!column.not_null)
}

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}
