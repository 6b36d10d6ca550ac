//! Calls of functions, and those that do not evaluate every argument.

use super::missing;
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::expr::functions::{self, Arguments};
use crate::plan::{Expr, ExprKind, FunctionId};
use crate::types::Value;

impl Expr {
    /// `function(args)`.
    pub(super) fn call_function(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        id: FunctionId,
        args: &[Expr],
    ) -> SqlResult<Value> {
        // These must not evaluate what they do not choose: `IF(x = 0, NULL, 1 / x)`.
        match id.name {
            "IF" => {
                let [condition, yes, no] = args else {
                    return Err(missing("argument", args.len()));
                };
                let chosen = if condition.eval_bool(ctx, row, outer)? == Some(true) {
                    yes
                } else {
                    no
                };
                return chosen.eval(ctx, row, outer);
            }
            "COALESCE" | "IFNULL" => {
                for arg in args {
                    let value = arg.eval_ref(ctx, row, outer)?;
                    if !value.is_null() {
                        return Ok(value.into_owned());
                    }
                }
                return Ok(Value::Null);
            }
            "RAND" => {
                if let [seed] = args
                    && let Some(number) = self.seeded_random(ctx, row, outer, seed)?
                {
                    return Ok(number);
                }
            }
            _ => {}
        }
        let function = functions::function(id);
        let unrounded = function.arguments == Arguments::Unrounded;
        let mut values = Vec::with_capacity(args.len());
        let mut held = 0;
        for arg in args {
            let value = if unrounded {
                arg.eval_unrounded(ctx, row, outer)?.into_owned()
            } else {
                arg.eval(ctx, row, outer)?
            };
            function.hold(&mut held, &value)?;
            values.push(value);
        }
        function.call(ctx, &values, &self.ty)
    }

    /// The next number of `RAND(seed)` when the seed stays the same from row to row.
    fn seeded_random(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        seed: &Expr,
    ) -> SqlResult<Option<Value>> {
        if !seed.is_constant() && !matches!(seed.kind, ExprKind::Param(_)) {
            return Ok(None);
        }
        let call = std::ptr::from_ref(self).addr();
        let seed = seed.eval_ref(ctx, row, outer)?;
        Ok(Some(Value::Double(ctx.seeded.next(call, &seed))))
    }
}
