//! Bytes written down as bytes. Derived code goes through a vector of bytes one by one, which made a message
//! of some megabytes take seconds in a build without optimisations, and its server look dead meanwhile. What
//! is written is the same in both ways: a length, then the bytes.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serialize, Serializer};

/// Bytes that are written down at once, inside of a larger value. `&[u8]` reads them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// For fields: `#[serde(with = "crate::bytes")]`.
pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// See [`serialize`].
pub(crate) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_byte_buf(Collect)
}

struct Collect;

impl Visitor<'_> for Collect {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct AtOnce {
        #[serde(with = "crate::bytes")]
        bytes: Vec<u8>,
        behind: u8,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct OneByOne {
        bytes: Vec<u8>,
        behind: u8,
    }

    #[test]
    fn bytes_written_at_once_are_those_that_earlier_versions_wrote_one_by_one() {
        for length in [0, 1, 127, 128, 300, 70_000] {
            let bytes = vec![0x80; length];
            let before = OneByOne {
                bytes: bytes.clone(),
                behind: 7,
            };
            let before = postcard::to_stdvec(&before).unwrap();
            let now = AtOnce { bytes, behind: 7 };
            assert_eq!(postcard::to_stdvec(&now).unwrap(), before);
            assert_eq!(
                postcard::to_stdvec(&(Bytes(&now.bytes), 7_u8)).unwrap(),
                before
            );
            assert_eq!(postcard::from_bytes(&before), Ok(now));
            let cut = &before[..before.len() - 2];
            assert!(length == 0 || postcard::from_bytes::<AtOnce>(cut).is_err());
        }
    }
}
