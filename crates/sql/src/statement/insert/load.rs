//! LOAD DATA: an INSERT whose rows are the lines of a file, read one at a time.

use std::io::Read;

use super::write::Run;
use super::{
    Insert, Noted, Source, assigned_column, column_of, every_column, plan_value, refuse_twice,
};
use crate::binder::BindContext;
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::parser::{LineFormat, LoadData, LoadTarget};
use crate::plan::Expr;
use crate::statement::generated::{refuse_value, warn_passed_over};
use crate::statement::load::{Field, LineReader};
use crate::statement::names::writable;
use crate::statement::target::Target;
use crate::statement::{
    Access, ExecContext, Kind, ModifyStatement, StatementOutcome, add_reads, warn,
};
use crate::types::{DataType, Row, Value};

/// Warnings kept of one statement: the OK packet cannot tell of more.
const WARNINGS_MAX: usize = u16::MAX as usize;

/// A file to be read into a table.
#[derive(Debug, Clone)]
pub(super) struct FileSource {
    local: bool,
    file: String,
    format: LineFormat,
    skipped_lines: u64,
    targets: Vec<FieldTarget>,
    /// The widths of fields that nothing ends.
    widths: Option<Vec<Option<usize>>>,
    /// SET: position and value; `None` is DEFAULT.
    assignments: Vec<(usize, Option<Expr>)>,
    latin1: bool,
}

/// Where a field goes.
#[derive(Debug, Clone)]
enum FieldTarget {
    Column(usize),
    Variable(String),
}

/// The file of a LOAD DATA statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedFile<'a> {
    /// The client has it.
    pub local: bool,
    /// Its name as written.
    pub name: &'a str,
}

impl Insert {
    /// The file the rows come from, if they come from one.
    pub(in crate::statement) fn file(&self) -> Option<LoadedFile<'_>> {
        match &self.source {
            Source::File(source) => Some(LoadedFile {
                local: source.local,
                name: &source.file,
            }),
            _ => None,
        }
    }
}

/// Plans LOAD DATA.
pub(in crate::statement) fn plan(
    context: &BindContext<'_>,
    load: &LoadData,
) -> SqlResult<ModifyStatement> {
    let table = writable(context, &load.table, "LOAD DATA")?;
    let target = Target::plan(context, &table)?;
    let mut noted = Noted::default();
    let targets = plan_targets(load, &target)?;
    let widths = if load.format.is_fixed() {
        Some(plan_widths(load, &targets, &target)?)
    } else {
        None
    };
    let mut columns: Vec<usize> = targets
        .iter()
        .filter_map(|field| match field {
            FieldTarget::Column(at) => Some(*at),
            FieldTarget::Variable(_) => None,
        })
        .collect();
    refuse_twice(&columns, &target)?;
    let mut assignments = Vec::new();
    for assignment in &load.assignments {
        let at = assigned_column(assignment, &target)?;
        let value = plan_value(context, &target, at, &assignment.value, &mut noted)?;
        assignments.push((at, value));
        if !columns.contains(&at) {
            columns.push(at);
        }
    }
    let entry = |what| (table.database.clone(), table.name.clone(), what);
    let mut access = vec![entry(Access::Insert)];
    if load.replace {
        access.push(entry(Access::Delete));
    }
    add_reads(context.catalog, &mut access, &noted.reads);
    let latin1 = charset_is_latin1(load.charset.as_deref())?;
    Ok(ModifyStatement {
        param_types: noted.params,
        access,
        kind: Kind::Insert(Insert {
            target,
            columns,
            source: Source::File(Box::new(FileSource {
                local: load.local,
                file: load.file.clone(),
                format: load.format.clone(),
                skipped_lines: load.skipped_lines,
                targets,
                widths,
                assignments,
                latin1,
            })),
            // The client cannot be stopped in the middle of its file.
            ignore: load.ignore || load.local && !load.replace,
            replace: load.replace,
            on_duplicate: Vec::new(),
            passed_over: noted.passed_over,
            counts: true,
        }),
    })
}

