//! Constant expressions, computed when they are bound.

use super::EvalContext;
use crate::error::SqlResult;
use crate::plan::{Expr, ExprKind};
use crate::types::Value;

impl Expr {
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
