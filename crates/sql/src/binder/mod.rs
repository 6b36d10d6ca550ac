//! Names and types resolved against one catalog snapshot.
//!
//! A [`Binder`] walks `sqlparser`'s tree with a stack of [`scope::Frame`]s, one a query level.
//! FROM becomes a [`crate::plan::logical::Group`] of tables over one wide row, a SELECT
//! becomes [`crate::plan::select::SelectParts`]; subqueries are planned as soon as they are bound,
//! except the plain ones, which merge into the enclosing group. [`plan_query`] and [`plan_modify`]
//! give the whole plan.

mod aggregate;
pub(crate) mod column_type;
mod cte;
mod derived;
mod distinct;
mod expr;
mod from;
mod function;
mod generated;
mod group;
mod joined;
mod json_table;
mod literal;
mod modify;
mod names;
mod operator;
mod order;
mod predicate;
mod query;
mod reference;
mod scope;
mod select;
mod semi_join;
mod set_operation;
mod subquery;
mod types;
mod values;
mod window;
mod window_frame;
mod window_name;
mod zero_date;

pub(crate) use literal::{bit_bytes, hex_bytes};
pub use modify::{ModifyPlan, ModifyTable, plan_modify};
pub use query::plan_query;
pub use scope::{Scope, ScopeColumn};
pub(crate) use set_operation::counts_found_rows;

use sqlparser::ast;

use crate::catalog::{Catalog, VirtualTables};
use crate::error::{SqlError, SqlResult};
use crate::plan::{Expr, Locking, TableRead};
use crate::types::{Collation, DataType, SqlMode};
use cte::Cte;
use manxdb_txn::ReadMode;
use scope::Frame;

/// What binding depends on.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// Catalog snapshot.
    pub catalog: &'a Catalog,
    /// Current database.
    pub database: Option<&'a str>,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// Collation of literals and parameters (`collation_connection`).
    pub collation: Collation,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Text of the statement, so that unnamed result columns are called as written.
    pub source: Option<&'a str>,
    /// Types of the placeholders when they stand for constants of the text.
    pub constants: &'a [DataType],
    /// WITH before an UPDATE or DELETE, whose tables all of its clauses may read.
    pub with: Option<&'a ast::With>,
    /// The plan's joined rows will be taken from, or put into, a materialized view: they come in no
    /// order, and all of them are needed.
    pub for_view: bool,
}

/// Binds a scalar expression (no aggregates). `place` is MySQL's word for error 1054:
/// "field list", "where clause", "on clause", "order clause"…
/// `VALUES(column)` means the column of a table [`crate::parser::VALUES_ALIAS`] in `scope`.
/// Stored tables that subqueries in it read are added to `tables`: whoever runs the expression
/// must be allowed to read them.
///
/// # Errors
/// 1054, 1052, 1235 and what typing meets.
pub fn bind_expr(
    context: &BindContext<'_>,
    scope: &Scope,
    expr: &ast::Expr,
    place: &'static str,
    tables: &mut Vec<TableRead>,
) -> SqlResult<Expr> {
    let mut binder = Binder::with_tables_of(context)?;
    binder.push_scope(scope, place);
    let bound = binder.bind_scalar(expr)?;
    tables.append(&mut binder.tables);
    Ok(bound)
}

/// As [`bind_expr`] for an expression of a table's definition, which reads no other table.
///
/// # Errors
/// As [`bind_expr`]; 1235 for a subquery over stored tables.
pub fn bind_definition(
    context: &BindContext<'_>,
    scope: &Scope,
    expr: &ast::Expr,
    place: &'static str,
) -> SqlResult<Expr> {
    let mut tables = Vec::new();
    let bound = bind_expr(context, scope, expr, place, &mut tables)?;
    if tables.is_empty() {
        return Ok(bound);
    }
    Err(SqlError::not_supported(format!("a subquery in a {place}")))
}

