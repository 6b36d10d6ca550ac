//! CREATE USER and its kin.

use crate::error::{SqlError, SqlResult};
use crate::parser::{Parsed, Special};
use crate::session::session::Session;
use crate::statement::Outcome;

impl Session {
    pub(crate) fn run_account_statement(
        &mut self,
        _special: &Special,
        _parsed: &Parsed,
    ) -> SqlResult<Outcome> {
        Err(SqlError::not_supported("accounts"))
    }
}
