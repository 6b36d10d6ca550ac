//! Memory that survives the loss of a server: regions of it lie on several.
//!
//! A region is memory that everybody addresses as one server's; the [`Map`] says on which servers
//! its replicas are. What a protocol asks of a region is asked of replicas by [`ReplicatedOp`], so that
//! commits, directories, trees and recoveries are the same with one replica and with three:
//!
//! | asked of a region | done | so that |
//! |---|---|---|
//! | a read | at the primary | |
//! | a swap of a record's head | at the primary: backups have no locks | one decides |
//! | a record written and unlocked | at all backups; when it is there, at the primary | whatever is unlocked is on all replicas |
//! | a word of a directory | at the primary; when it is swapped, at the backups | one decides |
//! | a word of the table of places | at the primary; when it is swapped, raised at the backups | one decides; words only go up |
//! | a line of the vector, a log, a beat | at all at once | what is acknowledged is on all |
//! | a look at the vector | at the primary, and one word of a backup | who was shut out begins nothing |
//!
//! **Epochs.** A server is lost when that is agreed upon, not when somebody cannot reach it; each
//! loss begins an epoch with another map. Clients act at the servers under a name of their epoch,
//! and before a map is used every server in it shuts out all names of the epoch before. What a
//! client with an old map can still do is therefore something that it does at the lost server
//! alone, if that should live on; and every step that counts touches another one: a snapshot two
//! replicas of the vector, a commit all of its logs and all replicas of what it writes. Losses are
//! agreed on, and noted where everybody finds them, in the [`EpochLog`].
//!
//! **After a loss** ([`Restore`]) nobody has a lock any more, for locks are at primaries only and
//! everybody is shut out. What is in a log and was not published is installed on all replicas that
//! are left, and every thread's number is closed, as if all had died (reference: rack, §5.2). Those
//! that live hear from their closing what became of the commit that they were in, and go on behind
//! it. Then [`Refill`] copies, while transactions go on, what the new replicas lack.
//!
//! How it works in whole, and what it costs: docs/internals/rack-replication.md. Alternatives: decision 20.

mod agree;
mod epoch_log;
mod learn_epoch;
mod map;
mod raise_max;
mod refill;
mod replicated_op;
mod restore;

pub use self::agree::Undecided;
pub(crate) use self::epoch_log::News;
pub use self::epoch_log::{EpochLog, Event, Learn, Propose};
pub use self::learn_epoch::LearnEpoch;
pub(crate) use self::map::is_region;
pub use self::map::{Chart, Map, MapError, RegionKind, Replica, ReplicatedRegion};
pub(crate) use self::raise_max::RaiseMax;
pub use self::refill::Refill;
pub use self::replicated_op::{Mapped, ReplicatedOp};
pub use self::restore::{Closed, Restore};
