//! `GDPR GET`: all rows that are a person's, or that the person has access to. `GDPR FORGET`: they go.
//!
//! | file | holds |
//! |---|---|
//! | [`forget`] | `GDPR FORGET` on the same walk: what goes, what is cleared, in one transaction or several |
//! | [`walk`] | from the person's row along the edges of ownership, by index, on one snapshot |
//! | [`found_rows`] | the rows that it found, by table |
//! | [`redact`] | ON GET rules: what of a row others keep is not shown |
//! | [`audit`], [`ledger`] | records of requests, in the store and beside the vault; certificates |
//! | [`console`] | what the console shows: a person's rows as a tree, certificates |
//! | [`verify`] | looks for a person again, everywhere |
//! | [`purge`] | what is left in files of who was forgotten goes, and certificates say when |
//! | [`format`] | result sets, JSON, CSV, INSERT statements |

mod audit;
mod console;
mod forget;
mod format;
mod found_rows;
mod ledger;
mod purge;
mod redact;
mod replay;
mod verify;
mod walk;

pub(super) use audit::Audit;
pub use console::certificates::CertificateOverview;
pub use console::tree::{PersonTree, TreeLink, TreeRow, TreeTable};
pub(super) use forget::RunningRequests;
pub(super) use purge::NextPurge;

use manxdb_ownership::{OwnershipGraph, TableName};
use sqlparser::ast::{Expr, ObjectName};

use super::ResultSink;
use super::session::Session;
use crate::catalog::{Catalog, Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::GdprFormat;
use crate::types::{DataType, Date, StoreRules, Value, fit};
use walk::{Walk, WalkOptions};

impl Session {
    /// `GDPR GET kind id [FORMAT …]`. Needs SELECT on every table that a row is looked for in.
    pub(super) fn gdpr_get(
        &mut self,
        kind: &ObjectName,
        id: &[Expr],
        format: GdprFormat,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let (database, name) = self.object_name(kind, None)?;
        let (database, name) = self.require_relation(&database, &name)?;
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let person = person(&catalog, &graph, &database, &name)?;
        let id = self.id_of(person, id)?;
        let memory = self.instance().options.statement_memory_bytes;
        let mut found = self.at_one_snapshot(|session| {
            let options = WalkOptions {
                only_keys: false,
                locks: false,
                rows_max: usize::MAX,
            };
            let mut walk = Walk::new(&catalog, &graph, memory, options);
            walk.walk_from_person(session, person, &id)?;
            Ok(walk.into_tables())
        })?;
        redact::apply(&mut found);
        format::send(self, &found, format, sink, more)
    }
}

impl Session {
    /// The values of an id of `person`.
    fn id_of(&mut self, person: &Table, id: &[Expr]) -> SqlResult<Vec<Value>> {
        let values = id.iter().map(|part| self.evaluate(part));
        let values = values.collect::<SqlResult<Vec<_>>>()?;
        if values.len() == person.primary_key.len() {
            return Ok(values);
        }
        Err(unknown(format!(
            "an id of '{}' has {} values, not {}",
            person.name,
            person.primary_key.len(),
            values.len()
        )))
    }

    /// The values of an id as its columns store them: a statement may say `'7'` where they are numbers. An id
    /// that would be stored as another one is refused, so that 7.4 does not name person 7.
    ///
    /// # Errors
    /// 51004 when no row of `table` can have such a key.
    fn typed_id(&self, table: &Table, id: Vec<Value>) -> SqlResult<Vec<Value>> {
        let settings = self.state.settings();
        let rules = StoreRules {
            mode: settings.sql_mode,
            zone: &settings.time_zone,
            today: Date::ZERO,
        };
        let mut typed = Vec::with_capacity(id.len());
        for (at, given) in table.primary_key.iter().zip(&id) {
            let column = table.columns.get(*at);
            let fitted = column.and_then(|column| {
                let (value, issue) = fit(given.clone(), &column.ty, &rules);
                // What is stored in a column of integers is rounded without an issue.
                let is_integer = matches!(column.ty, DataType::Int { .. });
                let is_same = !is_integer || value.to_decimal() == given.to_decimal();
                let is_key = issue.is_none() && !value.is_null() && is_same;
                is_key.then_some(value)
            });
            typed.extend(fitted);
        }
        if typed.len() == id.len() {
            return Ok(typed);
        }
        Err(unknown(format!(
            "no row of '{}' can have the key {}",
            table.name,
            shown(&id)
        )))
    }
}

/// The table of people called `name`.
fn person<'a>(
    catalog: &'a Catalog,
    graph: &OwnershipGraph,
    database: &str,
    name: &str,
) -> SqlResult<&'a Table> {
    let found = catalog
        .table(database, name)
        .ok()
        .filter(|table| table.data_subject);
    found.map(std::convert::AsRef::as_ref).ok_or_else(|| {
        let here = |table: &TableName| table.database.eq_ignore_ascii_case(database);
        let people = graph
            .tables()
            .filter(|table| table.is_subject && here(&table.name));
        let people: Vec<&str> = people.map(|table| table.name.name.as_str()).collect();
        no_kind(name, &format!("of '{database}'"), &people)
    })
}

/// 51004: `name` is no table of people; `known` are those there are `which`, such as "of 'd'".
fn no_kind(name: &str, which: &str, known: &[&str]) -> SqlError {
    let known = if known.is_empty() {
        "none".to_string()
    } else {
        known.join(", ")
    };
    unknown(format!(
        "'{name}' is no table of people; those {which} are: {known}"
    ))
}

/// 51004: a kind or an id that is not there.
fn unknown(message: String) -> SqlError {
    SqlError::new(51004, "HY000", message)
}

/// An id as messages show it.
fn shown(id: &[Value]) -> String {
    let parts: Vec<String> = id
        .iter()
        .map(|part| part.to_text().unwrap_or_default())
        .collect();
    parts.join(", ")
}
