//! `EXPLAIN COMPLIANCE`: whose the rows of each table are, and what is wrong or doubtful with that.

use manxdb_ownership::{OwnershipGraph, TableReport, report};
use manxdb_storage::KeyRange;
use sqlparser::ast::ObjectName;

use super::ResultSink;
use super::session::Session;
use crate::catalog::unowned::unowned_rows_prefix;
use crate::catalog::{Table, ownership};
use crate::error::{SqlError, SqlResult};
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
            rows.extend(rows_of(&graph, table, self.rows_that_wait(table)?));
        } else {
            let database = self
                .database()
                .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected"))?;
            for table in catalog.database(database)?.tables.values() {
                if self.require_relation(database, &table.name).is_ok() {
                    rows.extend(rows_of(&graph, table, self.rows_that_wait(table)?));
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

fn rows_of(graph: &OwnershipGraph, table: &Table, waiting: usize) -> Vec<Row> {
    let Some(shape) = graph.table(&ownership::name(table)) else {
        return Vec::new();
    };
    let TableReport {
        kind,
        chains,
        mut findings,
    } = report(graph, shape);
    if !table.ownership_rules.is_empty() {
        findings.push(manxdb_ownership::Finding {
            severity: manxdb_ownership::Severity::Error,
            message: format!(
                "rules of an earlier release are not in force ({}): ALTER TABLE … ADD ON …",
                table.ownership_rules.join("; ")
            ),
        });
    }
    if waiting > 0 {
        findings.push(manxdb_ownership::Finding {
            severity: manxdb_ownership::Severity::Warning,
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
    // What is not sealed is plain anyway.
    if table.sealing.vault().is_some() && !chains.is_empty() {
        findings.extend(plain_keys(table));
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

/// Values of people that lie plain in keys of a table whose rows are sealed.
fn plain_keys(table: &Table) -> Option<manxdb_ownership::Finding> {
    let indexed = table.indexes.iter().flat_map(|index| &index.columns);
    let indexed = indexed.map(|part| part.column);
    let columns: std::collections::BTreeSet<&str> = indexed
        .chain(table.primary_key.iter().copied())
        .filter_map(|at| table.columns.get(at))
        .filter(|column| column.ty.is_text() || column.ty.is_bytes())
        .map(|column| column.name.as_str())
        .collect();
    if columns.is_empty() {
        return None;
    }
    let columns = columns.into_iter().collect::<Vec<_>>().join(", ");
    Some(manxdb_ownership::Finding {
        severity: manxdb_ownership::Severity::Warning,
        message: format!(
            "rows are sealed, and keys are not: files show values of {columns} until compaction, also \
             after FORGET"
        ),
    })
}
