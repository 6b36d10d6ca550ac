//! Checksums around descriptions of jobs and results, which pass through networks and the control
//! plane's disk. No process on the way reads them, so the receiver detects a flipped bit by the
//! checksum.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of a sum.
const SUM: usize = 4;

/// Bytes with their CRC-32 behind them.
#[must_use]
pub fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// The sealed bytes; `None` if they were damaged.
#[must_use]
pub fn unseal(sealed: &[u8]) -> Option<&[u8]> {
    let (bytes, sum) = sealed.split_last_chunk::<SUM>()?;
    (crc32fast::hash(bytes) == u32::from_le_bytes(*sum)).then_some(bytes)
}

/// A value with its CRC-32 behind it.
///
/// # Errors
/// It cannot be described in postcard.
pub fn pack<T: Serialize>(value: &T) -> postcard::Result<Vec<u8>> {
    postcard::to_stdvec(value).map(seal)
}

/// A packed value; `None` if it was damaged, or is of another type.
#[must_use]
pub fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Option<T> {
    postcard::from_bytes(unseal(packed)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bit_flips_unseen() {
        let sealed = seal(b"a description".to_vec());
        assert_eq!(unseal(&sealed), Some(&b"a description"[..]));
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(&damaged), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(unseal(&sealed[..length]), None, "{length} bytes");
        }
    }
}
