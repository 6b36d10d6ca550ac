//! What is told of a key without giving anything of it away: for records of what was destroyed.

use crate::disk::Place;
use crate::error::VaultError;
use crate::secret::KeyId;
use crate::slot::Slot;
use crate::vault::Vault;

impl Vault {
    /// What tells a key from others without giving anything of it away: 16 digits.
    ///
    /// # Errors
    /// As [`Vault::open_sealed`].
    pub fn fingerprint(&self, id: KeyId) -> Result<String, VaultError> {
        Ok(self.opened()?.key(id)?.fingerprint())
    }

    /// Whether a key is destroyed in both places.
    ///
    /// # Errors
    /// The disk's.
    pub fn is_erased(&self, id: KeyId) -> Result<bool, VaultError> {
        let opened = self.opened()?;
        for place in Place::BOTH {
            if opened.slots.read_in(place, id.slot())? != Slot::Erased(id) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
