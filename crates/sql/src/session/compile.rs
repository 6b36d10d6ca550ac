//! From a statement's text to its plan: cache, templates, parts of a query.

use std::sync::{Arc, OnceLock};

use sqlparser::ast::{Query, SetExpr, Statement};

use super::accounts::{Need, needs};
use super::compiled::Compiled;
use super::ddl;
use super::metrics::{StatementKind, count};
use super::plan_cache::{Found, PlanKey};
use super::retyped::ShownParams;
use super::session::Session;
use crate::binder;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlResult};
use crate::parser::{Parsed, Part, Special, parse, parse_part, parse_template, split, template};
use crate::plan::Plan;
use crate::statement::StatementPlan;
use crate::types::{DataType, Value};

impl Session {
    /// The statements of a query, one unless the client said that it may send more.
    pub(super) fn parts(&self, text: &str) -> SqlResult<Vec<Part>> {
        let parts = split(text, self.state.settings().sql_mode)?;
        match parts.get(1) {
            Some(second) if !self.state.client.multi_statements => Err(SqlError::syntax(format!(
                "this client may send one statement at a time (near '{}')",
                second.text.chars().take(80).collect::<String>()
            ))),
            _ => Ok(parts),
        }
    }

    /// Parses and plans one statement of a query when its turn comes: those before it have run,
    /// whatever is wrong with it, and may have changed the SQL mode it is read with.
    pub(super) fn compile_part(&mut self, part: Part) -> SqlResult<Arc<Compiled>> {
        let begin = self.now();
        let parsed = parse_part(part, self.state.settings().sql_mode)?;
        refuse_parameters(&parsed)?;
        let parsed_at = self.now();
        self.preparation.parse = parsed_at - begin;
        let compiled = self.compile(parsed);
        self.preparation.plan = self.now() - parsed_at;
        compiled.map(Arc::new)
    }

