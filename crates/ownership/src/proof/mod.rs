//! Proof that a person was forgotten: a chain of audit records, and certificates over parts of it.
//!
//! No personal value is in either: a person is a keyed hash, rows are numbers by table and rule. Pure code, as
//! the rest of the crate: who calls it stores records, reads clocks and keeps the signing key.
//!
//! | question | module |
//! |---|---|
//! | what is recorded, and how records hang together | [`audit`] |
//! | what a certificate says, and how it follows from records | [`certificate`] |
//! | whether a certificate is whole, and what is wrong with it | [`verify`] |

pub mod audit;
pub mod certificate;
pub mod verify;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

pub use audit::{AuditEvent, AuditKind, AuditRecord, ChainedRecord, CountedRows, GENESIS};
pub use certificate::{Certificate, KeyFacts, Times, issue};
pub use verify::{Verified, verify};

/// Bytes of the secret that signing and hashing of people rest on.
pub const SEED_BYTES: usize = 32;

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes that lower-case digits stand for; `None` for any other text.
#[must_use]
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    pairs.iter().map(byte).collect()
}

/// SHA-256, as digits.
pub(crate) fn sha256(parts: &[&[u8]]) -> String {
    hex(digest(&SHA256, &parts.concat()).as_ref())
}

/// What signs certificates and stands for people in records.
pub struct ProofKey {
    pair: Ed25519KeyPair,
    subjects: hmac::Key,
}

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProofKey({})", self.public())
    }
}

impl ProofKey {
    /// The key of a seed; `None` when no key can be made of it.
    #[must_use]
    pub fn new(seed: &[u8; SEED_BYTES]) -> Option<Self> {
        let subjects = hmac::Key::new(hmac::HMAC_SHA256, seed);
        Some(Self {
            pair: Ed25519KeyPair::from_seed_unchecked(seed).ok()?,
            subjects,
        })
    }

    /// The public key, as digits: who verifies must know it from elsewhere.
    #[must_use]
    pub fn public(&self) -> String {
        hex(self.pair.public_key().as_ref())
    }

    /// What stands for a person of a table in records.
    #[must_use]
    pub fn subject(&self, table: u32, hash: &[u8; 16]) -> String {
        let tag = hmac::sign(&self.subjects, &[&table.to_be_bytes()[..], hash].concat());
        hex(tag.as_ref().get(..16).unwrap_or_default())
    }

    pub(crate) fn sign(&self, text: &str) -> String {
        hex(self.pair.sign(text.as_bytes()).as_ref())
    }
}
