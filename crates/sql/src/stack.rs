//! Keeps recursion over what statements and views nest away from the end of a thread's stack,
//! which would end the process.

use crate::error::{SqlError, SqlResult};

/// Bytes that must be left to go one step deeper in binding.
pub(crate) const BINDING_BYTES: usize = 192 * 1024;
/// Bytes that must be left to run a subquery: its expressions may be as deep as a text allows.
pub(crate) const RUNNING_BYTES: usize = 512 * 1024;

/// To be called wherever recursion may go as deep as a statement or its views nest.
///
/// # Errors
/// 1436.
pub(crate) fn check(needed: usize) -> SqlResult<()> {
    match stacker::remaining_stack() {
        Some(left) if left < needed => Err(SqlError::new(
            1436,
            "HY000",
            format!(
                "Thread stack overrun: {left} bytes are left of the stack, and {needed} \
                 bytes needed; nest statements and views less deeply"
            ),
        )),
        _ => Ok(()),
    }
}
