//! From a statement's plan to its results: run, retry, report.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::compiled::Compiled;
use super::execute::{Finished, Output};
use super::masked::without_values;
use super::metrics::{SlowStatement, StatementKind, TimeSplit, count};
use super::plan_cache::Found;
use super::secrets;
use super::session::Session;
use super::transaction::OpenTransaction;
use super::{ResultSink, ddl};
use crate::error::{SqlError, SqlResult};
use crate::expr::{Warning, WarningLevel};
use crate::parser::{Parsed, Special, parse_with_values};
use crate::statement::{StatementOutcome, StatementPlan};
use crate::types::Value;

/// Times an autocommitted statement is run again after a conflict.
pub(super) const RETRIES_MAX: u32 = 20;
/// First pause between retries, microseconds; doubles up to 64 times this.
const BACK_OFF_MICROS: i64 = 50;

/// What a statement's time is measured with.
#[derive(Debug, Default)]
pub(super) struct Measure {
    pub split: TimeSplit,
    pub rows: u64,
}

impl Session {
    pub(super) fn run_text(&mut self, text: &str, sink: &mut dyn ResultSink) -> SqlResult<()> {
        if let Some((compiled, values)) = self.compile_template(text) {
            return self.run("Query", text, &compiled, &values, sink, false);
        }
        let cached = self.cached(text);
        if let Some(compiled) = cached.filter(|compiled| compiled.parsed.param_count == 0) {
            return self.run("Query", text, &compiled, &[], sink, false);
        }
        let parts = self.parts(text).inspect_err(|error| {
            self.start_diagnostics();
            self.note_failure(error);
        })?;
        let last = parts.len() - 1;
        for (at, part) in parts.into_iter().enumerate() {
            let compiled = self.compile_part(part).inspect_err(|error| {
                self.start_diagnostics();
                self.note_failure(error);
            })?;
            if last == 0 {
                self.keep(text, &[], Found::Plan(Arc::clone(&compiled)));
                return self.run("Query", text, &compiled, &[], sink, false);
            }
            let text = compiled.parsed.text.clone();
            self.run("Query", &text, &compiled, &[], sink, at < last)?;
        }
        Ok(())
    }

    pub(super) fn now(&self) -> i64 {
        self.instance().host.monotonic_micros()
    }

    /// Runs one statement with everything around it: process list, diagnostics, counters.
    pub(super) fn run(
        &mut self,
        command: &'static str,
        text: &str,
        compiled: &Arc<Compiled>,
        params: &[Value],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let prepared = self.preparation.parse + self.preparation.plan;
        let begin = self.now() - prepared;
        let shown = secrets::hidden(text, &compiled.parsed);
        let text = shown.as_ref();
        self.state.process.begin(command, text, begin);
        self.schema_changed = false;
        self.state.insert_id_given.set(false);
        if !is_about_warnings(&compiled.parsed) {
            self.start_diagnostics();
        }
        let mut measure = Measure {
            split: std::mem::take(&mut self.preparation),
            rows: 0,
        };
        let result = self.run_measured(compiled, params, sink, more, &mut measure);
        if let Err(error) = &result {
            self.note_failure(error);
        }
        self.release_temporary();
        self.account_for(compiled.kind, text, begin, &measure, result.as_ref().err());
        result
    }

    pub(super) fn start_diagnostics(&self) {
        self.state.diagnostics.borrow_mut().clear();
        self.state.warning_total.set(0);
    }

    /// Keeps an error for SHOW WARNINGS and counts it.
    pub(super) fn note_failure(&self, error: &SqlError) {
        self.instance().metrics.error(error.code);
        self.state
            .warn(WarningLevel::Error, error.code, error.message.clone());
        self.state.row_count.set(-1);
    }

    fn account_for(
        &self,
        kind: StatementKind,
        text: &str,
        begin: i64,
        measure: &Measure,
        error: Option<&SqlError>,
    ) {
        let end = self.now();
        let total = end - begin;
        let instance = self.instance();
        self.state.process.idle(end);
        let mut split = measure.split;
        split.lock_wait = self.state.waiter.waited_micros();
        let known = split.parse + split.plan + split.lock_wait + split.commit + split.send;
        split.execute = (total - known).max(0);
        instance.metrics.statement(kind, total, &split);
        instance
            .metrics
            .rows_sent
            .fetch_add(measure.rows, Ordering::Relaxed);
        if total < self.state.settings.borrow().long_query_micros {
            return;
        }
        instance.metrics.slow(SlowStatement {
            started_at_micros: instance.host.wall_micros() - total,
            connection: self.state.process.id,
            identity: self.state.identity.borrow().clone(),
            database: self.state.database.borrow().clone(),
            text: match instance.owner_graph() {
                Some(_) => without_values(text),
                None => text.to_string(),
            },
            total_micros: total,
            split,
            rows: measure.rows,
            error: error.map_or(0, |error| error.code),
        });
    }

