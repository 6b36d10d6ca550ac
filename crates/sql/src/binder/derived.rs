//! Queries in FROM: derived tables, views and common table expressions. A plain selection becomes
//! part of the enclosing join, anything else is computed on its own.

use std::sync::Arc;

use sqlparser::ast;

use super::Binder;
use super::from::{FromState, Part, TABLES_MAX};
use super::query::{Bound, finish};
use super::scope::{Frame, FrameColumn, column_expr, same_name};
use super::subquery::plan_of_query;
use crate::catalog::View;
use crate::error::{SqlError, SqlResult};
use crate::plan::BoundQuery;
use crate::plan::logical::{Hints, Leaf, Source, Tree};
use crate::plan::select::SelectParts;
use crate::plan::{Expr, ExprKind, walk};
use crate::types::{ColumnMeta, DataType};

/// Views and derived tables inside each other.
const NESTING_MAX: usize = 32;
/// Nodes of a derived table's expression that may be put in the place of its name. Views on views
/// that each use a column twice would otherwise double it at every step.
const MERGED_NODES_MAX: usize = 64;

impl Binder<'_> {
    pub(super) fn bind_derived_query(&mut self, query: &ast::Query) -> SqlResult<Bound> {
        self.nesting += 1;
        let bound = if self.nesting > NESTING_MAX {
            Err(SqlError::new(
                1473,
                "HY000",
                "Too high level of nesting for select",
            ))
        } else {
            self.bind_query_parts(query)
        };
        self.nesting -= 1;
        bound
    }

    pub(super) fn bind_view(
        &mut self,
        view: &Arc<View>,
        alias: &str,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        let invalid = |_| {
            SqlError::new(
                1356,
                "HY000",
                format!(
                    "View '{}.{}' references invalid table(s) or column(s) or function(s) or \
                     definer/invoker of view lack rights to use them",
                    view.database, view.name
                ),
            )
        };
        let statements = crate::parser::parse(&view.query, self.context.sql_mode.of_view_text())?;
        let Some(ast::Statement::Query(query)) = statements.into_iter().next().map(|p| p.statement)
        else {
            return Err(SqlError::internal(format!(
                "the text of view {}.{} is no query",
                view.database, view.name
            )));
        };
        let frames = std::mem::take(&mut self.frames);
        let ctes = std::mem::take(&mut self.ctes);
        let database = self.view_database.replace(view.database.clone());
        let bound = self.bind_derived_query(&query);
        self.frames = frames;
        self.ctes = ctes;
        self.view_database = database;
        let bound = bound.map_err(|error| match error.code {
            1054 | 1146 | 1049 => invalid(error),
            _ => error,
        })?;
        let mut part = Self::add_derived(bound, alias, &view.columns, state, nullable)?;
        for column in &mut part.columns {
            column.database = Some(view.database.clone());
        }
        Ok(part)
    }

    /// Makes a bound subquery part of this FROM clause: merged when it is only a selection and
    /// projection, otherwise computed on its own.
    pub(super) fn add_derived(
        bound: Bound,
        alias: &str,
        names: &[String],
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        match bound {
            Bound::Select(parts)
                if !state.with_keys
                    && state.leaves + parts.group.leaves() <= TABLES_MAX
                    && mergeable(&parts, nullable) =>
            {
                state.leaves += parts.group.leaves();
                merge(*parts, alias, names, state)
            }
            bound => {
                let query = finish(bound)?;
                let meta = query.columns;
                let source = Source::Derived(Box::new(query.node), query.rows);
                add_computed(source, &meta, alias, names, state)
            }
        }
    }

    /// `LATERAL (SELECT …)`: a query that sees the rows of the tables before it, as a subquery in
    /// an expression sees those of its query.
    pub(super) fn bind_lateral(
        &mut self,
        query: &ast::Query,
        alias: &str,
        names: &[String],
        state: &mut FromState,
    ) -> SqlResult<Part> {
        state.claim(None, alias)?;
        let before = Frame::new(state.before.clone(), "from clause");
        self.frames.push(before);
        let nested = self.bind_nested(query);
        self.frames.pop();
        let nested = nested?;
        add_lateral(
            finish(nested.bound)?,
            nested.correlated,
            alias,
            names,
            state,
        )
    }

    pub(super) fn bind_cte(
        &mut self,
        name: &str,
        alias: &str,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Option<Part>> {
        let Some(index) = self.ctes.iter().rposition(|cte| same_name(&cte.name, name)) else {
            return Ok(None);
        };
        state.claim(None, alias)?;
        let cte = self.ctes[index].clone();
        if let Some((id, columns)) = &cte.running {
            let slots = state.take(columns.len());
            let columns = columns
                .iter()
                .enumerate()
                .map(|(at, column)| FrameColumn {
                    database: None,
                    table: Some(alias.to_string()),
                    name: column.name.clone(),
                    expr: column_expr(slots.start + at, column.ty.clone(), true),
                    origin: None,
                    hidden: false,
                })
                .collect();
            let tree = Tree::Leaf(Leaf {
                source: Source::Cte(*id),
                alias: alias.to_string(),
                slots,
                key_slot: None,
                hints: Hints::default(),
                held: Vec::new(),
            });
            return Ok(Some(Part { tree, columns }));
        }
        let bound = self.bind_cte_query(index, &cte)?;
        Self::add_derived(bound, alias, &cte.columns, state, nullable).map(Some)
    }
}

