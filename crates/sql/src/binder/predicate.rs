//! Comparisons, IN lists, BETWEEN and patterns; row constructors become AND and OR of scalars.

use sqlparser::ast;

use super::Binder;
use super::expr::operand_columns;
use super::scope::{column_expr, seen_from};
use super::select::output;
use super::subquery::plan_of_query;
use crate::error::{SqlError, SqlResult};
use crate::expr::result_collation;
use crate::plan::physical::Node;
use crate::plan::{BoundQuery, CompareOp, Expr, ExprKind, walk};
use crate::types::{Collation, DataType, Value};

/// BETWEENs inside each other.
const DOUBLINGS_MAX: usize = 12;
/// Columns of a row constructor, as many as MySQL takes.
const ROW_MAX: usize = 4096;
/// Columns of row constructors that are ordered: each nests the rest in it.
const ORDERED_ROW_MAX: usize = 64;

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
            (Some(items), None) => {
                let values = self.bind_all(items)?;
                let found = self.row_of_subquery(right, items.len())?;
                self.compare_bound_rows(op, &values, &found)
            }
            (None, Some(items)) => {
                let found = self.row_of_subquery(left, items.len())?;
                let values = self.bind_all(items)?;
                self.compare_bound_rows(op, &found, &values)
            }
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
        self.refuse_mix(op.symbol(), &left, &right)?;
        Expr::compare(op, left, right)
    }

    fn refuse_mix(&self, operation: &str, left: &Expr, right: &Expr) -> SqlResult<()> {
        self.refuse_mixes(operation, &[left, right])
    }

    /// Stored columns of different collations have no collation to be compared under, unless one
    /// of them compares bytes.
    ///
    /// # Errors
    /// 1267 for two expressions, 1270 for three, 1271 for more.
    pub(super) fn refuse_mixes(&self, operation: &str, exprs: &[&Expr]) -> SqlResult<()> {
        let columns: Vec<Option<Collation>> = exprs
            .iter()
            .map(|expr| self.column_collation(expr))
            .collect();
        let mut known = columns.iter().flatten();
        let Some(first) = known.next() else {
            return Ok(());
        };
        let differ = columns.iter().flatten().any(|other| other != first);
        if !differ || columns.iter().flatten().any(|c| c.is_binary()) {
            return Ok(());
        }
        let shown = exprs.iter().zip(&columns).map(|(expr, column)| {
            let strength = if column.is_some() {
                "IMPLICIT"
            } else {
                "COERCIBLE"
            };
            let collation = expr.ty.collation().unwrap_or(Collation::Binary);
            format!("({},{strength})", collation.name())
        });
        let shown: Vec<String> = shown.collect();
        let (code, list) = match shown.as_slice() {
            [a, b] => (1267, format!(" {a} and {b}")),
            [a, b, c] => (1270, format!(" {a}, {b}, {c}")),
            _ => (1271, String::new()),
        };
        let text = format!("Illegal mix of collations{list} for operation '{operation}'");
        Err(SqlError::new(code, "HY000", text))
    }

    /// The collation of a stored table's text column, whose own it is. What information_schema
    /// shows is of a character set that gives way to any other.
    fn column_collation(&self, expr: &Expr) -> Option<Collation> {
        let (depth, slot) = match expr.kind {
            ExprKind::Column(slot) => (0, slot),
            ExprKind::Outer { depth, index } => (depth, index),
            _ => return None,
        };
        let frame = self.frames.iter().rev().nth(depth)?;
        let column = frame
            .columns
            .iter()
            .find(|column| matches!(column.expr.kind, ExprKind::Column(at) if at == slot))?;
        let (table, _) = column.origin.as_ref()?;
        if table.database.eq_ignore_ascii_case("information_schema") {
            return None;
        }
        expr.ty.collation()
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
        check_row(op, left.len())?;
        match op {
            CompareOp::Eq | CompareOp::NullSafeEq => {
                let mut columns = Vec::with_capacity(left.len());
                for (a, b) in left.iter().zip(right) {
                    columns.push(self.bind_compare(op, a, b)?);
                }
                balanced(columns, Expr::and).ok_or_else(|| operand_columns(1))
            }
            CompareOp::Ne => {
                let equal = self.compare_rows(CompareOp::Eq, left, right)?;
                Ok(Expr::not(equal))
            }
            _ => self.order_rows(op, left, right),
        }
    }

    fn bind_all(&mut self, items: &[ast::Expr]) -> SqlResult<Vec<Expr>> {
        items.iter().map(|item| self.bind_scalar(item)).collect()
    }

    /// As [`Self::compare_rows`], of rows of equal length that are bound.
    fn compare_bound_rows(
        &mut self,
        op: CompareOp,
        left: &[Expr],
        right: &[Expr],
    ) -> SqlResult<Expr> {
        check_row(op, left.len())?;
        let pairs = left.iter().zip(right);
        let test = match op {
            CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne => {
                let equal = if op == CompareOp::Ne {
                    CompareOp::Eq
                } else {
                    op
                };
                let columns: SqlResult<Vec<Expr>> = pairs
                    .map(|(a, b)| self.compare(equal, a.clone(), b.clone()))
                    .collect();
                balanced(columns?, Expr::and)
            }
            _ => {
                let strict = op.strict();
                let mut test: Option<Expr> = None;
                for (a, b) in pairs.rev() {
                    test = Some(match test {
                        None => self.compare(op, a.clone(), b.clone())?,
                        Some(rest) => {
                            let first = self.compare(strict, a.clone(), b.clone())?;
                            let equal = self.compare(CompareOp::Eq, a.clone(), b.clone())?;
                            Expr::or(first, Expr::and(equal, rest))
                        }
                    });
                }
                test
            }
        };
        let test = test.ok_or_else(|| operand_columns(1))?;
        Ok(if op == CompareOp::Ne {
            Expr::not(test)
        } else {
            test
        })
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
        let first = self.bind_compare(op.strict(), a, b)?;
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
            } => (self.bind_between(expr, low, high)?, *negated),
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
                self.refuse_mix("regexp_like", &value, &pattern)?;
                (Expr::regexp(value, pattern)?, *negated)
            }
            other => return Err(SqlError::not_supported(other.to_string())),
        };
        Ok(if negated { Expr::not(bound) } else { bound })
    }

    /// The value is bound twice, once for each end: nested, that doubles at every step. One that
    /// answers anew each time is asked once, in a query of its own.
    fn bind_between(
        &mut self,
        value: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
    ) -> SqlResult<Expr> {
        self.doublings += 1;
        let bound = if self.doublings > DOUBLINGS_MAX {
            Err(SqlError::new(
                1436,
                "HY000",
                "Thread stack overrun: BETWEENs nest too deeply",
            ))
        } else {
            self.bind_compare(CompareOp::Ge, value, low)
                .and_then(|above| {
                    let below = self.bind_compare(CompareOp::Le, value, high)?;
                    Ok(Expr::and(above, below))
                })
        };
        self.doublings -= 1;
        let bound = self.under_one_collation(as_one_kind(bound?)?)?;
        let changes = match &bound.kind {
            ExprKind::And(above, _) => {
                matches!(&above.kind, ExprKind::Compare(_, value, ..) if walk::is_changing(value))
            }
            _ => false,
        };
        if changes {
            return self.bind_between_once(value, low, high);
        }
        Ok(bound)
    }

    /// Both ends of a BETWEEN over texts under the collation of all three operands.
    ///
    /// # Errors
    /// 1270.
    fn under_one_collation(&self, mut between: Expr) -> SqlResult<Expr> {
        let ExprKind::And(above, below) = &mut between.kind else {
            return Ok(between);
        };
        let (
            ExprKind::Compare(_, value, low, above_collation),
            ExprKind::Compare(_, _, high, below_collation),
        ) = (&mut above.kind, &mut below.kind)
        else {
            return Ok(between);
        };
        let operands: [&Expr; 3] = [value.as_ref(), low.as_ref(), high.as_ref()];
        if operands
            .iter()
            .all(|operand| operand.ty.collation().is_some())
        {
            self.refuse_mixes("between", &operands)?;
            let collation = result_collation(operands);
            (*above_collation, *below_collation) = (collation, collation);
        }
        Ok(between)
    }

    /// `(SELECT x >= low AND x <= high FROM (SELECT value) AS x)`.
    fn bind_between_once(
        &mut self,
        value: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
    ) -> SqlResult<Expr> {
        let value = self.bind_scalar(value)?;
        let asked = column_expr(0, value.ty.clone(), value.nullable);
        let low = seen_from(&self.bind_scalar(low)?, 1);
        let high = seen_from(&self.bind_scalar(high)?, 1);
        let above = Expr::compare(CompareOp::Ge, asked.clone(), low)?;
        let below = Expr::compare(CompareOp::Le, asked, high)?;
        let test = self.under_one_collation(Expr::and(above, below))?;
        let (ty, nullable) = (test.ty.clone(), test.nullable);
        let query = BoundQuery {
            columns: vec![output(test.clone(), String::new(), &[]).meta],
            node: Node::Project {
                input: Box::new(Node::Values(vec![vec![seen_from(&value, 1)]])),
                expressions: vec![test],
            },
            rows: 1.0,
        };
        Ok(Expr {
            kind: ExprKind::ScalarSubquery(Box::new(plan_of_query(query, true))),
            ty,
            nullable,
        })
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
        self.refuse_mix("like", &value, &pattern)?;
        Expr::like(value, pattern, escape)
    }

    fn bind_in_list(&mut self, value: &ast::Expr, list: &[ast::Expr]) -> SqlResult<Expr> {
        if let Some(items) = row_items(value) {
            let mut rows = Vec::with_capacity(list.len());
            for candidate in list {
                let Some(candidate) = row_items(candidate) else {
                    return Err(operand_columns(items.len()));
                };
                rows.push(self.compare_rows(CompareOp::Eq, items, candidate)?);
            }
            return balanced(rows, Expr::or).ok_or_else(|| SqlError::syntax("near 'IN ()'"));
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
            return self.compare(CompareOp::Eq, value, only);
        }
        let all: Vec<&Expr> = std::iter::once(&value).chain(&candidates).collect();
        self.refuse_mixes(" IN ", &all)?;
        Expr::in_list(value, candidates)
    }
}

