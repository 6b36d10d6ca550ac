//! Whole query expressions: WITH, set operations, VALUES, ORDER BY and LIMIT around them.

use sqlparser::ast;

use super::Binder;
use super::expr::operand_columns;
use super::from::FromState;
use super::order::order_keys;
use super::scope::{Frame, FrameColumn, column_expr, same_name};
use super::select::{SelectParts, output};
use super::set_operation::{alike, combine, different_widths};
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::expr::Expr;
use crate::planner::physical::{Node, Recursive, SetOp, SortKey};
use crate::planner::select::plan_select;
use crate::planner::walk;
use crate::types::{self, Collation, ColumnMeta, DataType};

/// Operators above each other in a plan.
const PLAN_DEPTH_MAX: usize = 300;
/// Queries bound for one statement. Views and common table expressions are bound wherever they
/// are named, so that few of them can stand for very many.
const QUERIES_MAX: usize = 4096;

/// A bound query whose operators are chosen.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    pub node: Node,
    pub columns: Vec<ColumnMeta>,
    /// Rows expected.
    pub rows: f64,
}

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

/// A common table expression in scope.
#[derive(Debug, Clone)]
pub(crate) struct Cte {
    pub name: String,
    pub columns: Vec<String>,
    pub query: ast::Query,
    /// Query levels when it was defined.
    level: usize,
    /// May refer to itself.
    recursive: bool,
    /// Bound before, with calls in it that answer anew each time.
    changes: bool,
    /// Being computed: its identity and columns.
    pub running: Option<(usize, Vec<ColumnMeta>)>,
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

impl Binder<'_> {
    /// Binds a query and chooses its operators.
    pub(crate) fn bind_query(&mut self, query: &ast::Query) -> SqlResult<BoundQuery> {
        let bound = self.bind_query_parts(query)?;
        finish(bound)
    }

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

    fn bind_body(
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

    /// `left op right`. A chain of UNIONs is taken as a whole: its columns have the types that all
    /// operands have in common, and no operand is converted twice.
    fn bind_set_operation(
        &mut self,
        left: &ast::SetExpr,
        op: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        right: &ast::SetExpr,
    ) -> SqlResult<BoundQuery> {
        let mut first = left;
        let mut rest = vec![(keeps_duplicates(quantifier)?, right)];
        while let ast::SetExpr::SetOperation {
            left,
            op: ast::SetOperator::Union,
            set_quantifier,
            right,
        } = first
            && op == ast::SetOperator::Union
        {
            rest.push((keeps_duplicates(*set_quantifier)?, right));
            first = left;
        }
        let op = match op {
            ast::SetOperator::Union => SetOp::Union,
            ast::SetOperator::Except | ast::SetOperator::Minus => SetOp::Except,
            ast::SetOperator::Intersect => SetOp::Intersect,
        };
        let first = self.bind_body(first, &[], None)?;
        let mut operands = vec![finish(first)?];
        let names = self.item_names.take();
        let rest: SqlResult<Vec<(bool, BoundQuery)>> = rest
            .into_iter()
            .rev()
            .map(|(all, operand)| Ok((all, finish(self.bind_body(operand, &[], None)?)?)))
            .collect();
        self.item_names = names;
        let (all, rest): (Vec<bool>, Vec<BoundQuery>) = rest?.into_iter().unzip();
        operands.extend(rest);
        combine(operands, op, &all)
    }

    fn bind_values_rows(&mut self, values: &ast::Values) -> SqlResult<BoundQuery> {
        let mut rows = Vec::with_capacity(values.rows.len());
        self.frames.push(Frame::new(Vec::new(), "field list"));
        let bound = values.rows.iter().try_for_each(|row| -> SqlResult<()> {
            let row: SqlResult<Vec<Expr>> = row
                .content
                .iter()
                .map(|expr| self.bind_scalar(expr))
                .collect();
            rows.push(row?);
            Ok(())
        });
        self.frames.pop();
        bound?;
        values_query(rows)
    }

    /// ORDER BY and LIMIT around a query that is complete.
    fn order_and_limit(
        &mut self,
        mut query: BoundQuery,
        keys: &[ast::OrderByExpr],
        limit: Option<&ast::LimitClause>,
    ) -> SqlResult<BoundQuery> {
        let columns: Vec<FrameColumn> = query
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| FrameColumn {
                database: None,
                table: None,
                name: column.name.clone(),
                expr: column_expr(at, column.ty.clone(), !column.not_null),
                origin: None,
                hidden: false,
            })
            .collect();
        let outputs: Vec<Expr> = columns.iter().map(|c| c.expr.clone()).collect();
        self.frames.push(Frame::new(columns, "order clause"));
        let order = self.bind_order(keys, &outputs);
        let limit = self.bind_limit(limit);
        self.frames.pop();
        let (order, limit) = (order?, limit?);
        query.node = sort_outputs(query.node, outputs, order, limit.clone());
        if let Some(limit) = limit {
            query.node = Node::Limit {
                input: Box::new(query.node),
                limit,
            };
        }
        Ok(query)
    }

