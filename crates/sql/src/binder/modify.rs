//! The scan under UPDATE and DELETE.

use sqlparser::ast;

use super::Binder;
use super::from::FromState;
use super::scope::{Frame, FrameColumn, Scope, ScopeColumn};
use crate::error::SqlResult;
use crate::plan::logical::Group;
use crate::plan::select::SelectParts;
use crate::plan::{ExprKind, TableRead};
use crate::planner::ModifyTable;
use crate::types::DataType;

/// A bound modification scan.
pub(crate) struct ModifyParts {
    pub select: SelectParts,
    pub scope: Scope,
    pub tables: Vec<ModifyTable>,
    /// Stored tables that derived tables and subqueries read.
    pub elsewhere: Vec<TableRead>,
}

impl Binder<'_> {
    pub(crate) fn bind_modify(
        &mut self,
        from: &[ast::TableWithJoins],
        selection: Option<&ast::Expr>,
        order_by: &[ast::OrderByExpr],
        limit: Option<&ast::Expr>,
    ) -> SqlResult<ModifyParts> {
        self.item_names = None;
        // Wide rows with keys, by which the rows are changed.
        let mut state = FromState::default();
        state.with_keys = true;
        let (group, columns) = self.bind_from(from, &mut state)?;
        let width = state.next;
        let scope = row_scope(&columns, width);
        let mut select = empty_parts(group, width);
        self.frames.push(Frame::new(columns, "where clause"));
        let bound = self.bind_modify_clauses(selection, order_by, limit, &mut select);
        self.frames.pop();
        bound?;
        let elsewhere = self.tables.clone();
        for table in &state.tables {
            self.note_table(table.read());
        }
        Ok(ModifyParts {
            select,
            scope,
            tables: state.tables,
            elsewhere,
        })
    }

    fn bind_modify_clauses(
        &mut self,
        selection: Option<&ast::Expr>,
        order_by: &[ast::OrderByExpr],
        limit: Option<&ast::Expr>,
        select: &mut SelectParts,
    ) -> SqlResult<()> {
        if let Some(condition) = selection {
            self.bind_where(condition, select)?;
        }
        self.enter_clause("order clause", false)?;
        select.order = self.bind_order(order_by, &[])?;
        if let Some(limit) = limit {
            select.limit = Some(crate::plan::physical::Limit {
                count: Some(self.bind_count(limit)?),
                offset: None,
            });
        }
        Ok(())
    }
}

fn empty_parts(group: Group, width: usize) -> SelectParts {
    SelectParts {
        group,
        width,
        outputs: Vec::new(),
        keys: Vec::new(),
        calls: Vec::new(),
        aggregated: false,
        rollup: false,
        having: Vec::new(),
        windows: Vec::new(),
        distinct: false,
        order: Vec::new(),
        limit: None,
        for_view: false,
    }
}

/// One entry a slot, hidden key slots under a name no client can write.
fn row_scope(columns: &[FrameColumn], width: usize) -> Scope {
    let hidden = ScopeColumn::unnamed(DataType::Varbinary { length: 3072 });
    let mut scope = Scope {
        columns: vec![hidden; width],
        outer: None,
    };
    for column in columns {
        if let ExprKind::Column(slot) = column.expr.kind
            && let Some(entry) = scope.columns.get_mut(slot)
        {
            *entry = ScopeColumn {
                database: column.database.clone(),
                table: column.table.clone(),
                name: column.name.clone(),
                ty: column.expr.ty.clone(),
                nullable: column.expr.nullable,
            };
        }
    }
    scope
}