/// Where one end of a BETWEEN over a text is a number, the other end is one, too.
fn as_one_kind(between: Expr) -> SqlResult<Expr> {
    let ExprKind::And(above, below) = &between.kind else {
        return Ok(between);
    };
    let (ExprKind::Compare(_, value, low, _), ExprKind::Compare(_, other, high, _)) =
        (&above.kind, &below.kind)
    else {
        return Ok(between);
    };
    let number = |end: &Expr| Expr::cast(end.clone(), DataType::DOUBLE);
    match (low.ty.is_number(), high.ty.is_number()) {
        (true, false) if other.ty.is_text() && high.ty.is_text() => {
            let below = Expr::compare(CompareOp::Le, (**value).clone(), number(high)?)?;
            Ok(Expr::and((**above).clone(), below))
        }
        (false, true) if value.ty.is_text() && low.ty.is_text() => {
            let above = Expr::compare(CompareOp::Ge, (**other).clone(), number(low)?)?;
            Ok(Expr::and(above, (**below).clone()))
        }
        _ => Ok(between),
    }
}

/// Rows of as many columns as a comparison can take.
fn check_row(op: CompareOp, columns: usize) -> SqlResult<()> {
    let is_equality = matches!(op, CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne);
    let most = if is_equality {
        ROW_MAX
    } else {
        ORDERED_ROW_MAX
    };
    if columns <= most {
        return Ok(());
    }
    Err(SqlError::not_supported(format!(
        "a comparison of rows of more than {most} columns"
    )))
}

/// Joins conditions to a tree as shallow as can be, in their order.
fn balanced(mut terms: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop()
}

/// The items of a row constructor of two or more columns; `ROW(a, b)` and nested parentheses too.
pub(crate) fn row_items(expr: &ast::Expr) -> Option<&[ast::Expr]> {
    match expr {
        ast::Expr::Tuple(items) => Some(items),
        ast::Expr::Nested(inner) => row_items(inner),
        _ => None,
    }
}
