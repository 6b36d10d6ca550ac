//! INSERT and REPLACE: planned here, run by [`write`].

mod load;
mod on_duplicate;
mod write;

pub use load::LoadedFile;
pub(super) use load::{plan as plan_load, run as run_load};
pub(super) use write::run;

use sqlparser::ast::{self, Assignment, AssignmentTarget, SetExpr, TableObject};

use super::generated::{passes_over, refuse_value};
use super::names::{is_default, parts, writable};
use super::target::Target;
use super::{Access, Kind, ModifyStatement, add_reads, note_param, note_plan, refuse_returning};
use crate::binder::{BindContext, Scope, bind_expr, plan_query};
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::explain::{Change, ExplainFormat, explain_change};
use crate::plan::physical::Node;
use crate::plan::{Expr, ExprKind, Plan, TableRead};
use crate::types::{DataType, Row};

/// A planned INSERT or REPLACE.
#[derive(Debug, Clone)]
pub(super) struct Insert {
    target: Target,
    /// Positions the source gives values for, in its order.
    columns: Vec<usize>,
    source: Source,
    pub(super) ignore: bool,
    replace: bool,
    /// ON DUPLICATE KEY UPDATE: position and value; `None` is DEFAULT.
    on_duplicate: Vec<(usize, Option<Expr>)>,
    /// Generated columns whose given values are passed over.
    passed_over: Vec<usize>,
    /// Whether MySQL would send an info string: several rows, or a SELECT.
    counts: bool,
}

#[derive(Debug, Clone)]
enum Source {
    /// VALUES: one list a row; `None` is DEFAULT.
    Rows(Vec<Vec<Option<Expr>>>),
    /// SELECT.
    Query(Box<Plan>),
    /// LOAD DATA.
    File(Box<load::FileSource>),
}

/// What planning finds out on its way.
#[derive(Default)]
struct Noted {
    /// Types inferred for `?`.
    params: Vec<DataType>,
    /// Stored tables read.
    reads: Vec<TableRead>,
    /// ON DUPLICATE KEY UPDATE looks at the row that is there.
    reads_target: bool,
    /// Generated columns whose given values are passed over.
    passed_over: Vec<usize>,
}

impl Insert {
    /// Whether VALUES or SET gives exactly one row.
    pub(super) fn is_one_row(&self) -> bool {
        matches!(&self.source, Source::Rows(rows) if rows.len() == 1)
    }

    /// EXPLAIN.
    pub(super) fn explain(&self, format: ExplainFormat) -> Vec<Row> {
        let change = Change {
            verb: if self.replace { "REPLACE" } else { "INSERT" },
            targets: &[&self.target.table.name],
            rows: match &self.source {
                Source::Rows(_) | Source::File(_) => None,
                Source::Query(plan) => Some(plan),
            },
        };
        explain_change(change, format)
    }
}

/// Plans an INSERT or REPLACE.
pub(super) fn plan(context: &BindContext<'_>, insert: &ast::Insert) -> SqlResult<ModifyStatement> {
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported(
            "INSERT into something else than a table",
        ));
    };
    refuse_returning(insert.returning.as_deref())?;
    let table = writable(context, name, "INSERT")?;
    let target = Target::plan(context, &table)?;
    let mut noted = Noted::default();
    let (columns, mut source) = plan_source(context, insert, &target, &mut noted)?;
    let on_duplicate = on_duplicate::plan(context, insert, &target, &mut source, &mut noted)?;
    let entry = |what| (table.database.clone(), table.name.clone(), what);
    let mut access = vec![entry(Access::Insert)];
    if !on_duplicate.is_empty() {
        access.push(entry(Access::Update));
    }
    if insert.replace_into {
        access.push(entry(Access::Delete));
    }
    if noted.reads_target {
        let own = (table.id, table.database.clone(), table.name.clone());
        noted.reads.push(own);
    }
    add_reads(context.catalog, &mut access, &noted.reads);
    let counts = match &source {
        Source::Rows(rows) => rows.len() > 1,
        Source::Query(_) | Source::File(_) => true,
    };
    Ok(ModifyStatement {
        param_types: noted.params,
        access,
        kind: Kind::Insert(Insert {
            target,
            columns,
            source,
            ignore: insert.ignore,
            replace: insert.replace_into,
            on_duplicate,
            passed_over: noted.passed_over,
            counts,
        }),
    })
}

/// Which columns get values, and from where.
fn plan_source(
    context: &BindContext<'_>,
    insert: &ast::Insert,
    target: &Target,
    noted: &mut Noted,
) -> SqlResult<(Vec<usize>, Source)> {
    if !insert.assignments.is_empty() {
        let mut columns = Vec::new();
        let mut row = Vec::new();
        for assignment in &insert.assignments {
            let at = assigned_column(assignment, target)?;
            columns.push(at);
            row.push(plan_value(context, target, at, &assignment.value, noted)?);
        }
        refuse_twice(&columns, target)?;
        return Ok((columns, Source::Rows(vec![row])));
    }
    let named = listed_columns(insert, target)?;
    refuse_twice(&named, target)?;
    let Some(query) = &insert.source else {
        return Ok((named, Source::Rows(vec![Vec::new()])));
    };
    if let SetExpr::Values(values) = query.body.as_ref()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.with.is_none()
    {
        return plan_rows(context, target, named, values, noted);
    }
    let columns = if named.is_empty() {
        every_column(target)
    } else {
        named
    };
    let mut plan = plan_query(context, query)?;
    if plan.columns.len() != columns.len() {
        return Err(wrong_count(1));
    }
    store_literals(&mut plan, &columns, &target.table);
    for &at in &columns {
        refuse_value(&target.table, at)?;
    }
    note_plan(&mut noted.params, &plan);
    noted.reads.extend(plan.tables.iter().cloned());
    Ok((columns, Source::Query(Box::new(plan))))
}

