//! Why a command of the laboratory failed, in one line for people.

use std::io;

use manxdb::fault::Fault as ServerFault;

/// One line, and a non-zero exit.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// As the server says it.
    #[error(transparent)]
    Server(#[from] ServerFault),
    /// As a benchmark's client of a server.
    #[error("{0}")]
    Driver(#[from] mysql::Error),
    /// Anything else, already said well.
    #[error("{0}")]
    Other(String),
}

impl Fault {
    /// An operating-system error while doing `context`.
    pub fn io(context: impl Into<String>, source: io::Error) -> Self {
        ServerFault::io(context, source).into()
    }
}
