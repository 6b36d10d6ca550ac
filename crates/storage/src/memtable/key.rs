//! Keys that mostly fit in place.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Longest key kept in place. Keys of rows and index entries over numbers are 14 to 22 bytes; that of a Redis key
/// is 7 bytes longer than its name.
const SHORT_BYTES: usize = 23;

/// Length of a short key. An enum, so that the compiler tells a long key by a value that is no length: a key costs
/// three words with 23 bytes in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Length {
    L0,
    L1,
    L2,
    L3,
    L4,
    L5,
    L6,
    L7,
    L8,
    L9,
    L10,
    L11,
    L12,
    L13,
    L14,
    L15,
    L16,
    L17,
    L18,
    L19,
    L20,
    L21,
    L22,
    L23,
}

/// All lengths, in order.
const LENGTHS: [Length; SHORT_BYTES + 1] = {
    use Length::{
        L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11, L12, L13, L14, L15, L16, L17, L18, L19, L20, L21, L22, L23,
    };
    [
        L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11, L12, L13, L14, L15, L16, L17, L18, L19, L20, L21, L22, L23,
    ]
};

/// A key of an ordered map. Comparing short ones follows no pointer, which is most of what
/// finding a place in a large map costs.
#[derive(Debug, Clone)]
pub struct Key(Place);

#[derive(Debug, Clone)]
enum Place {
    /// In the key itself: as many bytes as said first, then zeros.
    Short(Length, [u8; SHORT_BYTES]),
    /// Elsewhere, shared by all clones.
    Long(Arc<[u8]>),
}

impl Key {
    /// A copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        let place = match (short.get_mut(..bytes.len()), LENGTHS.get(bytes.len())) {
            (Some(place), Some(length)) => {
                place.copy_from_slice(bytes);
                Place::Short(*length, short)
            }
            _ => Place::Long(bytes.into()),
        };
        let key = Self(place);
        assert_eq!(key.as_slice(), bytes, "a key is ordered by all its bytes");
        key
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Place::Short(length, bytes) => &bytes[..usize::from(*length as u8).min(SHORT_BYTES)],
            Place::Long(bytes) => bytes,
        }
    }

    /// Bytes outside the key itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Place::Short(..) => 0,
            Place::Long(bytes) => bytes.len(),
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
        let in_place = |bytes: usize| Key::new(&vec![7; bytes]).heap_bytes() == 0;
        assert!(in_place(0) && in_place(SHORT_BYTES) && !in_place(SHORT_BYTES + 1));
    }

    #[test]
    fn a_length_is_its_place_among_all() {
        for (place, length) in LENGTHS.iter().enumerate() {
            assert_eq!(usize::from(*length as u8), place);
        }
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
