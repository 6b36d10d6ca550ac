//! Which settings hold: flags over environment over file over defaults.

mod compaction;
mod file;
mod memory;
mod redis;
mod resolve;
mod rows;
mod vault;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::{CompactionArgs, SettingsArgs};
use crate::fault::Fault;
pub use compaction::RemoteCompaction;
pub use memory::{DiskSettings, Meeting, MemorySettings, load as load_memory};
pub use redis::RedisSettings;
pub use resolve::{Explained, Settings};
pub use rows::{CurpAt, MemoryAt, MemoryUse, RemoteSettings, Rows};
pub use vault::VaultSettings;

/// File looked for when none is named.
const DEFAULT_FILE: &str = "manxdb.toml";

/// The settings that hold, and where each comes from.
///
/// # Errors
/// [`Fault::Config`] with file, line and column.
pub fn load(
    args: &SettingsArgs,
    matches: &clap::ArgMatches,
) -> Result<(Settings, Vec<Explained>), Fault> {
    let path = match &args.config {
        Some(path) => Some(path.clone()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let file = path.as_deref().map(file::read).transpose()?;
    resolve::resolve(args, matches, file.as_ref())
}

/// Who compacts, by flags alone; none when it is this process.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub fn compaction(args: &CompactionArgs) -> Result<Option<RemoteCompaction>, Fault> {
    resolve::compaction(args)
}

/// Every setting of `serve` with its default.
#[cfg(test)]
pub fn defaults() -> Vec<Explained> {
    let (_, explained) = resolve::tests::resolved(&[], "").unwrap();
    explained
}

/// `manxdb config check`.
///
/// # Errors
/// What is wrong, with line and column.
pub fn check(path: Option<&Path>) -> Result<ExitCode, Fault> {
    let path = path.unwrap_or(Path::new(DEFAULT_FILE));
    let file = file::read(path)?;
    resolve::check(&file)?;
    println!("{}: ok", path.display());
    Ok(ExitCode::SUCCESS)
}

/// `manxdb config explain`.
///
/// # Errors
/// What is wrong, with line and column.
pub fn explain(args: &SettingsArgs, matches: &clap::ArgMatches) -> Result<ExitCode, Fault> {
    let (_, explained) = load(args, matches)?;
    let width = |part: fn(&Explained) -> usize| explained.iter().map(part).max().unwrap_or(0);
    let keys = width(|e| e.key.len());
    let values = width(|e| e.value.len());
    for Explained { key, value, origin } in &explained {
        println!("{key:keys$} = {value:values$}  # {origin}");
    }
    Ok(ExitCode::SUCCESS)
}
