//! `EXPLAIN COMPLIANCE`: whose the rows of each table are, and what is wrong or doubtful with that.

use manxdb_ownership::{Finding, OwnershipGraph, Severity, TableReport, report};
use manxdb_storage::KeyRange;
use sqlparser::ast::ObjectName;

use super::ResultSink;
use super::session::Session;
use crate::catalog::unowned::unowned_rows_prefix;
use crate::catalog::{Catalog, Column, ColumnId, IndexId, ROWS, Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::statement::blinded_keys_wanted as wanted;
use crate::types::{Row, Value};

/// Rows without owner that are counted.
const WAITING_MAX: usize = 1_000_000;

const COLUMNS: [&str; 6] = ["Table", "Kind", "Chain", "Origin", "Severity", "Message"];

impl Session {
    /// A row for each chain of each table of the current database, or of the one that is named, and one
    /// for each finding. Tables that the account may not see are left out.
    pub(super) fn compliance(
        &mut self,
        table: Option<&ObjectName>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let mut rows = Vec::new();
        if let Some(name) = table {
            let (database, name) = self.object_name(name, None)?;
            let (database, name) = self.require_relation(&database, &name)?;
            let table = catalog.table(&database, &name).map_err(|_| {
                let text = format!("'{database}.{name}' is not BASE TABLE");
                SqlError::new(1347, "HY000", text)
            })?;
            rows.extend(rows_of(
                &catalog,
                &graph,
                table,
                self.rows_that_wait(table)?,
            ));
        } else {
            let database = self
                .database()
                .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected"))?;
            for table in catalog.database(database)?.tables.values() {
                if self.require_relation(database, &table.name).is_ok() {
                    rows.extend(rows_of(
                        &catalog,
                        &graph,
                        table,
                        self.rows_that_wait(table)?,
                    ));
                }
            }
        }
        self.send_rows(&COLUMNS, &rows, sink, more)
    }

    /// Rows without an owner of a table where each is to have one, counted up to a million.
    fn rows_that_wait(&self, table: &Table) -> SqlResult<usize> {
        if table.ownership.unowned_allowed {
            return Ok(0);
        }
        let range = KeyRange::prefix(&unowned_rows_prefix(table.id));
        let txn = self.instance().store.begin();
        Ok(txn.count_up_to(&range, WAITING_MAX)?)
    }
}

fn rows_of(catalog: &Catalog, graph: &OwnershipGraph, table: &Table, waiting: usize) -> Vec<Row> {
    let Some(shape) = graph.table(&ownership::name(table)) else {
        return Vec::new();
    };
    let TableReport {
        kind,
        chains,
        mut findings,
    } = report(graph, shape);
    if !table.ownership_rules.is_empty() {
        findings.push(Finding {
            severity: Severity::Error,
            message: format!(
                "rules of an earlier release are not in force ({}): ALTER TABLE … ADD ON …",
                table.ownership_rules.join("; ")
            ),
        });
    }
    if waiting > 0 {
        findings.push(Finding {
            severity: Severity::Warning,
            message: format!(
                "{waiting} rows have no owner and wait for one: they were stored under \
                 foreign_key_checks = 0, or before the definition that says whose they are"
            ),
        });
    }
    if let Some(retention) = &table.ownership.retention {
        findings.push(manxdb_ownership::Finding {
            severity: manxdb_ownership::Severity::Note,
            message: format!("{retention}: GDPR FORGET puts off such rows until then"),
        });
    }
    if let Some(home) = table.ownership.home_region {
        let column = names(table, &[home]);
        findings.push(note(format!(
            "HOME_REGION: {column}; it is kept, and nothing is placed by it yet"
        )));
    }
    // What is not sealed is plain anyway.
    if table.sealing.vault().is_some() && !chains.is_empty() {
        findings.extend(keys_of(catalog, table));
    }
    let text = |text: String| Value::Text(text);
    let row = |chain, origin, severity, message| {
        let (name, kind) = (text(table.name.clone()), text(kind.to_string()));
        vec![name, kind, chain, origin, severity, message]
    };
    let mut rows: Vec<Row> = chains
        .into_iter()
        .map(|(chain, origin)| {
            let origin = match origin {
                manxdb_ownership::Origin::Explicit => "explicit",
                manxdb_ownership::Origin::Inferred => "inferred",
            };
            row(
                text(chain),
                text(origin.to_string()),
                Value::Null,
                Value::Null,
            )
        })
        .collect();
    rows.extend(findings.into_iter().map(|finding| {
        let severity = text(finding.severity.to_string());
        row(Value::Null, Value::Null, severity, text(finding.message))
    }));
    if rows.is_empty() {
        rows.push(row(Value::Null, Value::Null, Value::Null, Value::Null));
    }
    rows
}

/// What keys of a table whose rows are sealed show of people's values.
fn keys_of(catalog: &Catalog, table: &Table) -> Vec<Finding> {
    let wanted = wanted(catalog, table);
    let mut findings = Vec::new();
    let indexes = table.indexes.iter();
    let indexes = indexes.map(|index| (index.id, index.name.as_str()));
    for (key, name) in std::iter::once((ROWS, "PRIMARY")).chain(indexes) {
        let should = wanted.iter().find(|(id, _)| *id == key);
        let should = should.map_or(&[][..], |(_, columns)| columns);
        findings.extend(key_findings(table, (key, name), should));
    }
    if !table.blinding.personal.is_empty() {
        let columns = names(table, &table.blinding.personal);
        findings.push(note(format!("PERSONAL: {columns}")));
    }
    findings
}

/// What one key shows in which the columns `should` be blinded.
fn key_findings(table: &Table, (key, name): (IndexId, &str), should: &[ColumnId]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let blinded = table.blinding.of(key);
    if !blinded.is_empty() {
        findings.push(note(format!(
            "key {name}: {} blinded; files show which rows have equal values, and how many",
            names(table, blinded)
        )));
    }
    let mut personal: Vec<ColumnId> = blinded.to_vec();
    personal.extend(should.iter().filter(|column| !blinded.contains(column)));
    if key == ROWS && !personal.is_empty() {
        findings.push(warning(format!(
            "the primary key is personal ({}): all keys of the table repeat it; a number that says nothing would not",
            names(table, &personal)
        )));
    }
    let plain = personal.get(blinded.len()..).unwrap_or_default();
    if !plain.is_empty() {
        findings.push(warning(format!(
            "key {name} is from before its columns were blinded: files show values of {} until compaction, also after FORGET; ALTER TABLE {} FORCE makes it anew",
            names(table, plain),
            table.name
        )));
    }
    let ordered = ordered_columns(table, key);
    if !ordered.is_empty() {
        findings.push(warning(format!(
            "key {name} is ORDERED: files show values of {} until compaction, also after FORGET",
            names(table, &ordered)
        )));
    }
    findings
}

fn names(table: &Table, columns: &[ColumnId]) -> String {
    let named = table.columns.iter();
    let named = named.filter(|column| columns.contains(&column.id));
    let names: Vec<&str> = named.map(Column::shown_name).collect();
    names.join(", ")
}

fn note(message: String) -> Finding {
    Finding {
        severity: Severity::Note,
        message,
    }
}

fn warning(message: String) -> Finding {
    Finding {
        severity: Severity::Warning,
        message,
    }
}

/// The columns of an ORDERED key that would be blinded otherwise.
fn ordered_columns(table: &Table, key: IndexId) -> Vec<ColumnId> {
    if !table.blinding.ordered.contains(&key) {
        return Vec::new();
    }
    let columns: Vec<usize> = match table.indexes.iter().find(|index| index.id == key) {
        Some(index) => index.columns.iter().map(|part| part.column).collect(),
        None => table.primary_key.clone(),
    };
    let columns = columns.into_iter().filter_map(|at| table.columns.get(at));
    columns
        .filter(|column| table.is_for_blinding(column))
        .map(|column| column.id)
        .collect()
}