    fn define_ctes(&mut self, with: &ast::With) -> SqlResult<()> {
        let outer = self.ctes.len();
        for cte in &with.cte_tables {
            let name = &cte.alias.name.value;
            let mut earlier = self.ctes.iter().skip(outer);
            if earlier.any(|known| same_name(&known.name, name)) {
                return Err(SqlError::new(
                    1066,
                    "42000",
                    format!("Not unique table/alias: '{name}'"),
                ));
            }
            self.ctes.push(Cte {
                name: cte.alias.name.value.clone(),
                columns: cte
                    .alias
                    .columns
                    .iter()
                    .map(|c| c.name.value.clone())
                    .collect(),
                query: (*cte.query).clone(),
                level: self.frames.len(),
                recursive: with.recursive,
                changes: false,
                running: None,
            });
        }
        Ok(())
    }

    /// Binds a common table expression where it is referred to.
    pub(crate) fn bind_cte_query(&mut self, index: usize, cte: &Cte) -> SqlResult<Bound> {
        let later_frames = self.frames.split_off(cte.level.min(self.frames.len()));
        let later_ctes = self.ctes.split_off(index + usize::from(cte.recursive));
        let saved = self.begin_reach();
        let level = self.frames.len();
        let names = self.item_names.take();
        let changing = self.changing_calls;
        self.nesting += 1;
        let bound = if self.nesting > 32 {
            Err(SqlError::new(
                1473,
                "HY000",
                "Too high level of nesting for select",
            ))
        } else if cte.recursive {
            self.bind_recursive(index, cte)
        } else {
            self.bind_query_parts(&cte.query)
        };
        self.nesting -= 1;
        self.item_names = names;
        self.ctes.truncate(index + usize::from(cte.recursive));
        if let Some(entry) = self.ctes.get_mut(index) {
            // Bound once more for the next reference, which computes it for itself.
            entry.running = None;
        }
        self.ctes.extend(later_ctes);
        if self.changing_calls > changing {
            self.note_change(index)?;
        }
        let reach = self.end_reach(saved);
        let moved = !later_frames.is_empty();
        self.frames.extend(later_frames);
        if moved && reach.is_some_and(|reached| reached < level) {
            return Err(SqlError::not_supported(
                "a common table expression with outer references used further in",
            ));
        }
        bound
    }

    /// Each reference computes a common table expression for itself, which must not show.
    fn note_change(&mut self, index: usize) -> SqlResult<()> {
        match self.ctes.get_mut(index) {
            Some(entry) if !entry.changes => entry.changes = true,
            _ => {
                return Err(SqlError::not_supported(
                    "RAND() and its kin in a common table expression that is read twice",
                ));
            }
        }
        Ok(())
    }

    /// `anchor UNION [ALL] step`, where the step reads the CTE itself.
    fn bind_recursive(&mut self, index: usize, cte: &Cte) -> SqlResult<Bound> {
        let ast::SetExpr::SetOperation {
            left,
            op: ast::SetOperator::Union,
            set_quantifier,
            right,
        } = &*cte.query.body
        else {
            return self.bind_unrecursive(cte);
        };
        if cte.query.order_by.is_some() || cte.query.limit_clause.is_some() {
            return Err(SqlError::not_supported(
                "ORDER BY / LIMIT in a recursive common table expression",
            ));
        }
        let entry = self.ctes.pop();
        let anchor = self.bind_body(left, &[], None);
        self.ctes.extend(entry);
        let anchor = anchor.map_err(|error| refuse_second_step(error, &cte.name))?;
        let anchor = finish(anchor)?;
        let mut columns = anchor.columns.clone();
        for (column, name) in columns.iter_mut().zip(&cte.columns) {
            column.name.clone_from(name);
        }
        for column in &mut columns {
            column.not_null = false;
        }
        let id = self.next_cte;
        self.next_cte += 1;
        if let Some(entry) = self.ctes.get_mut(index) {
            entry.running = Some((id, columns.clone()));
        }
        let step = self.bind_body(right, &[], None)?;
        let step = finish(step)?;
        if !walk::reads_cte(&step.node, Some(id)) {
            return self.bind_unrecursive(cte);
        }
        if step.columns.len() != columns.len() {
            return Err(different_widths());
        }
        let collations = collations(&columns);
        let node = Node::Recursive(Box::new(Recursive {
            id,
            anchor: anchor.node,
            step: step.node,
            distinct: !matches!(set_quantifier, ast::SetQuantifier::All),
            collations,
            columns: columns.iter().map(Column::of_result).collect(),
            step_types: step.columns.iter().map(|c| c.ty.clone()).collect(),
        }));
        Ok(Bound::Query(BoundQuery {
            node,
            columns,
            rows: anchor.rows * 10.0,
        }))
    }

