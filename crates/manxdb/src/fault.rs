//! Why a command of the binary failed, in one line for people.

use std::io;
use std::net::SocketAddr;

use manxdb_storage::StorageError;

/// One line, and a non-zero exit.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Somebody else has the port.
    #[error("cannot listen on {address} for {listener}: {reason} (choose another with --{flag})")]
    Listen {
        /// Address asked for.
        address: SocketAddr,
        /// Which listener.
        listener: &'static str,
        /// Flag that moves it.
        flag: &'static str,
        /// Why.
        reason: String,
    },
    /// The configuration is wrong; the text has file, line and column.
    #[error("{0}")]
    Config(String),
    /// The data directory cannot be used.
    #[error("{}", with_way_out(.0))]
    Storage(#[from] StorageError),
    /// A statement or the server refused.
    #[error("{0}")]
    Sql(#[from] manxdb_sql::error::SqlError),
    /// Keys and certificates.
    #[error("{0}")]
    Keys(#[from] manxdb_gateway::key_files::KeyFileError),
    /// As a client of a server.
    #[error("{0}")]
    Client(#[from] crate::mysql_client::ClientError),
    /// The operating system refused.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Anything else, already said well.
    #[error("{0}")]
    Other(String),
}

/// The error, and what an operator can do about it.
fn with_way_out(error: &StorageError) -> String {
    let way_out = match error {
        StorageError::Corrupt(_) => {
            "; restore a backup (manxdb backup restore), or copy what can be read into a new \
             directory (manxdb backup salvage)"
        }
        StorageError::Full(_) => "; free space and try again",
        StorageError::ReadOnly(_) => "; make the disk writable and try again",
        _ => "",
    };
    format!("{error}{way_out}")
}

impl Fault {
    /// An operating-system error while doing `context`.
    pub fn io(context: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            context: context.into(),
            source,
        }
    }
}
