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

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

pub use audit::{AuditEvent, AuditKind, AuditRecord, ChainedRecord, CountedRows, GENESIS};
pub use certificate::{AuditTrail, Certificate, KeyFacts, Times, issue};
pub use verify::{Verified, verify};

/// Bytes of the secret that signing and hashing of people rest on.
pub const SEED_BYTES: usize = 32;

/// The bytes that lower-case hexadecimal digits stand for; `None` for any other text, so that the
/// same bytes are not two texts.
fn from_lower_hex(text: &str) -> Option<Vec<u8>> {
    let is_lower = !text.contains(|c: char| c.is_ascii_uppercase());
    is_lower.then(|| hex::decode(text).ok())?
}

/// SHA-256, as digits.
pub(crate) fn sha256(parts: &[&[u8]]) -> String {
    hex::encode(digest(&SHA256, &parts.concat()))
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
        hex::encode(self.pair.public_key().as_ref())
    }

    /// What stands for a person of a table in records.
    #[must_use]
    pub fn subject(&self, table: u32, hash: &[u8; 16]) -> String {
        let tag = hmac::sign(&self.subjects, &[&table.to_be_bytes()[..], hash].concat());
        hex::encode(tag.as_ref().get(..16).unwrap_or_default())
    }

    pub(crate) fn sign(&self, text: &str) -> String {
        hex::encode(self.pair.sign(text.as_bytes()).as_ref())
    }
}
