//! EXPLAIN and EXPLAIN ANALYZE.

use std::cell::RefCell;

use sqlparser::ast::{AnalyzeFormat, AnalyzeFormatKind, Statement};

use super::ResultSink;
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::executor;
use crate::explain::{ExplainFormat, explain, explain_columns};
use crate::parser::Parsed;
use crate::plan::Plan;
use crate::statement::StatementPlan;
use crate::types::Row;

impl Session {
    pub(super) fn explain(
        &mut self,
        parsed: &Parsed,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let Statement::Explain {
            analyze,
            statement,
            format,
            ..
        } = &parsed.statement
        else {
            return Err(SqlError::internal("EXPLAIN of nothing"));
        };
        let format = chosen(format.as_ref(), *analyze)?;
        let mut inner = parsed.clone();
        inner.statement = (**statement).clone();
        let compiled = self.compile(inner)?;
        self.check_needs(&compiled)?;
        let rows = match &compiled.plan {
            Some(StatementPlan::Query(plan)) if *analyze => self.explain_analyzed(plan)?,
            Some(StatementPlan::Query(plan)) => explain(plan, format, None),
            Some(StatementPlan::Modify(_)) if *analyze => {
                return Err(SqlError::not_supported(
                    "EXPLAIN ANALYZE of a statement that changes rows",
                ));
            }
            Some(StatementPlan::Modify(modify)) => modify.explain(format),
            None => return Err(SqlError::not_supported("EXPLAIN of this statement")),
        };
        sink.columns(&explain_columns(format))?;
        for row in &rows {
            sink.row(row)?;
        }
        sink.end(self.status(), more)
    }

    fn explain_analyzed(&mut self, plan: &Plan) -> SqlResult<Vec<Row>> {
        self.open_for_statement(true, !plan.tables.is_empty());
        let warnings = RefCell::default();
        let result = match &self.transaction {
            Some(open) => open
                .txn
                .start_statement()
                .map_err(SqlError::from)
                .and_then(|()| {
                    self.with_context(&open.txn, &[], &warnings, false, |context| {
                        let analysis = executor::run_analyzed(&context.reading(), plan)?;
                        Ok(explain(plan, ExplainFormat::Tree, Some(&analysis)))
                    })
                }),
            None => Err(SqlError::internal("a statement without a transaction")),
        };
        if self.transaction.as_ref().is_some_and(|open| open.single) {
            self.transaction = None;
        }
        result
    }
}

fn chosen(format: Option<&AnalyzeFormatKind>, analyze: bool) -> SqlResult<ExplainFormat> {
    let format = match format {
        None if analyze => return Ok(ExplainFormat::Tree),
        None => return Ok(ExplainFormat::Traditional),
        Some(AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format)) => format,
    };
    match format {
        AnalyzeFormat::TREE | AnalyzeFormat::TEXT => Ok(ExplainFormat::Tree),
        AnalyzeFormat::JSON if !analyze => Ok(ExplainFormat::Json),
        other => Err(SqlError::not_supported(format!("EXPLAIN FORMAT={other}"))),
    }
}
