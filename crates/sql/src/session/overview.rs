//! What an operator may see of ownership: definitions and requests. No value of any row is in it, nor why
//! a request was made: that is text of whoever made it, and may name the person.

use manxdb_ownership::{Origin, TableReport, report};

use super::instance::Instance;
use crate::catalog::ownership;
use crate::error::SqlResult;
use crate::statement::owners::subjects::{self, ForgetRequest};

/// Tables whose rows are people's with the links between them, and requests to forget.
#[derive(Debug, Clone, Default)]
pub struct OwnershipOverview {
    /// Tables that say whose their rows are, and those that links lead to.
    pub tables: Vec<OverviewTable>,
    /// Links between them.
    pub links: Vec<OverviewLink>,
    /// Requests: those that are open, then the newest of those that are done.
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
    /// Whether it is done.
    pub is_done: bool,
    /// Rows deleted or changed.
    pub rows: u64,
    /// The account that asked.
    pub asked_by: String,
    /// When, microseconds since 1970.
    pub asked_at_micros: i64,
}

/// Requests that are shown at most.
const REQUESTS_MAX: usize = 200;

impl Instance {
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
        let done = subjects::done_requests(&txn)?;
        let shown = open.iter().chain(&done).take(REQUESTS_MAX);
        overview.requests = shown
            .map(|(number, request)| overview_of(*number, request))
            .collect();
        Ok(overview)
    }
}

fn overview_of(number: u64, request: &ForgetRequest) -> OverviewRequest {
    OverviewRequest {
        number,
        kind: format!("{}.{}", request.database, request.table),
        is_done: request.done_at_micros > 0,
        rows: request.rows,
        asked_by: request.asked_by.clone(),
        asked_at_micros: request.asked_at_micros,
    }
}
