//! The two password plugins, checked against stored verifiers.
//!
//! `mysql_native_password` stores SHA1(SHA1(password)), `caching_sha2_password` here stores
//! SHA256(SHA256(password)): what MySQL keeps in its cache. The client's scramble can always be
//! checked against it, so the fast path never misses and the clear-text exchange over TLS
//! is only ever the second chance of a client whose scramble was wrong.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;

use super::handshake::SALT_LENGTH;

/// How an account proves its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// `caching_sha2_password`, the default.
    CachingSha2,
    /// `mysql_native_password`.
    Native,
}

impl Plugin {
    /// The plugin called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "caching_sha2_password" => Some(Self::CachingSha2),
            "mysql_native_password" => Some(Self::Native),
            _ => None,
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => "caching_sha2_password",
            Self::Native => "mysql_native_password",
        }
    }

    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::CachingSha2 => &digest::SHA256,
            Self::Native => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        }
    }

    /// Verifier of a password; empty for an empty one.
    #[must_use]
    pub fn verifier(self, password: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        let once = digest::digest(self.algorithm(), password);
        digest::digest(self.algorithm(), once.as_ref())
            .as_ref()
            .to_vec()
    }

    /// Whether `response` answers the challenge `salt` with the password behind `verifier`.
    ///
    /// Takes the same time for right and wrong answers of the right length.
    #[must_use]
    pub fn check(self, verifier: &[u8], salt: &[u8; SALT_LENGTH], response: &[u8]) -> bool {
        // An empty password is sent as nothing, by some clients as one NUL.
        let empty_response = response.is_empty() || response == [0];
        if verifier.is_empty() || empty_response {
            return verifier.is_empty() && empty_response;
        }
        if response.len() != self.algorithm().output_len() {
            return false;
        }
        // native: response = SHA1(pw) ^ SHA1(salt ‖ verifier);
        // sha2:   response = SHA256(pw) ^ SHA256(verifier ‖ salt).
        let mut mask = digest::Context::new(self.algorithm());
        match self {
            Self::Native => {
                mask.update(salt);
                mask.update(verifier);
            }
            Self::CachingSha2 => {
                mask.update(verifier);
                mask.update(salt);
            }
        }
        let mask = mask.finish();
        let once: Vec<u8> = response
            .iter()
            .zip(mask.as_ref())
            .map(|(a, b)| a ^ b)
            .collect();
        let twice = digest::digest(self.algorithm(), &once);
        verify_slices_are_equal(twice.as_ref(), verifier).is_ok()
    }

    /// Whether `password`, sent in clear over TLS, is the one behind `verifier`.
    #[must_use]
    pub fn check_clear(self, verifier: &[u8], password: &[u8]) -> bool {
        verify_slices_are_equal(&self.verifier(password), verifier).is_ok()
    }
}

/// A verifier nobody has the password of, so that unknown users take the path of known ones.
#[must_use]
pub fn unknown_user_verifier() -> Vec<u8> {
    vec![0; digest::SHA256_OUTPUT_LEN]
}

/// A challenge without NUL bytes, which would end it early for old clients.
///
/// # Errors
/// The operating system has no randomness to give.
pub fn random_salt() -> Result<[u8; SALT_LENGTH], aws_lc_rs::error::Unspecified> {
    use aws_lc_rs::rand::SecureRandom;
    let mut salt = [0; SALT_LENGTH];
    aws_lc_rs::rand::SystemRandom::new().fill(&mut salt)?;
    for byte in &mut salt {
        *byte = 1 + *byte % 127; // 1..=127: neither NUL nor a lead byte of UTF-8
    }
    Ok(salt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::auth::plugins::{
        caching_sha2_password::scramble_sha256, mysql_native_password::scramble_native,
    };

    const BOTH: [Plugin; 2] = [Plugin::CachingSha2, Plugin::Native];

    fn client_answer(plugin: Plugin, salt: &[u8; SALT_LENGTH], password: &[u8]) -> Vec<u8> {
        match plugin {
            Plugin::CachingSha2 => scramble_sha256(salt, password).map(|s| s.to_vec()),
            Plugin::Native => scramble_native(salt, password).map(|s| s.to_vec()),
        }
        .unwrap_or_default()
    }

    #[test]
    fn the_right_password_passes_and_a_wrong_one_does_not() {
        let salt = random_salt().unwrap();
        for plugin in BOTH {
            let verifier = plugin.verifier(b"s3cret");
            let right = client_answer(plugin, &salt, b"s3cret");
            let wrong = client_answer(plugin, &salt, b"S3cret");
            assert!(plugin.check(&verifier, &salt, &right));
            assert!(!plugin.check(&verifier, &salt, &wrong));
            assert!(!plugin.check(&verifier, &salt, &right[1..]));
        }
    }

    #[test]
    fn an_answer_to_another_challenge_does_not_pass() {
        for plugin in BOTH {
            let answer = client_answer(plugin, &[7; SALT_LENGTH], b"pw");
            assert!(!plugin.check(&plugin.verifier(b"pw"), &[8; SALT_LENGTH], &answer));
        }
    }

    #[test]
    fn an_empty_answer_passes_only_for_an_empty_password() {
        let salt = [9; SALT_LENGTH];
        for plugin in BOTH {
            assert!(plugin.check(&[], &salt, &[]));
            assert!(plugin.check(&[], &salt, &[0]));
            assert!(!plugin.check(&plugin.verifier(b"pw"), &salt, &[]));
            assert!(!plugin.check(&[], &salt, &client_answer(plugin, &salt, b"pw")));
        }
    }

    #[test]
    fn challenges_differ_and_hold_no_nul() {
        let (a, b) = (random_salt().unwrap(), random_salt().unwrap());
        assert_ne!(a, b);
        assert!(a.iter().chain(&b).all(|byte| (1..128).contains(byte)));
    }
}
