//! The secrets of a pool as settings name them: files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::transport::security::{Security, Tls};

/// Where they are.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// The token.
    pub token: Option<PathBuf>,
    /// Certificates in PEM: of the authority that signs the peers',
    pub authority: Option<PathBuf>,
    /// our own,
    pub certificate: Option<PathBuf>,
    /// and its key.
    pub key: Option<PathBuf>,
    /// The name in the control plane's certificate.
    pub server_name: String,
}

impl Secrets {
    /// Whether all certificates are given, or none.
    ///
    /// # Errors
    /// What belongs together.
    pub fn check(&self) -> Result<(), String> {
        match (&self.authority, &self.certificate, &self.key) {
            (Some(_), Some(_), Some(_)) | (None, None, None) => Ok(()),
            _ => Err(
                "compaction_tls_ca, compaction_tls_cert and compaction_tls_key belong together: \
                 give all or none"
                    .to_owned(),
            ),
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// One of them cannot be read, is empty, or is missing.
    pub fn read(&self) -> Result<Security, String> {
        self.check()?;
        let token = self.token.as_deref().map(token).transpose()?;
        let tls = match (&self.authority, &self.certificate, &self.key) {
            (Some(authority), Some(certificate), Some(key)) => Some(Tls {
                authority: read(authority)?,
                certificate: read(certificate)?,
                key: read(key)?,
                server_name: self.server_name.clone(),
            }),
            _ => None,
        };
        Ok(Security { token, tls })
    }
}

fn token(path: &Path) -> Result<String, String> {
    match read(path)?.trim() {
        "" => Err(format!("the token file {} is empty", path.display())),
        token => Ok(token.to_owned()),
    }
}

/// The content of a secret's file.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_what_is_in_the_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            Some(path)
        };
        let secrets = Secrets {
            token: file("token", " a secret\n"),
            authority: file("ca", "one"),
            certificate: file("cert", "two"),
            key: file("key", "three"),
            server_name: "here".to_owned(),
        };
        let security = secrets.read().unwrap();
        assert_eq!(security.token.as_deref(), Some("a secret"));
        let tls = security.tls.unwrap();
        assert_eq!(
            [tls.authority, tls.certificate, tls.key],
            ["one", "two", "three"]
        );
        assert!(Secrets::default().read().unwrap().tls.is_none());
    }

    #[test]
    fn what_is_wrong_with_them_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty");
        fs::write(&empty, "\n").unwrap();
        let with = |token: &Path, key: Option<&Path>| {
            let secrets = Secrets {
                token: Some(token.to_owned()),
                key: key.map(Path::to_owned),
                ..Secrets::default()
            };
            secrets.read().unwrap_err()
        };
        assert!(with(&empty, None).contains("is empty"));
        assert!(with(Path::new("/not there"), None).contains("cannot read /not there"));
        assert!(with(&empty, Some(&empty)).contains("belong together"));
    }
}
