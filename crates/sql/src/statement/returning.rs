//! RETURNING: an extension that answers the written rows.

use sqlparser::ast::{Expr as AstExpr, SelectItem};

use crate::binder::{BindContext, Scope, bind_expr};
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, Expr};
use crate::types::{ColumnMeta, Row, Value};

/// Bound RETURNING list.
#[derive(Debug, Clone, Default)]
pub(super) struct Returning {
    exprs: Vec<Expr>,
    pub(super) columns: Vec<ColumnMeta>,
}

impl Returning {
    /// Binds `items` over the columns of `table`.
    ///
    /// # Errors
    /// Binding errors.
    pub(super) fn plan(
        context: &BindContext<'_>,
        table: &Table,
        alias: &str,
        items: Option<&[SelectItem]>,
    ) -> SqlResult<Self> {
        let mut returning = Self::default();
        let scope = Scope::of_table(table, alias);
        for item in items.unwrap_or_default() {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    returning.add(context, table, &scope, expr, expr.to_string())?;
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    returning.add(context, table, &scope, expr, alias.value.clone())?;
                }
                SelectItem::Wildcard(_) => {
                    for (at, column) in table.columns.iter().enumerate() {
                        let expr = Expr::column(at, column.ty.clone(), !column.not_null);
                        returning.columns.push(meta(table, &expr, &column.name));
                        returning.exprs.push(expr);
                    }
                }
                _ => return Err(SqlError::not_supported("this item of RETURNING")),
            }
        }
        Ok(returning)
    }

    fn add(
        &mut self,
        context: &BindContext<'_>,
        table: &Table,
        scope: &Scope,
        expr: &AstExpr,
        name: String,
    ) -> SqlResult<()> {
        let bound = bind_expr(context, scope, expr, "field list")?;
        let name = match expr {
            AstExpr::Identifier(ident) if name == expr.to_string() => ident.value.clone(),
            _ => name,
        };
        self.columns.push(meta(table, &bound, &name));
        self.exprs.push(bound);
        Ok(())
    }

    /// Whether nothing is returned.
    pub(super) fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// The values of a written row.
    pub(super) fn row(&self, eval: &EvalContext<'_>, row: &[Value]) -> SqlResult<Row> {
        self.exprs
            .iter()
            .map(|expr| expr.eval(eval, row, &[]))
            .collect()
    }
}

fn meta(table: &Table, expr: &Expr, name: &str) -> ColumnMeta {
    let base = match expr.kind {
        crate::expr::ExprKind::Column(at) => table.columns.get(at).map(|column| (at, column)),
        _ => None,
    };
    ColumnMeta {
        schema: base.map(|_| table.database.clone()).unwrap_or_default(),
        table: base.map(|_| table.name.clone()).unwrap_or_default(),
        org_table: base.map(|_| table.name.clone()).unwrap_or_default(),
        name: name.to_string(),
        org_name: base
            .map(|(_, column)| column.name.clone())
            .unwrap_or_default(),
        ty: expr.ty.clone(),
        not_null: !expr.nullable,
        primary_key: base.is_some_and(|(at, _)| table.primary_key.contains(&at)),
        unique_key: false,
        multiple_key: false,
        auto_increment: base.is_some_and(|(_, column)| column.auto_increment),
    }
}
