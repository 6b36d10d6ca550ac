//! Which keys a relation may have, in few bits.

use crate::hash::hash;
use crate::rows::{Key, Rows};

/// Bits for each row: with [`HASHES`] of them set, one key in forty that is not there seems to be,
/// and so of the filters of four nodes together one in ten, as in the paper (§5.1).
const BITS_EACH: u64 = 8;
const HASHES: u64 = 5;

/// Says of a key that it is not there, or that it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    /// With the keys of these rows in it.
    pub fn of(rows: &Rows) -> Self {
        let words = (rows.len() as u64 * BITS_EACH).div_ceil(64);
        let mut filter = Self {
            words: vec![0; usize::try_from(words).unwrap_or(0)],
        };
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

    /// One that has come as a message; none if it is cut off.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        rest.is_empty().then(|| Self {
            words: words.collect(),
        })
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
    fn what_is_there_is_never_denied_and_what_is_not_one_time_in_thirty_at_most_admitted() {
        let filter = Bloom::of(&rows(0..10_000));
        let filter = Bloom::from_bytes(&filter.to_bytes()).unwrap();
        assert!((0..10_000).all(|key| filter.may_have(Key(key))));
        let wrong = (10_000..110_000).filter(|key| filter.may_have(Key(*key)));
        let wrong = wrong.count();
        assert!((1_000..3_300).contains(&wrong), "{wrong} of 100,000");
    }

    #[test]
    fn a_filter_that_is_cut_off_is_none() {
        assert_eq!(Bloom::from_bytes(&[0; 9]), None);
        let empty = Bloom::from_bytes(&[]).unwrap();
        assert!(!empty.may_have(Key(1)));
        assert_eq!(Bloom::of(&rows(0..0)), empty);
    }
}
