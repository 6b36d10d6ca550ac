//! Keys that lie in the nodes of a map, not behind a pointer.

use std::cmp::Ordering;

use manxdb_core::check::deep;

/// Longest key without an allocation of its own.
const INLINE_MAX: usize = 23;
const _: () = assert!(
    INLINE_MAX + 1 == 3 * size_of::<u64>() && INLINE_MAX <= u8::MAX as usize,
    "a short key and its length are compared as three words"
);

/// A key of a row. Comparing short ones, as nearly all are, follows no pointer and takes a word at a
/// time: that is most of the time of a look-up in a map of millions.
#[derive(Debug, Clone)]
pub(super) enum RowKey {
    /// The key, zeros, and its length in the last byte: so the whole sorts as the key does, and
    /// of two that differ in zeros at the end only, the shorter comes first.
    Inline([u8; INLINE_MAX + 1]),
    Heap(Box<[u8]>),
}

impl RowKey {
    pub(super) fn new(key: &[u8]) -> Self {
        let mut bytes = [0; INLINE_MAX + 1];
        let made = match u8::try_from(key.len()) {
            Ok(length) if key.len() <= INLINE_MAX => {
                bytes[..key.len()].copy_from_slice(key);
                bytes[INLINE_MAX] = length;
                Self::Inline(bytes)
            }
            _ => Self::Heap(key.into()),
        };
        assert!(
            !deep() || made.as_slice() == key,
            "a key is ordered by all its bytes"
        );
        made
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => &bytes[..usize::from(bytes[INLINE_MAX])],
            Self::Heap(bytes) => bytes,
        }
    }
}

fn words(bytes: &[u8; INLINE_MAX + 1]) -> [u64; 3] {
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

impl Ord for RowKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Inline(one), Self::Inline(other)) => words(one).cmp(&words(other)),
            _ => self.as_slice().cmp(other.as_slice()),
        }
    }
}

impl PartialOrd for RowKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RowKey {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        // Zeros at the end and lengths around the limit are what could go wrong.
        let byte = prop_oneof![Just(0), Just(1), any::<u8>()];
        let tail = prop::collection::vec(byte, 0..6);
        (prop_oneof![Just(0_usize), 15..27_usize], tail).prop_map(|(length, tail)| {
            let mut key = vec![7; length];
            key.extend(tail);
            key
        })
    }

    proptest! {
        #[test]
        fn keys_are_themselves_and_sort_as_their_bytes(one in key(), other in key()) {
            let (kept, other_kept) = (RowKey::new(&one), RowKey::new(&other));
            prop_assert_eq!(kept.as_slice(), one.as_slice());
            prop_assert_eq!(kept.cmp(&other_kept), one.cmp(&other));
        }
    }
}
