//! Calls of built-in functions, and the spellings that are calls in other words.

use super::member::find_member;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions;
use crate::plan::{CompareOp, Expr, ExprKind, FunctionId};
use crate::types::{Collation, DataType};

impl Expr {
    /// A call of a built-in function.
    ///
    /// # Errors
    /// 1305 for an unknown function, 1582 for a wrong number of arguments.
    pub fn call(name: &str, args: Vec<Expr>) -> SqlResult<Expr> {
        let Some(id) = functions::lookup(name) else {
            return Err(SqlError::new(
                1305,
                "42000",
                format!("FUNCTION {name} does not exist"),
            ));
        };
        let function = functions::function(id);
        let (least, most) = function.arity;
        if args.len() < least || args.len() > most {
            return Err(SqlError::new(
                1582,
                "42000",
                format!(
                    "Incorrect parameter count in the call to native function '{}'",
                    function.name
                ),
            ));
        }
        // As MySQL documents it: CASE WHEN a = b THEN NULL ELSE a END.
        if function.name == "NULLIF"
            && let [a, b] = &args[..]
        {
            let equal = Expr::compare(CompareOp::Eq, a.clone(), b.clone())?;
            return Expr::case(vec![(equal, Expr::null())], Some(a.clone()));
        }
        if function.name == "FIND_IN_SET"
            && let [text, set] = &args[..]
            && let DataType::Set { members, .. } = &set.ty
            && matches!(set.kind, ExprKind::Column(_) | ExprKind::Outer { .. })
            && is_constant(text)
        {
            let (mut text, set, members) = (text.clone(), set.clone(), members.clone());
            if !text.ty.is_text() && !text.ty.is_bytes() {
                let shown = DataType::varchar(text.ty.char_length());
                text = text.convert_to(&shown);
            }
            let found = Self::prepared_call(id, args);
            return Ok(find_member(text, found, set, members));
        }
        Ok(Self::prepared_call(id, args))
    }

    fn prepared_call(id: FunctionId, args: Vec<Expr>) -> Expr {
        let function = functions::function(id);
        let args = functions::prepare_arguments(function, args);
        let (ty, nullable) = (function.infer)(&args);
        Self::new(ExprKind::Call(id, args), ty, nullable)
    }

    /// `expr + INTERVAL amount unit`; `unit` as in SQL (`DAY`, `HOUR_SECOND`, …).
    ///
    /// # Errors
    /// 1064 for an unknown unit.
    pub fn interval_add(expr: Expr, amount: Expr, unit: &str) -> SqlResult<Expr> {
        Self::interval("DATE_ADD", expr, amount, unit)
    }

    /// `expr - INTERVAL amount unit`.
    ///
    /// # Errors
    /// 1064 for an unknown unit.
    pub fn interval_sub(expr: Expr, amount: Expr, unit: &str) -> SqlResult<Expr> {
        Self::interval("DATE_SUB", expr, amount, unit)
    }

    fn interval(function: &str, expr: Expr, amount: Expr, unit: &str) -> SqlResult<Expr> {
        if !functions::is_interval_unit(unit) {
            return Err(SqlError::syntax(format!("'{unit}' is no unit of INTERVAL")));
        }
        let unit = Expr::text(unit.to_ascii_uppercase(), Collation::Bin0900);
        Self::call(function, vec![expr, amount, unit])
    }

    /// `EXTRACT(unit FROM expr)`.
    ///
    /// # Errors
    /// 1064 for an unknown unit.
    pub fn extract(unit: &str, expr: Expr) -> SqlResult<Expr> {
        if !functions::is_interval_unit(unit) {
            return Err(SqlError::syntax(format!("'{unit}' is no unit of EXTRACT")));
        }
        let unit = Expr::text(unit.to_ascii_uppercase(), Collation::Bin0900);
        Self::call("EXTRACT", vec![unit, expr])
    }
}

/// Whether the value is the same for every row and known before any is read.
fn is_constant(expr: &Expr) -> bool {
    !expr.any(&mut |inner| {
        !matches!(
            inner.kind,
            ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Call(..) | ExprKind::Cast(_)
        )
    })
}
