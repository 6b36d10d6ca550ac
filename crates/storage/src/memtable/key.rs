//! Keys that mostly fit in place.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Longest key kept in place. Keys of rows and index entries over numbers are 14 to 22 bytes.
const SHORT_BYTES: usize = 22;
const _: () = assert!(
    SHORT_BYTES <= u8::MAX as usize,
    "the length of a short key is a byte"
);

/// A key of an ordered map. Comparing short ones follows no pointer, which is most of what
/// finding a place in a large map costs.
#[derive(Debug, Clone)]
pub enum Key {
    /// In place: as many bytes as said first.
    Short(u8, [u8; SHORT_BYTES]),
    /// Elsewhere, shared by all clones.
    Long(Arc<[u8]>),
}

impl Key {
    /// A copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        let key = match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(bytes);
                Self::Short(length, short)
            }
            _ => Self::Long(bytes.into()),
        };
        assert_eq!(key.as_slice(), bytes, "a key is ordered by all its bytes");
        key
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short(length, bytes) => &bytes[..usize::from(*length).min(SHORT_BYTES)],
            Self::Long(bytes) => bytes,
        }
    }

    /// Bytes outside the key itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Short(..) => 0,
            Self::Long(bytes) => bytes.len(),
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_costs_three_words() {
        assert_eq!(size_of::<Key>(), 24);
    }

    proptest! {
        #[test]
        fn keys_of_any_length_are_their_bytes(
            one in prop::collection::vec(0..3_u8, 0..30),
            other in prop::collection::vec(0..3_u8, 0..30),
        ) {
            let key = Key::new(&one);
            prop_assert_eq!(key.as_slice(), &one[..]);
            prop_assert_eq!(Key::new(&one).cmp(&Key::new(&other)), one.cmp(&other));
            prop_assert_eq!(Key::new(&one) == Key::new(&other), one == other);
        }
    }
}
