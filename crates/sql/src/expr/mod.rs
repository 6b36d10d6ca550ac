//! Expressions: built with their types, evaluated, and the built-in [`functions`] they call.
//!
//! What an expression is, is data of a plan: [`crate::plan::Expr`].

mod arithmetic;
mod assign;
#[cfg(test)]
mod assign_tests;
mod build;
mod context;
mod describe;
mod eval;
pub mod functions;
mod matching;
mod members;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use arithmetic::binary_values;
pub use assign::{assign, cast};
pub(crate) use build::DIV_INCREMENT;
pub use build::result_collation;
pub use context::{EvalContext, SessionInfo, Subqueries, Warning, WarningLevel};
pub use eval::{Held, compare_values};
pub use matching::{compiled as compiled_regex, like_prefix, like_text};
pub use members::{ConstantLists, RowSet};
