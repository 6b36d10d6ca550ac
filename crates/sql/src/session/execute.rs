//! One attempt at a planned statement, and where its rows go.

use std::cell::RefCell;

use manxdb_txn::Transaction;

use super::compiled::Compiled;
use super::run::Measure;
use super::schema::SessionTables;
use super::session::Session;
use super::{ResultSink, Status};
use crate::binder::BindContext;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlResult};
use crate::executor::{self, SubqueryRunner};
use crate::expr::{EvalContext, Warning};
use crate::parser::{Parsed, Special};
use crate::plan::Locking;
use crate::statement::{self, ExecContext, StatementOutcome, StatementPlan};
use crate::types::{ColumnMeta, Row, Value};

/// Rows handed to the frontend at a time.
const BATCH_ROWS: usize = 64;

/// How a planned statement ended.
pub(super) enum Finished {
    /// Its rows are in the output.
    Rows,
    /// It changed something.
    Changed(StatementOutcome),
}

/// Rows on their way to the frontend. Nothing is sent before the first batch is full or the end is
/// reached, so that a statement lost early can run again unseen.
pub(super) struct Output<'a> {
    pub sink: &'a mut dyn ResultSink,
    batch: Vec<Row>,
    columns_sent: bool,
    /// The client has sent its file: that cannot be had again.
    pub(super) took_file: bool,
    limit: Option<u64>,
    /// Rows that passed.
    pub rows: u64,
    /// Rows the query has without its LIMIT, when it was asked to count them.
    all_rows: Option<u64>,
    /// Spent in the sink, microseconds.
    pub send_micros: i64,
}

impl<'a> Output<'a> {
    pub(super) fn new(sink: &'a mut dyn ResultSink, limit: Option<u64>) -> Self {
        Self {
            sink,
            batch: Vec::new(),
            columns_sent: false,
            took_file: false,
            limit,
            rows: 0,
            all_rows: None,
            send_micros: 0,
        }
    }

    /// Whether the client has seen something of it, or sent something for it.
    pub(super) fn started(&self) -> bool {
        self.columns_sent || self.took_file
    }

    /// `FOUND_ROWS()`.
    pub(super) fn found(&self) -> u64 {
        self.all_rows.unwrap_or(self.rows)
    }

    /// Takes a row; false when no more are wanted.
    fn push(&mut self, row: Row, columns: &[ColumnMeta], now: &dyn Fn() -> i64) -> SqlResult<bool> {
        if self.limit.is_some_and(|limit| self.rows >= limit) {
            return Ok(false);
        }
        self.rows += 1;
        self.batch.push(row);
        if self.batch.len() >= BATCH_ROWS {
            let begin = now();
            self.flush(columns)?;
            self.send_micros += now() - begin;
        }
        Ok(true)
    }

    fn flush(&mut self, columns: &[ColumnMeta]) -> SqlResult<()> {
        if !self.columns_sent {
            self.sink.columns(columns)?;
            self.columns_sent = true;
        }
        for row in self.batch.drain(..) {
            self.sink.row(&row)?;
        }
        Ok(())
    }

    /// Sends what is left and ends the result set.
    pub(super) fn end(
        &mut self,
        columns: &[ColumnMeta],
        status: Status,
        more: bool,
    ) -> SqlResult<()> {
        self.flush(columns)?;
        self.sink.end(status, more)
    }

    /// The rows not sent yet.
    pub(super) fn take_batch(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.batch)
    }
}

impl Session {
    /// Plans a query or DML statement; `None` for other kinds.
    pub(super) fn plan(
        &self,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
    ) -> SqlResult<Option<StatementPlan>> {
        self.plan_as(parsed, catalog, database, false)
    }

    /// As [`Session::plan`]; `for_view`: see [`BindContext::for_view`].
    pub(super) fn plan_as(
        &self,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
        for_view: bool,
    ) -> SqlResult<Option<StatementPlan>> {
        let settings = self.state.settings();
        let tables = SessionTables::new(&self.state, catalog);
        let context = BindContext {
            catalog,
            database,
            sql_mode: settings.sql_mode,
            collation: settings.collation,
            virtual_tables: &tables,
            source: Some(&parsed.text),
            constants: &parsed.constants,
            with: None,
            for_view,
        };
        match &parsed.special {
            Some(Special::LoadData(load)) => statement::plan_load(&context, load).map(Some),
            _ => statement::plan(&context, &parsed.statement),
        }
    }

    /// Runs a planned statement once. On failure its writes are undone; the transaction stays.
    pub(super) fn attempt(
        &mut self,
        compiled: &Compiled,
        params: &[Value],
        output: &mut Output<'_>,
        warnings: &RefCell<Vec<Warning>>,
        measure: &mut Measure,
    ) -> SqlResult<Finished> {
        let Some(plan) = &compiled.plan else {
            return Err(SqlError::internal("a statement without a plan"));
        };
        let reads_only = match plan {
            StatementPlan::Query(plan) => plan.locking == Locking::None,
            StatementPlan::Modify(_) => false,
        };
        self.open_for_statement(reads_only, touches_tables(plan));
        let finished = self.attempt_in_transaction(compiled, plan, params, output, warnings)?;
        if let (Finished::Changed(outcome), StatementPlan::Modify(modify)) = (&finished, plan) {
            let (catalog, rows) = (self.catalog(), outcome.affected_rows);
            self.instance().note_changes(&catalog, modify, rows);
        }
        if self.transaction.as_ref().is_some_and(|open| open.single) {
            let begin = self.now();
            self.commit()?;
            measure.split.commit += self.now() - begin;
        }
        Ok(finished)
    }