fn plan_targets(load: &LoadData, target: &Target) -> SqlResult<Vec<FieldTarget>> {
    if load.targets.is_empty() {
        let columns = every_column(target).into_iter();
        return Ok(columns.map(FieldTarget::Column).collect());
    }
    load.targets
        .iter()
        .map(|field| match field {
            LoadTarget::Variable(name) => Ok(FieldTarget::Variable(name.clone())),
            LoadTarget::Column(name) => {
                let at = column_of(name, target)?;
                refuse_value(&target.table, at)?;
                Ok(FieldTarget::Column(at))
            }
        })
        .collect()
}

/// How wide the fields are that nothing ends: as their columns.
fn plan_widths(
    load: &LoadData,
    targets: &[FieldTarget],
    target: &Target,
) -> SqlResult<Vec<Option<usize>>> {
    let width = |field: &FieldTarget| match field {
        FieldTarget::Variable(_) => Err(SqlError::new(
            1409,
            "HY000",
            "Can't load value from file with fixed size rows to variable",
        )),
        FieldTarget::Column(at) => {
            let column = target.table.columns.get(*at);
            Ok(column.and_then(|column| column.ty.file_width()))
        }
    };
    let widths = targets.iter().map(width).collect::<SqlResult<Vec<_>>>()?;
    if load.format.line_end.is_empty() && widths.contains(&None) {
        return Err(SqlError::new(
            1084,
            "42000",
            "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'",
        ));
    }
    Ok(widths)
}

fn charset_is_latin1(name: Option<&str>) -> SqlResult<bool> {
    let Some(name) = name else { return Ok(false) };
    match name.to_ascii_lowercase().as_str() {
        "latin1" => Ok(true),
        "utf8mb4" | "utf8mb3" | "utf8" | "ascii" | "binary" => Ok(false),
        _ => Err(SqlError::new(
            1115,
            "42000",
            format!("Unknown character set: '{name}'"),
        )),
    }
}

/// Runs LOAD DATA over its opened file.
pub(in crate::statement) fn run(
    context: &ExecContext<'_>,
    insert: &Insert,
    file: &mut dyn Read,
) -> SqlResult<StatementOutcome> {
    let Source::File(source) = &insert.source else {
        return Err(SqlError::internal("a file for a statement that reads none"));
    };
    insert.target.touch(context)?;
    warn_passed_over(context.eval, &insert.target.table, &insert.passed_over);
    let mut run = Run::new(context, insert);
    let mut lines = LineReader::new(file, &source.format, context.memory_limit);
    for _ in 0..source.skipped_lines {
        if !lines.skip_line()? {
            break;
        }
    }
    let mut number = 0;
    let mut warnings = 0_u64;
    let mut next_line = || match &source.widths {
        Some(widths) => lines.next_fixed(widths),
        None => lines.next_line(),
    };
    while let Some(fields) = next_line()? {
        context.waiter.check()?;
        number += 1;
        let row = run.ignoring(|run| run.row_of_fields(source, fields, number))?;
        run.store(row, &[], number)?;
        warnings += surplus(context.eval);
    }
    warnings += context.eval.warnings.borrow().len() as u64;
    Ok(run.loaded(warnings))
}

/// Drops the warnings of the latest lines that nobody could read; how many.
fn surplus(eval: &EvalContext<'_>) -> u64 {
    let mut warnings = eval.warnings.borrow_mut();
    let surplus = warnings.len().saturating_sub(WARNINGS_MAX);
    warnings.truncate(WARNINGS_MAX);
    surplus as u64
}

