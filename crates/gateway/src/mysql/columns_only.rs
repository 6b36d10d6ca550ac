//! A sink for statements the frontend runs on its own account.

use manxdb_sql::error::SqlResult;
use manxdb_sql::session::{ResultSink, Status};
use manxdb_sql::statement::StatementOutcome;
use manxdb_sql::types::{ColumnMeta, Value};

/// Keeps the columns of the first result set, drops everything else.
#[derive(Default)]
pub(super) struct ColumnsOnly {
    pub(super) columns: Vec<ColumnMeta>,
}

impl ResultSink for ColumnsOnly {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()> {
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
        }
        Ok(())
    }

    fn row(&mut self, _row: &[Value]) -> SqlResult<()> {
        Ok(())
    }

    fn end(&mut self, _status: Status, _more: bool) -> SqlResult<()> {
        Ok(())
    }

    fn done(&mut self, _outcome: &StatementOutcome, _status: Status, _more: bool) -> SqlResult<()> {
        Ok(())
    }
}
