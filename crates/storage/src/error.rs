//! Why an engine does not do what it is asked.

/// What can go wrong below a transaction.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The disk is full; nothing of the batch was applied.
    #[error("disk full: {0}")]
    Full(String),
    /// The store cannot be written any more; reads go on.
    #[error("storage is read-only: {0}")]
    ReadOnly(String),
    /// Writes wait for work that does not get done; nothing of the batch was applied.
    #[error("storage is behind: {0}")]
    Behind(String),
    /// A checksum or a format did not match.
    #[error("corrupt data: {0}")]
    Corrupt(String),
    /// Another process holds the directory.
    #[error("data directory {0} is in use by another process")]
    InUse(String),
    /// Written by a version of ManxDB this one cannot read.
    #[error("{0}")]
    Format(String),
    /// The operating system refused.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Compactions cannot be handed out.
    #[error("compactions cannot be done remotely: {0}")]
    RemoteCompaction(String),
    /// Anything else the engine reports.
    #[error("storage engine: {0}")]
    Engine(String),
}
