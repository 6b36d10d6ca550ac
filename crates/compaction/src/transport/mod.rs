//! Connections between databases, workers and the control plane.
//!
//! | question | answered in |
//! |---|---|
//! | messages on the wire | [`wire`] |
//! | a client's connection to the control plane, reopened when it breaks | [`link`] |
//! | connections that the control plane accepts or refuses | [`listener`] |
//! | tokens and certificates | [`security`]; as settings name them: [`secrets`] |

pub mod link;
pub(crate) mod listener;
pub mod secrets;
pub mod security;
pub mod wire;
