//! The flags of `serve` for the vault.

use std::path::PathBuf;

use clap::Args;

/// Where keys of people are, and what wraps them; for the file too.
#[derive(Debug, Clone, Default, Args)]
pub struct VaultArgs {
    /// Directory of the keys of people, whose rows are sealed when there is a master key; not in the data
    /// directory, and not for backups [default: the data directory's name with -vault behind it]
    #[arg(long, env = "MANXDB_VAULT", value_name = "DIR")]
    pub vault: Option<PathBuf>,
    /// Directory of their second copy; better on another disk [default: the same with -vault-mirror]
    #[arg(long, env = "MANXDB_VAULT_MIRROR", value_name = "DIR")]
    pub vault_mirror: Option<PathBuf>,
    /// File with the master key that wraps them: 64 hexadecimal digits a line (openssl rand -hex 32), the
    /// newest last
    #[arg(long, env = "MANXDB_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Name of the environment variable that holds the same
    #[arg(long, env = "MANXDB_MASTER_KEY_ENV", value_name = "NAME")]
    pub master_key_env: Option<String>,
    /// Command that prints the same, run by sh at the start and for GDPR ROTATE MASTER KEY
    #[arg(long, env = "MANXDB_MASTER_KEY_COMMAND", value_name = "COMMAND")]
    pub master_key_command: Option<String>,
}
