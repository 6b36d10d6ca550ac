//! Comparisons, IN lists, BETWEEN and patterns; row constructors become AND and OR of scalars.

use sqlparser::ast;

use super::Binder;
use super::expr::operand_columns;
use crate::error::{SqlError, SqlResult};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::types::Value;

impl Binder<'_> {
    /// `left op right`, rows included.
    pub(crate) fn bind_compare(
        &mut self,
        op: CompareOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> SqlResult<Expr> {
        match (row_items(left), row_items(right)) {
            (Some(left), Some(right)) => self.compare_rows(op, left, right),
            (Some(items), None) => Self::compare_row_with_subquery(items, right),
            (None, Some(_)) => Err(operand_columns(1)),
            (None, None) => {
                let left = self.bind_scalar(left)?;
                let right = self.bind_scalar(right)?;
                self.compare(op, left, right)
            }
        }
    }

    /// Compares two bound sides; a placeholder takes the other side's type.
    pub(crate) fn compare(
        &mut self,
        op: CompareOp,
        mut left: Expr,
        mut right: Expr,
    ) -> SqlResult<Expr> {
        let (left_type, right_type) = (left.ty.clone(), right.ty.clone());
        self.infer(&mut left, &right_type);
        self.infer(&mut right, &left_type);
        Expr::compare(op, left, right)
    }

    fn compare_rows(
        &mut self,
        op: CompareOp,
        left: &[ast::Expr],
        right: &[ast::Expr],
    ) -> SqlResult<Expr> {
        if left.len() != right.len() {
            return Err(operand_columns(left.len()));
        }
        match op {
            CompareOp::Eq | CompareOp::NullSafeEq => {
                let mut all = None;
                for (a, b) in left.iter().zip(right) {
                    let one = self.bind_compare(op, a, b)?;
                    all = Some(match all {
                        None => one,
                        Some(all) => Expr::and(all, one),
                    });
                }
                all.ok_or_else(|| operand_columns(1))
            }
            CompareOp::Ne => {
                let equal = self.compare_rows(CompareOp::Eq, left, right)?;
                Ok(Expr::not(equal))
            }
            _ => self.order_rows(op, left, right),
        }
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`.
    fn order_rows(
        &mut self,
        op: CompareOp,
        left: &[ast::Expr],
        right: &[ast::Expr],
    ) -> SqlResult<Expr> {
        let (Some(a), Some(b)) = (left.first(), right.first()) else {
            return Err(operand_columns(1));
        };
        if left.len() == 1 {
            return self.bind_compare(op, a, b);
        }
        let strict = match op {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            other => other,
        };
        let first = self.bind_compare(strict, a, b)?;
        let equal = self.bind_compare(CompareOp::Eq, a, b)?;
        let rest = self.order_rows(op, &left[1..], &right[1..])?;
        Ok(Expr::or(first, Expr::and(equal, rest)))
    }

    /// IN lists, BETWEEN, LIKE, REGEXP.
    pub(crate) fn bind_predicate(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        use ast::Expr as E;
        let (bound, negated) = match expr {
            E::InList {
                expr,
                list,
                negated,
            } => (self.bind_in_list(expr, list)?, *negated),
            E::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let above = self.bind_compare(CompareOp::Ge, expr, low)?;
                let below = self.bind_compare(CompareOp::Le, expr, high)?;
                (Expr::and(above, below), *negated)
            }
            E::Like {
                negated,
                expr,
                pattern,
                escape_char,
                ..
            } => (
                self.bind_like(expr, pattern, escape_char.as_deref())?,
                *negated,
            ),
            E::RLike {
                negated,
                expr,
                pattern,
                ..
            } => {
                let value = self.bind_scalar(expr)?;
                let mut pattern = self.bind_scalar(pattern)?;
                self.infer(&mut pattern, &value.ty.clone());
                (Expr::regexp(value, pattern)?, *negated)
            }
            other => return Err(SqlError::not_supported(other.to_string())),
        };
        Ok(if negated { Expr::not(bound) } else { bound })
    }

    fn bind_like(
        &mut self,
        value: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
    ) -> SqlResult<Expr> {
        let mut value = self.bind_scalar(value)?;
        let mut pattern = self.bind_scalar(pattern)?;
        self.infer(&mut pattern, &value.ty.clone());
        self.infer(&mut value, &pattern.ty.clone());
        let wrong = || SqlError::new(1210, "HY000", "Incorrect arguments to ESCAPE");
        let escape = match escape {
            None if self.context.sql_mode.no_backslash_escapes => None,
            None => Some('\\'),
            Some(expr) => match self.bind_scalar(expr)?.kind {
                ExprKind::Literal(Value::Text(text)) => {
                    let mut chars = text.chars();
                    let first = chars.next();
                    if chars.next().is_some() {
                        return Err(wrong());
                    }
                    first
                }
                ExprKind::Literal(Value::Null) => Some('\\'),
                _ => return Err(wrong()),
            },
        };
        Expr::like(value, pattern, escape)
    }

    fn bind_in_list(&mut self, value: &ast::Expr, list: &[ast::Expr]) -> SqlResult<Expr> {
        if let Some(items) = row_items(value) {
            let mut any = None;
            for candidate in list {
                let Some(candidate) = row_items(candidate) else {
                    return Err(operand_columns(items.len()));
                };
                let one = self.compare_rows(CompareOp::Eq, items, candidate)?;
                any = Some(match any {
                    None => one,
                    Some(any) => Expr::or(any, one),
                });
            }
            return any.ok_or_else(|| SqlError::syntax("near 'IN ()'"));
        }
        let mut value = self.bind_scalar(value)?;
        let mut candidates = Vec::with_capacity(list.len());
        for candidate in list {
            let mut candidate = self.bind_scalar(candidate)?;
            self.infer(&mut candidate, &value.ty.clone());
            self.infer(&mut value, &candidate.ty.clone());
            candidates.push(candidate);
        }
        if candidates.len() == 1
            && let Some(only) = candidates.pop()
        {
            return Expr::compare(CompareOp::Eq, value, only);
        }
        Expr::in_list(value, candidates)
    }
}

/// The items of a row constructor of two or more columns; `ROW(a, b)` and nested parentheses too.
pub(crate) fn row_items(expr: &ast::Expr) -> Option<&[ast::Expr]> {
    match expr {
        ast::Expr::Tuple(items) => Some(items),
        ast::Expr::Nested(inner) => row_items(inner),
        _ => None,
    }
}
