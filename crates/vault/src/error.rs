//! What can go wrong with a vault.

use std::io;

use thiserror::Error;

use crate::secret::KeyId;

/// Why a vault, or one of its keys, cannot be used.
#[derive(Debug, Error)]
pub enum VaultError {
    /// The operating system's, of one of the two places.
    #[error("the vault's {what}: {error}")]
    Io {
        /// File and operation.
        what: String,
        /// The operating system's.
        #[source]
        error: io::Error,
    },
    /// The source of the master key gives none, or nothing that is a key.
    #[error("no master key: {0}")]
    NoMasterKey(String),
    /// The source gives keys, and none of them is the one that slots are wrapped by.
    #[error(
        "the master key of generation {generation} is not among those given: \
         give the key that the vault was made with, or was last rotated to"
    )]
    WrongMasterKey {
        /// Which of the vault's master keys is missing.
        generation: u32,
    },
    /// Both copies of a slot, or of the header, are damaged.
    #[error("{0} is damaged in both places: restore one of them, if you have it")]
    Damaged(String),
    /// The key was destroyed.
    #[error("key {0} was erased")]
    Erased(KeyId),
    /// The vault never made this key: it is another vault, or an older copy of it.
    #[error("key {0} is not in this vault: is it the one that the rows were sealed with?")]
    Unknown(KeyId),
    /// What was sealed is not what is opened: other bytes, another row, or another key.
    #[error("what was sealed under key {0} is damaged")]
    NotAuthentic(KeyId),
    /// A new master key that is the current one.
    #[error("the last master key that is given is the current one: add a new one behind it first")]
    SameMasterKey,
    /// The two places hold different vaults.
    #[error("the two places hold different vaults: name the two that belong together")]
    NotOfOneVault,
    /// A format of another release.
    #[error("the vault has format {0}, which this release cannot read")]
    Format(u8),
    /// The system has no randomness to give.
    #[error("the system has no randomness to give")]
    NoRandomness,
    /// It could not be opened when the server started.
    #[error("the vault is not open: {0}")]
    NotOpen(String),
}

impl VaultError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