impl Run<'_> {
    /// The row that a line's fields make.
    fn row_of_fields(
        &mut self,
        source: &FileSource,
        fields: Vec<Field>,
        number: usize,
    ) -> SqlResult<Row> {
        let eval = self.context.eval;
        let mut row = vec![Value::Null; self.insert.target.table.columns.len()];
        let dependent = self.fill_defaults(&mut row, number)?;
        let surplus = fields.len() > source.targets.len();
        let mut fields = fields.into_iter();
        for target in &source.targets {
            match (target, fields.next()) {
                (FieldTarget::Column(at), Some(field)) => {
                    let value = self.loaded_value(source, *at, field, number)?;
                    put(&mut row, *at, value);
                }
                (FieldTarget::Column(at), None) => {
                    let message = format!("Row {number} doesn't contain data for all columns");
                    raise(eval, 1261, message)?;
                    let value = self
                        .insert
                        .target
                        .default_quietly(eval, *at, &row, number)?;
                    put(&mut row, *at, value);
                }
                (FieldTarget::Variable(name), field) => {
                    let value = field.map_or(Value::Null, |field| text_of(source, field, false));
                    eval.session.set_user_variable(name, value);
                }
            }
        }
        if surplus {
            let message = format!(
                "Row {number} was truncated; it contained more data than there were input columns"
            );
            raise(eval, 1262, message)?;
        }
        for (at, expr) in &source.assignments {
            let value = match expr {
                Some(expr) => {
                    let value = expr.eval_unrounded(eval, &row, &[])?.into_owned();
                    self.fit(*at, value, &expr.ty, number)?
                }
                None => self.insert.target.default(eval, *at, &row, number)?,
            };
            put(&mut row, *at, value);
        }
        self.finish(row, dependent, number)
    }

    /// A field as its column stores it.
    fn loaded_value(
        &self,
        source: &FileSource,
        at: usize,
        field: Field,
        number: usize,
    ) -> SqlResult<Value> {
        let eval = self.context.eval;
        let Some(column) = self.insert.target.table.columns.get(at) else {
            return Err(SqlError::internal(
                "LOAD DATA into a column that is not there",
            ));
        };
        let raw = column.ty.is_bytes() || matches!(column.ty, DataType::Bit { .. });
        let value = text_of(source, field, raw);
        if value.is_null() && column.not_null && !column.auto_increment {
            let message = format!(
                "Column set to default value; NULL supplied to NOT NULL column '{}' at row {number}",
                column.name
            );
            raise(eval, 1263, message)?;
            return Ok(crate::types::implicit_default(&column.ty));
        }
        self.fit(at, value, &DataType::varchar(0), number)
    }

    /// What the OK packet says of a file.
    fn loaded(&self, warnings: u64) -> StatementOutcome {
        let mut outcome = self.outcome();
        let (records, passed) = self.lines();
        let (deleted, skipped) = if self.insert.replace {
            (passed, 0)
        } else {
            (0, passed)
        };
        outcome.info = format!(
            "Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}"
        );
        outcome
    }
}

fn put(row: &mut Row, at: usize, value: Value) {
    if let Some(slot) = row.get_mut(at) {
        *slot = value;
    }
}

/// An error in strict mode, else a warning about the line.
fn raise(eval: &EvalContext<'_>, code: u16, message: String) -> SqlResult<()> {
    if eval.strict_write {
        return Err(SqlError::new(code, "01000", message));
    }
    warn(eval, code, message);
    Ok(())
}

/// A field's value: text when it is text in the file's character set and not for bytes.
fn text_of(source: &FileSource, field: Field, raw: bool) -> Value {
    let Some(bytes) = field.bytes else {
        return Value::Null;
    };
    if raw {
        return Value::Bytes(bytes);
    }
    if source.latin1 {
        return Value::Text(bytes.into_iter().map(cp1252).collect());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Value::Text(text),
        Err(error) => Value::Bytes(error.into_bytes()),
    }
}

/// MySQL's latin1 is Windows code page 1252; its five unassigned bytes are control characters.
fn cp1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    let high = usize::from(byte).checked_sub(0x80);
    high.and_then(|at| HIGH.get(at))
        .copied()
        .unwrap_or(char::from(byte))
}
