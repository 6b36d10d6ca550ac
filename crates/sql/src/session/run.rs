//! From text to results: cache, parse, plan, run, retry, report.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::accounts::Need;
use super::compiled::Compiled;
use super::execute::{Finished, Output};
use super::metrics::{SlowStatement, StatementKind, TimeSplit, count};
use super::plan_cache::{Found, PlanKey};
use super::retyped::ShownParams;
use super::secrets;
use super::session::Session;
use super::transaction::OpenTransaction;
use super::{ResultSink, edge};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Warning, WarningLevel};
use crate::parser::{Parsed, Part, Special, parse, parse_part, parse_template, split, template};
use crate::planner::Plan;
use crate::statement::{Outcome, StatementPlan};
use crate::types::{DataType, Value};

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

    /// The statements of a query, one unless the client said that it may send more.
    fn parts(&self, text: &str) -> SqlResult<Vec<Part>> {
        let parts = split(text, self.facts.settings().sql_mode)?;
        match parts.get(1) {
            Some(second) if !self.facts.client.multi_statements => Err(SqlError::syntax(format!(
                "this client may send one statement at a time (near '{}')",
                second.text.chars().take(80).collect::<String>()
            ))),
            _ => Ok(parts),
        }
    }

    /// Parses and plans one statement of a query when its turn comes: those before it have run,
    /// whatever is wrong with it, and may have changed the SQL mode it is read with.
    fn compile_part(&mut self, part: Part) -> SqlResult<Arc<Compiled>> {
        let begin = self.now();
        let parsed = parse_part(part, self.facts.settings().sql_mode)?;
        refuse_parameters(&parsed)?;
        let parsed_at = self.now();
        self.preparation.parse = parsed_at - begin;
        let compiled = self.compile(parsed);
        self.preparation.plan = self.now() - parsed_at;
        compiled.map(Arc::new)
    }

    /// The plan of the text's template, with the constants to run it with. `None` when there is
    /// no template or it cannot be planned: the text itself then says what is wrong, if anything.
    fn compile_template(&mut self, text: &str) -> Option<(Arc<Compiled>, Vec<Value>)> {
        if !self.facts.temporary.is_empty() {
            return None;
        }
        let settings = self.facts.settings();
        let template = template(text, settings.sql_mode, settings.collation)?;
        match self.lookup(&template.text, &template.types) {
            Some(Found::Plan(compiled)) => return Some((compiled, template.values)),
            Some(Found::NoTemplate(_)) => return None,
            None => {}
        }
        let begin = self.now();
        let parsed = parse_template(&template, settings.sql_mode).ok()?;
        let planned_at = self.now();
        let compiled = self.compile(parsed);
        self.preparation.parse = planned_at - begin;
        self.preparation.plan = self.now() - planned_at;
        let Ok(compiled) = compiled else {
            let version = self.catalog().version;
            self.keep(&template.text, &template.types, Found::NoTemplate(version));
            return None;
        };
        let compiled = Arc::new(compiled);
        let found = Found::Plan(Arc::clone(&compiled));
        self.keep(&template.text, &template.types, found);
        Some((compiled, template.values))
    }

    pub(super) fn now(&self) -> i64 {
        self.instance().host.monotonic_micros()
    }

    /// The cached plan of `text`.
    fn cached(&self, text: &str) -> Option<Arc<Compiled>> {
        match self.lookup(text, &[]) {
            Some(Found::Plan(compiled)) => Some(compiled),
            _ => None,
        }
    }

    /// What the cache knows of `text`, and of nothing that only this session's tables could mean.
    pub(super) fn lookup(&self, text: &str, constants: &[DataType]) -> Option<Found> {
        if !self.facts.temporary.is_empty() {
            return None;
        }
        let instance = self.instance();
        let version = instance.store.current().version;
        let found = self.with_key(text, constants, |key| instance.plans.get(key, version));
        count(if matches!(found, Some(Found::Plan(_))) {
            &instance.metrics.plan_hits
        } else {
            &instance.metrics.plan_misses
        });
        found
    }

    /// Shares a plan, unless it may speak of tables that only this session has.
    pub(super) fn keep(&self, text: &str, constants: &[DataType], found: Found) {
        if self.facts.temporary.is_empty() {
            self.with_key(text, constants, |key| self.instance().plans.put(key, found));
        }
    }

    fn with_key<T>(
        &self,
        text: &str,
        constants: &[DataType],
        use_key: impl FnOnce(&PlanKey<'_>) -> T,
    ) -> T {
        let database = self.facts.database.borrow();
        let settings = self.facts.settings.borrow();
        use_key(&PlanKey {
            text,
            constants,
            database: database.as_deref(),
            mode: settings.sql_mode,
            collation: settings.collation,
        })
    }

    /// One statement's text to its plan, through the cache.
    pub(super) fn compile_one(&mut self, text: &str) -> SqlResult<Arc<Compiled>> {
        if let Some(compiled) = self.cached(text) {
            return Ok(compiled);
        }
        let mut statements = parse(text, self.facts.settings().sql_mode)?;
        if statements.len() > 1 {
            return Err(SqlError::syntax(format!(
                "only one statement may be prepared (near '{}')",
                statements[1].text.chars().take(80).collect::<String>()
            )));
        }
        let Some(parsed) = statements.pop() else {
            return Err(SqlError::new(1065, "42000", "Query was empty"));
        };
        let compiled = Arc::new(self.compile(parsed)?);
        self.keep(text, &[], Found::Plan(Arc::clone(&compiled)));
        Ok(compiled)
    }

    /// Plans a parsed statement and finds out what it needs.
    pub(super) fn compile(&self, parsed: Parsed) -> SqlResult<Compiled> {
        let catalog = self.catalog();
        let database = self.facts.database.borrow().clone();
        let plan = if parsed.special.is_some() {
            None
        } else {
            self.plan(&parsed, &catalog, database.as_deref())?
        };
        let mut needs = super::accounts::needs::of(
            &parsed,
            plan.as_ref(),
            database.as_deref(),
            &self.facts.temporary,
        );
        needs.extend(self.needs_of_source(&parsed, &catalog, database.as_deref()));
        Ok(Compiled {
            kind: kind_of(&parsed),
            uncut: self.uncut(&parsed, &catalog, database.as_deref())?,
            unlimited: is_unlimited(&parsed),
            shown_params: if parsed.param_count > 0 && parsed.constants.is_empty() {
                ShownParams::of(plan.as_ref())
            } else {
                ShownParams::default()
            },
            needs,
            plan,
            parsed,
            catalog_version: catalog.version,
        })
    }

    /// What the query of CREATE TABLE … SELECT or CREATE VIEW needs. One that cannot be planned
    /// reads nothing.
    fn needs_of_source(
        &self,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
    ) -> Vec<Need> {
        use sqlparser::ast::Statement;
        let (query, view) = match &parsed.statement {
            Statement::CreateTable(create) => (create.query.as_ref(), false),
            Statement::CreateView(create) => (Some(&create.query), true),
            Statement::AlterView { query, .. } => (Some(query), true),
            _ => (None, false),
        };
        let Some(query) = query.filter(|_| parsed.special.is_none()) else {
            return Vec::new();
        };
        let mut source = parsed.clone();
        source.statement = sqlparser::ast::Statement::Query(query.clone());
        let Ok(Some(plan)) = self.plan(&source, catalog, database) else {
            return Vec::new();
        };
        let temporary = &self.facts.temporary;
        let needs = super::accounts::needs::of(&source, Some(&plan), database, temporary);
        if view {
            super::accounts::needs::of_view(needs)
        } else {
            needs
        }
    }

    /// For `SQL_CALC_FOUND_ROWS`: the plan of the query without its LIMIT.
    fn uncut(
        &self,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
    ) -> SqlResult<Option<Box<Plan>>> {
        if !counts_found_rows(parsed) || is_unlimited(parsed) {
            return Ok(None);
        }
        let mut whole = parsed.clone();
        if let sqlparser::ast::Statement::Query(query) = &mut whole.statement {
            query.limit_clause = None;
            query.order_by = None;
        }
        Ok(match self.plan(&whole, catalog, database)? {
            Some(StatementPlan::Query(plan)) => Some(Box::new(plan)),
            _ => None,
        })
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
        self.facts.process.begin(command, text, begin);
        self.schema_changed = false;
        self.facts.insert_id_given.set(false);
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
        self.facts.diagnostics.borrow_mut().clear();
        self.facts.warning_total.set(0);
    }

    /// Keeps an error for SHOW WARNINGS and counts it.
    pub(super) fn note_failure(&self, error: &SqlError) {
        self.instance().metrics.error(error.code);
        self.facts
            .warn(WarningLevel::Error, error.code, error.message.clone());
        self.facts.row_count.set(-1);
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
        self.facts.process.idle(end);
        instance.metrics.statement(kind, total);
        instance
            .metrics
            .rows_sent
            .fetch_add(measure.rows, Ordering::Relaxed);
        if total < self.facts.settings.borrow().long_query_micros {
            return;
        }
        let mut split = measure.split;
        split.lock_wait = self.facts.waiter.waited_micros();
        let known = split.parse + split.plan + split.lock_wait + split.commit + split.send;
        split.execute = (total - known).max(0);
        instance.metrics.slow(SlowStatement {
            started_at_micros: instance.host.wall_micros() - total,
            connection: self.facts.process.id,
            identity: self.facts.identity.borrow().clone(),
            database: self.facts.database.borrow().clone(),
            text: text.to_string(),
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
        self.check_needs(compiled)?;
        let settings = self.facts.settings();
        let is_query = matches!(compiled.plan, Some(StatementPlan::Query(_)));
        let timeout = match compiled.parsed.time_limit_millis {
            Some(millis) if is_query => i64::from(millis) * 1_000,
            _ if is_query => settings.statement_timeout_micros,
            _ => 0,
        };
        self.facts
            .waiter
            .start_statement(timeout, settings.lock_wait_micros);
        if matches!(compiled.parsed.special, Some(Special::LockTables(_))) {
            return self.run_other_kind(compiled, sink, more);
        }
        self.enter_tables(compiled)?;
        let result = if compiled.plan.is_some() {
            self.run_planned(compiled, params, sink, more, measure)
        } else {
            self.run_other_kind(compiled, sink, more)
        };
        self.leave_tables();
        result
    }

    /// A statement without a plan.
    fn run_other_kind(
        &mut self,
        compiled: &Arc<Compiled>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        if let Some(special) = &compiled.parsed.special
            && !edge::is_ddl(&compiled.parsed)
        {
            return self.run_special(special, &compiled.parsed, sink, more);
        }
        self.run_other(compiled, sink, more)
    }

    /// Runs a query or DML, again and again while it loses conflicts nobody has seen.
    fn run_planned(
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
        let settings = self.facts.settings.borrow();
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
            Some(open) if !open.single => open.txn.restart(),
            _ => self.transaction = None,
        }
        let pause = BACK_OFF_MICROS << attempt.min(6);
        self.facts.waiter.pause(Some(pause), &|| false)?;
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
                self.facts.row_count.set(-1);
                self.facts.found_rows.set(output.found());
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
        outcome: &Outcome,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let affected_rows = self.keep_counts(outcome);
        let last_insert_id = match outcome.last_insert_id {
            0 if self.facts.insert_id_given.get() => self.facts.last_insert_id.get(),
            0 => outcome.stored_id,
            generated => generated,
        };
        let shown = Outcome {
            affected_rows,
            last_insert_id,
            ..outcome.clone()
        };
        sink.done(&shown, self.status(), more)
    }

    /// `LAST_INSERT_ID()` and `ROW_COUNT()` after a change; the rows the client is told.
    fn keep_counts(&self, outcome: &Outcome) -> u64 {
        if outcome.last_insert_id != 0 {
            self.facts.last_insert_id.set(outcome.last_insert_id);
        }
        let rows = if self.facts.client.found_rows && outcome.matched_rows > outcome.affected_rows {
            outcome.matched_rows
        } else {
            outcome.affected_rows
        };
        self.facts
            .row_count
            .set(i64::try_from(rows).unwrap_or(i64::MAX));
        rows
    }

    pub(super) fn take_warnings(&self, warnings: Vec<Warning>) {
        for warning in warnings {
            if warning.level != WarningLevel::Note || self.facts.settings.borrow().notes {
                self.facts
                    .warn(warning.level, warning.code, warning.message);
            }
        }
    }

    /// Checks the privileges a statement needs.
    pub(super) fn check_needs(&self, compiled: &Compiled) -> SqlResult<()> {
        let account = self.facts.account();
        let host = &self.facts.client.host;
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

fn is_unlimited(parsed: &Parsed) -> bool {
    match &parsed.statement {
        sqlparser::ast::Statement::Query(query) => query.limit_clause.is_none(),
        _ => false,
    }
}

fn counts_found_rows(parsed: &Parsed) -> bool {
    let sqlparser::ast::Statement::Query(query) = &parsed.statement else {
        return false;
    };
    match query.body.as_ref() {
        sqlparser::ast::SetExpr::Select(select) => select
            .select_modifiers
            .as_ref()
            .is_some_and(|found| found.sql_calc_found_rows),
        _ => false,
    }
}

/// 1064 for a `?` outside a prepared statement.
fn refuse_parameters(parsed: &Parsed) -> SqlResult<()> {
    if parsed.param_count == 0 {
        return Ok(());
    }
    let from = parsed.text.find('?').unwrap_or(0);
    let near = parsed.text.get(from..).unwrap_or_default();
    Err(SqlError::syntax(format!(
        "near '{}'",
        near.chars().take(80).collect::<String>()
    )))
}

/// How a statement is counted.
fn kind_of(parsed: &Parsed) -> StatementKind {
    use sqlparser::ast::Statement;
    if let Some(special) = &parsed.special {
        return match special {
            Special::Set(_) => StatementKind::Set,
            Special::Show(_) | Special::Describe { .. } => StatementKind::Show,
            Special::StartTransaction { .. } => StatementKind::Begin,
            Special::EndTransaction { commit: true, .. } => StatementKind::Commit,
            Special::EndTransaction { commit: false, .. } => StatementKind::Rollback,
            _ if edge::is_ddl(parsed) => StatementKind::Ddl,
            _ => StatementKind::Other,
        };
    }
    match &parsed.statement {
        Statement::Query(_) => StatementKind::Select,
        Statement::Insert(insert) if insert.replace_into => StatementKind::Replace,
        Statement::Insert(_) => StatementKind::Insert,
        Statement::Update(_) => StatementKind::Update,
        Statement::Delete(_) => StatementKind::Delete,
        Statement::Explain { .. } => StatementKind::Show,
        _ if edge::is_ddl(parsed) => StatementKind::Ddl,
        _ => StatementKind::Other,
    }
}
