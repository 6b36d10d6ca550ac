//! EXPLAIN.

use super::ResultSink;
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::parser::Parsed;

impl Session {
    pub(super) fn explain(
        &mut self,
        _parsed: &Parsed,
        _sink: &mut dyn ResultSink,
        _more: bool,
    ) -> SqlResult<()> {
        Err(SqlError::not_supported("EXPLAIN"))
    }
}
