//! What is known of a table to be written before any row is: defaults, checks, foreign keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ExecContext;
use super::foreign_key::Links;
use super::generated::Computed;
use crate::binder::{BindContext, Scope, bind_definition};
use crate::catalog::{Column, ColumnDefault, SequenceKind, Table, TableId, touch};
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, assign};
use crate::parser::{parse_expression, stored_mode};
use crate::plan::{Expr, walk};
use crate::types::{DataType, DateTime, Row, SqlMode, Value, implicit_default};

/// A table to be written.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) table: Arc<Table>,
    /// One a column.
    defaults: Vec<Default>,
    computed: Computed,
    /// Enforced CHECKs by name.
    checks: Vec<(String, Expr)>,
    /// Foreign keys from and to this table, and to whatever cascades reach.
    pub(super) links: BTreeMap<TableId, Links>,
}

/// The default of a column.
#[derive(Debug, Clone)]
enum Default {
    /// Nothing, not even NULL.
    Missing,
    Null,
    Now,
    Expr(Expr),
    /// Reads other columns of the row, which must have their values first.
    OfRow(Expr),
}

impl Target {
    /// Prepares `table` for writing.
    ///
    /// # Errors
    /// What binding its defaults and checks meets.
    pub(super) fn plan(context: &BindContext<'_>, table: &Arc<Table>) -> SqlResult<Self> {
        let defaults = table
            .columns
            .iter()
            .map(|column| plan_default(context, table, column))
            .collect::<SqlResult<_>>()?;
        let scope = Scope::of_table(table, &table.name);
        let checks = table
            .checks
            .iter()
            .filter(|check| check.enforced)
            .map(|check| {
                let parsed = parse_expression(&check.expression, stored_mode())?;
                let bound = bind_definition(context, &scope, &parsed, "check constraint")?;
                Ok((check.name.clone(), bound))
            })
            .collect::<SqlResult<_>>()?;
        Ok(Self {
            links: super::foreign_key::links(context, table)?,
            table: Arc::clone(table),
            defaults,
            computed: Computed::plan(context, table)?,
            checks,
        })
    }

