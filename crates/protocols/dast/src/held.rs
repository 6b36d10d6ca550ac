//! A transaction with its place, as nodes tell each other what they hold.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::Planned;
use crate::timestamp::Timestamp;

/// A transaction that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its timestamp; the site tells the coordinator, or the managers that ordered it.
    pub at: Timestamp,
    /// The transaction.
    pub planned: Arc<Planned>,
}
