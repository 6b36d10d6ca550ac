//! One-sided memory: what a process may do to the memory of a server without its processor.
//!
//! Memory servers register a range of bytes; clients read and write it, and swap or add to single
//! words of it, while nobody on the other side runs (Binnig et al., "The End of Slow Networks",
//! §2 and §3.3). There is no protocol in here: who may write what, when and why is for the layers
//! above, and so are extents and replicas.
//!
//! Memory is made of *words*: eight bytes, at offsets that eight divides. A word is never seen half
//! written. Everything larger may be: a read that meets a write returns some words of before and
//! some of after it, in any mixture, unless what is written says how to notice.
//!
//! | question | answered in |
//! |---|---|
//! | where a word is | [`address`] |
//! | what can be asked, and what comes back | [`operation`] |
//! | what a carrier must grant before anything is built on it | [`grants`] |
//! | the trait that all carriers have | [`fabric`] |
//! | memory shared between processes of one machine | [`shm`] |
//! | memory across machines, with the feature `libfabric` | `libfabric` |
//! | what every carrier is tested for | [`conformance`] |
//!
//! Start reading at [`fabric`], then [`operation`].
// Sockets and threads are what carriers are for.
#![allow(clippy::disallowed_methods)]

pub mod address;
pub mod conformance;
pub mod fabric;
pub mod grants;
#[cfg(any(test, feature = "libfabric"))]
pub mod libfabric;
mod memory;
pub mod operation;
pub mod shm;
mod turn;
mod waiting;

pub use address::{Address, ServerId, WORD, WORD_LENGTH};
pub use fabric::{BatchId, Completion, Fabric};
pub use grants::Grants;
pub use operation::{Fault, Misuse, Operation, OperationOutcome};
pub use turn::turn;
pub use waiting::Waiting;
