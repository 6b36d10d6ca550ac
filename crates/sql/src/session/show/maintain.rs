//! ANALYZE, which measures tables, and CHECK, OPTIMIZE, REPAIR, CHECKSUM TABLE: MySQL's result sets.

use std::sync::Arc;

use sqlparser::ast::ObjectName;

use crate::error::{SqlError, SqlResult};
use crate::session::ResultSink;
use crate::session::session::Session;
use crate::statement::ddl;
use crate::types::{Row, Value};

impl Session {
    pub(in crate::session) fn maintain(
        &mut self,
        verb: &str,
        tables: &[ObjectName],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        if verb.eq_ignore_ascii_case("CHECKSUM") {
            return Err(SqlError::not_supported("CHECKSUM TABLE"));
        }
        self.commit()?;
        let operation = verb.to_lowercase();
        let mut rows = Vec::new();
        for table in tables {
            let (database, name) = self.object_name(table, None)?;
            let full = format!("{database}.{name}");
            match self.require_relation(&database, &name) {
                Ok((database, name)) => {
                    if operation == "analyze" {
                        self.analyze(&database, &name)?;
                    }
                    rows.extend(done(&full, &operation));
                }
                Err(error) if error.code == 1146 => rows.extend(missing(&full, &operation, &error)),
                Err(error) => return Err(error),
            }
        }
        self.send_rows(&["Table", "Op", "Msg_type", "Msg_text"], &rows, sink, more)
    }

    /// Statistics of a stored table; views, computed and temporary tables have none.
    fn analyze(&mut self, database: &str, name: &str) -> SqlResult<()> {
        let catalog = self.catalog();
        let Ok(table) = catalog.table(database, name) else {
            return Ok(());
        };
        if table.temporary {
            return Ok(());
        }
        let waiter: Arc<dyn manxdb_txn::Waiter> = self.state.waiter.clone();
        let zone = self.state.settings().time_zone.clone();
        ddl::analyze(&self.instance().store, &waiter, &zone, table)
    }
}

fn row(table: &str, operation: &str, kind: &str, message: &str) -> Row {
    [table, operation, kind, message]
        .map(|text| Value::Text(text.to_string()))
        .to_vec()
}

/// The engine keeps itself in order, so each is answered as MySQL answers where there is nothing
/// to do.
fn done(table: &str, operation: &str) -> Vec<Row> {
    match operation {
        "optimize" => vec![
            row(
                table,
                operation,
                "note",
                "Table does not support optimize, doing recreate + analyze instead",
            ),
            row(table, operation, "status", "OK"),
        ],
        "repair" => {
            let text = "The storage engine for the table doesn't support repair";
            vec![row(table, operation, "note", text)]
        }
        _ => vec![row(table, operation, "status", "OK")],
    }
}

fn missing(table: &str, operation: &str, error: &SqlError) -> Vec<Row> {
    vec![
        row(table, operation, "Error", &error.message),
        row(table, operation, "status", "Operation failed"),
    ]
}