    /// As [`Session::run`] without its frame: for EXECUTE inside a statement.
    pub(super) fn run_inner(
        &mut self,
        compiled: &Arc<Compiled>,
        params: &[Value],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        self.run_measured(compiled, params, sink, more, &mut Measure::default())
    }

    fn run_measured(
        &mut self,
        compiled: &Arc<Compiled>,
        params: &[Value],
        sink: &mut dyn ResultSink,
        more: bool,
        measure: &mut Measure,
    ) -> SqlResult<()> {
        if compiled.parsed.param_count > 0 && compiled.takes_values() {
            let given = Arc::new(self.with_values(compiled, params)?);
            assert_eq!(given.parsed.param_count, 0, "each `?` has got its value");
            return self.run_measured(&given, &[], sink, more, measure);
        }
        self.check_needs(compiled)?;
        let settings = self.state.settings();
        let is_query = matches!(compiled.plan, Some(StatementPlan::Query(_)));
        let timeout = match compiled.parsed.time_limit_millis {
            Some(millis) if is_query => i64::from(millis) * 1_000,
            _ if is_query => settings.statement_timeout_micros,
            _ => 0,
        };
        self.state
            .waiter
            .start_statement(timeout, settings.lock_wait_micros);
        if matches!(compiled.parsed.special, Some(Special::LockTables(_))) {
            return self.run_other_kind(compiled, sink, more);
        }
        self.enter_tables(compiled)?;
        let result = if let Some(into) = &compiled.parsed.into_file {
            self.run_into_file(into, compiled, params, sink, more, measure)
        } else if compiled.plan.is_some() {
            self.run_planned(compiled, params, sink, more, measure)
        } else {
            self.run_other_kind(compiled, sink, more)
        };
        self.leave_tables();
        result
    }

    /// A statement without a plan, with values in the places of its parameters.
    fn with_values(&self, compiled: &Compiled, params: &[Value]) -> SqlResult<Compiled> {
        let mode = self.state.settings().sql_mode;
        self.compile(parse_with_values(&compiled.parsed.text, mode, params)?)
    }

    /// A statement without a plan.
    fn run_other_kind(
        &mut self,
        compiled: &Arc<Compiled>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        if let Some(special) = &compiled.parsed.special
            && !ddl::is_ddl(&compiled.parsed)
        {
            return self.run_special(special, sink, more);
        }
        self.run_other(compiled, sink, more)
    }

    /// Runs a query or DML, again and again while it loses conflicts nobody has seen.
    pub(super) fn run_planned(
        &mut self,
        first: &Arc<Compiled>,
        params: &[Value],
        sink: &mut dyn ResultSink,
        more: bool,
        measure: &mut Measure,
    ) -> SqlResult<()> {
        let mut compiled = Arc::clone(first);
        for attempt in 0.. {
            let mut output = Output::new(sink, self.select_limit(&compiled));
            let warnings = RefCell::default();
            let result = self.attempt(&compiled, params, &mut output, &warnings, measure);
            measure.rows = output.rows;
            let error = match result {
                Ok(finished) => {
                    return self.finish(finished, &compiled, output, warnings, more, measure);
                }
                Err(error) => error,
            };
            let restartable = self.can_restart(&error) && !output.started();
            if !restartable || attempt >= RETRIES_MAX {
                self.give_up(&error);
                return Err(error);
            }
            count(&self.instance().metrics.retries);
            self.restart(attempt)?;
            compiled = self.renewed(&compiled)?;
        }
        Ok(())
    }

    /// The plan under the catalog as it is now: a conflict may have been a change of a table, and
    /// a view may read other tables than before.
    fn renewed(&self, compiled: &Arc<Compiled>) -> SqlResult<Arc<Compiled>> {
        if self.catalog().version == compiled.catalog_version {
            return Ok(Arc::clone(compiled));
        }
        let renewed = self.compile(compiled.parsed.clone())?;
        self.check_needs(&renewed)?;
        Ok(Arc::new(renewed))
    }

