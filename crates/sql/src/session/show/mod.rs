//! SHOW and DESCRIBE. Lists are queries over the computed tables ([`lists`]); the rest is
//! answered directly ([`direct`], [`create`]).

mod create;
mod direct;
mod lists;
mod maintain;

use std::sync::Arc;

use sqlparser::ast::{ObjectName, ObjectNamePart, SetExpr, Statement};

use super::ResultSink;
use super::compiled::Compiled;
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::parser::{Show, parse};
use crate::types::{ColumnMeta, DataType, Row, TextSize, Value};

impl Session {
    pub(super) fn show(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        if let Some(list) = self.list_of(show)? {
            // Lists of what exists leave temporary tables out; what is said of one table does not.
            let of_one_table = matches!(show.what.as_str(), "COLUMNS" | "INDEX");
            self.state.shows_temporary.set(of_one_table);
            let result = self.send_list(&list, show, sink, more);
            self.state.shows_temporary.set(false);
            return result;
        }
        self.show_direct(show, sink, more)
    }

    /// DESCRIBE is SHOW COLUMNS.
    pub(super) fn describe(
        &mut self,
        table: &ObjectName,
        column: Option<&str>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let show = Show {
            what: "COLUMNS".to_string(),
            object: Some(table.clone()),
            like: column.map(ToString::to_string),
            ..Show::default()
        };
        self.show(&show, sink, more)
    }

    /// Runs a list as a query, its LIKE or WHERE over the shown columns.
    fn send_list(
        &mut self,
        list: &lists::List,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let mut text = format!("SELECT {} FROM ({}) AS shown", list.shown(show), list.query);
        let mut params = list.params.clone();
        if let Some(pattern) = &show.like {
            text.extend([" WHERE `", &list.filtered, "` LIKE ?"]);
            params.push(Value::Text(pattern.clone()));
        }
        let mut parsed = parse(&text, crate::types::SqlMode::default())?
            .pop()
            .ok_or_else(|| SqlError::internal("an empty SHOW query"))?;
        if let Some(condition) = &show.selection
            && let Statement::Query(query) = &mut parsed.statement
            && let SetExpr::Select(select) = query.body.as_mut()
        {
            select.selection = Some(condition.clone());
        }
        let mut compiled = self.compile(parsed)?;
        compiled.unlimited = false;
        self.run_inner(&Arc::new(compiled), &params, sink, more)
    }

    /// Sends rows made here.
    pub(super) fn send_rows(
        &mut self,
        names: &[&str],
        rows: &[Row],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let columns: Vec<ColumnMeta> = names
            .iter()
            .enumerate()
            .map(|(at, name)| {
                column(
                    name,
                    rows.iter().all(|row| is_number(row.get(at))) && !rows.is_empty(),
                )
            })
            .collect();
        sink.columns(&columns)?;
        for row in rows {
            sink.row(row)?;
        }
        self.state.found_rows.set(rows.len() as u64);
        self.state.row_count.set(-1);
        let status = self.status();
        sink.end(status, more)
    }

    /// Runs a query of our own and gives its rows.
    pub(in crate::session) fn collect(
        &mut self,
        compiled: &Arc<Compiled>,
        params: &[Value],
    ) -> SqlResult<Vec<Row>> {
        let mut collected = Collected::default();
        self.run_inner(compiled, params, &mut collected, false)?;
        Ok(collected.rows)
    }

    /// Database and name of an object, the current database filled in.
    pub(in crate::session) fn object_name(
        &self,
        name: &ObjectName,
        database: Option<&str>,
    ) -> SqlResult<(String, String)> {
        let parts: Vec<&str> = name
            .0
            .iter()
            .filter_map(ObjectNamePart::as_ident)
            .map(|ident| ident.value.as_str())
            .collect();
        match (parts.as_slice(), database) {
            ([name] | [_, name], Some(database)) => Ok((database.to_string(), (*name).to_string())),
            ([database, name], None) => Ok(((*database).to_string(), (*name).to_string())),
            ([name], None) => Ok((self.state.require_database()?, (*name).to_string())),
            _ => Err(SqlError::syntax("a table name was expected")),
        }
    }
}

fn is_number(value: Option<&Value>) -> bool {
    matches!(value, Some(Value::Int(_)))
}

fn column(name: &str, is_number: bool) -> ColumnMeta {
    let ty = if is_number {
        DataType::BIGINT
    } else {
        DataType::Text {
            size: TextSize::Normal,
            collation: crate::types::Collation::default(),
        }
    };
    ColumnMeta {
        schema: String::new(),
        table: String::new(),
        org_table: String::new(),
        name: name.to_string(),
        org_name: String::new(),
        ty,
        not_null: false,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}

/// A sink that keeps the rows.
#[derive(Default)]
struct Collected {
    rows: Vec<Row>,
}

impl ResultSink for Collected {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> SqlResult<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Value]) -> SqlResult<()> {
        self.rows.push(row.to_vec());
        Ok(())
    }

    fn end(&mut self, _status: super::Status, _more: bool) -> SqlResult<()> {
        Ok(())
    }

    fn done(
        &mut self,
        _outcome: &crate::statement::StatementOutcome,
        _status: super::Status,
        _more: bool,
    ) -> SqlResult<()> {
        Ok(())
    }
}
