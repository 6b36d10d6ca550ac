//! `d IS NULL` and `ISNULL(d)` find '0000-00-00' in a DATE or DATETIME that is NOT NULL, which is how ODBC's clients
//! look for it. MySQL means the conditions of WHERE so, and what AND and OR make of them, and no other
//! expression.

use super::Binder;
use crate::error::SqlResult;
use crate::plan::{CompareOp, Expr, ExprKind};
use crate::types::{DataType, Date, DateTime, Value};

impl Binder<'_> {
    /// Lets the IS NULL among the conditions that `condition` is made of find zero dates.
    ///
    /// # Errors
    /// What comparing a column with the zero date meets.
    pub(super) fn find_zero_dates(&self, condition: &mut Expr) -> SqlResult<()> {
        let operand = match &mut condition.kind {
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                self.find_zero_dates(left)?;
                return self.find_zero_dates(right);
            }
            ExprKind::Call(function, arguments) if function.name == "ISNULL" => arguments.first(),
            ExprKind::IsNull(operand) => Some(&**operand),
            _ => None,
        };
        let zero = operand.map(|operand| self.is_zero_date(operand));
        if let Some(zero) = zero.transpose()?.flatten() {
            let is_null = std::mem::replace(condition, zero.clone());
            *condition = Expr::or(zero, is_null);
        }
        Ok(())
    }

    /// Whether the column `operand` is the zero date; `None` for all but dates that are NOT NULL.
    fn is_zero_date(&self, operand: &Expr) -> SqlResult<Option<Expr>> {
        let zero = match operand.ty {
            DataType::Date => Value::Date(Date::ZERO),
            DataType::DateTime { .. } => Value::DateTime(DateTime::midnight(Date::ZERO)),
            _ => return Ok(None),
        };
        let (depth, slot) = match operand.kind {
            ExprKind::Column(slot) => (0, slot),
            ExprKind::Outer { depth, index } => (depth, index),
            _ => return Ok(None),
        };
        let frame = self.frames.iter().rev().nth(depth);
        let declared = frame.is_some_and(|frame| {
            frame.columns.iter().any(|column| {
                let own = matches!(column.expr.kind, ExprKind::Column(at) if at == slot);
                let origin = column.origin.as_ref();
                own && origin.is_some_and(|(table, at)| table.columns[*at].not_null)
            })
        });
        if operand.nullable && !declared {
            return Ok(None);
        }
        let zero = Expr::literal(zero, operand.ty.clone());
        Expr::compare(CompareOp::Eq, operand.clone(), zero).map(Some)
    }
}
