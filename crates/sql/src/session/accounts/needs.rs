//! Which privileges a statement needs.

use sqlparser::ast::Statement;

use super::{Need, Privileges};
use crate::parser::Parsed;
use crate::statement::StatementPlan;

/// What `parsed` needs, checked at every run.
pub(crate) fn of(
    parsed: &Parsed,
    plan: Option<&StatementPlan>,
    _database: Option<&str>,
) -> Vec<Need> {
    match plan {
        Some(StatementPlan::Query(plan)) => plan
            .tables
            .iter()
            .map(|(_, database, table)| Need::table(Privileges::SELECT, "SELECT", database, table))
            .collect(),
        Some(StatementPlan::Modify(_)) => modify(&parsed.statement),
        None => Vec::new(),
    }
}

fn modify(_statement: &Statement) -> Vec<Need> {
    Vec::new()
}