    /// A common table expression that, for all of WITH RECURSIVE, does not read itself.
    fn bind_unrecursive(&mut self, cte: &Cte) -> SqlResult<Bound> {
        let entry = self.ctes.pop();
        let bound = self.bind_query_parts(&cte.query);
        self.ctes.extend(entry);
        bound
    }

    /// The scan of UPDATE and DELETE: wide rows with keys.
    pub(crate) fn bind_modify_from(
        &mut self,
        from: &[ast::TableWithJoins],
        state: &mut FromState,
    ) -> SqlResult<(crate::planner::logical::Group, Vec<FrameColumn>)> {
        state.with_keys = true;
        self.bind_from(from, state)
    }
}

/// Sorts complete rows; keys that are no output ride along and are cut off again.
fn sort_outputs(
    node: Node,
    outputs: Vec<Expr>,
    order: Vec<(Expr, bool)>,
    limit: Option<crate::planner::physical::Limit>,
) -> Node {
    if order.is_empty() {
        return node;
    }
    let width = outputs.len();
    let mut expressions = outputs;
    let mut keys = Vec::with_capacity(order.len());
    for (expr, descending) in order {
        let known = expressions
            .iter()
            .position(|e| crate::planner::walk::same(e, &expr));
        let ty = expr.ty.clone();
        let column = known.unwrap_or_else(|| {
            expressions.push(expr);
            expressions.len() - 1
        });
        keys.push(SortKey {
            column,
            descending,
            ty,
        });
    }
    let extended = expressions.len() > width;
    let input = if extended {
        Node::Project {
            input: Box::new(node),
            expressions,
        }
    } else {
        node
    };
    let sorted = Node::Sort {
        input: Box::new(input),
        keys,
        limit,
    };
    if extended {
        Node::Cut {
            input: Box::new(sorted),
            width,
        }
    } else {
        sorted
    }
}

/// The collation each column compares under.
pub(crate) fn collations(columns: &[ColumnMeta]) -> Vec<Collation> {
    columns
        .iter()
        .map(|column| column.ty.collation().unwrap_or(Collation::Binary))
        .collect()
}

/// The first part of a recursive common table expression knows nothing of itself: where it asks
/// for `name`, more than the last part is recursive.
fn refuse_second_step(error: SqlError, name: &str) -> SqlError {
    let unknown = [
        format!(".{name}' doesn't exist"),
        "No database selected".into(),
    ];
    if [1146, 1046].contains(&error.code) && unknown.iter().any(|end| error.message.ends_with(end))
    {
        return SqlError::not_supported("several recursive parts of a common table expression");
    }
    error
}

/// Whether a set operation is one with ALL.
fn keeps_duplicates(quantifier: ast::SetQuantifier) -> SqlResult<bool> {
    match quantifier {
        ast::SetQuantifier::All => Ok(true),
        ast::SetQuantifier::None | ast::SetQuantifier::Distinct => Ok(false),
        other => Err(SqlError::not_supported(other.to_string())),
    }
}

fn values_query(mut rows: Vec<Vec<Expr>>) -> SqlResult<BoundQuery> {
    let width = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|row| row.len() != width) {
        return Err(SqlError::new(
            1136,
            "21S01",
            "Column count doesn't match value count at row 1",
        ));
    }
    if width == 0 {
        return Err(operand_columns(1));
    }
    let mut columns = Vec::with_capacity(width);
    for at in 0..width {
        let column: Vec<&DataType> = rows.iter().map(|row| &row[at].ty).collect();
        let nullable = rows.iter().any(|row| row[at].nullable);
        let ty = types::common_type(&column);
        for row in &mut rows {
            if !alike(&row[at].ty, &ty) {
                row[at] = Expr::cast(row[at].clone(), ty.clone())?;
            }
        }
        let plain = column_expr(0, ty, nullable);
        columns.push(output(plain, format!("column_{at}"), &[]).meta);
    }
    let count = rows.len();
    Ok(BoundQuery {
        node: Node::Values(rows),
        columns,
        rows: f64::from(u32::try_from(count).unwrap_or(u32::MAX)),
    })
}

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
