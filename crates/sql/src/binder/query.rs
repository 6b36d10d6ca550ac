//! Whole query expressions, whatever their body is.

use sqlparser::ast;

use super::order::order_keys;
use super::set_operation::{counts_found_rows, misplaced_count};
use super::{BindContext, Binder};
use crate::error::{SqlError, SqlResult};
use crate::plan::select::SelectParts;
use crate::plan::{BoundQuery, Plan, walk};
use crate::planner::select::plan_select;
use crate::types::{Collation, ColumnMeta, DataType};

/// Operators above each other in a plan.
const PLAN_DEPTH_MAX: usize = 300;
/// Queries bound for one statement. Views and common table expressions are bound wherever they
/// are named, so that few of them can stand for very many.
const QUERIES_MAX: usize = 4096;

/// A bound query; a single SELECT is still open to being merged.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Bound {
    Select(Box<SelectParts>),
    Query(BoundQuery),
}

impl Bound {
    /// Type of an output column.
    pub fn column_type(&self, at: usize) -> Option<&DataType> {
        match self {
            Bound::Select(parts) => parts.outputs.get(at).map(|o| &o.expr.ty),
            Bound::Query(query) => query.columns.get(at).map(|c| &c.ty),
        }
    }

    pub fn columns(&self) -> usize {
        match self {
            Bound::Select(parts) => parts.outputs.len(),
            Bound::Query(query) => query.columns.len(),
        }
    }
}

/// Chooses the operators of what is still open.
///
/// # Errors
/// 1436: everything below walks plans by recursion on a thread's stack.
pub(crate) fn finish(bound: Bound) -> SqlResult<BoundQuery> {
    let query = match bound {
        Bound::Query(query) => query,
        Bound::Select(parts) => plan_select(*parts),
    };
    if walk::plan_depth(&query.node) > PLAN_DEPTH_MAX {
        return Err(SqlError::new(
            1436,
            "HY000",
            format!(
                "Thread stack overrun: the plan is deeper than {PLAN_DEPTH_MAX} operators; \
                 split the statement into smaller ones"
            ),
        ));
    }
    Ok(query)
}

/// Plans a whole query expression (SELECT, UNION, VALUES, WITH where supported).
///
/// # Errors
/// Binding errors; 1235 for what is not supported.
pub fn plan_query(context: &BindContext<'_>, query: &ast::Query) -> SqlResult<Plan> {
    let mut binder = Binder::new(context);
    let bound = binder.bind_query(query)?;
    Ok(Plan {
        columns: bound.columns,
        param_types: binder.params,
        correlated: false,
        tables: binder.tables,
        locking: binder.locking,
        read_mode: binder.read_mode,
        root: bound.node,
    })
}

impl Binder<'_> {
    /// Binds a query and chooses its operators.
    pub(crate) fn bind_query(&mut self, query: &ast::Query) -> SqlResult<BoundQuery> {
        let bound = self.bind_query_parts(query)?;
        finish(bound)
    }

    /// Binds a query; a single SELECT stays open to being merged.
    pub(crate) fn bind_query_parts(&mut self, query: &ast::Query) -> SqlResult<Bound> {
        crate::stack::check(crate::stack::BINDING_BYTES)?;
        refuse_foreign(query)?;
        self.queries += 1;
        if self.queries > QUERIES_MAX {
            return Err(SqlError::new(
                1473,
                "HY000",
                "Too many queries in one statement, those of its views included",
            ));
        }
        let inside = !self.frames.is_empty() || self.nesting > 0;
        if inside && self.view_database.is_none() && counts_found_rows(&query.body) {
            return Err(misplaced_count());
        }
        self.note_locks(&query.locks)?;
        let ctes = self.ctes.len();
        if let Some(with) = &query.with {
            self.define_ctes(with)?;
        }
        let keys = order_keys(query.order_by.as_ref())?;
        let bound = self.bind_body(&query.body, keys, query.limit_clause.as_ref());
        self.ctes.truncate(ctes);
        bound
    }

    /// A body with the ORDER BY and LIMIT around it.
    pub(super) fn bind_body(
        &mut self,
        body: &ast::SetExpr,
        keys: &[ast::OrderByExpr],
        limit: Option<&ast::LimitClause>,
    ) -> SqlResult<Bound> {
        match body {
            ast::SetExpr::Select(select) => {
                let parts = self.bind_select(select, keys, limit)?;
                Ok(Bound::Select(Box::new(parts)))
            }
            ast::SetExpr::Query(query) if keys.is_empty() && limit.is_none() => {
                self.bind_query_parts(query)
            }
            ast::SetExpr::Query(query) => {
                let inner = self.bind_query(query)?;
                self.order_and_limit(inner, keys, limit).map(Bound::Query)
            }
            ast::SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                let bound = self.bind_set_operation(left, *op, *set_quantifier, right)?;
                self.order_and_limit(bound, keys, limit).map(Bound::Query)
            }
            ast::SetExpr::Values(values) => {
                let bound = self.bind_values_rows(values)?;
                self.order_and_limit(bound, keys, limit).map(Bound::Query)
            }
            ast::SetExpr::Table(table) => Err(SqlError::not_supported(table.to_string())),
            _ => Err(SqlError::syntax("a query is expected here")),
        }
    }
}

/// The collation each column compares under.
pub(crate) fn collations(columns: &[ColumnMeta]) -> Vec<Collation> {
    columns
        .iter()
        .map(|column| column.ty.collation().unwrap_or(Collation::Binary))
        .collect()
}

/// Clauses of other databases that the parser takes.
fn refuse_foreign(query: &ast::Query) -> SqlResult<()> {
    let foreign = [
        (query.fetch.is_some(), "FETCH"),
        (query.for_clause.is_some(), "FOR XML"),
        (query.settings.is_some(), "SETTINGS"),
        (query.format_clause.is_some(), "FORMAT"),
        (!query.pipe_operators.is_empty(), "|>"),
    ];
    match foreign.iter().find(|(used, _)| *used) {
        Some((_, name)) => Err(SqlError::not_supported(name)),
        None => Ok(()),
    }
}
