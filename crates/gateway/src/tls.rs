//! Certificates of the MySQL door.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read or written.
    #[error("TLS file {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is no PEM of the right kind.
    #[error("TLS file {path} holds no usable {what}: {reason}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// Certificate or private key.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Certificate and key do not fit, or none could be made.
    #[error("TLS: {0}")]
    Setup(String),
}

/// Server configuration from a PEM certificate chain and its PEM private key.
///
/// # Errors
/// [`TlsError`] names the file at fault.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| content(certificate, "certificate", &e))?;
    if chain.is_empty() {
        return Err(content(certificate, "certificate", &"no PEM section"));
    }
    let key =
        PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|e| content(key, "private key", &e))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|e| TlsError::Setup(e.to_string()))?;
    Ok(Arc::new(config))
}

/// Server configuration from a self-signed certificate kept in `directory`, made when missing.
/// It protects against listeners, not against impostors: clients cannot verify it unless they
/// are given `server-cert.pem`.
///
/// # Errors
/// [`TlsError`] names the file at fault.
pub fn self_signed(directory: &Path, names: &[String]) -> Result<Arc<ServerConfig>, TlsError> {
    let certificate = directory.join("server-cert.pem");
    let key = directory.join("server-key.pem");
    if !certificate.exists() || !key.exists() {
        let made = rcgen::generate_simple_self_signed(names.to_vec())
            .map_err(|e| TlsError::Setup(e.to_string()))?;
        write_private(&key, made.signing_key.serialize_pem().as_bytes())?;
        write_private(&certificate, made.cert.pem().as_bytes())?;
    }
    from_files(&certificate, &key)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::File {
        path: path.to_owned(),
        source,
    })
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<(), TlsError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(|source| TlsError::File {
            path: path.to_owned(),
            source,
        })
}

fn content(path: &Path, what: &'static str, reason: &dyn std::fmt::Display) -> TlsError {
    TlsError::Content {
        path: path.to_owned(),
        what,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        self_signed(directory.path(), &["localhost".into()]).unwrap();
        let first = fs::read(directory.path().join("server-cert.pem")).unwrap();
        self_signed(directory.path(), &["localhost".into()]).unwrap();
        assert_eq!(
            fs::read(directory.path().join("server-cert.pem")).unwrap(),
            first
        );
    }

    #[test]
    fn an_error_names_the_file_at_fault() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("no.pem");
        let error = from_files(&missing, &missing).unwrap_err().to_string();
        assert!(error.contains("no.pem"), "{error}");
        fs::write(&missing, "not a certificate").unwrap();
        let error = from_files(&missing, &missing).unwrap_err().to_string();
        assert!(error.contains("certificate"), "{error}");
    }
}
