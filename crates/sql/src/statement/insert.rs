//! INSERT and REPLACE.

use sqlparser::ast::{self, Assignment, AssignmentTarget, OnInsert, SetExpr, TableObject};

use super::foreign_key::ForeignKeys;
use super::generated::refuse_value;
use super::names::{is_default, parts, writable};
use super::rows::{Duplicate, RowWriter};
use super::target::Target;
use super::{
    Access, Kind, ModifyStatement, Outcome, add_reads, is_ignorable, note_param, note_plan,
    refuse_returning, warn,
};
use crate::binder::{BindContext, Scope, TableRead, bind_expr};
use crate::catalog::SequenceKind;
use crate::error::{SqlError, SqlResult};
use crate::executor::{self, ExecContext};
use crate::expr::Expr;
use crate::parser::VALUES_ALIAS;
use crate::planner::{Change, ExplainFormat, Plan, explain_change, plan_query, walk};
use crate::types::{DataType, Row, Value, assign};

/// Chances one row of REPLACE gets to remove the rows in its way: one a unique key, and some.
const REPLACE_ROUNDS_MAX: usize = 128;

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
    /// Whether MySQL would send an info string: several rows, or a SELECT.
    counts: bool,
}

#[derive(Debug, Clone)]
enum Source {
    /// VALUES: one list a row; `None` is DEFAULT.
    Rows(Vec<Vec<Option<Expr>>>),
    /// SELECT.
    Query(Box<Plan>),
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
}

