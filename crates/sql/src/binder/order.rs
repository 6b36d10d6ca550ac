//! ORDER BY, LIMIT, and positions in them.

use sqlparser::ast;

use super::Binder;
use super::scope::{AliasUse, Frame, FrameColumn, column_expr};
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{Limit, Node, SortKey};
use crate::plan::{BoundQuery, Expr, ExprKind};
use crate::types::{DataType, Value};

/// Whether a sort key descends.
pub(crate) fn descending(key: &ast::OrderByExpr) -> bool {
    matches!(key.options.sort, Some(ast::OrderBySort::Desc))
}

/// A bare number as a position.
pub(crate) fn position(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The sort keys of a query.
pub(crate) fn order_keys(order_by: Option<&ast::OrderBy>) -> SqlResult<&[ast::OrderByExpr]> {
    match order_by.map(|order| &order.kind) {
        None => Ok(&[]),
        Some(ast::OrderByKind::Expressions(keys)) => Ok(keys),
        Some(ast::OrderByKind::All(_)) => Err(SqlError::not_supported("ORDER BY ALL")),
    }
}

impl Binder<'_> {
    /// Binds sort keys of the current level; `outputs` are what positions mean.
    pub(crate) fn bind_order(
        &mut self,
        keys: &[ast::OrderByExpr],
        outputs: &[Expr],
    ) -> SqlResult<Vec<(Expr, bool)>> {
        let mut bound = Vec::with_capacity(keys.len());
        for key in keys {
            if key.options.nulls_first.is_some() {
                return Err(SqlError::syntax("near 'NULLS'"));
            }
            let expr = match position(&key.expr) {
                Some(position) => position
                    .checked_sub(1)
                    .and_then(|index| outputs.get(index))
                    .cloned()
                    .ok_or_else(|| {
                        SqlError::unknown_column(&position.to_string(), "order clause")
                    })?,
                None => self.bind_key(&key.expr)?,
            };
            bound.push((expr, descending(key)));
        }
        Ok(bound)
    }

    /// A bare name means the select list's first; inside expressions columns come first.
    pub(crate) fn bind_key(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        let bare = matches!(expr, ast::Expr::Identifier(_));
        self.frame_mut()?.alias_use = if bare {
            AliasUse::First
        } else {
            AliasUse::Last
        };
        let bound = self.bind_scalar(expr);
        self.frame_mut()?.alias_use = AliasUse::Never;
        bound
    }

    /// Binds LIMIT and OFFSET in both spellings.
    pub(crate) fn bind_limit(
        &mut self,
        clause: Option<&ast::LimitClause>,
    ) -> SqlResult<Option<Limit>> {
        let (count, offset) = match clause {
            None => return Ok(None),
            Some(ast::LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) => {
                if !limit_by.is_empty() {
                    return Err(SqlError::syntax("near 'BY'"));
                }
                (limit.as_ref(), offset.as_ref().map(|o| &o.value))
            }
            Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => {
                (Some(limit), Some(offset))
            }
        };
        let count = count.map(|e| self.bind_count(e)).transpose()?;
        let offset = offset.map(|e| self.bind_count(e)).transpose()?;
        if count.is_none() && offset.is_none() {
            return Ok(None);
        }
        Ok(Some(Limit { count, offset }))
    }

    pub(crate) fn bind_count(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        let mut bound = self.bind_scalar(expr)?;
        self.infer(&mut bound, &DataType::BIGINT_UNSIGNED);
        match &bound.kind {
            ExprKind::Param(_) | ExprKind::Literal(Value::UInt(_)) => Ok(bound),
            ExprKind::Literal(Value::Int(number)) if *number >= 0 => Ok(bound),
            ExprKind::Literal(Value::Decimal(_)) if !expr.to_string().contains('.') => Ok(
                Expr::literal(Value::UInt(u64::MAX), DataType::BIGINT_UNSIGNED),
            ),
            _ => Err(SqlError::syntax(format!("near '{expr}'"))),
        }
    }

    /// ORDER BY and LIMIT around a query that is complete.
    pub(super) fn order_and_limit(
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
}

/// Sorts complete rows; keys that are no output ride along and are cut off again.
fn sort_outputs(
    node: Node,
    outputs: Vec<Expr>,
    order: Vec<(Expr, bool)>,
    limit: Option<Limit>,
) -> Node {
    if order.is_empty() {
        return node;
    }
    let width = outputs.len();
    let mut expressions = outputs;
    let order = order.into_iter();
    let keys = order
        .map(|(expr, descending)| SortKey::of(expr, descending, &mut expressions))
        .collect();
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
