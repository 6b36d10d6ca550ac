//! Which cluster a process belongs to.

use serde::{Deserialize, Serialize};

/// Tells clusters apart, so that a process left over from one does not talk to another that has
/// its ports now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u64);
