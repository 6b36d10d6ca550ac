//! Memory that others may change at any time, which carriers hand out.

pub(crate) mod segment;
pub(crate) mod words;
