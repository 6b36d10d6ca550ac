//! A keyed function over values that lie in keys of indexes: equal values have equal marks, and nobody
//! without the key learns more than that.

use std::fmt;

use aws_lc_rs::cmac;

use crate::error::VaultError;
use crate::secret::{KeyId, Secret};
use crate::vault::Vault;

/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;

/// AES-256-CMAC under a key of the vault. It holds the key until it is dropped.
#[derive(Clone)]
pub struct Blinder(cmac::Key);

impl fmt::Debug for Blinder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Blinder(..)")
    }
}

impl Blinder {
    /// Under a secret that follows from `key`: what seals and what blinds is never the same.
    fn of(key: &Secret) -> Self {
        let secret = key.derive(b"manxdb blinded keys");
        match cmac::Key::new(cmac::AES_256, secret.bytes()) {
            Ok(key) => Self(key),
            Err(_) => unreachable!("AES-256 takes a key of 32 bytes"),
        }
    }

    /// The mark of a value: the same for the same bytes, and 2^-128 likely for any others.
    #[must_use]
    pub fn mark(&self, value: &[u8]) -> [u8; MARK_BYTES] {
        let mut mark = [0; MARK_BYTES];
        match cmac::sign_to_buffer(&self.0, value, &mut mark) {
            Ok(written) => assert_eq!(written.len(), MARK_BYTES, "a mark has one length"),
            Err(_) => unreachable!("CMAC is made of bytes in memory"),
        }
        mark
    }
}

impl Vault {
    /// What blinds values under a key, which is used for nothing else.
    ///
    /// # Errors
    /// As [`Vault::open_sealed`].
    pub fn blinder(&self, id: KeyId) -> Result<Blinder, VaultError> {
        let opened = self.opened()?;
        let key = opened.key(id)?;
        Ok(Blinder::of(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_under_one_key_have_one_mark_and_no_others_do() {
        let blinders = [1, 2].map(|byte| Blinder::of(&Secret::new([byte; 32])));
        let values: [&[u8]; 4] = [
            b"",
            b"ann",
            b"ann\0",
            b"a longer value than one block of AES has",
        ];
        let mut marks = std::collections::BTreeSet::new();
        for blinder in &blinders {
            for value in values {
                assert_eq!(blinder.mark(value), blinder.clone().mark(value));
                assert!(marks.insert(blinder.mark(value)), "two values, one mark");
            }
        }
        assert_eq!(marks.len(), blinders.len() * values.len());
    }
}
