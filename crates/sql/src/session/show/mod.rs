//! SHOW and DESCRIBE, most of them as queries over information_schema.

use sqlparser::ast::ObjectName;

use super::ResultSink;
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::parser::Show;

impl Session {
    pub(super) fn show(
        &mut self,
        show: &Show,
        _sink: &mut dyn ResultSink,
        _more: bool,
    ) -> SqlResult<()> {
        Err(SqlError::not_supported(format!("SHOW {}", show.what)))
    }

    pub(super) fn describe(
        &mut self,
        _table: &ObjectName,
        _column: Option<&str>,
        _sink: &mut dyn ResultSink,
        _more: bool,
    ) -> SqlResult<()> {
        Err(SqlError::not_supported("DESCRIBE"))
    }

    pub(super) fn maintain(
        &mut self,
        verb: &str,
        _tables: &[ObjectName],
        _sink: &mut dyn ResultSink,
        _more: bool,
    ) -> SqlResult<()> {
        Err(SqlError::not_supported(format!("{verb} TABLE")))
    }
}
