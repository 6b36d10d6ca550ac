//! Subqueries in expressions, and those of WHERE that become semi-joins.

use sqlparser::ast;

use super::Binder;
use super::aggregate::bigint;
use super::expr::operand_columns;
use super::joined::split_and;
use super::operator::compare_op;
use super::predicate::row_items;
use super::query::{Bound, BoundQuery, finish};
use super::scope::column_expr;
use super::select::SelectParts;
use crate::error::{SqlError, SqlResult};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::planner::Plan;
use crate::planner::join::family;
use crate::planner::logical::{Hints, Leaf, Member, Source, Tree};
use crate::planner::physical::{JoinKind, Node};
use crate::planner::walk;
use crate::types::{Collation, ColumnMeta, Value};

/// A bound subquery and whether it reads rows of enclosing queries.
pub(crate) struct Nested {
    bound: Bound,
    correlated: bool,
}

impl Binder<'_> {
    /// Binds WHERE into the group; EXISTS and IN that are plain become semi-joins.
    pub(crate) fn bind_where(
        &mut self,
        condition: &ast::Expr,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        match condition {
            ast::Expr::Nested(inner) => self.bind_where(inner, parts),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => {
                self.bind_where(left, parts)?;
                self.bind_where(right, parts)
            }
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Not,
                expr,
            } if matches!(**expr, ast::Expr::Exists { .. }) => {
                let ast::Expr::Exists { subquery, negated } = &**expr else {
                    return Ok(());
                };
                self.bind_where_exists(subquery, !negated, parts)
            }
            ast::Expr::Exists { subquery, negated } => {
                self.bind_where_exists(subquery, *negated, parts)
            }
            ast::Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => self.bind_where_in(expr, subquery, *negated, parts),
            other => {
                let bound = self.bind_scalar(other)?;
                split_and(bound, &mut parts.group.conjuncts);
                Ok(())
            }
        }
    }

    fn bind_where_exists(
        &mut self,
        subquery: &ast::Query,
        negated: bool,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let nested = self.bind_nested(subquery)?;
        match semi_candidate(nested, parts) {
            Ok(inner) => {
                join_semi(*inner, Vec::new(), negated, parts);
                Ok(())
            }
            Err(nested) => {
                let exists = Self::exists(*nested)?;
                let condition = if negated { Expr::not(exists) } else { exists };
                parts.group.conjuncts.push(condition);
                Ok(())
            }
        }
    }

    fn bind_where_in(
        &mut self,
        value: &ast::Expr,
        subquery: &ast::Query,
        negated: bool,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let values = self.bind_row(value)?;
        let nested = self.bind_nested(subquery)?;
        check_in(subquery, values.len(), nested.bound.columns())?;
        let never_null = values.iter().all(|value| !value.nullable)
            && match &nested.bound {
                Bound::Select(inner) => inner.outputs.iter().all(|o| !o.expr.nullable),
                Bound::Query(_) => false,
            };
        if !negated
            && !nested.correlated
            && same_equality(&values, &nested.bound)
            && has_index(&values, parts)
        {
            return self.join_distinct(values, nested, parts);
        }
        if !negated || never_null {
            match semi_candidate(nested, parts) {
                Ok(inner) => {
                    let pairs = inner.outputs.iter().map(|o| o.expr.clone());
                    let equal: Vec<(Expr, Expr)> = values.into_iter().zip(pairs).collect();
                    join_semi(*inner, equal, negated, parts);
                    return Ok(());
                }
                Err(nested) => {
                    let condition = self.in_subquery(values, *nested, negated)?;
                    parts.group.conjuncts.push(condition);
                    return Ok(());
                }
            }
        }
        let condition = self.in_subquery(values, nested, negated)?;
        parts.group.conjuncts.push(condition);
        Ok(())
    }

    /// `indexed IN (SELECT …)` joins the distinct rows of the subquery, so that either side may
    /// drive the other.
    fn join_distinct(
        &mut self,
        values: Vec<Expr>,
        nested: Nested,
        parts: &mut SelectParts,
    ) -> SqlResult<()> {
        let query = finish(nested.bound)?;
        let slots = parts.width..parts.width + query.columns.len();
        for ((value, column), slot) in values.into_iter().zip(&query.columns).zip(slots.clone()) {
            let other = column_expr(slot, column.ty.clone(), !column.not_null);
            let condition = self.compare(CompareOp::Eq, value, other)?;
            parts.group.conjuncts.push(condition);
        }
        let node = Node::Distinct {
            input: Box::new(query.node),
            collations: super::query::collations(&query.columns),
        };
        parts.width = slots.end;
        parts.group.members.push(Member {
            kind: JoinKind::Inner,
            slots: slots.clone(),
            tree: Tree::Leaf(Leaf {
                source: Source::Derived(Box::new(node), query.rows),
                alias: format!("<subquery{}>", parts.group.members.len()),
                slots,
                key_slot: None,
                hints: Hints::default(),
                held: Vec::new(),
            }),
            on: Vec::new(),
        });
        Ok(())
    }

    /// Any subquery expression, as a value.
    pub(crate) fn bind_subquery_expr(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Subquery(query) => {
                let nested = self.bind_nested(query)?;
                Self::scalar_subquery(nested)
            }
            E::Exists { subquery, negated } => {
                let nested = self.bind_nested(subquery)?;
                let exists = Self::exists(nested)?;
                Ok(if *negated { Expr::not(exists) } else { exists })
            }
            E::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let values = self.bind_row(expr)?;
                let nested = self.bind_nested(subquery)?;
                check_in(subquery, values.len(), nested.bound.columns())?;
                self.in_subquery(values, nested, *negated)
            }
            E::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, false),
            E::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true),
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }

    /// The columns of `(SELECT a, b …)` beside a row of `wanted`: each is a subquery of its own,
    /// NULL where there is no row. So keys see what they are compared with, and a subquery that
    /// does not read the rows outside is run once a column.
    ///
    /// # Errors
    /// 1241 for another number of columns, or where no subquery stands.
    pub(crate) fn row_of_subquery(
        &mut self,
        row: &ast::Expr,
        wanted: usize,
    ) -> SqlResult<Vec<Expr>> {
        let ast::Expr::Subquery(query) = strip_parentheses(row) else {
            return Err(operand_columns(wanted));
        };
        let nested = self.bind_nested(query)?;
        if nested.bound.columns() != wanted {
            return Err(operand_columns(wanted));
        }
        let plan = Self::nested_plan(nested)?;
        if walk::node_is_changing(&plan.root) {
            let what = "comparing a row with a subquery that answers anew each time";
            return Err(SqlError::not_supported(what));
        }
        let columns = plan.columns.iter().enumerate();
        Ok(columns
            .map(|(at, column)| one_column(&plan, at, column))
            .collect())
    }

    fn bind_row(&mut self, value: &ast::Expr) -> SqlResult<Vec<Expr>> {
        match row_items(value) {
            Some(items) => items.iter().map(|item| self.bind_scalar(item)).collect(),
            None => Ok(vec![self.bind_scalar(value)?]),
        }
    }

    pub(crate) fn bind_nested(&mut self, query: &ast::Query) -> SqlResult<Nested> {
        let level = self.frames.len();
        let saved = self.begin_reach();
        let names = self.item_names.take();
        let bound = self.bind_query_parts(query);
        self.item_names = names;
        let reach = self.end_reach(saved);
        Ok(Nested {
            bound: bound?,
            correlated: reach.is_some_and(|index| index < level),
        })
    }

    fn nested_plan(nested: Nested) -> SqlResult<Plan> {
        let query = finish(nested.bound)?;
        Ok(plan_of_query(query, nested.correlated))
    }

    fn scalar_subquery(nested: Nested) -> SqlResult<Expr> {
        if nested.bound.columns() != 1 {
            return Err(operand_columns(1));
        }
        let plan = Self::nested_plan(nested)?;
        let ty = plan.columns[0].ty.clone();
        Ok(Expr {
            kind: ExprKind::ScalarSubquery(Box::new(plan)),
            ty,
            nullable: true,
        })
    }

    fn exists(nested: Nested) -> SqlResult<Expr> {
        let plan = Self::nested_plan(nested)?;
        Ok(Expr {
            kind: ExprKind::Exists(Box::new(plan)),
            ty: bigint(false),
            nullable: false,
        })
    }

    fn in_subquery(
        &mut self,
        mut values: Vec<Expr>,
        nested: Nested,
        negated: bool,
    ) -> SqlResult<Expr> {
        let plan = Self::nested_plan(nested)?;
        let mut collations = Vec::with_capacity(values.len());
        for (at, value) in values.iter_mut().enumerate() {
            let ty = plan.columns[at].ty.clone();
            self.infer(value, &ty);
            let column = column_expr(0, ty, true);
            let comparison = self.compare(CompareOp::Eq, value.clone(), column)?;
            collations.push(collation_of(&comparison));
        }
        let test = Expr {
            kind: ExprKind::InSubquery {
                values,
                plan: Box::new(plan),
                collations,
            },
            ty: bigint(false),
            nullable: true,
        };
        Ok(if negated { Expr::not(test) } else { test })
    }

    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> SqlResult<Expr> {
        let Some(op) = compare_op(op) else {
            return Err(SqlError::syntax(format!("near '{op}'")));
        };
        let right = strip_parentheses(right);
        let ast::Expr::Subquery(query) = right else {
            return Err(SqlError::syntax(format!("near '{right}'")));
        };
        let value = self.bind_scalar(left)?;
        let nested = self.bind_nested(query)?;
        check_in(query, 1, nested.bound.columns())?;
        match (op, all) {
            (CompareOp::Eq, false) => return self.in_subquery(vec![value], nested, false),
            (CompareOp::Ne, true) => return self.in_subquery(vec![value], nested, true),
            _ => {}
        }
        let plan = Self::nested_plan(nested)?;
        let column = column_expr(0, plan.columns[0].ty.clone(), true);
        let comparison = self.compare(op, value.clone(), column)?;
        Ok(Expr {
            kind: ExprKind::Quantified {
                op,
                value: Box::new(value),
                plan: Box::new(plan),
                all,
                collation: collation_of(&comparison),
            },
            ty: bigint(false),
            nullable: true,
        })
    }
}

