//! ORDER BY, LIMIT, and positions in them.

use sqlparser::ast;

use super::Binder;
use super::aggregate::bigint;
use super::scope::AliasUse;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Expr, ExprKind};
use crate::planner::physical::Limit;
use crate::types::Value;

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
        self.infer(&mut bound, &bigint(true));
        match &bound.kind {
            ExprKind::Param(_) | ExprKind::Literal(Value::UInt(_)) => Ok(bound),
            ExprKind::Literal(Value::Int(number)) if *number >= 0 => Ok(bound),
            ExprKind::Literal(Value::Decimal(_)) if !expr.to_string().contains('.') => {
                Ok(Expr::literal(Value::UInt(u64::MAX), bigint(true)))
            }
            _ => Err(SqlError::syntax(format!("near '{expr}'"))),
        }
    }
}
