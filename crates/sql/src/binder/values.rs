//! VALUES as a query.

use sqlparser::ast;

use super::Binder;
use super::expr::operand_columns;
use super::query::BoundQuery;
use super::scope::{Frame, column_expr};
use super::select::output;
use super::set_operation::alike;
use crate::error::{SqlError, SqlResult};
use crate::expr::Expr;
use crate::planner::physical::Node;
use crate::types::{self, DataType};

impl Binder<'_> {
    pub(super) fn bind_values_rows(&mut self, values: &ast::Values) -> SqlResult<BoundQuery> {
        let mut rows = Vec::with_capacity(values.rows.len());
        self.frames.push(Frame::new(Vec::new(), "field list"));
        let bound = values.rows.iter().try_for_each(|row| -> SqlResult<()> {
            let row: SqlResult<Vec<Expr>> = row
                .content
                .iter()
                .map(|expr| self.bind_scalar(expr))
                .collect();
            rows.push(row?);
            Ok(())
        });
        self.frames.pop();
        bound?;
        values_query(rows)
    }
}

fn values_query(mut rows: Vec<Vec<Expr>>) -> SqlResult<BoundQuery> {
    let width = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|row| row.len() != width) {
        return Err(SqlError::new(
            1136,
            "21S01",
            "Column count doesn't match value count at row 1",
        ));
    }
    if width == 0 {
        return Err(operand_columns(1));
    }
    let mut columns = Vec::with_capacity(width);
    for at in 0..width {
        let column: Vec<&DataType> = rows.iter().map(|row| &row[at].ty).collect();
        let nullable = rows.iter().any(|row| row[at].nullable);
        let ty = types::common_type(&column);
        for row in &mut rows {
            if !alike(&row[at].ty, &ty) {
                row[at] = Expr::cast(row[at].clone(), ty.clone())?;
            }
        }
        let plain = column_expr(0, ty, nullable);
        columns.push(output(plain, format!("column_{at}"), &[]).meta);
    }
    let count = rows.len();
    Ok(BoundQuery {
        node: Node::Values(rows),
        columns,
        rows: f64::from(u32::try_from(count).unwrap_or(u32::MAX)),
    })
}
