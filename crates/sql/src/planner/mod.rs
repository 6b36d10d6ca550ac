//! From bound query to a plan that can be run any number of times.
//!
//! The binder hands over a [`crate::plan::logical::Group`] of tables and conditions; [`generated`] puts indexed columns in the
//! place of the expressions they hold, [`having`] moves conditions on groups to rows, [`join`] orders it, [`access`] picks ways into tables, [`select`] stacks the operators of [`crate::plan::physical`] on top.

pub(crate) mod access;
pub(crate) mod alternatives;
pub(crate) mod delta;
mod estimate;
mod generated;
mod having;
pub(crate) mod join;
mod keys;
mod sargs;
pub(crate) mod select;

use manxdb_txn::ReadMode;
use sqlparser::ast;

use crate::binder::{BindContext, Binder, Scope};
use crate::catalog::TableId;
use crate::error::SqlResult;
use crate::plan::{Locking, Plan, TableRead};

/// Plans a whole query expression (SELECT, UNION, VALUES, WITH where supported).
///
/// # Errors
/// Binding errors; 1235 for what is not supported.
pub fn plan_query(context: &BindContext<'_>, query: &ast::Query) -> SqlResult<Plan> {
    let mut binder = Binder::new(context);
    let bound = binder.bind_query(query)?;
    Ok(Plan {
        columns: bound.columns,
        param_types: binder.params,
        correlated: false,
        tables: binder.tables,
        locking: binder.locking,
        read_mode: binder.read_mode,
        root: bound.node,
    })
}

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
/// As [`plan_query`].
pub fn plan_modify(
    context: &BindContext<'_>,
    from: &[ast::TableWithJoins],
    selection: Option<&ast::Expr>,
    order_by: &[ast::OrderByExpr],
    limit: Option<&ast::Expr>,
) -> SqlResult<ModifyPlan> {
    let mut binder = Binder::with_tables_of(context)?;
    let bound = binder.bind_modify(from, selection, order_by, limit)?;
    let slots_read = select::used_slots(&bound.select);
    let root = select::plan_modify_rows(bound.select, &bound.scope);
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
