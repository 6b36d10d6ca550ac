//! Stub.
use super::ScalarFunction;
pub(super) const FUNCTIONS: &[ScalarFunction] = &[];
