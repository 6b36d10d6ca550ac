//! Random bytes, given from outside so that tests repeat.

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use parking_lot::Mutex;

use crate::error::VaultError;
use crate::secret::NONCE_BYTES;

/// Nonces drawn at once: one call of the system for each would cost more than sealing a row.
const NONCES_AT_ONCE: usize = 256;

/// A source of random bytes for keys and nonces.
pub trait Randomness: Send + Sync {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`VaultError::NoRandomness`].
    fn fill(&self, bytes: &mut [u8]) -> Result<(), VaultError>;
}

/// The operating system's, through the cryptography library.
#[derive(Debug, Default)]
pub struct SystemRandomness(SystemRandom);

impl Randomness for SystemRandomness {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), VaultError> {
        self.0.fill(bytes).map_err(|_| VaultError::NoRandomness)
    }
}

/// Nonces drawn ahead; each is given once.
#[derive(Debug, Default)]
pub(crate) struct Nonces(Mutex<Vec<u8>>);

impl Nonces {
    pub(crate) fn next(&self, random: &dyn Randomness) -> Result<[u8; NONCE_BYTES], VaultError> {
        let mut left = self.0.lock();
        if left.is_empty() {
            let mut drawn = vec![0; NONCES_AT_ONCE * NONCE_BYTES];
            random.fill(&mut drawn)?;
            *left = drawn;
        }
        assert_eq!(left.len() % NONCE_BYTES, 0, "whole nonces are left");
        let mut nonce = [0; NONCE_BYTES];
        let from = left.len() - NONCE_BYTES;
        nonce.copy_from_slice(&left[from..]);
        left.truncate(from);
        Ok(nonce)
    }
}