/// Column `at` of the one row that `plan` gives.
fn one_column(plan: &Plan, at: usize, column: &ColumnMeta) -> Expr {
    let value = column_expr(at, column.ty.clone(), true);
    let one = Plan {
        columns: vec![column.clone()],
        root: Node::Project {
            input: Box::new(plan.root.clone()),
            expressions: vec![value],
        },
        ..plan.clone()
    };
    Expr {
        kind: ExprKind::ScalarSubquery(Box::new(one)),
        ty: column.ty.clone(),
        nullable: true,
    }
}

/// The plan of a query inside an expression.
pub(super) fn plan_of_query(query: BoundQuery, correlated: bool) -> Plan {
    Plan {
        columns: query.columns,
        param_types: Vec::new(),
        correlated,
        tables: Vec::new(),
        locking: crate::planner::Locking::None,
        read_mode: manxdb_txn::ReadMode::Plain,
        root: query.node,
    }
}

fn strip_parentheses(expr: &ast::Expr) -> &ast::Expr {
    match expr {
        ast::Expr::Nested(inner) => strip_parentheses(inner),
        other => other,
    }
}

/// The collation a bound comparison uses.
fn collation_of(comparison: &Expr) -> Collation {
    match &comparison.kind {
        ExprKind::Compare(_, _, _, collation) => *collation,
        _ => Collation::Binary,
    }
}

