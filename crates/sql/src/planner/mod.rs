//! From a bound SELECT to operators.
//!
//! The binder hands over a [`crate::plan::select::SelectParts`] over a [`crate::plan::logical::Group`]
//! of tables and conditions; [`generated`] puts indexed columns in the place of the expressions they
//! hold, [`having`] moves conditions on groups to rows, [`join`] orders it, [`access`] picks ways into
//! tables, [`select`] stacks the operators of [`crate::plan::physical`] on top.

pub(crate) mod access;
pub(crate) mod alternatives;
pub(crate) mod delta;
mod estimate;
mod generated;
mod having;
pub(crate) mod join;
mod keys;
mod sargs;
pub(crate) mod select;
