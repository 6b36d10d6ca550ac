//! Comparing two values as `=`, `<` and their kin do.

use std::cmp::Ordering;

use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::CompareOp;
use crate::types::{Collation, Value, compare, today};

impl CompareOp {
    /// Whether an ordering satisfies the operator.
    #[must_use]
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Eq | CompareOp::NullSafeEq => ordering.is_eq(),
            CompareOp::Ne => ordering.is_ne(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Le => ordering.is_le(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Ge => ordering.is_ge(),
        }
    }

    /// The operator without equality: what decides between rows whose first columns differ.
    #[must_use]
    pub fn strict(self) -> Self {
        match self {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            other => other,
        }
    }
}

/// `a op b` of values.
///
/// # Errors
/// 1292 inside a strict write.
pub fn compare_values(
    ctx: &EvalContext<'_>,
    op: CompareOp,
    a: &Value,
    b: &Value,
    collation: Collation,
) -> SqlResult<Option<bool>> {
    if a.is_null() || b.is_null() {
        let both = a.is_null() && b.is_null();
        return Ok((op == CompareOp::NullSafeEq).then_some(both));
    }
    let ordering = match (a, b) {
        (Value::Text(_), other) | (other, Value::Text(_)) if other.is_number() => {
            for side in [a, b] {
                if let (Value::Text(_), Some((_, false))) = (side, side.to_double_checked()) {
                    ctx.truncated("DOUBLE", side)?;
                }
            }
            compare(a, b, collation)
        }
        (Value::Time(_), Value::Date(_) | Value::DateTime(_))
        | (Value::Date(_) | Value::DateTime(_), Value::Time(_)) => {
            let today = today(ctx.now_micros, &ctx.time_zone);
            a.to_datetime(today)
                .zip(b.to_datetime(today))
                .map(|(a, b)| a.cmp(&b))
        }
        _ => compare(a, b, collation),
    };
    Ok(ordering.map(|ordering| op.accepts(ordering)))
}
