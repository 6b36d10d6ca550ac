//! Which collation an expression takes from its operands.

use crate::plan::{Expr, ExprKind};
use crate::types::{Collation, DataType, merge_collations};

/// The collation that comparing, joining or concatenating these takes.
#[must_use]
pub fn result_collation<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Collation {
    let mut best: Option<(u8, Collation)> = None;
    for expr in exprs {
        let Some(collation) = expr.ty.collation() else {
            continue;
        };
        let strength = coercibility(expr);
        best = Some(match best {
            None => (strength, collation),
            Some((kept, _)) if strength < kept => (strength, collation),
            Some((kept, other)) if strength == kept => (kept, merge_collations(other, collation)),
            Some(found) => found,
        });
    }
    best.map_or_else(Collation::default, |(_, collation)| collation)
}

/// How strongly an expression insists on its collation; the lower the stronger (MySQL's scale).
fn coercibility(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Cast(inner) if inner.ty.is_text() && expr.ty.is_text() => {
            if inner.ty.collation() == expr.ty.collation() {
                coercibility(inner)
            } else {
                0
            }
        }
        ExprKind::Column(_) | ExprKind::Outer { .. } => 2,
        ExprKind::UserVariable(_) | ExprKind::SystemVariable(..) => 3,
        ExprKind::Call(_, args) => args
            .iter()
            .filter(|arg| arg.ty.collation().is_some())
            .map(coercibility)
            .min()
            .unwrap_or(4),
        ExprKind::Case { whens, otherwise } => whens
            .iter()
            .map(|(_, result)| result)
            .chain(otherwise.as_deref())
            .map(coercibility)
            .min()
            .unwrap_or(4),
        ExprKind::Literal(_) | ExprKind::Param(_) => 4,
        _ => 2,
    }
}

impl Expr {
    /// Collation of the `n`-th column of a subquery comparison.
    #[must_use]
    pub fn comparison_collation(a: &Expr, b: &DataType) -> Collation {
        match (a.ty.collation(), b.collation()) {
            (Some(left), Some(right)) if coercibility(a) == 2 => merge_collations(left, right),
            (_, Some(right)) => right,
            (Some(left), None) => left,
            (None, None) => Collation::default(),
        }
    }
}
