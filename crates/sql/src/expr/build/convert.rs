//! Values as values of another type: CAST, COLLATE, and what alternatives have in common.

use super::operand::beside;
use super::result_collation;
use crate::error::{SqlError, SqlResult};
use crate::plan::{Expr, ExprKind};
use crate::types::{Collation, DataType, Value, common_type};

impl Expr {
    /// The common type of several results, under the collation the strongest insists on.
    #[must_use]
    pub fn common(exprs: &[&Expr]) -> DataType {
        let types: Vec<&DataType> = exprs.iter().map(|expr| &expr.ty).collect();
        let ty = common_type(&types).computed();
        if ty.is_text() {
            let collation = result_collation(exprs.iter().copied());
            if collation != Collation::Binary {
                return ty.with_collation(collation);
            }
        }
        ty
    }

    /// This expression as a value of `ty`: itself when its values already are such.
    #[must_use]
    pub fn convert_to(self, ty: &DataType) -> Expr {
        if same_representation(&self.ty, ty) || matches!(self.ty, DataType::Null) {
            return self;
        }
        let nullable = self.nullable;
        Self::new(ExprKind::Cast(Box::new(self)), ty.clone(), nullable)
    }

    /// CAST and CONVERT.
    ///
    /// # Errors
    /// None yet.
    pub fn cast(expr: Expr, ty: DataType) -> SqlResult<Expr> {
        // An integer is read from the text that a date plus an interval is.
        let expr = if ty.is_integer() {
            expr.member_number().literal_number()
        } else {
            beside(expr, &ty)
        };
        // Text and numbers may turn out not to be readable as a date, giving NULL.
        let nullable = expr.nullable || (ty.is_temporal() && !expr.ty.is_temporal());
        Ok(Self::new(ExprKind::Cast(Box::new(expr)), ty, nullable))
    }

    /// `expr COLLATE collation`.
    ///
    /// # Errors
    /// 1253 for byte strings.
    pub fn collate(expr: Expr, collation: Collation) -> SqlResult<Expr> {
        if expr.ty.is_bytes() && collation != Collation::Binary {
            return Err(SqlError::new(
                1253,
                "42000",
                format!(
                    "COLLATION '{}' is not valid for CHARACTER SET 'binary'",
                    collation.name()
                ),
            ));
        }
        let ty = if expr.ty.is_text() {
            expr.ty.with_collation(collation)
        } else {
            DataType::text_of(expr.ty.char_length(), collation)
        };
        // A literal simply takes the collation, so that indexes still see a constant.
        if let ExprKind::Literal(value @ Value::Text(_)) = expr.kind {
            return Ok(Self::new(
                ExprKind::Cast(Box::new(Expr::literal(value, expr.ty))),
                ty,
                false,
            ));
        }
        let nullable = expr.nullable;
        Ok(Self::new(ExprKind::Cast(Box::new(expr)), ty, nullable))
    }
}

/// Whether values of `from` are values of `to` as they stand.
fn same_representation(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        _ if from == to => true,
        (DataType::Int { .. } | DataType::Year | DataType::Bit { .. }, DataType::Int { .. }) => {
            let big = |ty: &DataType| {
                *ty == DataType::BIGINT_UNSIGNED || matches!(ty, DataType::Bit { .. })
            };
            big(from) == big(to)
        }
        (DataType::Float { .. }, DataType::Double { .. })
        | (DataType::Double { .. }, DataType::Double { .. }) => true,
        (DataType::Decimal { scale: a, .. }, DataType::Decimal { scale: b, .. }) => a == b,
        (
            DataType::DateTime { .. } | DataType::Timestamp { .. },
            DataType::DateTime { .. } | DataType::Timestamp { .. },
        )
        | (DataType::Time { .. }, DataType::Time { .. }) => from.fsp() <= to.fsp(),
        (DataType::Bit { .. }, DataType::Bit { .. }) => true,
        _ if from.has_empty_member() => false,
        _ if from.is_text() && to.is_text() => true,
        _ => from.is_bytes() && to.is_bytes(),
    }
}
