//! Statements that change something: DML as cacheable plans, DDL as direct actions.
//!
//! | file | holds |
//! |---|---|
//! | [`context`] | what a statement runs with |
//! | [`insert`] | INSERT, REPLACE, ON DUPLICATE KEY UPDATE |
//! | [`update`], [`delete`] | UPDATE and DELETE of one or several tables |
//! | [`target`] | what is known of a table before a row is written: defaults, checks |
//! | [`generated`] | generated columns of a row about to be written |
//! | [`rows`] | one row with its index entries |
//! | [`foreign_key`] | parents that must exist, children that go along |
//! | [`load`] | text files as rows |
//! | [`ddl`] | everything that changes the catalog |

mod context;
pub mod ddl;
mod delete;
mod foreign_key;
mod generated;
mod insert;
mod load;
mod names;
pub(crate) mod owners;
mod rows;
pub(crate) mod target;
mod update;

#[cfg(feature = "mutants")]
pub use owners::mutants as ownership_mutants;

pub use context::ExecContext;
pub(crate) use ddl::{quote_text, variable_in_view, wanted as blinded_keys_wanted};
pub(crate) use delete::delete_known;
pub(crate) use foreign_key::{Access as LinkAccess, access as link_access};
pub use insert::LoadedFile;
pub(crate) use load::put_line;

use std::io::Read;

use sqlparser::ast;

use crate::binder::{BindContext, plan_query};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlResult};
use crate::explain::ExplainFormat;
use crate::expr::{EvalContext, Warning, WarningLevel};
use crate::parser::LoadData;
use crate::plan::{Expr, ExprKind, Plan, TableRead};
use crate::types::{DataType, Row};

/// What a statement did, for the OK packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementOutcome {
    /// Rows changed, MySQL's counting (an upsert that updates counts 2, an unchanged row 0).
    pub affected_rows: u64,
    /// Rows matched, for clients that asked for CLIENT_FOUND_ROWS.
    pub matched_rows: u64,
    /// First generated AUTO_INCREMENT value, 0 when none.
    pub last_insert_id: u64,
    /// AUTO_INCREMENT value of the last row stored, also when the client gave it. The OK packet
    /// carries it when nothing was generated; `LAST_INSERT_ID()` does not know it.
    pub stored_id: u64,
    /// `Rows matched: 1  Changed: 1  Warnings: 0` and the like.
    pub info: String,
}

/// A DML statement or query, ready to run any number of times.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // one a statement, and queries are the common case
pub enum StatementPlan {
    /// SELECT and its kin.
    Query(Plan),
    /// INSERT, REPLACE, UPDATE, DELETE.
    Modify(Box<ModifyStatement>),
}

/// What a modification needs to be allowed to do to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// Only read.
    Select,
}

/// A planned INSERT, REPLACE, UPDATE or DELETE.
#[derive(Debug, Clone)]
pub struct ModifyStatement {
    /// Types inferred for `?`.
    pub param_types: Vec<DataType>,
    /// Privileges needed: (database, table, what).
    pub access: Vec<(String, String, Access)>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Insert(insert::Insert),
    Update(update::Update),
    Delete(delete::Delete),
}

/// Plans a query or DML statement; `None` for statements of another kind.
///
/// # Errors
/// Binding errors; 1235.
pub fn plan(
    context: &BindContext<'_>,
    statement: &ast::Statement,
) -> SqlResult<Option<StatementPlan>> {
    let modify = match statement {
        ast::Statement::Query(query) if changed_by(query).is_some() => {
            let context = BindContext {
                with: query.with.as_ref(),
                ..*context
            };
            return match changed_by(query) {
                Some(change) => plan(&context, change),
                None => Ok(None),
            };
        }
        ast::Statement::Query(query) => {
            return plan_query(context, query).map(|plan| Some(StatementPlan::Query(plan)));
        }
        ast::Statement::Insert(insert) => insert::plan(context, insert)?,
        ast::Statement::Update(update) => update::plan(context, update)?,
        ast::Statement::Delete(delete) => delete::plan(context, delete)?,
        _ => return Ok(None),
    };
    Ok(Some(StatementPlan::Modify(Box::new(modify))))
}

/// The UPDATE or DELETE behind a WITH, which the parser takes for the body of a query.
pub(crate) fn changed_by(query: &ast::Query) -> Option<&ast::Statement> {
    match query.body.as_ref() {
        ast::SetExpr::Update(change) | ast::SetExpr::Delete(change) => Some(change),
        _ => None,
    }
}

/// Plans LOAD DATA.
///
/// # Errors
/// Binding errors; 1115 for the character set; 1235.
pub fn plan_load(context: &BindContext<'_>, load: &LoadData) -> SqlResult<StatementPlan> {
    let modify = insert::plan_load(context, load)?;
    Ok(StatementPlan::Modify(Box::new(modify)))
}

