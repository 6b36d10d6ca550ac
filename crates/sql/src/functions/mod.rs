//! The built-in functions, each a row of a table: name, arity, type rule, body.

use crate::error::SqlResult;
use crate::expr::{EvalContext, Expr};
use crate::types::{DataType, Value};

/// A built-in scalar function.
pub struct ScalarFunction {
    /// Upper-case name.
    pub name: &'static str,
    /// Least and most arguments.
    pub arity: (usize, usize),
    /// Result type and nullability from the bound arguments.
    pub infer: fn(&[Expr]) -> (DataType, bool),
    /// The body; arguments are evaluated already.
    pub eval: fn(&EvalContext<'_>, &[Value], &DataType) -> SqlResult<Value>,
    /// Same arguments, same answer, within a statement: may be folded and cached.
    pub deterministic: bool,
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Looks a function up by name, in any case.
#[must_use]
pub fn lookup(_name: &str) -> Option<&'static ScalarFunction> {
    None
}