    fn attempt_in_transaction(
        &self,
        compiled: &Compiled,
        plan: &StatementPlan,
        params: &[Value],
        output: &mut Output<'_>,
        warnings: &RefCell<Vec<Warning>>,
    ) -> SqlResult<Finished> {
        let Some(open) = &self.transaction else {
            return Err(SqlError::internal("a statement without a transaction"));
        };
        if open.read_only && matches!(plan, StatementPlan::Modify(_)) {
            return Err(manxdb_txn::TxnError::ReadOnly.into());
        }
        open.txn.start_statement()?;
        let mark = open.txn.savepoint();
        let writes = matches!(plan, StatementPlan::Modify(_));
        let result = self.with_context(&open.txn, params, warnings, writes, |context| match plan {
            StatementPlan::Query(plan) => {
                let now = || self.now();
                let touched = executor::run(&context.reading(), plan, &[], None, &mut |row| {
                    output.push(row, &plan.columns, &now)
                })?;
                self.note_read(compiled, plan, params, touched);
                if let Some(uncut) = &compiled.uncut {
                    let mut all_rows = 0;
                    executor::run(&context.reading(), uncut, &[], None, &mut |_| {
                        all_rows += 1;
                        Ok(true)
                    })?;
                    output.all_rows = Some(all_rows);
                }
                Ok(Finished::Rows)
            }
            StatementPlan::Modify(modify) => match modify.file() {
                None => statement::run_modify(context, modify),
                Some(file) => self.run_load(context, modify, file, output),
            }
            .map(Finished::Changed),
        });
        // A SLEEP that KILL QUERY cut short is 1 by itself and the end of anything greater.
        let result = match result {
            Ok(_) if touches_tables(plan) && self.state.waiter.is_killed() => {
                Err(manxdb_txn::TxnError::Interrupted.into())
            }
            other => other,
        };
        if result.is_err() {
            open.txn.rollback_to(mark);
        }
        result
    }

    /// Gives `work` everything a plan or an expression runs with.
    pub(super) fn with_context<T>(
        &self,
        txn: &Transaction,
        params: &[Value],
        warnings: &RefCell<Vec<Warning>>,
        writes: bool,
        work: impl FnOnce(&ExecContext<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let instance = self.instance();
        let settings = self.state.settings();
        let catalog = self.catalog();
        let shown = if self.state.shows_temporary.get() {
            &catalog
        } else {
            catalog.stored()
        };
        let tables = SessionTables::new(&self.state, shown);
        let waiter = self.state.waiter.as_ref();
        let memory = instance.options.statement_memory_bytes;
        let spill = instance.host.spill_space();
        let subqueries = SubqueryRunner::new(txn, &tables, waiter, memory, spill);
        let clock = || instance.host.wall_micros();
        let eval = EvalContext {
            params,
            now_micros: self.state.now_micros(),
            clock: &clock,
            time_zone: settings.time_zone.clone(),
            sql_mode: settings.sql_mode,
            div_precision_increment: settings.div_precision_increment,
            group_concat_max_len: settings.group_concat_max_len,
            random: &self.state.random,
            seeded: crate::expr::functions::SeededRandom::default(),
            lists: crate::expr::ConstantLists::default(),
            session: &self.state,
            subqueries: &subqueries,
            warnings,
            strict_write: writes && settings.sql_mode.strict,
            refuses_null: true,
        };
        let context = ExecContext {
            txn,
            catalog: &catalog,
            virtual_tables: &tables,
            waiter,
            eval: &eval,
            memory_limit: memory,
            spill,
            sequences: instance.store.sequences(),
            foreign_key_checks: settings.foreign_key_checks && !self.is_forgetting,
            unique_checks: settings.unique_checks,
            owners: self.owner_notes(),
        };
        work(&context)
    }

    /// SELECT … INTO @a, @b: exactly one row, or none with warning 1329.
    pub(super) fn store_into(
        &mut self,
        compiled: &Compiled,
        output: &mut Output<'_>,
    ) -> SqlResult<StatementOutcome> {
        use crate::expr::SessionInfo;
        let names = &compiled.parsed.into_variables;
        if compiled.columns().len() != names.len() {
            return Err(SqlError::new(
                1222,
                "21000",
                "The used SELECT statements have a different number of columns",
            ));
        }
        if output.rows > 1 {
            return Err(SqlError::new(
                1172,
                "42000",
                "Result consisted of more than one row",
            ));
        }
        let Some(row) = output.take_batch().pop() else {
            self.state.warn(
                crate::expr::WarningLevel::Warning,
                1329,
                "No data - zero rows fetched, selected, or processed".to_string(),
            );
            return Ok(StatementOutcome::default());
        };
        for (name, value) in names.iter().zip(row) {
            self.state.set_user_variable(name, value);
        }
        Ok(StatementOutcome {
            affected_rows: 1,
            ..StatementOutcome::default()
        })
    }
}

/// Whether the statement reads or writes anything stored.
fn touches_tables(plan: &StatementPlan) -> bool {
    match plan {
        StatementPlan::Query(plan) => !plan.tables.is_empty(),
        StatementPlan::Modify(_) => true,
    }
}
