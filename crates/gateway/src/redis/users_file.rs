//! The file of users: ACL LOAD and SAVE.

use std::path::{Path, PathBuf};

use crate::key_files::{self, Readers};

/// Where users are kept, a line for each.
#[derive(Debug, Clone)]
pub struct UsersFile(pub PathBuf);

impl UsersFile {
    /// What it says.
    ///
    /// # Errors
    /// Why it cannot be read, with its name.
    pub fn read(&self) -> Result<String, String> {
        let bytes = key_files::read(&self.0).map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| format!("{} is no text", self.0.display()))
    }

    /// Puts `text` in its place, as a whole and durably. Only the server's own user reads it: hashes of
    /// passwords are in it.
    ///
    /// # Errors
    /// Why it cannot be written; it has its old content then.
    pub fn write(&self, text: &str) -> Result<(), String> {
        let written = key_files::write(&self.0, text.as_bytes(), Readers::Owner);
        written.map_err(|error| error.to_string())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
