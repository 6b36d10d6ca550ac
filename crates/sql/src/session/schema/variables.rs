//! `performance_schema`'s variables and status.

use super::define::{C, Definition, NAME, text};
use super::source::Source;
use super::status;
use crate::error::SqlResult;
use crate::expr::SessionInfo;
use crate::session::variables::{DEFINITIONS, Scope, shown};
use crate::types::Row;

const COLUMNS: &[(&str, C)] = &[("VARIABLE_NAME", NAME), ("VARIABLE_VALUE", C::Text(1024))];

/// `session_variables`, `global_variables`, `session_status`, `global_status`.
pub(super) const TABLES: &[Definition] = &[
    Definition {
        name: "session_variables",
        columns: COLUMNS,
        rows: session_variables,
    },
    Definition {
        name: "global_variables",
        columns: COLUMNS,
        rows: global_variables,
    },
    Definition {
        name: "session_status",
        columns: COLUMNS,
        rows: status_rows,
    },
    Definition {
        name: "global_status",
        columns: COLUMNS,
        rows: status_rows,
    },
];

fn session_variables(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    DEFINITIONS
        .iter()
        .map(|definition| {
            let value = source.state.system_variable(definition.name, false)?;
            Ok(vec![text(definition.name), text(shown(definition, &value))])
        })
        .collect()
}

fn global_variables(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    DEFINITIONS
        .iter()
        .filter(|definition| definition.scope != Scope::Session)
        .map(|definition| {
            let value = source.state.system_variable(definition.name, true)?;
            Ok(vec![text(definition.name), text(shown(definition, &value))])
        })
        .collect()
}

#[allow(clippy::unnecessary_wraps)] // the shape of every rows function
fn status_rows(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    Ok(status::all(&source.state.instance, &source.state.client)
        .into_iter()
        .map(|(name, value)| vec![text(name), text(value)])
        .collect())
}
