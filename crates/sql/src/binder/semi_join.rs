//! WHERE: subqueries there that become semi-joins with the tables of FROM, or joins of their distinct
//! rows.

use sqlparser::ast;

use super::Binder;
use super::query::{Bound, collations, finish};
use super::scope::column_expr;
use super::subquery::{Nested, check_in};
use crate::error::SqlResult;
use crate::plan::logical::{Hints, Leaf, Member, Source, Tree};
use crate::plan::physical::{JoinKind, Limit, Node};
use crate::plan::select::SelectParts;
use crate::plan::{CompareOp, Expr, ExprKind, walk};
use crate::planner::alternatives;
use crate::planner::join::family;
use crate::types::{DataType, Value};

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
                let mut bound = self.bind_scalar(other)?;
                self.find_zero_dates(&mut bound)?;
                alternatives::split(bound, &mut parts.group.conjuncts);
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
        let nested = if negated && !never_null {
            // NOT IN is NULL, not true, where a NULL is met: an anti-join does not tell.
            nested
        } else {
            match semi_candidate(nested, parts) {
                Ok(inner) => {
                    let pairs = inner.outputs.iter().map(|o| o.expr.clone());
                    let equal: Vec<(Expr, Expr)> = values.into_iter().zip(pairs).collect();
                    join_semi(*inner, equal, negated, parts);
                    return Ok(());
                }
                Err(nested) => *nested,
            }
        };
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
            collations: collations(&query.columns),
            keeps_order: false,
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
}

/// A subquery that can join the enclosing FROM, or itself back.
fn semi_candidate(nested: Nested, outer: &SelectParts) -> Result<Box<SelectParts>, Box<Nested>> {
    match nested.bound {
        Bound::Select(inner) if !outer.group.members.is_empty() && is_joinable(&inner) => Ok(inner),
        bound => Err(Box::new(Nested {
            bound,
            correlated: nested.correlated,
        })),
    }
}

/// Whether the rows of a SELECT are those of its FROM and WHERE, which may as well stand outside.
fn is_joinable(inner: &SelectParts) -> bool {
    !inner.aggregated
        && inner.windows.is_empty()
        && inner.having.is_empty()
        && inner.limit.as_ref().is_none_or(leaves_a_row)
        && !inner.group.members.is_empty()
        && stays_inside(inner)
}

/// Whether a LIMIT changes nothing to there being a row.
fn leaves_a_row(limit: &Limit) -> bool {
    let count = limit.count.as_ref().and_then(Expr::as_literal);
    limit.offset.is_none() && matches!(count, Some(Value::Int(count)) if *count > 0)
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
            inside &= reads_own_rows(expr);
        }
        let tree = &member.tree;
        tree.for_each_expr(&mut |expr| inside &= reads_own_rows(expr));
    }
    inner.group.for_each_leaf(&mut |leaf| {
        if let Source::Derived(node, _) = &leaf.source {
            walk::node_exprs(node, &mut |expr| inside &= reads_own_rows(expr));
        }
        inside &= !matches!(leaf.source, Source::Cte(_));
    });
    inside
}

/// Whether no row outside is referred to.
fn reads_own_rows(expr: &Expr) -> bool {
    let mut own = true;
    walk::references(expr, &mut |(depth, _)| own &= depth == 0);
    own
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
            Err(_) => on.push(Expr::literal(Value::Int(0), DataType::BIGINT)),
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