/// A table of the rows of `query`, which sees those of the tables before it if it is `correlated`.
pub(super) fn add_lateral(
    query: BoundQuery,
    correlated: bool,
    alias: &str,
    names: &[String],
    state: &mut FromState,
) -> SqlResult<Part> {
    let (meta, rows) = (query.columns.clone(), query.rows);
    let query = Expr {
        kind: ExprKind::ScalarSubquery(Box::new(plan_of_query(query, correlated))),
        ty: DataType::Null,
        nullable: true,
    };
    add_computed(Source::Lateral(query, rows), &meta, alias, names, state)
}

/// A table of rows that `source` computes, with the columns `meta`.
fn add_computed(
    source: Source,
    meta: &[ColumnMeta],
    alias: &str,
    names: &[String],
    state: &mut FromState,
) -> SqlResult<Part> {
    let slots = state.take(meta.len());
    let mut columns = Vec::with_capacity(meta.len());
    for (at, column) in meta.iter().enumerate() {
        columns.push(FrameColumn {
            database: None,
            table: Some(alias.to_string()),
            name: column.name.clone(),
            expr: column_expr(slots.start + at, column.ty.clone(), !column.not_null),
            origin: None,
            hidden: false,
        });
    }
    rename(&mut columns, names)?;
    Ok(Part {
        columns,
        tree: Tree::Leaf(Leaf {
            source,
            alias: alias.to_string(),
            slots,
            key_slot: None,
            hints: Hints::default(),
            held: Vec::new(),
        }),
    })
}

/// Gives columns the names of an alias list, and checks that names are unique.
fn rename(columns: &mut [FrameColumn], names: &[String]) -> SqlResult<()> {
    if !names.is_empty() {
        if names.len() != columns.len() {
            return Err(SqlError::new(
                1353,
                "HY000",
                "In definition of view, derived table or common table expression, SELECT list \
                 and column names list have different column counts",
            ));
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column.name.clone_from(name);
        }
    }
    for (at, column) in columns.iter().enumerate() {
        if columns[..at]
            .iter()
            .any(|c| same_name(&c.name, &column.name))
        {
            return Err(SqlError::new(
                1060,
                "42S21",
                format!("Duplicate column name '{}'", column.name),
            ));
        }
    }
    Ok(())
}

/// A plain selection and projection can join its members into the enclosing group.
fn mergeable(parts: &SelectParts, nullable: bool) -> bool {
    parts.is_plain()
        && !parts.group.members.is_empty()
        && parts.outputs.iter().all(|output| {
            matches!(output.expr.kind, ExprKind::Column(_))
                || (!nullable
                    && walk::is_small(&output.expr, MERGED_NODES_MAX)
                    && !walk::has_subquery(&output.expr)
                    && !walk::is_volatile(&output.expr))
        })
}

fn merge(
    mut parts: SelectParts,
    alias: &str,
    names: &[String],
    state: &mut FromState,
) -> SqlResult<Part> {
    let by = state.take(parts.width).start;
    let mut shift =
        |(depth, index): walk::Reference| (depth, if depth == 0 { index + by } else { index });
    parts.group.relocate(by, &mut shift);
    let mut columns = Vec::with_capacity(parts.outputs.len());
    for output in parts.outputs {
        let mut expr = output.expr;
        walk::remap(&mut expr, &mut shift);
        columns.push(FrameColumn {
            database: None,
            table: Some(alias.to_string()),
            name: output.meta.name,
            expr,
            origin: output.origin,
            hidden: false,
        });
    }
    rename(&mut columns, names)?;
    Ok(Part {
        tree: Tree::Group(parts.group),
        columns,
    })
}

pub(super) fn alias_columns(alias: &ast::TableAlias) -> Vec<String> {
    alias.columns.iter().map(|c| c.name.value.clone()).collect()
}