    /// The plan of the text's template, with the constants to run it with. `None` when there is
    /// no template or it cannot be planned: the text itself then says what is wrong, if anything.
    pub(super) fn compile_template(&mut self, text: &str) -> Option<(Arc<Compiled>, Vec<Value>)> {
        if !self.state.temporary.is_empty() {
            return None;
        }
        let settings = self.state.settings();
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

    /// The cached plan of `text`.
    pub(super) fn cached(&self, text: &str) -> Option<Arc<Compiled>> {
        match self.lookup(text, &[]) {
            Some(Found::Plan(compiled)) => Some(compiled),
            _ => None,
        }
    }

    /// What the cache knows of `text`, and of nothing that only this session's tables could mean.
    pub(super) fn lookup(&self, text: &str, constants: &[DataType]) -> Option<Found> {
        if !self.state.temporary.is_empty() {
            return None;
        }
        let instance = self.instance();
        let version = instance.store.current().version;
        let found = self.with_key(text, constants, |key| instance.plans.get(key, version));
        // Another session, or this one before, may have had values of other types in these variables.
        let found = found.filter(|found| match found {
            Found::Plan(compiled) => self.state.variables_have(&compiled.variables),
            Found::NoTemplate(_) => true,
        });
        count(if matches!(found, Some(Found::Plan(_))) {
            &instance.metrics.plan_hits
        } else {
            &instance.metrics.plan_misses
        });
        found
    }

    /// Shares a plan, unless it may speak of tables that only this session has.
    pub(super) fn keep(&self, text: &str, constants: &[DataType], found: Found) {
        if self.state.temporary.is_empty() {
            self.with_key(text, constants, |key| self.instance().plans.put(key, found));
        }
    }

    fn with_key<T>(
        &self,
        text: &str,
        constants: &[DataType],
        use_key: impl FnOnce(&PlanKey<'_>) -> T,
    ) -> T {
        let database = self.state.database.borrow();
        let settings = self.state.settings.borrow();
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
        let mut statements = parse(text, self.state.settings().sql_mode)?;
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
        self.state.take_bound_variables(); // what came before is another statement's
        let catalog = self.catalog();
        let database = self.state.database.borrow().clone();
        let plan = match &parsed.special {
            None | Some(Special::LoadData(_)) => {
                self.plan(&parsed, &catalog, database.as_deref())?
            }
            Some(_) => None,
        };
        let mut needs = needs::of(
            &parsed,
            plan.as_ref(),
            database.as_deref(),
            &self.state.temporary,
        );
        needs.extend(self.needs_of_source(&parsed, &catalog, database.as_deref()));
        let plan = plan.map(|plan| self.with_view(plan, &parsed, &catalog, database.as_deref()));
        let uncut = self.uncut(&parsed, &catalog, database.as_deref())?;
        Ok(Compiled {
            kind: kind_of(&parsed),
            uncut,
            variables: self.state.take_bound_variables(),
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
            candidate: OnceLock::new(),
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
        source.statement = Statement::Query(query.clone());
        let Ok(Some(plan)) = self.plan(&source, catalog, database) else {
            return Vec::new();
        };
        let temporary = &self.state.temporary;
        let needs = needs::of(&source, Some(&plan), database, temporary);
        if view { needs::of_view(needs) } else { needs }
    }

    /// For `SQL_CALC_FOUND_ROWS`: the plan of the query without its LIMIT.
    fn uncut(
        &self,
        parsed: &Parsed,
        catalog: &Catalog,
        database: Option<&str>,
    ) -> SqlResult<Option<Box<Plan>>> {
        if !counts_found_rows(parsed) {
            return Ok(None);
        }
        let mut whole = parsed.clone();
        let has_limit = match &mut whole.statement {
            Statement::Query(query) => take_limit(query),
            _ => false,
        };
        if !has_limit {
            return Ok(None);
        }
        Ok(match self.plan(&whole, catalog, database)? {
            Some(StatementPlan::Query(plan)) => Some(Box::new(plan)),
            _ => None,
        })
    }
}

fn is_unlimited(parsed: &Parsed) -> bool {
    match &parsed.statement {
        Statement::Query(query) => query.limit_clause.is_none(),
        _ => false,
    }
}

/// Takes LIMIT, and the ORDER BY that goes with it, off a query in any number of parentheses;
/// false: it has no LIMIT.
fn take_limit(query: &mut Query) -> bool {
    match query.body.as_mut() {
        SetExpr::Query(inner) if query.limit_clause.is_none() => take_limit(inner),
        _ => {
            query.order_by = None;
            query.limit_clause.take().is_some()
        }
    }
}

fn counts_found_rows(parsed: &Parsed) -> bool {
    match &parsed.statement {
        Statement::Query(query) => binder::counts_found_rows(&query.body),
        _ => false,
    }
}

/// CREATE MATERIALIZED VIEW: a `?` stands for a column of the key.
fn defines_materialized(parsed: &Parsed) -> bool {
    match &parsed.statement {
        Statement::CreateView(create) => parsed.special.is_none() && create.materialized,
        _ => false,
    }
}

/// 1064 for a `?` outside a prepared statement.
fn refuse_parameters(parsed: &Parsed) -> SqlResult<()> {
    if defines_materialized(parsed) {
        return Ok(());
    }
    super::compiled::refuse_parameters(parsed)
}

/// How a statement is counted.
fn kind_of(parsed: &Parsed) -> StatementKind {
    if let Some(special) = &parsed.special {
        return match special {
            Special::Set(_) => StatementKind::Set,
            Special::Show(_)
            | Special::Describe { .. }
            | Special::Compliance(_)
            | Special::GdprVerify { .. }
            | Special::GdprCertificate(_)
            | Special::GdprGet { .. } => StatementKind::Show,
            Special::GdprForget(forget) if forget.is_explained => StatementKind::Show,
            Special::GdprForget(_) | Special::GdprRelease { .. } => StatementKind::Delete,
            Special::StartTransaction { .. } => StatementKind::Begin,
            Special::EndTransaction { commit: true, .. } => StatementKind::Commit,
            Special::EndTransaction { commit: false, .. } => StatementKind::Rollback,
            _ if ddl::is_ddl(parsed) => StatementKind::Ddl,
            _ => StatementKind::Other,
        };
    }
    match &parsed.statement {
        Statement::Query(query) => match crate::statement::changed_by(query) {
            Some(Statement::Update(_)) => StatementKind::Update,
            Some(_) => StatementKind::Delete,
            None => StatementKind::Select,
        },
        Statement::Insert(insert) if insert.replace_into => StatementKind::Replace,
        Statement::Insert(_) => StatementKind::Insert,
        Statement::Update(_) => StatementKind::Update,
        Statement::Delete(_) => StatementKind::Delete,
        Statement::Explain { .. } => StatementKind::Show,
        _ if ddl::is_ddl(parsed) => StatementKind::Ddl,
        _ => StatementKind::Other,
    }
}