fn check_in(query: &ast::Query, wanted: usize, columns: usize) -> SqlResult<()> {
    if columns != wanted {
        return Err(operand_columns(wanted));
    }
    if query.limit_clause.is_some() {
        return Err(SqlError::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
    }
    Ok(())
}

/// A subquery that can join the enclosing FROM, or itself back.
fn semi_candidate(nested: Nested, outer: &SelectParts) -> Result<Box<SelectParts>, Box<Nested>> {
    let joinable = !outer.group.members.is_empty()
        && match &nested.bound {
            Bound::Select(inner) => {
                let mut inner_limit = inner.limit.as_ref();
                if let Some(limit) = inner_limit
                    && limit.offset.is_none()
                    && matches!(&limit.count.as_ref().map(|c| &c.kind),
                        Some(ExprKind::Literal(Value::Int(n))) if *n > 0)
                {
                    inner_limit = None;
                }
                !inner.aggregated
                    && inner.windows.is_empty()
                    && inner.having.is_empty()
                    && inner_limit.is_none()
                    && !inner.group.members.is_empty()
                    && stays_inside(inner)
            }
            Bound::Query(_) => false,
        };
    if !joinable {
        return Err(Box::new(nested));
    }
    match nested.bound {
        Bound::Select(inner) => Ok(inner),
        bound @ Bound::Query(_) => Err(Box::new(Nested {
            bound,
            correlated: nested.correlated,
        })),
    }
}

/// Rows that are distinct are unequal to each other under the comparison too.
fn same_equality(values: &[Expr], bound: &Bound) -> bool {
    values.iter().enumerate().all(|(at, value)| {
        bound.column_type(at).is_some_and(|ty| {
            family(ty).is_some()
                && family(ty) == family(&value.ty)
                && ty.collation() == value.ty.collation()
        })
    })
}

/// All values are columns of one inner-joined stored table and the first of a key is among them.
fn has_index(values: &[Expr], parts: &SelectParts) -> bool {
    parts.group.members.iter().any(|member| {
        let (JoinKind::Inner, Tree::Leaf(leaf)) = (member.kind, &member.tree) else {
            return false;
        };
        let Source::Stored(table) = &leaf.source else {
            return false;
        };
        let mut first = table
            .indexes
            .iter()
            .filter_map(|index| index.columns.first().map(|c| c.column))
            .chain(table.primary_key.first().copied());
        let own = |value: &Expr| match value.kind {
            ExprKind::Column(slot) => leaf.slots.contains(&slot),
            _ => false,
        };
        values.iter().all(own)
            && first.any(|at| {
                let slot = leaf.slots.start + at;
                values
                    .iter()
                    .any(|value| matches!(value.kind, ExprKind::Column(s) if s == slot))
            })
    })
}

/// Only the top-level conditions may read the enclosing row.
fn stays_inside(inner: &SelectParts) -> bool {
    let mut inside = true;
    for member in &inner.group.members {
        for expr in &member.on {
            walk::references(expr, &mut |(depth, _)| inside &= depth == 0);
        }
        if let Tree::Group(group) = &member.tree {
            group.for_each_expr(&mut |expr| {
                walk::references(expr, &mut |(depth, _)| inside &= depth == 0);
            });
        }
    }
    inner.group.for_each_leaf(&mut |leaf| {
        if let Source::Derived(node, _) = &leaf.source {
            walk::node_exprs(node, &mut |expr| {
                walk::references(expr, &mut |(depth, _)| inside &= depth == 0);
            });
        }
        inside &= !matches!(leaf.source, Source::Cte(_));
    });
    inside
}

/// Hangs `inner` on the outer group. `equal` pairs an outer value with an inner one.
fn join_semi(
    mut inner: SelectParts,
    equal: Vec<(Expr, Expr)>,
    negated: bool,
    outer: &mut SelectParts,
) {
    let by = outer.width;
    let mut map = |(depth, index): walk::Reference| match depth {
        0 => (0, index + by),
        depth => (depth - 1, index),
    };
    inner.group.relocate(by, &mut map);
    let mut on = std::mem::take(&mut inner.group.conjuncts);
    for (value, mut output) in equal {
        walk::remap(&mut output, &mut map);
        // Both sides were typed when bound; comparing cannot fail where `=` is defined.
        match Expr::compare(CompareOp::Eq, value, output) {
            Ok(condition) => on.push(condition),
            Err(_) => on.push(Expr::literal(Value::Int(0), bigint(false))),
        }
    }
    outer.width += inner.width;
    outer.group.members.push(Member {
        kind: if negated {
            JoinKind::Anti
        } else {
            JoinKind::Semi
        },
        slots: inner.group.slots(),
        tree: Tree::Group(inner.group),
        on,
    });
}
