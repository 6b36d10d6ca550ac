//! `views_auto`: queries that views might answer are counted, and views are made and dropped for
//! them ([`crate::views::Candidates`]).

use std::sync::Arc;

use manxdb_txn::Waiter;

use super::ResultSink;
use super::compiled::Compiled;
use super::instance::{Instance, NoWait};
use super::masked::without_values;
use super::session::Session;
use crate::catalog::{Catalog, MaterializedView};
use crate::error::SqlResult;
use crate::plan::physical::Node;
use crate::plan::{Locking, Plan, walk};
use crate::statement::StatementPlan;
use crate::types::{Row, Value};
use crate::views::{Candidate, Verdict, definition_text, shapes_of};

/// Whom a view belongs to that was made by itself.
const AUTOMATIC: &str = "views_auto@localhost";
/// How long reads and writes are counted before templates are judged.
const WINDOW_MICROS: u64 = 60_000_000;

/// Columns of SHOW VIEW CANDIDATES.
const COLUMNS: [&str; 8] = [
    "Database",
    "View",
    "Query",
    "Reads",
    "Rows_a_read",
    "Rows_saved",
    "Rows_written",
    "Delta_rows",
];

impl Session {
    /// Counts a query that was run and touched so many rows, where templates are counted.
    pub(super) fn note_read(
        &self,
        compiled: &Compiled,
        plan: &Plan,
        params: &[Value],
        touched: u64,
    ) {
        if !self.instance().candidates.counts() {
            return;
        }
        let made = || self.candidate(compiled, plan, params);
        if let Some(candidate) = compiled.candidate.get_or_init(made) {
            candidate.note_read(touched, asks_a_view(&plan.root));
        }
    }

    /// The template of a query that a view could answer.
    fn candidate(
        &self,
        compiled: &Compiled,
        plan: &Plan,
        params: &[Value],
    ) -> Option<Arc<Candidate>> {
        let catalog = self.catalog();
        if plan.locking != Locking::None
            || plan.correlated
            || plan.tables.is_empty()
            || catalog.stored.is_some()
        {
            return None;
        }
        let database = self.state.database.borrow().clone()?;
        let database = catalog.database(&database).ok()?.name.clone();
        let cuttable = self.plan_as(&compiled.parsed, &catalog, Some(&database), true);
        let Ok(Some(StatementPlan::Query(cuttable))) = cuttable else {
            return None;
        };
        let query = definition_text(&compiled.parsed.text, &cuttable, params)?;
        let settings = self.state.settings();
        let mut definition = MaterializedView {
            database,
            name: String::new(),
            query,
            sql_mode: settings.sql_mode.bits(),
            collation: settings.collation,
            definer: AUTOMATIC.to_string(),
            schema_version: 1,
        };
        definition.name = name_of(&definition);
        let shapes = shapes_of(&definition, &catalog).ok()?;
        let held = shapes.iter().flat_map(|shape| &shape.tables);
        let mut tables: Vec<_> = held.map(|held| held.table.id).collect();
        tables.sort_unstable();
        tables.dedup();
        let made = Candidate::new(definition, tables);
        self.instance().candidates.known_as(made)
    }

    /// SHOW VIEW CANDIDATES: what is known of each template, those that save most first.
    pub(super) fn show_candidates(
        &mut self,
        database: Option<&str>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let instance = self.instance();
        let catalog = instance.store.current();
        let account = self.state.account();
        let measured = |definition: &MaterializedView| instance.views.delta_rows(definition);
        let hides = instance.owner_graph().is_some();
        let mut rows: Vec<Row> = Vec::new();
        for (one, figures) in instance.candidates.all(&measured) {
            let definition = &one.definition;
            let is_asked =
                database.is_none_or(|name| definition.database.eq_ignore_ascii_case(name));
            if !is_asked || !account.sees_database(&definition.database) {
                continue;
            }
            let count = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
            rows.push(vec![
                Value::Text(definition.database.clone()),
                made_as(&catalog, definition).map_or(Value::Null, Value::Text),
                Value::Text(if hides {
                    without_values(&definition.query)
                } else {
                    definition.query.clone()
                }),
                count(figures.reads),
                count(figures.rows_a_read),
                count(figures.saved()),
                count(figures.written),
                count(figures.delta_rows),
            ]);
        }
        self.send_rows(&COLUMNS, &rows, sink, more)
    }
}