impl Insert {
    /// EXPLAIN.
    pub(super) fn explain(&self, format: ExplainFormat) -> Vec<Row> {
        let change = Change {
            verb: if self.replace { "REPLACE" } else { "INSERT" },
            targets: &[&self.target.table.name],
            rows: match &self.source {
                Source::Rows(_) => None,
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
    let (columns, source) = plan_source(context, insert, &target, &mut noted)?;
    let on_duplicate = plan_on_duplicate(context, insert, &target, &mut noted)?;
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
        Source::Query(_) => true,
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
    let named: Vec<usize> = insert
        .columns
        .iter()
        .map(|name| column_of(name, target))
        .collect::<SqlResult<_>>()?;
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
    let plan = plan_query(context, query)?;
    if plan.columns.len() != columns.len() {
        return Err(wrong_count(1));
    }
    for &at in &columns {
        refuse_value(&target.table, at)?;
    }
    note_plan(&mut noted.params, &plan);
    noted.reads.extend(plan.tables.iter().cloned());
    Ok((columns, Source::Query(Box::new(plan))))
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
    refuse_value(&target.table, at)?;
    let scope = Scope::of_table(&target.table, &target.table.name);
    let bound = bind_expr(context, &scope, value, "field list", &mut noted.reads)?;
    if let Some(column) = target.table.columns.get(at) {
        note_param(&mut noted.params, &bound, &column.ty);
    }
    Ok(Some(bound))
}

fn plan_on_duplicate(
    context: &BindContext<'_>,
    insert: &ast::Insert,
    target: &Target,
    noted: &mut Noted,
) -> SqlResult<Vec<(usize, Option<Expr>)>> {
    let assignments = match &insert.on {
        None => return Ok(Vec::new()),
        Some(OnInsert::DuplicateKeyUpdate(assignments)) => assignments,
        Some(_) => return Err(SqlError::not_supported("ON CONFLICT")),
    };
    let table = &target.table;
    let mut new_row = Scope::of_table(table, VALUES_ALIAS);
    if let Some(alias) = &insert.insert_alias {
        let mut aliased = Scope::of_table(table, &parts(&alias.row_alias).join("."));
        for (column, name) in aliased
            .columns
            .iter_mut()
            .zip(alias.col_aliases.iter().flatten())
        {
            column.name.clone_from(&name.value);
        }
        aliased.outer = Some(Box::new(new_row));
        new_row = aliased;
    }
    let mut scope = Scope::of_table(table, &table.name);
    scope.outer = Some(Box::new(new_row));
    assignments
        .iter()
        .map(|assignment| {
            let at = assigned_column(assignment, target)?;
            if is_default(&assignment.value) {
                return Ok((at, None));
            }
            refuse_value(table, at)?;
            let value = &assignment.value;
            let bound = bind_expr(context, &scope, value, "field list", &mut noted.reads)?;
            if let Some(column) = table.columns.get(at) {
                note_param(&mut noted.params, &bound, &column.ty);
            }
            walk::references(&bound, &mut |(depth, _)| noted.reads_target |= depth == 0);
            Ok((at, Some(bound)))
        })
        .collect()
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

/// The greatest number that AUTO_INCREMENT gives to a column of type `ty`.
fn greatest_number(ty: &DataType) -> u64 {
    match ty {
        DataType::Int {
            width, unsigned, ..
        } => u64::try_from(width.range(*unsigned).1).unwrap_or(u64::MAX),
        // Integers up to here are exact.
        DataType::Float { .. } => 1 << 24,
        _ => 1 << 53,
    }
}

/// What has happened so far.
#[derive(Default)]
struct Tally {
    affected: u64,
    matched: u64,
    records: u64,
    duplicates: u64,
    /// Of the row at hand; 0 when its number was given.
    generated: u64,
    /// Generated for a row that was not stored: the next row takes it. 0 for none.
    spare: u64,
    /// Of the first row that was stored.
    first_generated: u64,
    /// Of the last row stored or changed, given or generated.
    stored: u64,
}

impl Tally {
    /// The row at hand was not stored.
    fn give_back(&mut self) {
        if self.generated != 0 {
            self.spare = self.generated;
        }
    }
}

/// One execution.
struct Run<'a> {
    context: &'a ExecContext<'a>,
    insert: &'a Insert,
    writer: RowWriter<'a>,
    keys: ForeignKeys<'a>,
    tally: Tally,
}

/// Runs a planned INSERT or REPLACE.
pub(super) fn run(context: &ExecContext<'_>, insert: &Insert) -> SqlResult<Outcome> {
    insert.target.touch(context)?;
    let mut run = Run {
        context,
        insert,
        writer: RowWriter {
            txn: context.txn,
            table: &insert.target.table,
            tz: &context.eval.time_zone,
        },
        keys: ForeignKeys {
            context,
            links: &insert.target.links,
        },
        tally: Tally::default(),
    };
    match &insert.source {
        Source::Rows(rows) => {
            for (number, exprs) in rows.iter().enumerate() {
                context.waiter.check()?;
                let row = run.ignoring(|run| run.row_of_exprs(exprs, number + 1))?;
                run.store(row, number + 1)?;
            }
        }
        Source::Query(plan) => {
            // All before the first is written: the SELECT may read the table itself.
            let rows = executor::collect(context, plan, None)?;
            for (number, values) in rows.into_iter().enumerate() {
                context.waiter.check()?;
                let row = run.ignoring(|run| run.row_of_values(values, number + 1))?;
                run.store(row, number + 1)?;
            }
        }
    }
    Ok(run.outcome())
}

impl Run<'_> {
    fn outcome(&self) -> Outcome {
        let tally = &self.tally;
        let info = if self.insert.counts {
            format!(
                "Records: {}  Duplicates: {}  Warnings: {}",
                tally.records,
                tally.duplicates,
                self.context.eval.warnings.borrow().len()
            )
        } else {
            String::new()
        };
        Outcome {
            affected_rows: tally.affected,
            matched_rows: tally.matched,
            last_insert_id: tally.first_generated,
            stored_id: tally.stored,
            info,
        }
    }

    /// Under IGNORE, an error about this row becomes a warning and `None`.
    fn ignoring<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        match work(self) {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.insert.ignore && is_ignorable(&error) => {
                warn(self.context.eval, error.code, error.message);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn row_of_exprs(&mut self, exprs: &[Option<Expr>], number: usize) -> SqlResult<Row> {
        let eval = self.context.eval;
        let mut row = vec![Value::Null; self.insert.target.table.columns.len()];
        let mut dependent = self.fill_defaults(&mut row, number)?;
        for (&at, expr) in self.insert.columns.iter().zip(exprs) {
            let value = match expr {
                Some(expr) => {
                    let value = expr.eval_unrounded(eval, &row, &[])?.into_owned();
                    self.fit(at, value, number)?
                }
                None if self.insert.target.default_reads_row(at) => {
                    dependent.push(at);
                    continue;
                }
                None => self.insert.target.default(eval, at, &row, number)?,
            };
            if let Some(slot) = row.get_mut(at) {
                *slot = value;
            }
        }
        self.finish(row, dependent, number)
    }

    fn row_of_values(&mut self, values: Row, number: usize) -> SqlResult<Row> {
        let mut row = vec![Value::Null; self.insert.target.table.columns.len()];
        let dependent = self.fill_defaults(&mut row, number)?;
        for (&at, value) in self.insert.columns.iter().zip(values) {
            let value = self.fit(at, value, number)?;
            if let Some(slot) = row.get_mut(at) {
                *slot = value;
            }
        }
        self.finish(row, dependent, number)
    }

    /// What follows from the given values: defaults that read them, AUTO_INCREMENT, generated
    /// columns.
    fn finish(&mut self, mut row: Row, dependent: Vec<usize>, number: usize) -> SqlResult<Row> {
        self.fill_dependent(&mut row, dependent, number)?;
        self.generate(&mut row, number)?;
        let target = &self.insert.target;
        target.compute(self.context.eval, &mut row, number)?;
        Ok(row)
    }

    /// Defaults of the columns the statement does not name; those that read other columns are
    /// left to [`Run::fill_dependent`] and returned.
    fn fill_defaults(&self, row: &mut Row, number: usize) -> SqlResult<Vec<usize>> {
        let mut dependent = Vec::new();
        for at in 0..row.len() {
            if self.insert.columns.contains(&at) {
                continue;
            }
            if self.insert.target.default_reads_row(at) {
                dependent.push(at);
            } else {
                self.fill_default(row, at, number)?;
            }
        }
        Ok(dependent)
    }

    /// Defaults that read other columns, once those have their values: in the order of columns.
    fn fill_dependent(
        &self,
        row: &mut Row,
        mut columns: Vec<usize>,
        number: usize,
    ) -> SqlResult<()> {
        columns.sort_unstable();
        columns
            .into_iter()
            .try_for_each(|at| self.fill_default(row, at, number))
    }

    fn fill_default(&self, row: &mut Row, at: usize, number: usize) -> SqlResult<()> {
        let target = &self.insert.target;
        let value = target.default(self.context.eval, at, row, number)?;
        if let Some(slot) = row.get_mut(at) {
            *slot = value;
        }
        Ok(())
    }

    /// The value as the column stores it; NULL stays NULL where a number will be generated.
    fn fit(&self, at: usize, value: Value, number: usize) -> SqlResult<Value> {
        let column = self
            .insert
            .target
            .table
            .columns
            .get(at)
            .ok_or_else(|| SqlError::internal("INSERT into a column that is not there"))?;
        if column.auto_increment && value.is_null() {
            return Ok(Value::Null);
        }
        assign(self.context.eval, value, column, number)
    }

    /// AUTO_INCREMENT: a number for NULL (and 0), the counter raised by anything else.
    fn generate(&mut self, row: &mut Row, number: usize) -> SqlResult<()> {
        self.tally.generated = 0;
        let table = &self.insert.target.table;
        let Some((at, column)) = table
            .columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.auto_increment)
        else {
            return Ok(());
        };
        let Some(slot) = row.get_mut(at) else {
            return Ok(());
        };
        let zero_generates = !self.context.eval.sql_mode.no_auto_value_on_zero;
        let given = slot.to_integer_checked().map(|(number, _)| number);
        match given {
            None => {}
            Some(0) if zero_generates => {}
            Some(given) => {
                if let Ok(given @ 1..) = u64::try_from(given) {
                    if given >= self.tally.spare {
                        self.tally.spare = 0;
                    }
                    self.context
                        .sequences
                        .raise(table.id, SequenceKind::AutoIncrement, given)?;
                }
                return Ok(());
            }
        }
        let sequences = self.context.sequences;
        let next = match std::mem::take(&mut self.tally.spare) {
            0 => {
                let most = greatest_number(&column.ty);
                sequences.next_up_to(table.id, SequenceKind::AutoIncrement, most)?
            }
            spare => spare,
        };
        let value = i64::try_from(next).map_or(Value::UInt(next), Value::Int);
        *slot = assign(self.context.eval, value, column, number)?;
        // Outside strict mode a number that does not fit was cut.
        let stored = slot.to_integer_checked().map(|(number, _)| number);
        self.tally.generated = stored.and_then(|n| u64::try_from(n).ok()).unwrap_or(next);
        Ok(())
    }

    /// Writes one row, or does what the statement says of duplicates.
    fn store(&mut self, row: Option<Row>, number: usize) -> SqlResult<()> {
        self.tally.records += 1;
        let Some(row) = row else {
            self.tally.duplicates += 1;
            return Ok(());
        };
        let mark = self.context.txn.savepoint();
        if self.ignoring(|run| run.store_row(row, number))?.is_none() {
            self.context.txn.rollback_to(mark);
            self.tally.duplicates += 1;
            self.tally.give_back();
        }
        Ok(())
    }

    fn store_row(&mut self, row: Row, number: usize) -> SqlResult<()> {
        let target = &self.insert.target;
        target.check(self.context.eval, &row)?;
        let hidden = if target.table.primary_key.is_empty() {
            self.context
                .sequences
                .next(target.table.id, SequenceKind::RowId)?
        } else {
            0
        };
        let suffix = self.writer.suffix(&row, hidden)?;
        for _ in 0..REPLACE_ROUNDS_MAX {
            match self.writer.find_duplicate(&row, &suffix)? {
                None => {
                    self.writer.insert(&row, &suffix)?;
                    self.keys.check_parents(target.table.id, None, &row)?;
                    if self.tally.first_generated == 0 {
                        self.tally.first_generated = self.tally.generated;
                    }
                    self.note_stored(&row);
                    self.tally.affected += 1;
                    self.tally.matched += 1;
                    return Ok(());
                }
                Some(duplicate) if self.insert.replace => self.remove(&duplicate, &row)?,
                Some(duplicate) if !self.insert.on_duplicate.is_empty() => {
                    return self.update_existing(&duplicate, &row, number);
                }
                Some(duplicate) => return Err(duplicate.error),
            }
        }
        Err(SqlError::internal("REPLACE met more duplicates than keys"))
    }

    /// Keeps the row's AUTO_INCREMENT value for the OK packet.
    fn note_stored(&mut self, row: &[Value]) {
        let columns = &self.insert.target.table.columns;
        let stored = columns.iter().zip(row).find(|(c, _)| c.auto_increment);
        let number = stored.and_then(|(_, value)| value.to_integer_checked());
        self.tally.stored = number.map_or(0, |(n, _)| u64::try_from(n).unwrap_or(0));
    }

    /// REPLACE: the row in the way goes. An equal one does not count when MySQL would have updated
    /// it: there is no other unique key, and nothing refers to the table.
    fn remove(&mut self, duplicate: &Duplicate, new: &[Value]) -> SqlResult<()> {
        let Some(old) = self
            .writer
            .read(&duplicate.suffix, manxdb_txn::ReadMode::Update)?
        else {
            return Err(SqlError::internal("a unique index points at no row"));
        };
        self.writer.delete(&old, &duplicate.suffix)?;
        self.keys
            .after_delete(self.insert.target.table.id, &old, 0)?;
        let table = &self.insert.target.table;
        let unique = table.indexes.iter().filter(|index| index.unique).count();
        let keys = unique + usize::from(!table.primary_key.is_empty());
        if old != new || keys > 1 || self.keys.is_parent(table.id) {
            self.tally.affected += 1;
            self.tally.matched += 1;
        }
        self.tally.duplicates += 1;
        Ok(())
    }

    /// ON DUPLICATE KEY UPDATE: counts 2 when something changed.
    fn update_existing(
        &mut self,
        duplicate: &Duplicate,
        new: &[Value],
        number: usize,
    ) -> SqlResult<()> {
        let eval = self.context.eval;
        let target = &self.insert.target;
        let Some(old) = self
            .writer
            .read(&duplicate.suffix, manxdb_txn::ReadMode::Update)?
        else {
            return Err(SqlError::internal("a unique index points at no row"));
        };
        let mut row = old.clone();
        let mut assigned = Vec::new();
        for (at, expr) in &self.insert.on_duplicate {
            let value = match expr {
                None if target.is_generated(*at) => continue,
                None => target.default(eval, *at, &row, number)?,
                Some(expr) => {
                    let value = expr.eval_unrounded(eval, &row, &[new, new])?.into_owned();
                    let column = target.table.columns.get(*at);
                    let column = column.ok_or_else(|| SqlError::internal("no such column"))?;
                    assign(eval, value, column, number)?
                }
            };
            if let Some(slot) = row.get_mut(*at) {
                *slot = value;
            }
            assigned.push(*at);
        }
        self.tally.duplicates += 1;
        self.tally.give_back();
        if row == old {
            self.tally.matched += 1;
            return Ok(());
        }
        target.set_update_times(eval, &mut row, &assigned)?;
        target.compute(eval, &mut row, number)?;
        target.check(eval, &row)?;
        target.raise_counter(self.context, &assigned, &row)?;
        self.writer.update(&old, &duplicate.suffix, &row)?;
        let id = target.table.id;
        self.keys.check_parents(id, Some(&old), &row)?;
        self.keys.after_update(id, &old, &row, 0)?;
        self.note_stored(&row);
        self.tally.affected += 2;
        self.tally.matched += 2;
        Ok(())
    }
}
