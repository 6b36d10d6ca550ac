//! The RSA key pair with which clients send a password over a connection without TLS.
//!
//! MySQL's `caching_sha2_password` asks for the password itself when a scramble is not enough.
//! Without TLS a client encrypts it for the server's public key (RSA-OAEP with SHA-1), after
//! covering it with the challenge, so that a recorded answer is of no use later.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::key_files::{self, KeyFileError, Readers};

/// Name of the private key in the data directory, MySQL's.
const PRIVATE_FILE: &str = "private_key.pem";
/// Name of the public key in the data directory, MySQL's.
const PUBLIC_FILE: &str = "public_key.pem";

/// The key pair.
pub struct PasswordKey {
    private: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl PasswordKey {
    /// The pair kept in `directory`, made when missing: `private_key.pem`, which only the
    /// server's user can read, and `public_key.pem`, for clients that bring it along.
    ///
    /// # Errors
    /// [`KeyFileError`] names the file at fault.
    pub fn open(directory: &Path) -> Result<Arc<Self>, KeyFileError> {
        let path = directory.join(PRIVATE_FILE);
        let pair = if path.exists() {
            read_pair(&path)?
        } else {
            let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
                .map_err(|error| KeyFileError::Setup(error.to_string()))?;
            key_files::write(&path, pair.serialize_pem().as_bytes(), Readers::Owner)?;
            pair
        };
        let public_pem = pair.public_key_pem();
        let public_path = directory.join(PUBLIC_FILE);
        let known = std::fs::read(&public_path).is_ok_and(|bytes| bytes == public_pem.as_bytes());
        if !known {
            key_files::write(&public_path, public_pem.as_bytes(), Readers::All)?;
        }
        let unusable = |reason: &dyn std::fmt::Display| {
            KeyFileError::content(&path, "RSA key of at least 2048 bits", reason)
        };
        let private =
            PrivateDecryptingKey::from_pkcs8(&pair.serialize_der()).map_err(|e| unusable(&e))?;
        let private = OaepPrivateDecryptingKey::new(private).map_err(|e| unusable(&e))?;
        Ok(Arc::new(Self {
            private,
            public_pem,
        }))
    }

    /// The public key, as clients take it.
    #[must_use]
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The password in `ciphertext`, which its sender covered with `challenge`; `None` for
    /// anything this key's holder could not have been sent in good faith.
    #[must_use]
    pub fn decrypt(&self, ciphertext: &[u8], challenge: &[u8]) -> Option<Vec<u8>> {
        if ciphertext.len() != self.private.key_size_bytes() {
            return None;
        }
        let mut room = vec![0; self.private.min_output_size()];
        let covered = self
            .private
            .decrypt(&OAEP_SHA1_MGF1SHA1, ciphertext, &mut room, None)
            .ok()?;
        let bytes = covered.iter().zip(challenge.iter().cycle());
        let mut password: Vec<u8> = bytes.map(|(byte, cover)| byte ^ cover).collect();
        // The password travels with its NUL.
        (password.pop() == Some(0)).then_some(password)
    }
}

fn read_pair(path: &Path) -> Result<KeyPair, KeyFileError> {
    let what = "private RSA key";
    let bytes = key_files::read(path)?;
    let der = PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| KeyFileError::content(path, what, error))?;
    let PrivateKeyDer::Pkcs8(der) = der else {
        let reason = "it is not in PKCS#8 form; `openssl pkcs8 -topk8 -nocrypt` makes it so";
        return Err(KeyFileError::content(path, what, reason));
    };
    let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_RSA_SHA256)
        .map_err(|error| KeyFileError::content(path, what, error))?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rsa::{OaepPublicEncryptingKey, PublicEncryptingKey};
    use rustls::pki_types::SubjectPublicKeyInfoDer;
    use std::os::unix::fs::PermissionsExt as _;

    const CHALLENGE: [u8; 20] = *b"abcdefghijklmnopqrst";

    /// What a client makes of the public key it was sent.
    fn encrypted(public_pem: &str, clear: &[u8]) -> Vec<u8> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(public_pem.as_bytes()).unwrap();
        let key = PublicEncryptingKey::from_der(der.as_ref()).unwrap();
        let key = OaepPublicEncryptingKey::new(key).unwrap();
        let covers = CHALLENGE.iter().cycle();
        let covered: Vec<u8> = clear.iter().zip(covers).map(|(a, b)| a ^ b).collect();
        let mut out = vec![0; key.ciphertext_size()];
        key.encrypt(&OAEP_SHA1_MGF1SHA1, &covered, &mut out, None)
            .unwrap();
        out
    }

    #[test]
    fn a_password_survives_the_trip_and_nothing_else_does() {
        let directory = tempfile::tempdir().unwrap();
        let key = PasswordKey::open(directory.path()).unwrap();
        // Longer than the challenge, which is repeated then.
        let password = b"correct horse battery staple \xC3\xA9";
        let sent = encrypted(key.public_pem(), &[&password[..], &[0]].concat());
        assert_eq!(
            key.decrypt(&sent, &CHALLENGE).as_deref(),
            Some(&password[..])
        );
        assert_ne!(
            key.decrypt(&sent, b"another").as_deref(),
            Some(&password[..])
        );
        assert_eq!(key.decrypt(&sent[1..], &CHALLENGE), None);
        assert_eq!(
            key.decrypt(&[sent.clone(), vec![0]].concat(), &CHALLENGE),
            None
        );
        assert_eq!(key.decrypt(&[0xFF; 256], &CHALLENGE), None);
        assert_eq!(key.decrypt(&[], &CHALLENGE), None);
        let no_nul = encrypted(key.public_pem(), b"password");
        assert_eq!(key.decrypt(&no_nul, &CHALLENGE), None);
        let nothing = encrypted(key.public_pem(), b"");
        assert_eq!(key.decrypt(&nothing, &CHALLENGE), None);
    }

    #[test]
    fn the_pair_is_made_once_and_the_private_half_is_for_the_server_alone() {
        let directory = tempfile::tempdir().unwrap();
        let first = PasswordKey::open(directory.path()).unwrap();
        std::fs::remove_file(directory.path().join(PUBLIC_FILE)).unwrap();
        let second = PasswordKey::open(directory.path()).unwrap();
        assert_eq!(first.public_pem(), second.public_pem());
        let public = std::fs::read_to_string(directory.path().join(PUBLIC_FILE)).unwrap();
        assert_eq!(public, first.public_pem());
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"));
        let private = std::fs::metadata(directory.path().join(PRIVATE_FILE)).unwrap();
        assert_eq!(private.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_no_key_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(PRIVATE_FILE), "not a key").unwrap();
        let error = PasswordKey::open(directory.path()).err().unwrap();
        assert!(error.to_string().contains(PRIVATE_FILE), "{error}");
    }
}
