//! Looking at and rewriting expression trees.

use super::{EvalContext, Expr, ExprKind};
use crate::error::SqlResult;
use crate::types::Value;

impl ExprKind {
    /// Computes a truth value: comparisons, AND, LIKE, EXISTS and their kin.
    #[must_use]
    pub fn is_predicate(&self) -> bool {
        matches!(
            self,
            ExprKind::Compare(..)
                | ExprKind::And(..)
                | ExprKind::Or(..)
                | ExprKind::Xor(..)
                | ExprKind::Not(_)
                | ExprKind::IsNull(_)
                | ExprKind::IsBool(..)
                | ExprKind::Like { .. }
                | ExprKind::Regexp { .. }
                | ExprKind::InList { .. }
                | ExprKind::Exists(_)
                | ExprKind::InSubquery { .. }
                | ExprKind::Quantified { .. }
        )
    }
}

impl Expr {
    /// Direct operands; sub-plans are not entered.
    #[must_use]
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::Column(_)
            | ExprKind::Outer { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable(..)
            | ExprKind::ScalarSubquery(_)
            | ExprKind::Exists(_) => Vec::new(),
            ExprKind::AssignUserVariable(_, a)
            | ExprKind::Negate(a)
            | ExprKind::BitNot(a)
            | ExprKind::Not(a)
            | ExprKind::IsNull(a)
            | ExprKind::IsBool(a, _)
            | ExprKind::Cast(a)
            | ExprKind::Quantified { value: a, .. } => vec![a],
            ExprKind::Compare(_, a, b, _)
            | ExprKind::Binary(_, a, b)
            | ExprKind::And(a, b)
            | ExprKind::Or(a, b)
            | ExprKind::Xor(a, b) => vec![a, b],
            ExprKind::Like { value, pattern, .. } | ExprKind::Regexp { value, pattern, .. } => {
                vec![value, pattern]
            }
            ExprKind::InList { value, list, .. } => {
                std::iter::once(value.as_ref()).chain(list.iter()).collect()
            }
            ExprKind::Case { whens, otherwise } => whens
                .iter()
                .flat_map(|(when, result)| [when, result])
                .chain(otherwise.as_deref())
                .collect(),
            ExprKind::Call(_, args) => args.iter().collect(),
            ExprKind::InSubquery { values, .. } => values.iter().collect(),
        }
    }

    /// Whether `test` holds for this expression or anything in it (sub-plans are not entered).
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Whether the value depends on nothing: no row, parameter, session or subquery.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let own = match &self.kind {
            ExprKind::Param(_)
            | ExprKind::Column(_)
            | ExprKind::Outer { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable(..)
            | ExprKind::AssignUserVariable(..)
            | ExprKind::ScalarSubquery(_)
            | ExprKind::Exists(_)
            | ExprKind::InSubquery { .. }
            | ExprKind::Quantified { .. } => false,
            ExprKind::Call(function, _) => function.deterministic,
            _ => true,
        };
        own && self.children().into_iter().all(Expr::is_constant)
    }

    /// The expression with its value put in its place when it is constant. What fails or warns
    /// is left for run time, where it happens once a statement or row as MySQL has it.
    ///
    /// # Errors
    /// None yet.
    pub fn folded(self, ctx: &EvalContext<'_>) -> SqlResult<Expr> {
        if matches!(self.kind, ExprKind::Literal(_)) || !self.is_constant() {
            return Ok(self);
        }
        let before = ctx.warnings.borrow().len();
        let value = self.eval(ctx, &[], &[]);
        let warned = ctx.warnings.borrow().len() > before;
        if warned {
            ctx.warnings.borrow_mut().truncate(before);
        }
        match value {
            Ok(value) if !warned => Ok(Expr {
                nullable: matches!(value, Value::Null),
                kind: ExprKind::Literal(value),
                ty: self.ty,
            }),
            _ => Ok(self),
        }
    }
}
