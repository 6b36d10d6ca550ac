//! Keys under which rows of people are sealed, and that can be destroyed.
//!
//! A key that lay in the log-structured store would outlive its deletion: in the commit log, in sorted
//! files until compaction, in every backup. Here each key has a slot of its own in a file that is
//! overwritten in place, with a mirror in a second place, and no backup has either. A slot holds its key
//! wrapped by a master key that is in neither place.
//!
//! ```text
//! header   offset 0 and 4096    the newer valid one counts
//! slots    offset 8192 + 128 n  state, master key generation, key id, nonce, wrapped key, checksum
//! ```
//! What the crate does not do: it knows no rows, no people and no transactions. Who deletes rows commits
//! an order to erase with them, calls [`Vault::erase`], and does so again after a crash until it
//! returns: only then are the keys gone.
//!
//! | question | module |
//! |---|---|
//! | how keys are made and used | [`vault`] |
//! | how keys are erased | `erase` |
//! | how a slot and a header lie on disk | `slot`, `header` |
//! | what is asked of the disk, and disks of files and of memory | [`disk`] |
//! | what tells keys apart in records, and whether one is destroyed | `evidence` |
//! | where the master key comes from | [`master`] |
//! | marks of values in keys of indexes | `blinder` |
//! | another master key for all slots, while they are in use | `rotate` |
//!
//! Start reading at [`vault`].
#![forbid(unsafe_code)]

mod blinder;
mod cache;
pub mod disk;
mod erase;
mod error;
mod evidence;
mod header;
pub mod master;
pub mod mutants;
pub mod random;
mod rotate;
mod secret;
mod slot;
mod slots;
pub mod vault;

pub use blinder::{Blinder, MARK_BYTES};
pub use disk::{Disk, FileDisk, MemoryDisk, Place};
pub use error::VaultError;
pub use master::{MasterKeySource, MasterKeys};
pub use random::{Randomness, SystemRandomness};
pub use secret::KeyId;
pub use vault::{SEALED_BYTES_MORE, Vault, VaultStatus};
