//! Which keys a relation may have, in few bits.

use crate::error::OlapError;
use crate::hash::hash;
use crate::rows::{Key, Rows};

/// Bits for each key: with [`HASHES`] of them set, one key in ten that is not there seems to be,
/// as in the paper (§5.1).
const BITS_EACH: u64 = 5;
const HASHES: u64 = 3;

/// Says of a key that it is not there, or that it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    /// For so many keys, none of them in it yet. Filters for equal numbers can be put together.
    pub fn for_keys(count: u64) -> Self {
        let words = (count * BITS_EACH).div_ceil(64).max(1);
        Self {
            words: vec![0; usize::try_from(words).unwrap_or(0)],
        }
    }

    /// For so many keys, with those of these rows in it.
    pub fn of(rows: &Rows, count: u64) -> Self {
        let mut filter = Self::for_keys(count);
        for row in rows {
            filter.add(Key::of(row));
        }
        filter
    }

    fn add(&mut self, key: Key) {
        for (word, bit) in places(key, self.words.len()) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= bit;
            }
        }
    }

    /// False: it is not there.
    pub fn may_have(&self, key: Key) -> bool {
        let mut places = places(key, self.words.len());
        places.all(|(word, bit)| self.words.get(word).is_some_and(|word| word & bit != 0))
    }

    /// As a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Puts the keys of another one in, which has come as a message of a node.
    ///
    /// # Errors
    /// It is of another size.
    pub fn add_all(&mut self, bytes: &[u8], node: u16) -> Result<(), OlapError> {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() != self.words.len() || !rest.is_empty() {
            let (found, own) = (bytes.len(), self.words.len() * 8);
            let what = format!("a filter of {found} bytes, not {own}");
            return Err(OlapError::Nonsense { node, what });
        }
        for (own, word) in self.words.iter_mut().zip(words) {
            *own |= u64::from_le_bytes(*word);
        }
        Ok(())
    }
}

/// The bits of a key. Their hashes are made of one, in which partitioning has used the upper bits:
/// it is turned over first, so that they do not decide here too.
fn places(key: Key, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let bits = (words as u64) * 64;
    let first = hash(key).swap_bytes();
    let step = first.rotate_left(32) | 1;
    (0..HASHES).map(move |number| {
        let mixed = first.wrapping_add(step.wrapping_mul(number));
        let bit = (u128::from(mixed) * u128::from(bits)) >> 64;
        let bit = u64::try_from(bit).unwrap_or(0); // below `bits`
        (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Width;

    fn rows(keys: std::ops::Range<u32>) -> Rows {
        let mut rows = Rows::new(Width::new(8).unwrap());
        for key in keys {
            rows.push(Key(key), &[]);
        }
        rows
    }

    #[test]
    fn what_is_there_is_never_denied_and_what_is_not_one_time_in_ten_at_most_admitted() {
        let mut filter = Bloom::of(&rows(0..5_000), 10_000);
        let other = Bloom::of(&rows(5_000..10_000), 10_000);
        filter.add_all(&other.to_bytes(), 1).unwrap();
        assert!((0..10_000).all(|key| filter.may_have(Key(key))));
        let wrong = (10_000..110_000).filter(|key| filter.may_have(Key(*key)));
        let wrong = wrong.count();
        assert!((5_000..12_000).contains(&wrong), "{wrong} of 100,000");
    }

    #[test]
    fn a_filter_of_another_size_is_refused() {
        let mut filter = Bloom::for_keys(1_000);
        let other = Bloom::for_keys(2_000);
        let refused = filter.add_all(&other.to_bytes(), 3).unwrap_err();
        assert!(refused.to_string().starts_with("node 3 says"), "{refused}");
        let empty = Bloom::for_keys(0);
        assert!(!empty.may_have(Key(1)));
    }
}