    /// Makes the commit depend on this table and all that cascades may reach being unchanged.
    pub(super) fn touch(&self, context: &ExecContext<'_>) -> SqlResult<()> {
        touch(context.txn, &self.table)?;
        for (id, links) in &self.links {
            if *id != self.table.id {
                touch(context.txn, &links.table)?;
            }
            if *id == self.table.id && context.foreign_key_checks {
                for parent in &links.parents {
                    if let Some(table) = parent.table.as_ref().filter(|t| t.id != *id) {
                        touch(context.txn, table)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The default of column `at`, which the statement gave no value (or the word DEFAULT).
    ///
    /// # Errors
    /// 1364 in strict mode when there is none.
    pub(super) fn default(
        &self,
        eval: &EvalContext<'_>,
        at: usize,
        row: &[Value],
        row_number: usize,
    ) -> SqlResult<Value> {
        let (Some(column), Some(default)) = (self.table.columns.get(at), self.defaults.get(at))
        else {
            return Err(SqlError::internal("default of a column that is not there"));
        };
        match default {
            Default::Null => Ok(Value::Null),
            Default::Now => now(eval, &column.ty),
            Default::Expr(expr) | Default::OfRow(expr) => {
                assign(eval, expr.eval(eval, row, &[])?, column, row_number)
            }
            Default::Missing if column.auto_increment => Ok(Value::Null),
            Default::Missing => {
                let message = format!("Field '{}' doesn't have a default value", column.name);
                if eval.strict_write {
                    return Err(SqlError::new(1364, "HY000", message));
                }
                super::warn(eval, 1364, message);
                Ok(implicit_default(&column.ty))
            }
        }
    }

    /// Whether the default of column `at` reads other columns of the row.
    pub(super) fn default_reads_row(&self, at: usize) -> bool {
        matches!(self.defaults.get(at), Some(Default::OfRow(_)))
    }

    /// As [`Target::default`] for rows that exist already: no default is no problem.
    pub(super) fn default_quietly(
        &self,
        eval: &EvalContext<'_>,
        at: usize,
        row: &[Value],
        row_number: usize,
    ) -> SqlResult<Value> {
        match (self.defaults.get(at), self.table.columns.get(at)) {
            (Some(Default::Missing), Some(column)) => Ok(implicit_default(&column.ty)),
            _ => self.default(eval, at, row, row_number),
        }
    }

    /// Computes the generated columns of a row whose other values are final.
    ///
    /// # Errors
    /// As [`Computed::fill`].
    pub(super) fn compute(
        &self,
        eval: &EvalContext<'_>,
        row: &mut [Value],
        row_number: usize,
    ) -> SqlResult<()> {
        self.computed.fill(eval, &self.table, row, row_number)
    }

    /// CHECK constraints over a whole row.
    ///
    /// # Errors
    /// 3819.
    pub(super) fn check(&self, eval: &EvalContext<'_>, row: &[Value]) -> SqlResult<()> {
        for (name, condition) in &self.checks {
            if condition.eval_bool(eval, row, &[])? == Some(false) {
                return Err(SqlError::new(
                    3819,
                    "HY000",
                    format!("Check constraint '{name}' is violated."),
                ));
            }
        }
        Ok(())
    }

    /// Sets `ON UPDATE CURRENT_TIMESTAMP` columns not in `assigned`.
    pub(super) fn set_update_times(
        &self,
        eval: &EvalContext<'_>,
        row: &mut Row,
        assigned: &[usize],
    ) -> SqlResult<()> {
        for (at, column) in self.table.columns.iter().enumerate() {
            if column.on_update_now
                && !assigned.contains(&at)
                && let Some(slot) = row.get_mut(at)
            {
                *slot = now(eval, &column.ty)?;
            }
        }
        Ok(())
    }

    /// Whether the column at `at` gets its value by [`Target::compute`].
    pub(super) fn is_generated(&self, at: usize) -> bool {
        let column = self.table.columns.get(at);
        column.is_some_and(|column| column.generated.is_some())
    }

    /// After an update that set the columns `assigned`: an AUTO_INCREMENT value among them moves
    /// the counter.
    pub(super) fn raise_counter(
        &self,
        context: &ExecContext<'_>,
        assigned: &[usize],
        row: &[Value],
    ) -> SqlResult<()> {
        let columns = &self.table.columns;
        let automatic = |at: usize| columns.get(at).is_some_and(|column| column.auto_increment);
        for &at in assigned.iter().filter(|at| automatic(**at)) {
            let given = row.get(at).and_then(Value::to_integer_checked);
            if let Some(given) = given.and_then(|(number, _)| u64::try_from(number).ok()) {
                context
                    .sequences
                    .raise(self.table.id, SequenceKind::AutoIncrement, given)?;
            }
        }
        Ok(())
    }

    /// Position of a column by name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        position(&self.table, name)
    }
}

/// Position of a visible column by name, in any case.
pub(crate) fn position(table: &Table, name: &str) -> Option<usize> {
    let lower = name.to_lowercase();
    table
        .columns
        .iter()
        .position(|column| !column.is_hidden() && column.name.to_lowercase() == lower)
}

fn plan_default(context: &BindContext<'_>, table: &Table, column: &Column) -> SqlResult<Default> {
    match &column.default {
        None if column.generated.is_some() => Ok(Default::Null),
        None if column.not_null => Ok(Default::Missing),
        None => Ok(Default::Null),
        Some(ColumnDefault::Now) => Ok(Default::Now),
        Some(ColumnDefault::Literal(text)) if text.eq_ignore_ascii_case("NULL") => {
            Ok(Default::Null)
        }
        Some(default @ (ColumnDefault::Literal(text) | ColumnDefault::Expression(text))) => {
            let mode = match default {
                ColumnDefault::Literal(_) => SqlMode::default(),
                _ => stored_mode(),
            };
            let parsed = parse_expression(text, mode)?;
            let scope = Scope::of_table(table, &table.name);
            let bound = bind_definition(context, &scope, &parsed, "default value")?;
            let bound = bound.stored_in(&column.ty);
            let mut reads_row = false;
            walk::references(&bound, &mut |_| reads_row = true);
            Ok(if reads_row {
                Default::OfRow(bound)
            } else {
                Default::Expr(bound)
            })
        }
    }
}

/// NOW() in the precision of `ty`.
pub(super) fn now(eval: &EvalContext<'_>, ty: &DataType) -> SqlResult<Value> {
    let fsp = match ty {
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => *fsp,
        _ => 0,
    };
    let instant = jiff::Timestamp::from_microsecond(eval.now_micros)
        .map_err(|_| SqlError::internal("the clock is out of range"))?;
    let zoned = instant.to_zoned(eval.time_zone.clone());
    let unit = 10_u64.pow(6 - u32::from(fsp.min(6)));
    let seconds =
        i64::from(zoned.hour()) * 3600 + i64::from(zoned.minute()) * 60 + i64::from(zoned.second());
    let micros = u64::try_from(seconds).unwrap_or(0) * 1_000_000
        + u64::try_from(zoned.subsec_nanosecond() / 1_000).unwrap_or(0);
    Ok(Value::DateTime(DateTime {
        date: crate::types::Date {
            year: u16::try_from(zoned.year()).unwrap_or(0),
            month: u8::try_from(zoned.month()).unwrap_or(1),
            day: u8::try_from(zoned.day()).unwrap_or(1),
        },
        micros: micros / unit * unit,
    }))
}