/// The state of binding one statement.
pub(crate) struct Binder<'a> {
    pub context: &'a BindContext<'a>,
    frames: Vec<Frame>,
    ctes: Vec<Cte>,
    next_cte: usize,
    /// Types placeholders were inferred to have.
    pub params: Vec<DataType>,
    /// Stored tables read.
    pub tables: Vec<TableRead>,
    /// Lock clause of the outermost query.
    pub locking: Locking,
    pub read_mode: ReadMode,
    /// Least frame index that a name reached from further in, since the last reset.
    reach: usize,
    depth: usize,
    nesting: usize,
    /// BETWEENs around the place being bound.
    doublings: usize,
    /// Queries bound so far.
    queries: usize,
    /// Calls bound so far that answer anew each time, like RAND().
    changing_calls: usize,
    view_database: Option<String>,
    /// Select items of the outermost SELECT, as written.
    item_names: Option<Vec<String>>,
}

impl<'a> Binder<'a> {
    pub fn new(context: &'a BindContext<'a>) -> Self {
        Self {
            context,
            frames: Vec::new(),
            ctes: Vec::new(),
            next_cte: 0,
            params: Vec::new(),
            tables: Vec::new(),
            locking: Locking::None,
            read_mode: ReadMode::Plain,
            reach: usize::MAX,
            depth: 0,
            nesting: 0,
            doublings: 0,
            queries: 0,
            changing_calls: 0,
            view_database: None,
            item_names: context.source.and_then(names::item_texts),
        }
    }

    /// A binder that knows the tables of the WITH before the statement.
    ///
    /// # Errors
    /// 1066 for two of one name.
    pub(crate) fn with_tables_of(context: &'a BindContext<'a>) -> SqlResult<Self> {
        let mut binder = Self::new(context);
        if let Some(with) = context.with {
            binder.define_ctes(with)?;
        }
        Ok(binder)
    }

    fn push_scope(&mut self, scope: &Scope, place: &'static str) {
        if let Some(outer) = &scope.outer {
            self.push_scope(outer, place);
        }
        self.frames.push(Frame::of_scope(scope, place));
    }

    fn frame(&self) -> SqlResult<&Frame> {
        self.frames
            .last()
            .ok_or_else(|| SqlError::internal("no query level is being bound"))
    }

    fn frame_mut(&mut self) -> SqlResult<&mut Frame> {
        self.frames
            .last_mut()
            .ok_or_else(|| SqlError::internal("no query level is being bound"))
    }

    /// Starts watching how far out names reach.
    fn begin_reach(&mut self) -> usize {
        std::mem::replace(&mut self.reach, usize::MAX)
    }

    /// The outermost frame reached since, if any was.
    fn end_reach(&mut self, saved: usize) -> Option<usize> {
        let reached = self.reach;
        self.reach = saved.min(reached);
        (reached != usize::MAX).then_some(reached)
    }

    /// The texts of unnamed items, once: for the outermost SELECT only.
    fn take_item_names(&mut self, count: usize) -> Option<Vec<String>> {
        let outermost = self.frames.is_empty() && self.nesting == 0;
        let names = self.item_names.take()?;
        (outermost && names.len() == count).then_some(names)
    }

    fn note_locks(&mut self, locks: &[ast::LockClause]) -> SqlResult<()> {
        for lock in locks {
            let (locking, modes) = match lock.lock_type {
                ast::LockType::Update => (
                    Locking::Update,
                    [
                        ReadMode::Update,
                        ReadMode::UpdateNoWait,
                        ReadMode::UpdateSkipLocked,
                    ],
                ),
                ast::LockType::Share => (
                    Locking::Share,
                    [
                        ReadMode::Share,
                        ReadMode::ShareNoWait,
                        ReadMode::ShareSkipLocked,
                    ],
                ),
            };
            if self.nesting > 0 {
                return Err(SqlError::not_supported("a lock clause in a derived table"));
            }
            self.locking = locking;
            self.read_mode = match lock.nonblock {
                None => modes[0],
                Some(ast::NonBlock::Nowait) => modes[1],
                Some(ast::NonBlock::SkipLocked) => modes[2],
            };
        }
        Ok(())
    }
}
