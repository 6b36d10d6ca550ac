//! The scan under UPDATE and DELETE.

use manxdb_txn::ReadMode;
use sqlparser::ast;

use super::from::FromState;
use super::scope::{Frame, FrameColumn, Scope, ScopeColumn};
use super::{BindContext, Binder};
use crate::catalog::TableId;
use crate::error::SqlResult;
use crate::plan::logical::Group;
use crate::plan::select::SelectParts;
use crate::plan::{ExprKind, Locking, Plan, TableRead};
use crate::planner::select::{plan_modify_rows, used_slots};
use crate::types::DataType;

/// A scan for UPDATE and DELETE: each row is the concatenation of the joined tables' columns
/// in FROM order, each table's block followed by one hidden column holding its row key suffix
/// as bytes (NULL for the missing side of an outer join).
#[derive(Debug, Clone)]
pub struct ModifyPlan {
    /// Rows to look at; read with [`manxdb_txn::ReadMode::Update`].
    pub plan: Plan,
    /// Names for SET expressions and the targets of a multi-table DELETE (hidden columns included,
    /// under names no client can write).
    pub scope: Scope,
    /// One entry a base table in FROM order: database, table, alias, first column in the row.
    pub tables: Vec<ModifyTable>,
    /// Stored tables that derived tables and subqueries read.
    pub elsewhere: Vec<TableRead>,
    /// One a column of a row: whether a condition or the order looks at it.
    pub slots_read: Vec<bool>,
}

impl ModifyPlan {
    /// The stored tables whose columns the statement looks at: what subqueries and derived tables
    /// read, what is only joined to the targets (places in [`ModifyPlan::tables`]), and the
    /// targets among whose columns are slots of `read`. MySQL asks for SELECT on these alone.
    pub(crate) fn looks_at(&self, targets: &[usize], read: &[bool]) -> Vec<TableRead> {
        let mut tables = self.elsewhere.clone();
        for (place, table) in self.tables.iter().enumerate() {
            let columns = table.offset..table.offset + table.width;
            let columns = read.get(columns).unwrap_or_default();
            if !targets.contains(&place) || columns.contains(&true) {
                tables.push(table.read());
            }
        }
        tables
    }
}

/// A base table of a [`ModifyPlan`].
#[derive(Debug, Clone)]
pub struct ModifyTable {
    /// Which table.
    pub id: TableId,
    /// Database.
    pub database: String,
    /// Table.
    pub table: String,
    /// Alias.
    pub alias: String,
    /// Where its columns start in the row; the row key suffix follows the last of them.
    pub offset: usize,
    /// How many columns it has.
    pub width: usize,
}

impl ModifyTable {
    /// As a table that is read.
    #[must_use]
    pub fn read(&self) -> TableRead {
        (self.id, self.database.clone(), self.table.clone())
    }
}

/// Plans the scan of an UPDATE or DELETE.
///
/// # Errors
/// As [`super::plan_query`].
pub fn plan_modify(
    context: &BindContext<'_>,
    from: &[ast::TableWithJoins],
    selection: Option<&ast::Expr>,
    order_by: &[ast::OrderByExpr],
    limit: Option<&ast::Expr>,
) -> SqlResult<ModifyPlan> {
    let mut binder = Binder::with_tables_of(context)?;
    let bound = binder.bind_modify(from, selection, order_by, limit)?;
    let slots_read = used_slots(&bound.select);
    let columns: Vec<DataType> = bound
        .scope
        .columns
        .iter()
        .map(|column| column.ty.clone())
        .collect();
    let root = plan_modify_rows(bound.select, &columns);
    Ok(ModifyPlan {
        plan: Plan {
            columns: Vec::new(),
            param_types: binder.params,
            correlated: false,
            tables: binder.tables,
            locking: Locking::Update,
            read_mode: ReadMode::Update,
            root,
        },
        scope: bound.scope,
        tables: bound.tables,
        elsewhere: bound.elsewhere,
        slots_read,
    })
}

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