/// Runs LOAD DATA over its opened file, as [`run_modify`].
///
/// # Errors
/// As [`run_modify`]; the file's; 1261 and 1262 for lines with too few or too many fields.
pub fn run_load(
    context: &ExecContext<'_>,
    plan: &ModifyStatement,
    file: &mut dyn Read,
) -> SqlResult<StatementOutcome> {
    let Kind::Insert(insert) = &plan.kind else {
        return Err(SqlError::internal("a file for a statement that reads none"));
    };
    let mut eval = writing(context.eval, plan.ignores());
    eval.refuses_null = eval.strict_write;
    let context = ExecContext {
        eval: &eval,
        ..*context
    };
    insert::run_load(&context, insert, file)
}

/// Runs a planned modification inside the context's transaction. After an error the caller rolls back to the statement's start.
///
/// # Errors
/// Constraint violations with MySQL's numbers; evaluation, storage, interruption.
pub fn run_modify(
    context: &ExecContext<'_>,
    plan: &ModifyStatement,
) -> SqlResult<StatementOutcome> {
    let mut eval = writing(context.eval, plan.ignores());
    eval.refuses_null = eval.strict_write || plan.refuses_null();
    let context = ExecContext {
        eval: &eval,
        ..*context
    };
    match &plan.kind {
        Kind::Insert(insert) => insert::run(&context, insert),
        Kind::Update(update) => update::run(&context, update),
        Kind::Delete(delete) => delete::run(&context, delete),
    }
}

impl ModifyStatement {
    /// EXPLAIN.
    #[must_use]
    pub fn explain(&self, format: ExplainFormat) -> Vec<Row> {
        match &self.kind {
            Kind::Insert(insert) => insert.explain(format),
            Kind::Update(update) => update.explain(format),
            Kind::Delete(delete) => delete.explain(format),
        }
    }

    /// Whether MySQL answers 1048 to a NULL even outside of strict mode: in an INSERT of one row,
    /// which leaves nothing half done.
    fn refuses_null(&self) -> bool {
        match &self.kind {
            Kind::Insert(insert) => insert.is_one_row() && !insert.ignore,
            Kind::Update(_) | Kind::Delete(_) => false,
        }
    }

    /// The file of a LOAD DATA.
    #[must_use]
    pub fn file(&self) -> Option<LoadedFile<'_>> {
        match &self.kind {
            Kind::Insert(insert) => insert.file(),
            _ => None,
        }
    }

    fn ignores(&self) -> bool {
        match &self.kind {
            Kind::Insert(insert) => insert.ignore,
            Kind::Update(update) => update.ignore,
            Kind::Delete(delete) => delete.ignore,
        }
    }
}

/// The context under which values are stored: errors in strict mode, warnings under IGNORE.
fn writing<'a>(eval: &EvalContext<'a>, ignore: bool) -> EvalContext<'a> {
    eval.writing(eval.sql_mode.strict && !ignore)
}

/// Adds a warning.
fn warn(eval: &EvalContext<'_>, code: u16, message: String) {
    eval.warnings.borrow_mut().push(Warning {
        level: WarningLevel::Warning,
        code,
        message,
    });
}

/// MySQL has no RETURNING; its clients go by the version string and do not send it.
fn refuse_returning(items: Option<&[ast::SelectItem]>) -> SqlResult<()> {
    match items.and_then(<[_]>::first) {
        None => Ok(()),
        Some(first) => Err(SqlError::syntax(format!("near 'RETURNING {first}'"))),
    }
}

/// Errors that IGNORE turns into warnings about one row.
fn is_ignorable(error: &SqlError) -> bool {
    matches!(error.code, 1048 | 1062 | 1364 | 1451 | 1452 | 1526 | 3819)
}

/// Notes that parameter `expr`, if it is one, is stored into a column of type `ty`.
fn note_param(params: &mut Vec<DataType>, expr: &Expr, ty: &DataType) {
    if let ExprKind::Param(at) = expr.kind {
        note_type(params, at, ty);
    }
}

fn note_type(params: &mut Vec<DataType>, at: usize, ty: &DataType) {
    if params.len() <= at {
        params.resize(at + 1, DataType::Null);
    }
    if let Some(slot) = params.get_mut(at)
        && *slot == DataType::Null
    {
        *slot = ty.clone();
    }
}

/// Takes over what a sub-plan knows of parameters.
fn note_plan(params: &mut Vec<DataType>, plan: &Plan) {
    for (at, ty) in plan.param_types.iter().enumerate() {
        note_type(params, at, ty);
    }
}

/// Adds that the statement reads `tables`.
fn add_reads(catalog: &Catalog, access: &mut Vec<(String, String, Access)>, tables: &[TableRead]) {
    for (id, database, table) in tables {
        // By identity: under a view there may be the stored table that a temporary one hides.
        let own = catalog.table(database, table);
        if own.is_ok_and(|own| own.temporary && own.id == *id) {
            continue;
        }
        let entry = (database.clone(), table.clone(), Access::Select);
        if !access.contains(&entry) {
            access.push(entry);
        }
    }
}