    fn select_limit(&self, compiled: &Compiled) -> Option<u64> {
        if !compiled.parsed.into_variables.is_empty() {
            return Some(2);
        }
        let settings = self.state.settings.borrow();
        settings.select_limit.filter(|_| compiled.unlimited)
    }

    /// A lost conflict that the client need not hear of: nothing but this statement is lost.
    pub(super) fn can_restart(&self, error: &SqlError) -> bool {
        matches!(error.code, 1213 | 1412)
            && self
                .transaction
                .as_ref()
                .is_none_or(OpenTransaction::is_restartable)
    }

    pub(super) fn restart(&mut self, attempt: u32) -> SqlResult<()> {
        match &self.transaction {
            Some(open) if !open.single => {
                open.txn.restart();
                open.owners.clear();
            }
            _ => self.transaction = None,
        }
        let pause = BACK_OFF_MICROS << attempt.min(6);
        self.state.waiter.pause(Some(pause), &|| false)?;
        Ok(())
    }

    /// The statement failed for good: a conflict ends the transaction, anything else only the
    /// statement.
    pub(super) fn give_up(&mut self, error: &SqlError) {
        let single = self.transaction.as_ref().is_some_and(|open| open.single);
        if single || error.code == 1213 {
            self.rollback();
        }
    }

    fn finish(
        &mut self,
        finished: Finished,
        compiled: &Compiled,
        mut output: Output<'_>,
        warnings: RefCell<Vec<Warning>>,
        more: bool,
        measure: &mut Measure,
    ) -> SqlResult<()> {
        self.take_warnings(warnings.into_inner());
        let begin = self.now();
        match finished {
            Finished::Rows => {
                self.state.row_count.set(-1);
                self.state.found_rows.set(output.found());
                if compiled.parsed.into_variables.is_empty() {
                    output.end(compiled.columns(), self.status(), more)?;
                } else {
                    let outcome = self.store_into(compiled, &mut output)?;
                    output.sink.done(&outcome, self.status(), more)?;
                }
            }
            Finished::Changed(outcome) => self.report(&outcome, output.sink, more)?,
        }
        measure.split.send += self.now() - begin + output.send_micros;
        Ok(())
    }

    /// An OK packet with its bookkeeping.
    pub(super) fn report(
        &mut self,
        outcome: &StatementOutcome,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let affected_rows = self.keep_counts(outcome);
        let last_insert_id = match outcome.last_insert_id {
            0 if self.state.insert_id_given.get() => self.state.last_insert_id.get(),
            0 => outcome.stored_id,
            generated => generated,
        };
        let shown = StatementOutcome {
            affected_rows,
            last_insert_id,
            ..outcome.clone()
        };
        sink.done(&shown, self.status(), more)
    }

    /// `LAST_INSERT_ID()` and `ROW_COUNT()` after a change; the rows the client is told.
    fn keep_counts(&self, outcome: &StatementOutcome) -> u64 {
        if outcome.last_insert_id != 0 {
            self.state.last_insert_id.set(outcome.last_insert_id);
        }
        let rows = if self.state.client.found_rows && outcome.matched_rows > outcome.affected_rows {
            outcome.matched_rows
        } else {
            outcome.affected_rows
        };
        self.state
            .row_count
            .set(i64::try_from(rows).unwrap_or(i64::MAX));
        rows
    }

    pub(super) fn take_warnings(&self, warnings: Vec<Warning>) {
        for warning in warnings {
            if warning.level != WarningLevel::Note || self.state.settings.borrow().notes {
                self.state
                    .warn(warning.level, warning.code, warning.message);
            }
        }
    }

    /// Checks the privileges a statement needs.
    pub(super) fn check_needs(&self, compiled: &Compiled) -> SqlResult<()> {
        if self.is_forgetting {
            // The privilege GDPR is for all that a person's rows are in.
            return Ok(());
        }
        let account = self.state.account();
        let host = &self.state.client.host;
        compiled
            .needs
            .iter()
            .try_for_each(|need| super::accounts::access::check(&account, need, host))
    }
}

fn is_about_warnings(parsed: &Parsed) -> bool {
    match &parsed.special {
        Some(Special::Show(show)) => {
            matches!(
                show.what.as_str(),
                "WARNINGS" | "ERRORS" | "COUNT WARNINGS" | "COUNT ERRORS"
            )
        }
        Some(_) => false,
        None => parsed.text.contains("@@warning_count") || parsed.text.contains("@@error_count"),
    }
}