/// Hexadecimal literals among what the outermost SELECT gives are numbers in columns of numbers,
/// as those of VALUES are. Where rows are compared or kept before, they are byte strings.
fn store_literals(plan: &mut Plan, columns: &[usize], table: &Table) {
    let mut node = &mut plan.root;
    loop {
        match node {
            Node::Sort { input, .. } | Node::Limit { input, .. } | Node::Cut { input, .. } => {
                node = input;
            }
            Node::Project { expressions, .. } => {
                for (at, expr) in expressions.iter_mut().enumerate().take(columns.len()) {
                    let stored = columns.get(at).and_then(|at| table.columns.get(*at));
                    let meta = plan.columns.get_mut(at);
                    if let (ExprKind::Literal(_), Some(stored), Some(meta)) =
                        (&expr.kind, stored, meta)
                    {
                        *expr = expr.clone().stored_in(&stored.ty);
                        meta.ty.clone_from(&expr.ty);
                    }
                }
                return;
            }
            _ => return,
        }
    }
}

/// The columns an INSERT lists.
fn listed_columns(insert: &ast::Insert, target: &Target) -> SqlResult<Vec<usize>> {
    let columns = insert.columns.iter();
    columns.map(|name| column_of(name, target)).collect()
}

/// The columns a SELECT gives values for.
fn named_columns(insert: &ast::Insert, target: &Target) -> SqlResult<Vec<usize>> {
    let listed = listed_columns(insert, target)?;
    Ok(if listed.is_empty() {
        every_column(target)
    } else {
        listed
    })
}

/// What an INSERT without a list of columns names.
fn every_column(target: &Target) -> Vec<usize> {
    target.table.visible_columns().map(|(at, _)| at).collect()
}

fn plan_rows(
    context: &BindContext<'_>,
    target: &Target,
    named: Vec<usize>,
    values: &ast::Values,
    noted: &mut Noted,
) -> SqlResult<(Vec<usize>, Source)> {
    let all_empty = values.rows.iter().all(|row| row.content.is_empty());
    let columns: Vec<usize> = match (named.is_empty(), all_empty) {
        (true, true) => Vec::new(),
        (true, false) => every_column(target),
        _ => named,
    };
    let mut rows = Vec::with_capacity(values.rows.len());
    for (number, row) in values.rows.iter().enumerate() {
        if row.content.len() != columns.len() {
            return Err(wrong_count(number + 1));
        }
        let planned = columns
            .iter()
            .zip(&row.content)
            .map(|(&at, value)| plan_value(context, target, at, value, noted))
            .collect::<SqlResult<Vec<_>>>()?;
        rows.push(planned);
    }
    Ok((columns, Source::Rows(rows)))
}

fn plan_value(
    context: &BindContext<'_>,
    target: &Target,
    at: usize,
    value: &ast::Expr,
    noted: &mut Noted,
) -> SqlResult<Option<Expr>> {
    if is_default(value) {
        return Ok(None);
    }
    let passed_over = passes_over(&target.table, at, context.sql_mode.strict)?;
    let scope = Scope::of_table(&target.table, &target.table.name);
    let mut bound = bind_expr(context, &scope, value, "field list", &mut noted.reads)?;
    if let Some(column) = target.table.columns.get(at) {
        note_param(&mut noted.params, &bound, &column.ty);
        bound = bound.stored_in(&column.ty);
    }
    if passed_over && !noted.passed_over.contains(&at) {
        noted.passed_over.push(at);
    }
    Ok((!passed_over).then_some(bound))
}

fn assigned_column(assignment: &Assignment, target: &Target) -> SqlResult<usize> {
    match &assignment.target {
        AssignmentTarget::ColumnName(name) => column_of(name, target),
        AssignmentTarget::Tuple(_) => Err(SqlError::not_supported("assignment to a tuple")),
    }
}

fn column_of(name: &ast::ObjectName, target: &Target) -> SqlResult<usize> {
    let names = parts(name);
    let qualified = match names.as_slice() {
        [_] => true,
        [table, _] => table.to_lowercase() == target.table.name.to_lowercase(),
        [database, table, _] => {
            database.eq_ignore_ascii_case(&target.table.database)
                && table.to_lowercase() == target.table.name.to_lowercase()
        }
        _ => false,
    };
    let last = names.last().map(String::as_str).unwrap_or_default();
    target
        .column(last)
        .filter(|_| qualified)
        .ok_or_else(|| SqlError::unknown_column(&names.join("."), "field list"))
}

fn refuse_twice(columns: &[usize], target: &Target) -> SqlResult<()> {
    for (place, at) in columns.iter().enumerate() {
        if columns.iter().take(place).any(|before| before == at) {
            let name = target.table.columns.get(*at).map(|c| c.name.clone());
            return Err(SqlError::new(
                1110,
                "42000",
                format!("Column '{}' specified twice", name.unwrap_or_default()),
            ));
        }
    }
    Ok(())
}

fn wrong_count(row: usize) -> SqlError {
    SqlError::new(
        1136,
        "21S01",
        format!("Column count doesn't match value count at row {row}"),
    )
}
