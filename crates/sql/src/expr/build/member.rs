//! Members of ENUM and SET columns as the numbers that stand for them.

use crate::expr::functions;
use crate::plan::{Expr, ExprKind};
use crate::types::{Collation, DataType};

impl Expr {
    /// This expression where a number is computed: the place of an ENUM's value in its list, the
    /// bits of a SET's.
    #[must_use]
    pub fn member_number(self) -> Expr {
        match &self.ty {
            DataType::Enum { members, .. } => {
                member_number("_MEMBER_NUMBER", DataType::BIGINT, members.clone(), self)
            }
            DataType::Set { members, .. } => {
                let ty = DataType::BIGINT_UNSIGNED;
                member_number("_MEMBER_BITS", ty, members.clone(), self)
            }
            _ => self,
        }
    }
}

/// What an ENUM or a SET is among numbers: the place in its list, from 1, or the bits.
fn member_number(function: &str, ty: DataType, members: Vec<String>, expr: Expr) -> Expr {
    let Some(function) = functions::lookup(function) else {
        return expr;
    };
    let nullable = expr.nullable;
    let member = |member| Expr::text(member, Collation::Bin0900);
    let args = std::iter::once(expr)
        .chain(members.into_iter().map(member))
        .collect();
    Expr::new(ExprKind::Call(function, args), ty, nullable)
}

/// `FIND_IN_SET` of a constant in a SET column: as in MySQL the place in the column's list, not in
/// the value.
pub(super) fn find_member(text: Expr, found: Expr, set: Expr, members: Vec<String>) -> Expr {
    let Some(function) = functions::lookup("_FIND_MEMBER") else {
        return found;
    };
    let members = members
        .into_iter()
        .map(|member| Expr::text(member, Collation::Bin0900));
    let args: Vec<Expr> = [text, found, set.member_number()]
        .into_iter()
        .chain(members)
        .collect();
    let (ty, nullable) = (functions::function(function).infer)(&args);
    Expr::new(ExprKind::Call(function, args), ty, nullable)
}
