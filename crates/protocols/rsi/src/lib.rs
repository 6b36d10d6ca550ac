//! Transactions over one-sided memory: snapshot isolation without the servers' processors.
//!
//! Records lie in the memory of servers that do nothing. Clients read them, lock them by swapping
//! one word each, write new versions and publish that they did (Binnig et al., "The End of Slow
//! Networks", §4: RSI). Which versions a transaction sees is said by a vector with an entry for
//! each thread (Zamanian et al., "The End of a Myth"), not by the paper's bit vector, which stands
//! still as soon as one client does.
//!
//! Nothing in here does I/O. Each step of a transaction is a [`Machine`]: it asks for operations of a
//! fabric, gets their outcomes, and asks again or ends. A driver carries them: over memory shared
//! by processes at once, in the simulator whenever their time has come.
//!
//! | question | answered in |
//! |---|---|
//! | threads, versions, and the words made of them | [`version`] |
//! | how a record lies in memory, and when a copy of it can be believed | [`block`] |
//! | what a transaction sees | [`vector`] |
//! | where the record under a key is | [`directory`], [`find`], [`add`] |
//! | where the records between two keys are | [`tree`] |
//! | rows under keys, in transactions | [`rows`] |
//! | how steps are carried out | [`machine`] |
//! | a thread's transactions: begin, read, commit | [`session`], [`begin`], [`read`], [`change`], [`commit`] |
//! | why a transaction does not commit | [`abort`] |
//! | what an old snapshot reads of records that are often written | [`overflow`] |
//! | which snapshots nobody uses any more, and what goes then | [`low_watermark`], [`rows::collect`] |
//! | what survives a thread, and who goes on with it | [`log`], [`recover`] |
//! | what survives all servers, and who writes it | [`drain`] |
//! | what survives a server, and who goes on with it | [`replicas`] |
//! | whose a thread is, and who decides that its owner is dead | [`client_slots`], [`lease`], [`membership`] |
//!
//! What is promised (reference: rack, §2.6): an unlocked head is the newest version's (I1); only
//! the owner of a lock writes (I2); what a snapshot admits is installed everywhere (I5); a snapshot
//! that admits a version admits all that its writer had seen (I6); a session sees no less than
//! before, and its own commits (I7).
//!
//! | proven by | what |
//! |---|---|
//! | `tests/model` | all interleavings of two or three transactions, also of clients that die and are recovered: I1, I2, I5, I6, I7, money kept (I9), whole or absent, serial orders |
//! | `tests/history.rs` | random histories: every read is its snapshot's, the first committer wins, no cycle that the level forbids |
//! | `tests/crash_matrix.rs` | a client stops, or is shut out, at each step of a commit |
//! | `tests/isolation.rs`, `tests/crash.rs`, `tests/keys.rs` | anomalies by name, deaths at any moment, keys that stay unique |
//! | `tests/tree` | a tree against a model, under many writers, under deaths; no phantoms |
//! | `tests/entering` | keys that are entered together: in how many commits, in a crowd, and by a client that stops at each step |
//! | `tests/free_extents.rs` | owners of places that die over drawing memory: nobody uses a place that another has used |
//! | `tests/rows.rs` | rows against a model, money that stays, what was not there |
//! | `tests/leases` | processes and recovery coordinators that die, stand still and are late: each owner of a place is reaped once, within two leases, and nobody who keeps his lease |
//! | `tests/replicas` | losses of servers at each step of a commit and under load, by hand: whole or absent, replicas equal |
//! | `tests/places` | losses that recovery coordinators see to, while somebody joins, is reaped, is elected or restores: one owner of a place at a time, whoever lives goes on, what is lost is filled again |
//! | `tests/drains` | all memory is lost, while log archivers, clients and servers die: what is on disk is a state that was, with all that was promised; nobody is in anybody's way |
//! | `tests/processes.rs` | processes on real shared memory, killed and stopped; torn copies that are not delivered |
//!
//! Start reading at [`session`], then [`commit`].
#![forbid(unsafe_code)]

pub mod abort;
pub mod add;
pub mod begin;
pub mod block;
pub mod change;
pub mod client_slots;
pub mod commit;
pub mod directory;
pub mod drain;
pub mod durable_positions;
pub mod find;
pub mod lease;
pub mod log;
pub mod low_watermark;
pub mod machine;
pub mod membership;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod overflow;
pub mod read;
pub mod record_address;
pub mod recover;
pub mod replicas;
pub mod rows;
pub mod session;
pub mod tree;
pub mod vector;
pub mod version;

pub use abort::Abort;
pub use add::{Add, Added, FreeSpace};
pub use begin::Begin;
pub use block::{Block, Layout, LayoutError};
pub use change::Change;
pub use client_slots::{ClientSlot, ClientSlots, Name, Owner};
pub use commit::{Commit, Committed};
pub use directory::{RecordAddress, Table, TableError};
pub use drain::{
    Batch, Bootstrap, Drain, Drained, Progress, Replay, ReplayError, Replayed, Survey,
};
pub use durable_positions::{Await, DurablePositions};
pub use find::{Absence, Find, LookupResult};
pub use lease::{Join, JoinError, Joined, Lease, Rejoin, RejoinError, Rejoined};
pub use log::{Log, LogEntry, Redo};
pub use low_watermark::{Bound, LowWatermark};
pub use machine::{Carrier, Machine, Once, Step};
pub use membership::{End, MembershipAction, MembershipEvent, RecoveryCoordinator, Ward};
pub use overflow::Overflow;
pub use read::{Read, ReadAll, Seen};
pub use recover::{Recover, Recovered, Release};
pub use replicas::{
    Chart, Closed, EpochLog, Event, Learn, LearnEpoch, Map, MapError, Mapped, Propose, Refill,
    RegionKind, Replica, ReplicatedOp, ReplicatedRegion, Restore, Undecided,
};
pub use session::{Isolation, Session};
pub use tree::enter::{Draft, EnterError, Entered, Record, rely_on_own};
pub use tree::locate::{Locate, Located, Seek};
pub use tree::scan::{Scan, Scanned, Span};
pub use tree::{Hint, Tree, TreeError};
pub use vector::{Snapshot, Vector};
pub use version::{Head, Stamp, ThreadId};
