//! Viewstamped replication of a small state machine, in memory, without I/O.
//!
//! The manager of a region, and other single deciders, are groups of three nodes that must agree
//! on one sequence of entries although one of them may fail (Liskov and Cowling, "Viewstamped
//! Replication Revisited", 2012). Nothing is written to disk: a member that starts again without
//! memory asks the others (§4.3 there) before it takes part. So the group survives as long as a
//! majority of it has not failed at once.
//!
//! [`Group`] is a part of a core, not a core: its owner hands it messages and ticks and sends what
//! it wants sent. It expects messages between two lives of nodes in order and once, as
//! [`manxdb_core::channel`] delivers them.
//!
//! The state is never larger than what its owner lets it be, so members hand over whole copies
//! of it instead of long logs: the log holds only what is not yet committed everywhere.
#![forbid(unsafe_code)]

mod group;
mod message;

pub use group::{Group, GroupOptions, Out, State, Status};
pub use message::{Copy, GroupMessage};
