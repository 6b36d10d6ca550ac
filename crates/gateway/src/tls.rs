//! The certificate that all listeners of a server show.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::key_files::{self, KeyFileError, Readers};

/// The self-signed certificate in the data directory.
pub const CERTIFICATE_FILE: &str = "server-cert.pem";

/// Server configuration from a PEM certificate chain and its PEM private key.
///
/// # Errors
/// [`KeyFileError`] names the file at fault.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, KeyFileError> {
    let chain = CertificateDer::pem_slice_iter(&key_files::read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| KeyFileError::content(certificate, "certificate", e))?;
    if chain.is_empty() {
        return Err(KeyFileError::content(
            certificate,
            "certificate",
            "no PEM section",
        ));
    }
    let key = PrivateKeyDer::from_pem_slice(&key_files::read(key)?)
        .map_err(|e| KeyFileError::content(key, "private key", e))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|e| KeyFileError::Setup(e.to_string()))?;
    Ok(Arc::new(config))
}

/// Server configuration from a self-signed certificate kept in `directory`, made when missing.
/// It protects against listeners, not against impostors: clients cannot verify it unless they
/// are given `server-cert.pem`.
///
/// # Errors
/// [`KeyFileError`] names the file at fault.
pub fn self_signed(directory: &Path, names: &[String]) -> Result<Arc<ServerConfig>, KeyFileError> {
    let certificate = directory.join(CERTIFICATE_FILE);
    let key = directory.join("server-key.pem");
    if !certificate.exists() || !key.exists() {
        let made = rcgen::generate_simple_self_signed(names.to_vec())
            .map_err(|e| KeyFileError::Setup(e.to_string()))?;
        let private = made.signing_key.serialize_pem();
        key_files::write(&key, private.as_bytes(), Readers::Owner)?;
        key_files::write(&certificate, made.cert.pem().as_bytes(), Readers::All)?;
    }
    from_files(&certificate, &key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
