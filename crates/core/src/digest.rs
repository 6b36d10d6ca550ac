//! Equal digests for equal histories.

/// A running 64-bit hash (FNV-1a) that is the same on every machine and in every build.
///
/// For comparing runs and replicas, not against an adversary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Digest {
    /// Takes in bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self
    }

    /// Takes in a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        // One multiplication a number instead of eight: digests are taken of every event.
        self.0 = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01B3);
        self.0 ^= self.0 >> 29;
        self
    }

    /// The digest so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}
