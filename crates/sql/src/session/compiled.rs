//! A statement, parsed and, when it can be, planned.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::error::{SqlError, SqlResult};
use crate::parser::Parsed;
use crate::plan::Plan;
use crate::statement::StatementPlan;
use crate::types::{ColumnMeta, DataType};
use crate::views::Candidate;

use super::accounts::Need;
use super::ddl;
use super::metrics::StatementKind;
use super::retyped::ShownParams;

/// What running a statement needs. Immutable: sessions share it through the plan cache.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The tree.
    pub parsed: Parsed,
    /// For queries and DML.
    pub plan: Option<StatementPlan>,
    /// Privileges to check at every run.
    pub needs: Vec<Need>,
    /// How it is counted.
    pub kind: StatementKind,
    /// Catalog it was made under.
    pub catalog_version: u64,
    /// The user variables that it reads, with the types that the plan was made for.
    pub(super) variables: BTreeMap<String, DataType>,
    /// The query without its LIMIT, when `SQL_CALC_FOUND_ROWS` asks how many rows it has.
    pub uncut: Option<Box<Plan>>,
    /// The query has no LIMIT of its own, so `sql_select_limit` counts.
    pub unlimited: bool,
    /// Parameters whose values give the result columns their types.
    pub(super) shown_params: ShownParams,
    /// Its template, once it was asked for: see [`crate::views::Candidates`].
    pub(super) candidate: OnceLock<Option<Arc<Candidate>>>,
}

impl Compiled {
    /// Types inferred for `?`.
    pub(crate) fn param_types(&self) -> &[DataType] {
        match &self.plan {
            Some(StatementPlan::Query(plan)) => &plan.param_types,
            Some(StatementPlan::Modify(modify)) => &modify.param_types,
            None => &[],
        }
    }

    /// Result columns; empty when there are none.
    pub(crate) fn columns(&self) -> &[ColumnMeta] {
        match &self.plan {
            Some(StatementPlan::Query(plan)) => &plan.columns,
            Some(StatementPlan::Modify(_)) | None => &[],
        }
    }

    /// 1295 unless the statement may be prepared.
    pub(crate) fn check_preparable(&self) -> SqlResult<()> {
        use crate::parser::Special;
        let refused = Err(SqlError::new(
            1295,
            "HY000",
            "This command is not supported in the prepared statement protocol yet",
        ));
        match &self.parsed.statement {
            sqlparser::ast::Statement::Use(_) => return refused,
            // Its `?` are no parameters.
            sqlparser::ast::Statement::CreateView(create) if create.materialized => return refused,
            sqlparser::ast::Statement::CreateView(_) if self.parsed.param_count > 0 => {
                return Err(crate::statement::variable_in_view());
            }
            _ => {}
        }
        match &self.parsed.special {
            Some(
                Special::Prepare { .. }
                | Special::Execute { .. }
                | Special::Deallocate(_)
                | Special::LockTables(_)
                | Special::UnlockTables,
            ) => refused,
            _ if self.plan.is_none() && !self.takes_values() => refuse_parameters(&self.parsed),
            _ => Ok(()),
        }
    }

    /// Whether it is a statement without a plan in which a `?` may stand for a value.
    pub(super) fn takes_values(&self) -> bool {
        use sqlparser::ast::Statement;
        if self.plan.is_some() {
            return false;
        }
        let is_select = |query: &Option<_>| query.is_some();
        match &self.parsed.statement {
            Statement::CreateTable(create) => is_select(&create.query),
            Statement::Discard { .. } => !ddl::is_ddl(&self.parsed),
            Statement::Explain { .. } => true,
            _ => false,
        }
    }
}

/// 1064 for a statement with a `?` that stands for nothing.
pub(super) fn refuse_parameters(parsed: &Parsed) -> SqlResult<()> {
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

#[cfg(test)]
impl Compiled {
    /// An empty statement for tests of the cache.
    pub(crate) fn for_test(catalog_version: u64) -> Self {
        Self {
            parsed: crate::parser::parse("DO 1", crate::types::SqlMode::default())
                .unwrap()
                .remove(0),
            plan: None,
            needs: Vec::new(),
            kind: StatementKind::Other,
            catalog_version,
            uncut: None,
            unlimited: false,
            variables: BTreeMap::new(),
            shown_params: ShownParams::default(),
            candidate: OnceLock::new(),
        }
    }
}
