//! What an operator may see of ownership and of views: definitions, requests and counts. No value of any
//! row is in it, nor why a request was made: that is text of whoever made it, and may name the person.

use std::sync::Arc;

use manxdb_ownership::{Origin, TableReport, report};

use super::instance::Instance;
use crate::catalog::{Catalog, MaterializedView, ownership};
use crate::error::SqlResult;
use crate::statement::owners::requests as waiting;
use crate::statement::owners::subjects::{self, ForgetRequest};
use crate::views::shapes_of;

/// Tables whose rows are people's with the links between them, and requests to forget.
#[derive(Debug, Clone, Default)]
pub struct OwnershipOverview {
    /// Tables that say whose their rows are, and those that links lead to.
    pub tables: Vec<OverviewTable>,
    /// Links between them.
    pub links: Vec<OverviewLink>,
    /// Requests: those that are open, those that wait, then the newest of those that are done.
    pub requests: Vec<OverviewRequest>,
    /// Whether rows are sealed.
    pub is_sealed: bool,
}

/// A table.
#[derive(Debug, Clone)]
pub struct OverviewTable {
    /// `database.table`.
    pub name: String,
    /// As EXPLAIN COMPLIANCE calls it.
    pub kind: String,
    /// Warnings and errors of its definition.
    pub findings: usize,
}

/// A link.
#[derive(Debug, Clone)]
pub struct OverviewLink {
    /// The table that has it, as [`OverviewTable::name`].
    pub from: String,
    /// The table it leads to.
    pub to: String,
    /// Its columns.
    pub columns: String,
    /// `OWNED_BY` and its kin.
    pub word: &'static str,
    /// Whether rows of `to` are owned, or may be seen, through rows of `from`.
    pub leads_down: bool,
    /// Nobody wrote it: it was the only REFERENCES.
    pub is_inferred: bool,
}

/// A request to forget.
#[derive(Debug, Clone)]
pub struct OverviewRequest {
    /// Its number.
    pub number: u64,
    /// Database and table of the person.
    pub kind: String,
    /// `open`, `grace`, how many rows are put off, or `done`.
    pub state: String,
    /// When it goes on by itself, microseconds since 1970.
    pub due_at_micros: Option<i64>,
    /// Rows deleted or changed.
    pub rows: u64,
    /// The account that asked.
    pub asked_by: String,
    /// When, microseconds since 1970.
    pub asked_at_micros: i64,
}

/// A materialized view, as SHOW MATERIALIZED VIEWS tells it.
#[derive(Debug, Clone)]
pub struct ViewOverview {
    /// Database.
    pub database: String,
    /// Name.
    pub name: String,
    /// `usable`, or why no query is answered by it.
    pub state: String,
    /// Keys that are filled.
    pub keys: usize,
    /// Bytes of them, about.
    pub bytes: usize,
    /// Queries answered by it.
    pub hits: u64,
    /// Queries that filled a key, or ran without it.
    pub misses: u64,
    /// Keys that were dropped.
    pub evictions: u64,
    /// Rows of joins that commits read to keep it up to date.
    pub delta_rows: u64,
    /// Rows that operators touched to fill keys.
    pub fill_rows: u64,
}

/// Requests that are shown at most.
const REQUESTS_MAX: usize = 200;

impl Instance {
    /// All materialized views, and `views_memory`: the bytes that they may take together.
    #[must_use]
    pub fn views_overview(&self) -> (Vec<ViewOverview>, u64) {
        let catalog = self.store.current();
        let views = catalog.all_materialized();
        let views = views.map(|view| self.view_overview(view, &catalog));
        let memory = self.globals.read().integer("views_memory");
        (views.collect(), u64::try_from(memory).unwrap_or(0))
    }

    /// One of them.
    pub(super) fn view_overview(
        &self,
        definition: &Arc<MaterializedView>,
        catalog: &Catalog,
    ) -> ViewOverview {
        let state = if self.views.is_told() {
            match shapes_of(definition, catalog) {
                Ok(_) => "usable".to_string(),
                Err(error) => error.message,
            }
        } else {
            "off: other servers commit too".to_string()
        };
        let figures = self.views.statistics(definition).unwrap_or_default();
        ViewOverview {
            database: definition.database.clone(),
            name: definition.name.clone(),
            state,
            keys: figures.keys,
            bytes: figures.bytes,
            hits: figures.hits,
            misses: figures.misses,
            evictions: figures.evictions,
            delta_rows: self.views.delta_rows(definition).unwrap_or(0),
            fill_rows: self.views.fill_rows(definition).unwrap_or(0),
        }
    }

    /// What an operator may see of ownership.
    ///
    /// # Errors
    /// Storage.
    pub fn ownership_overview(&self) -> SqlResult<OwnershipOverview> {
        let catalog = self.store.current();
        let graph = ownership::graph(&catalog, None);
        let mut overview = OwnershipOverview {
            is_sealed: self.sealing.vault().is_some(),
            ..OwnershipOverview::default()
        };
        let databases = catalog.stored().databases.values();
        for table in databases.flat_map(|database| database.tables.values()) {
            let Some(shape) = graph.table(&ownership::name(table)) else {
                continue;
            };
            let TableReport {
                kind,
                chains,
                findings,
            } = report(&graph, shape);
            if !table.has_ownership() && chains.is_empty() {
                continue;
            }
            let name = format!("{}.{}", table.database, table.name);
            for link in &shape.links {
                let Some(edge) = link.edge else { continue };
                overview.links.push(OverviewLink {
                    from: name.clone(),
                    to: format!("{}.{}", link.target.database, link.target.name),
                    columns: shape.columns_named(&link.columns),
                    word: edge.kind.word(),
                    leads_down: edge.kind.leads_to_target(),
                    is_inferred: edge.origin == Origin::Inferred,
                });
            }
            overview.tables.push(OverviewTable {
                name,
                kind: kind.to_string(),
                findings: findings.len(),
            });
        }
        let txn = self.store.begin();
        txn.declare_read_only();
        let open = subjects::open_requests(&txn)?;
        let waiting = waiting::waiting(&txn)?;
        let done = subjects::done_requests(&txn)?;
        let open = open
            .iter()
            .map(|(number, request)| overview_of(*number, request, "open", None));
        let waiting = waiting.iter().rev().map(|(number, waiting)| {
            let state = waiting.why.to_string();
            overview_of(*number, &waiting.request, &state, waiting.due_at_micros)
        });
        let done = done
            .iter()
            .map(|(number, request)| overview_of(*number, request, "done", None));
        overview.requests = open.chain(waiting).chain(done).take(REQUESTS_MAX).collect();
        Ok(overview)
    }
}

fn overview_of(
    number: u64,
    request: &ForgetRequest,
    state: &str,
    due_at_micros: Option<i64>,
) -> OverviewRequest {
    OverviewRequest {
        number,
        kind: format!("{}.{}", request.database, request.table),
        state: state.to_string(),
        due_at_micros,
        rows: request.rows,
        asked_by: request.asked_by.clone(),
        asked_at_micros: request.asked_at_micros,
    }
}
