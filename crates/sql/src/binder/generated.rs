//! What generated columns compute, bound to the columns of their table.

use super::{BindContext, Scope, bind_definition};
use crate::catalog::{Generated, GeneratedKind, Table};
use crate::error::SqlResult;
use crate::expr::Expr;
use crate::parser::{parse_expression, stored_mode};

impl Generated {
    /// Binds the expression over a row of `table`. Its text literals have the table's collation,
    /// not the session's: every session computes the same.
    ///
    /// # Errors
    /// 1054 and what typing meets.
    pub(crate) fn bind(&self, context: &BindContext<'_>, table: &Table) -> SqlResult<Expr> {
        let place = match self.kind {
            GeneratedKind::KeyPart => "functional index",
            GeneratedKind::Virtual | GeneratedKind::Stored => "generated column function",
        };
        let parsed = parse_expression(&self.expression, stored_mode())?;
        let context = BindContext {
            collation: table.collation,
            source: None,
            ..*context
        };
        bind_definition(
            &context,
            &Scope::of_table(table, &table.name),
            &parsed,
            place,
        )
    }
}
