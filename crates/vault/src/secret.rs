//! Key material, which is zeroed when it is dropped, and what is done with it.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use zeroize::Zeroizing;

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;
/// Bytes by which what is sealed is longer, beside the nonce.
pub(crate) const TAG_BYTES: usize = 16;

/// Bits of a [`KeyId`] that no other key of the same slot number has, in any vault.
const TAG_BITS: u32 = 24;

/// Which key: the number of its slot, and 24 random bits, so that a row whose key was in another vault,
/// or in an older copy of this one, is not taken for a row of the key that has its slot now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u64);

impl KeyId {
    /// The key in slot `number`.
    pub(crate) fn new(number: u64, tag: u32) -> Self {
        assert!(
            number < 1 << (u64::BITS - TAG_BITS),
            "a slot number has 40 bits"
        );
        let id = Self(number << TAG_BITS | u64::from(tag) & ((1 << TAG_BITS) - 1));
        assert_eq!(id.slot(), number, "an id names its slot");
        id
    }

    /// The id that [`KeyId::get`] gave.
    #[must_use]
    pub fn from_stored(id: u64) -> Self {
        Self(id)
    }

    /// As a number, for a row's record.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn slot(self) -> u64 {
        self.0 >> TAG_BITS
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.0)
    }
}

/// 32 secret bytes.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl Secret {
    pub(crate) fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Another secret that follows from this one.
    pub(crate) fn derive(&self, label: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.as_slice());
        let tag = hmac::sign(&key, label);
        let mut bytes = [0; KEY_BYTES];
        assert_eq!(tag.as_ref().len(), KEY_BYTES, "HMAC-SHA256 has 32 bytes");
        bytes.copy_from_slice(tag.as_ref());
        Self::new(bytes)
    }

    /// 16 digits that only this key has.
    pub(crate) fn fingerprint(&self) -> String {
        let derived = self.derive(b"manxdb key fingerprint");
        let mut head = [0; 8];
        for (to, from) in head.iter_mut().zip(derived.0.iter()) {
            *to = *from;
        }
        format!("{:016x}", u64::from_be_bytes(head))
    }

    fn cipher(&self) -> LessSafeKey {
        match UnboundKey::new(&AES_256_GCM_SIV, self.0.as_slice()) {
            Ok(key) => LessSafeKey::new(key),
            Err(_) => unreachable!("AES-256 takes a key of 32 bytes"),
        }
    }

    /// Encrypts what is in `bytes` behind `from`, where it is, and appends the tag.
    pub(crate) fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &[u8],
        bytes: &mut Vec<u8>,
        from: usize,
    ) {
        assert!(from <= bytes.len(), "there is something to encrypt");
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = &mut bytes[from..];
        let sealed = self
            .cipher()
            .seal_in_place_separate_tag(nonce, Aad::from(aad), plain);
        match sealed {
            Ok(tag) => bytes.extend_from_slice(tag.as_ref()),
            Err(_) => unreachable!("AES-256-GCM-SIV seals up to 2^36 bytes"),
        }
    }

    /// Decrypts what [`Secret::encrypt`] made; `None` when it is not that.
    pub(crate) fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
    ) -> Option<Vec<u8>> {
        let mut bytes = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = self
            .cipher()
            .open_in_place(nonce, Aad::from(aad), &mut bytes)
            .ok()?
            .len();
        assert_eq!(length + TAG_BYTES, sealed.len(), "a tag has 16 bytes");
        bytes.truncate(length);
        Some(bytes)
    }
}
