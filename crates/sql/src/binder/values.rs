//! VALUES as a query.

use sqlparser::ast;

use super::Binder;
use super::scope::{Frame, column_expr};
use super::select::output;
use super::set_operation::alike;
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::Node;
use crate::plan::{BoundQuery, Expr};
use crate::types::{self, DataType};

impl Binder<'_> {
    pub(super) fn bind_values_rows(&mut self, values: &ast::Values) -> SqlResult<BoundQuery> {
        let mut rows = Vec::with_capacity(values.rows.len());
        self.frames.push(Frame::new(Vec::new(), "field list"));
        let bound = values.rows.iter().try_for_each(|row| -> SqlResult<()> {
            if row.content.iter().any(is_default) {
                let message = "A VALUES clause cannot use DEFAULT values, unless used as a source \
                               in an INSERT statement.";
                return Err(SqlError::new(3943, "HY000", message));
            }
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
        let message = "Each row of a VALUES clause must have at least one column, unless when \
                       used as source in an INSERT statement.";
        return Err(SqlError::new(3942, "HY000", message));
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

/// The bare word DEFAULT.
fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("DEFAULT"))
}
