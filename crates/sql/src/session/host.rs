//! What the process gives an instance: time, randomness, waiting, and settings.

use std::io::{self, Read, Write};
use std::sync::Arc;

use manxdb_storage::Durability;
use manxdb_txn::IsolationLevel;
use manxdb_vault::{Disk, Vault};

use crate::executor::SpillSpace;

/// Time, randomness and waiting, given by the process that hosts the instance.
pub trait Host: Send + Sync + 'static {
    /// Wall clock: microseconds since 1970 UTC.
    fn wall_micros(&self) -> i64;
    /// Monotonic clock in microseconds, for durations and time-outs.
    fn monotonic_micros(&self) -> i64;
    /// 64 random bits.
    fn random(&self) -> u64;
    /// Blocks the calling session for at most `micros`, or until `wake` is called for it. A wake
    /// that came since the last park ends this one at once.
    fn park(&self, session: u64, micros: u64);
    /// Ends another session's `park`.
    fn wake(&self, session: u64);
    /// Whether the client of `session` is known to have closed its connection, told without
    /// waiting. A statement that runs for nobody is stopped then.
    fn client_is_gone(&self, session: u64) -> bool {
        let _ = session;
        false
    }
    /// Name of the system's time zone for `time_zone = SYSTEM`, for example `UTC`.
    fn system_time_zone(&self) -> String;
    /// Opens the file `name` of the server for reading. `directory` is where it must be; an empty
    /// one allows every place.
    ///
    /// # Errors
    /// `PermissionDenied` outside the directory; the operating system's.
    fn open_file(&self, directory: &str, name: &str) -> io::Result<Box<dyn Read>> {
        let _ = (directory, name);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Creates the file `name`, as [`Host::open_file`] opens it.
    ///
    /// # Errors
    /// `AlreadyExists`; those of [`Host::open_file`].
    fn create_file(&self, directory: &str, name: &str) -> io::Result<Box<dyn Write>> {
        let _ = (directory, name);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// The vault whose keys seal rows of owned tables; `None`: they stay plain. Asked when the instance
    /// opens.
    fn vault(&self) -> Option<Arc<Vault>> {
        None
    }
    /// Where the audit of requests to forget is written beside the store, in two places that no backup has;
    /// `None`: it is in the store alone. Asked when the instance opens.
    fn audit(&self) -> Option<Arc<dyn Disk>> {
        None
    }
    /// Random bytes for secrets.
    ///
    /// # Errors
    /// The operating system has none.
    fn secret_bytes(&self, bytes: &mut [u8]) -> io::Result<()> {
        for chunk in bytes.chunks_mut(8) {
            for (to, from) in chunk.iter_mut().zip(self.random().to_le_bytes()) {
                *to = from;
            }
        }
        Ok(())
    }
    /// Where statements put rows that do not fit into their memory; `None`: they end there.
    fn spill_space(&self) -> Option<&dyn SpillSpace> {
        None
    }
}

/// Settings of an instance; each is a system variable too where MySQL has one.
#[derive(Debug, Clone)]
pub struct InstanceOptions {
    /// When a commit counts as done.
    pub durability: Durability,
    /// The global `transaction_isolation` at the start.
    pub isolation: IsolationLevel,
    /// `max_connections`.
    pub max_connections: usize,
    /// `max_allowed_packet` in bytes.
    pub max_allowed_packet: usize,
    /// `long_query_time` in microseconds.
    pub long_query_micros: i64,
    /// Memory one statement may hold, bytes.
    pub statement_memory_bytes: usize,
    /// `secure_file_priv`: the directory whose files statements may read and write; `None` for
    /// no files at all, an empty one for all that the process may.
    pub secure_file_priv: Option<String>,
    /// `port`, for the variable only.
    pub port: u16,
    /// `hostname`, for the variable only.
    pub hostname: String,
    /// `datadir`, for the variable only.
    pub data_directory: String,
}

/// What a frontend knows of a client before it has logged in.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// Address as shown in the process list, for example `127.0.0.1:53122`.
    pub peer: String,
    /// Host part, matched against accounts (`localhost` for loopback addresses).
    pub host: String,
    /// `CLIENT_FOUND_ROWS` was asked for.
    pub found_rows: bool,
    /// `CLIENT_MULTI_STATEMENTS` was asked for.
    pub multi_statements: bool,
    /// `CLIENT_LOCAL_FILES` was asked for: the client sends files.
    pub local_files: bool,
    /// Id of the collation the client named, as in `information_schema.COLLATIONS`.
    pub collation: u16,
    /// How the connection is compressed, if it is.
    pub compression: Option<CompressionInfo>,
    /// How the connection is encrypted, if it is.
    pub tls: Option<TlsInfo>,
}

/// What was agreed for a compressed connection, for SHOW STATUS.
#[derive(Debug, Clone, Copy)]
pub struct CompressionInfo {
    /// `Compression_algorithm`: `zlib` or `zstd`.
    pub algorithm: &'static str,
    /// `Compression_level`.
    pub level: u8,
}

/// What was agreed for an encrypted connection, for SHOW STATUS.
#[derive(Debug, Clone)]
pub struct TlsInfo {
    /// `Ssl_version`, for example `TLSv1.3`.
    pub version: String,
    /// `Ssl_cipher`, for example `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// An account as authentication needs it.
#[derive(Debug, Clone)]
pub struct AccountAuth {
    /// `user@host` of the matched account.
    pub identity: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// Stored verifier: SHA1(SHA1(password)) as 20 bytes, or for `caching_sha2_password`
    /// SHA256(SHA256(password)) as 32 bytes, or empty for no password.
    pub verifier: Vec<u8>,
    /// Locked or expired.
    pub locked: bool,
    /// Holds PROCESS: it may see the statements of others.
    pub sees_others: bool,
}