/// The view that was made for a template, if one was.
fn made_as(catalog: &Catalog, definition: &MaterializedView) -> Option<String> {
    let view = catalog.materialized(&definition.database, &definition.name)?;
    (**view == *definition).then(|| view.name.clone())
}

fn asks_a_view(node: &Node) -> bool {
    matches!(node, Node::View(_)) || walk::inputs(node).into_iter().any(asks_a_view)
}

/// A name that other definitions do not have: equal ones have equal names on each server.
fn name_of(definition: &MaterializedView) -> String {
    // FNV-1a, 64 bits: the names of catalogs must not depend on the library's hash.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let settings = format!("{} {:?}", definition.sql_mode, definition.collation);
    for byte in definition.query.bytes().chain(settings.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    format!("auto_{hash:016x}")
}

impl Instance {
    /// `views_auto` as it is now.
    pub(super) fn count_candidates(&self) {
        let mode = self.globals.read().text("views_auto").to_string();
        self.candidates.set_mode(&mode);
    }

    /// Makes and drops views as the minute that has ended says, where `views_auto` is on; how many it
    /// was. A thread of the process calls it now and then.
    ///
    /// # Errors
    /// Storage.
    pub fn tend_views(&self) -> SqlResult<usize> {
        let now = u64::try_from(self.host.monotonic_micros()).unwrap_or(0);
        if !self.candidates.makes() || !self.candidates.is_due(now, WINDOW_MICROS) {
            return Ok(0);
        }
        self.judge_views()
    }

    /// As [`Instance::tend_views`], with what was counted since the last time, however long ago.
    ///
    /// # Errors
    /// Storage.
    pub fn judge_views(&self) -> SqlResult<usize> {
        if !self.candidates.makes() || !self.views.is_told() {
            return Ok(0);
        }
        let catalog = self.store.current();
        let automatic = catalog.all_materialized();
        let automatic: Vec<_> = automatic
            .filter(|view| view.definer == AUTOMATIC)
            .cloned()
            .collect();
        let measured = |definition: &MaterializedView| self.views.delta_rows(definition);
        let mut verdict = self.candidates.judge(&automatic, &measured);
        verdict
            .made
            .retain(|one| shapes_of(&one.definition, &catalog).is_ok());
        let count = verdict.made.len() + verdict.dropped.len();
        if count > 0 {
            self.change_views(&verdict)?;
        }
        Ok(count)
    }

    fn change_views(&self, verdict: &Verdict) -> SqlResult<()> {
        let waiter: Arc<dyn Waiter> = Arc::new(NoWait);
        let durability = self.options.durability;
        self.store.edit(&waiter, durability, &mut |edit| {
            for view in &verdict.dropped {
                let known = edit.catalog.materialized(&view.database, &view.name);
                if known.is_some_and(|known| *known == *view) {
                    edit.remove_materialized(&view.database, &view.name)?;
                }
            }
            for one in &verdict.made {
                let MaterializedView { database, name, .. } = &*one.definition;
                let lower = name.to_lowercase();
                // Nobody names a table so; who does keeps it.
                let is_free = edit.catalog.database(database).is_ok_and(|home| {
                    !home.tables.contains_key(&lower)
                        && !home.views.contains_key(&lower)
                        && !home.materialized.contains_key(&lower)
                });
                if is_free {
                    edit.put_materialized((*one.definition).clone())?;
                }
            }
            Ok(())
        })?;
        self.views.forget_dropped(&self.store.current());
        Ok(())
    }
}
