//! The configuration file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::cli::{
    CommitPathChoice, CompactionChoice, DurabilityChoice, IsolationChoice, RedisEngineChoice,
};
use crate::fault::Fault;

/// A configuration file as read: that of `serve`, or another role's.
pub struct ConfigFile<K = Keys> {
    /// What it says, and where.
    pub text: Text,
    /// What it sets.
    pub keys: K,
}

/// The text of a file, for line numbers.
pub struct Text {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// The keys. Unknown ones are errors: a misspelt setting must not be a silent default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    pub data: Option<Spanned<PathBuf>>,
    pub mysql_listen: Option<Spanned<SocketAddr>>,
    pub admin_listen: Option<Spanned<SocketAddr>>,
    pub admin_tls: Option<Spanned<bool>>,
    pub insecure: Option<Spanned<bool>>,
    pub durability: Option<Spanned<DurabilityChoice>>,
    pub transaction_isolation: Option<Spanned<IsolationChoice>>,
    pub tls_cert: Option<Spanned<PathBuf>>,
    pub tls_key: Option<Spanned<PathBuf>>,
    pub max_connections: Option<Spanned<usize>>,
    pub max_allowed_packet_mb: Option<Spanned<usize>>,
    pub block_cache_mb: Option<Spanned<usize>>,
    pub write_buffer_mb: Option<Spanned<usize>>,
    pub statement_memory_mb: Option<Spanned<usize>>,
    pub secure_file_priv: Option<Spanned<String>>,
    pub long_query_ms: Option<Spanned<u32>>,
    pub shutdown_grace_seconds: Option<Spanned<u32>>,
    pub compaction: Option<Spanned<CompactionChoice>>,
    pub control: Option<Spanned<Vec<String>>>,
    pub compaction_volume: Option<Spanned<String>>,
    pub compaction_zone: Option<Spanned<u16>>,
    pub compaction_weight: Option<Spanned<u32>>,
    pub compaction_min_mb: Option<Spanned<usize>>,
    pub compaction_level0_files: Option<Spanned<u16>>,
    pub compaction_token_file: Option<Spanned<PathBuf>>,
    pub compaction_tls_ca: Option<Spanned<PathBuf>>,
    pub compaction_tls_cert: Option<Spanned<PathBuf>>,
    pub compaction_tls_key: Option<Spanned<PathBuf>>,
    pub compaction_tls_name: Option<Spanned<String>>,
    pub commit_path: Option<Spanned<CommitPathChoice>>,
    pub memory: Option<Spanned<PathBuf>>,
    pub memory_clients: Option<Spanned<u16>>,
    pub memory_snapshot_seconds: Option<Spanned<u32>>,
    pub memory_provider: Option<Spanned<String>>,
    pub memory_token_file: Option<Spanned<PathBuf>>,
    pub curp_cluster: Option<Spanned<PathBuf>>,
    pub curp_node: Option<Spanned<u32>>,
    pub redis_listen: Option<Spanned<SocketAddr>>,
    pub redis_engine: Option<Spanned<RedisEngineChoice>>,
    pub redis_memory_mb: Option<Spanned<usize>>,
    pub redis_password: Option<Spanned<String>>,
    pub redis_acl_file: Option<Spanned<PathBuf>>,
    pub vault: Option<Spanned<PathBuf>>,
    pub vault_mirror: Option<Spanned<PathBuf>>,
    pub master_key_file: Option<Spanned<PathBuf>>,
    pub master_key_env: Option<Spanned<String>>,
    pub master_key_command: Option<Spanned<String>>,
    pub log: Option<Spanned<String>>,
}

impl Text {
    /// Line of a byte offset, from 1.
    pub fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|byte| **byte == b'\n').count()
    }
}

/// Reads and parses the file at `path`.
///
/// # Errors
/// [`Fault::Config`] with line and column.
pub fn read<K: DeserializeOwned>(path: &Path) -> Result<ConfigFile<K>, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::Config(format!("{}: {error}", path.display())))?;
    parse(path, text)
}

/// Parses `text`.
///
/// # Errors
/// [`Fault::Config`] with line and column.
pub fn parse<K: DeserializeOwned>(path: &Path, text: String) -> Result<ConfigFile<K>, Fault> {
    let keys = toml::from_str(&text).map_err(|error| {
        let error = error.to_string();
        Fault::Config(format!("{}: {}", path.display(), error.trim_end()))
    })?;
    let text = Text {
        path: path.to_owned(),
        text,
    };
    Ok(ConfigFile { text, keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        match parse::<Keys>(Path::new("manxdb.toml"), text.to_owned()) {
            Ok(_) => panic!("parsed: {text}"),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_line() {
        let error = error("log = \"info\"\n\nmax_conections = 5\n");
        assert!(
            error.contains("manxdb.toml") && error.contains("line 3"),
            "{error}"
        );
        assert!(error.contains("max_conections"), "{error}");
    }

    #[test]
    fn a_wrong_type_is_an_error_with_its_line() {
        let error = error("data = \"d\"\nmax_connections = \"many\"\n");
        assert!(error.contains("line 2"), "{error}");
        let error = super::tests::error("mysql_listen = \"localhost\"\n");
        assert!(
            error.contains("line 1") && error.contains("socket address"),
            "{error}"
        );
    }

    #[test]
    fn lines_are_counted_from_one() {
        let text = "log = \"a\"\ndata = \"d\"\n".to_owned();
        let file = parse::<Keys>(Path::new("f"), text).unwrap();
        let data = file.keys.data.as_ref().unwrap();
        assert_eq!(file.text.line(data.span().start), 2);
    }
}
