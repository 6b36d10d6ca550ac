//! Materialized views as a session meets them: queries that they answer, SHOW, DDL.

use std::sync::Arc;

use super::ResultSink;
use super::overview::ViewOverview;
use super::session::Session;
use crate::catalog::{Catalog, MaterializedView, Table, TableId};
use crate::error::{SqlError, SqlResult};
use crate::parser::Parsed;
use crate::plan::{Locking, Plan};
use crate::statement::StatementPlan;
use crate::types::{Row, Value};
use crate::views::{self, Maintained, shapes_of};

/// Columns of SHOW MATERIALIZED VIEWS.
const COLUMNS: [&str; 10] = [
    "Database",
    "Name",
    "State",
    "Keys",
    "Bytes",
    "Hits",
    "Misses",
    "Evictions",
    "Delta_rows",
    "Fill_rows",
];

impl Session {
    /// A query's plan, with a view that answers it before it if there is one.
    pub(super) fn with_view(
        &self,
        plan: StatementPlan,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
    ) -> StatementPlan {
        let StatementPlan::Query(base) = plan else {
            return plan;
        };
        let answered = self.answered(&base, parsed, catalog, database);
        StatementPlan::Query(answered.unwrap_or(base))
    }

    fn answered(
        &self,
        base: &Plan,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
    ) -> Option<Plan> {
        if base.locking != Locking::None || base.correlated || catalog.stored.is_some() {
            return None;
        }
        let is_read = |id: TableId| base.tables.iter().any(|(read, ..)| *read == id);
        let mut views = Vec::new();
        for definition in catalog.all_materialized() {
            let settings = self.state.settings();
            if definition.sql_mode != settings.sql_mode.bits() {
                continue;
            }
            let is_of_session = definition.collation == settings.collation;
            let in_use = self.view_in_use(definition, catalog);
            views.extend(in_use.into_iter().filter(|view| {
                let mut tables = view.shape.tables.iter();
                let is_meant_alike = is_of_session || view.shape.is_of_any_collation();
                is_meant_alike && tables.all(|held| is_read(held.table.id))
            }));
        }
        if views.is_empty() {
            return None;
        }
        match self.plan_as(parsed, catalog, database, true) {
            Ok(Some(StatementPlan::Query(cuttable))) => views::answer(&views, base, &cuttable),
            _ => None,
        }
    }

    /// The view of a definition, taken into use if it is not, one for each of its SELECTs; none when a
    /// table is gone, or has changed so that it cannot be held.
    fn view_in_use(
        &self,
        definition: &Arc<MaterializedView>,
        catalog: &Catalog,
    ) -> Vec<Arc<Maintained>> {
        let is_current = |table: &Table| {
            let known = catalog.table(&table.database, &table.name);
            known.is_ok_and(|known| {
                known.id == table.id && known.schema_version == table.schema_version
            })
        };
        let instance = self.instance();
        let make = || shapes_of(definition, catalog);
        let path = instance.path.as_ref();
        let found = instance.views.in_use(path, definition, &is_current, &make);
        found.unwrap_or_default()
    }

    /// SHOW MATERIALIZED VIEWS, of the current database or of all.
    pub(super) fn show_materialized(
        &mut self,
        database: Option<&str>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let catalog = self.instance().store.current();
        let account = self.state.account();
        let mut rows: Vec<Row> = Vec::new();
        for definition in catalog.all_materialized() {
            let is_asked =
                database.is_none_or(|name| definition.database.eq_ignore_ascii_case(name));
            if is_asked && account.sees_database(&definition.database) {
                rows.push(shown(self.instance().view_overview(definition, &catalog)));
            }
        }
        self.send_rows(&COLUMNS, &rows, sink, more)
    }

    /// `views_memory` as it is now.
    pub(super) fn bound_views(&self) {
        let memory = self.instance().globals.read().integer("views_memory");
        let views = &self.instance().views;
        views.set_limit(usize::try_from(memory).unwrap_or(0));
    }

    /// 1235 where commits are made that views would not hear of.
    pub(super) fn require_view_upkeep(&self) -> SqlResult<()> {
        if self.instance().views.is_told() {
            return Ok(());
        }
        Err(SqlError::not_supported(
            "CREATE MATERIALIZED VIEW where several servers commit to the same rows",
        ))
    }
}

/// A row of SHOW MATERIALIZED VIEWS.
fn shown(view: ViewOverview) -> Row {
    let count = |count: usize| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let total = |total: u64| Value::Int(i64::try_from(total).unwrap_or(i64::MAX));
    vec![
        Value::Text(view.database),
        Value::Text(view.name),
        Value::Text(view.state),
        count(view.keys),
        count(view.bytes),
        total(view.hits),
        total(view.misses),
        total(view.evictions),
        total(view.delta_rows),
        total(view.fill_rows),
    ]
}
