//! Where the master key comes from: outside the data directory, and outside both places of the vault.
//!
//! A source gives one key a line, as 64 hexadecimal digits; empty lines and lines that begin with `#`
//! count for nothing. The last key is the newest. Which of them the vault uses is told by the check in
//! its header, so that old keys may stay in the source until they are retired.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use zeroize::Zeroizing;

use crate::error::VaultError;
use crate::secret::{KEY_BYTES, Secret};

/// Master keys that a source may give.
const KEYS_MAX: usize = 64;

/// Where master keys are read, at the start and for each rotation.
#[derive(Clone, PartialEq, Eq)]
pub enum MasterKeySource {
    /// A file.
    File(PathBuf),
    /// A variable of the environment, by name.
    Environment(String),
    /// What a command prints, run by `sh -c`.
    Command(String),
    /// The text itself, for tests.
    Text(String),
    /// No source is named.
    Nowhere,
}

impl fmt::Debug for MasterKeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Environment(name) => write!(formatter, "environment variable {name}"),
            Self::Command(command) => write!(formatter, "command '{command}'"),
            Self::Text(_) => formatter.write_str("text"),
            Self::Nowhere => formatter.write_str("no source is named"),
        }
    }
}

/// Keys that a source has given, oldest first, at least one.
#[derive(Debug, Clone)]
pub struct MasterKeys(Vec<Secret>);

impl MasterKeySource {
    /// Reads the keys.
    ///
    /// # Errors
    /// [`VaultError::NoMasterKey`], which names the source, and never what is in it.
    pub fn read(&self) -> Result<MasterKeys, VaultError> {
        let text = self.text().map_err(|reason| self.refuse(&reason))?;
        MasterKeys::parse(&text).map_err(|reason| self.refuse(&reason))
    }

    fn refuse(&self, reason: &str) -> VaultError {
        VaultError::NoMasterKey(format!("{self:?}: {reason}"))
    }

    fn text(&self) -> Result<Zeroizing<String>, String> {
        let text = match self {
            Self::File(path) => fs::read_to_string(path).map_err(|error| error.to_string())?,
            Self::Environment(name) => {
                std::env::var(name).map_err(|_| "is not set, or no text".to_owned())?
            }
            Self::Command(command) => run(command)?,
            Self::Text(text) => text.clone(),
            Self::Nowhere => return Err("start the server with --master-key-file".to_owned()),
        };
        Ok(Zeroizing::new(text))
    }
}

fn run(command: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-c", command]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "printed what is no text".to_owned())
}

impl MasterKeys {
    fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = from_hex(line).ok_or_else(|| {
                let number = number + 1;
                format!("line {number} is no key: 64 hexadecimal digits are (openssl rand -hex 32)")
            })?;
            keys.push(Secret::new(*key));
        }
        if keys.is_empty() {
            return Err("holds no key: one is 64 hexadecimal digits (openssl rand -hex 32)".into());
        }
        if keys.len() > KEYS_MAX {
            return Err(format!(
                "holds {} keys, {KEYS_MAX} are the most",
                keys.len()
            ));
        }
        assert!(!keys.is_empty(), "a source gives at least one key");
        Ok(Self(keys))
    }

    pub(crate) fn all(&self) -> &[Secret] {
        &self.0
    }

    /// The newest key.
    pub(crate) fn newest(&self) -> &Secret {
        match self.0.last() {
            Some(newest) => newest,
            None => unreachable!("a source gives at least one key"),
        }
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    hex::decode_to_slice(text, &mut key[..]).ok()?;
    Some(key)
}
