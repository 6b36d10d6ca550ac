//! Members in order, by rank too: sorted chunks of bounded length.
//!
//! A rank is found by adding up the lengths of chunks, which for ten million members is some tens
//! of thousands of additions; a change moves at most one chunk.

use std::cmp::Ordering;
use std::sync::Arc;

/// Members of a chunk at most; a longer one is cut in two.
const CHUNK_MAX: usize = 512;

/// A member with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Never NaN.
    pub score: f64,
    /// The member.
    pub member: Arc<[u8]>,
}

impl Scored {
    /// By score, then by member.
    pub fn order(&self, score: f64, member: &[u8]) -> Ordering {
        compare(self.score, score).then_with(|| (*self.member).cmp(member))
    }
}

/// Order of scores, where both zeros are the same. It is total: [`Order::insert`] takes no NaN.
fn compare(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

/// The order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Order {
    /// None is empty.
    chunks: Vec<Vec<Scored>>,
    len: usize,
}

impl Order {
    /// The chunk that holds, or would hold, what is at or behind the point where `is_before` ends.
    fn chunk(&self, is_before: impl Fn(&Scored) -> bool) -> usize {
        let behind = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(&is_before));
        behind.min(self.chunks.len().saturating_sub(1))
    }

    /// Adds a member that is not in it.
    pub fn insert(&mut self, scored: Scored) {
        assert!(!scored.score.is_nan(), "a score that has no order");
        self.len += 1;
        let is_before = |other: &Scored| other.order(scored.score, &scored.member).is_lt();
        let at = self.chunk(is_before);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![scored]);
            return;
        };
        let place =
            chunk.partition_point(|other| other.order(scored.score, &scored.member).is_lt());
        chunk.insert(place, scored);
        if chunk.len() > CHUNK_MAX {
            let behind = chunk.split_off(CHUNK_MAX / 2);
            self.chunks.insert(at + 1, behind);
        }
    }

    /// Removes a member that is in it.
    pub fn remove(&mut self, score: f64, member: &[u8]) {
        let at = self.chunk(|other| other.order(score, member).is_lt());
        let place = self.chunks.get(at).and_then(|chunk| {
            chunk
                .binary_search_by(|other| other.order(score, member))
                .ok()
        });
        // No score is NaN, so the order is total and finds what is in it.
        assert!(place.is_some(), "a member of the set is not in its order");
        let Some(place) = place else { return };
        self.chunks[at].remove(place);
        if self.chunks[at].is_empty() {
            self.chunks.remove(at);
        }
        self.len -= 1;
    }

    /// How many come before the point where `is_before` ends.
    pub fn rank(&self, is_before: impl Fn(&Scored) -> bool) -> usize {
        let at = self.chunk(&is_before);
        let before: usize = self.chunks.iter().take(at).map(Vec::len).sum();
        let inside = self
            .chunks
            .get(at)
            .map_or(0, |chunk| chunk.partition_point(&is_before));
        before + inside
    }

    /// The member of a rank.
    pub fn at(&self, rank: usize) -> Option<&Scored> {
        self.from(rank).next()
    }

    /// Members from a rank on.
    pub fn from(&self, mut rank: usize) -> impl Iterator<Item = &Scored> {
        let mut first = 0;
        while let Some(chunk) = self.chunks.get(first)
            && rank >= chunk.len()
        {
            rank -= chunk.len();
            first += 1;
        }
        self.chunks[first.min(self.chunks.len())..]
            .iter()
            .flatten()
            .skip(rank)
    }

    /// Members before a rank, from the last on.
    pub fn back_from(&self, end: usize) -> impl Iterator<Item = &Scored> {
        let skipped = self.len - end.min(self.len);
        let mut last = self.chunks.len();
        let mut skipped_here = skipped;
        while last > 0 && skipped_here >= self.chunks[last - 1].len() {
            skipped_here -= self.chunks[last - 1].len();
            last -= 1;
        }
        self.chunks[..last]
            .iter()
            .rev()
            .flat_map(|chunk| chunk.iter().rev())
            .skip(skipped_here)
    }

    /// Members.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_list(writes in prop::collection::vec((0..40_u8, any::<bool>()), 0..200)) {
            let mut order = Order::default();
            let mut model: Vec<(i32, Vec<u8>)> = Vec::new();
            for (number, is_insert) in writes {
                let wanted = (i32::from(number / 3), vec![number]);
                match model.binary_search(&wanted) {
                    Ok(place) if !is_insert => {
                        model.remove(place);
                        order.remove(wanted.0.into(), &wanted.1);
                    }
                    Err(place) if is_insert => {
                        let member = wanted.1.as_slice().into();
                        order.insert(Scored { score: wanted.0.into(), member });
                        model.insert(place, wanted);
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(order.len(), model.len());
            for rank in 0..=model.len() {
                let found: Vec<_> = order.from(rank).map(|scored| scored.member.to_vec()).collect();
                let expected: Vec<_> = model[rank..].iter().map(|(_, member)| member.clone()).collect();
                prop_assert_eq!(found, expected);
                let found: Vec<_> = order.back_from(rank).map(|s| s.member.to_vec()).collect();
                let before = model[..rank].iter().rev();
                let expected: Vec<_> = before.map(|(_, member)| member.clone()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn chunks_are_cut_and_ranks_stay_right() {
        let mut order = Order::default();
        for number in 0..5_000_u32 {
            let score = f64::from(number.wrapping_mul(2_654_435_761) % 10_007);
            let member = number.to_be_bytes().as_slice().into();
            order.insert(Scored { score, member });
        }
        let scores: Vec<f64> = order.from(0).map(|scored| scored.score).collect();
        assert!(scores.is_sorted() && scores.len() == 5_000);
        let middle = order.at(2_500).cloned().unwrap();
        assert_eq!(
            order.rank(|other| other.order(middle.score, &middle.member).is_lt()),
            2_500
        );
    }
}
