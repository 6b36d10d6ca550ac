//! The object: scores by member, and the order.

pub(crate) mod order;

use std::sync::Arc;

use crate::objects::{Map, Pending};
use order::{Order, Scored};

/// A sorted set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ZSet {
    scores: Map<Arc<[u8]>, f64>,
    order: Order,
    bytes: usize,
    pending: Pending,
}

impl ZSet {
    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Bytes of members and scores.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The score of a member.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    pub(crate) fn order(&self) -> &Order {
        &self.order
    }

    /// A member at a place of no order.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<(&[u8], f64)> {
        self.scores
            .get_index(place)
            .map(|(member, score)| (&**member, *score))
    }

    /// How many members come before this one.
    #[must_use]
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.order.rank(|other| other.order(score, member).is_lt()))
    }

    /// Gives a member a score that is a number; what it was before.
    pub fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        assert!(!score.is_nan(), "a score that has no order");
        let before = self.score(member);
        let shared: Arc<[u8]> = match before {
            #[allow(clippy::float_cmp)] // the very same score changes nothing
            Some(before) if before == score => return Some(before),
            Some(before) => {
                let shared = self
                    .scores
                    .get_key_value(member)
                    .map(|(shared, _)| Arc::clone(shared));
                self.order.remove(before, member);
                shared.unwrap_or_else(|| member.into())
            }
            None => {
                self.bytes += member.len() + size_of::<f64>();
                member.into()
            }
        };
        self.pending.note(member);
        self.scores.insert(Arc::clone(&shared), score);
        self.order.insert(Scored {
            score,
            member: shared,
        });
        assert_eq!(
            self.scores.len(),
            self.order.len(),
            "the order is of the members"
        );
        before
    }

    /// Removes a member; its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.scores.swap_remove(member)?;
        self.order.remove(score, member);
        self.bytes -= member.len() + size_of::<f64>();
        self.pending.note(member);
        assert_eq!(
            self.scores.len(),
            self.order.len(),
            "the order is of the members"
        );
        Some(score)
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn row(&self, sub: &[u8]) -> Option<Vec<u8>> {
        self.score(sub)
            .map(|score| score.to_bits().to_be_bytes().to_vec())
    }

    pub(crate) fn each_row(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        for (member, score) in &self.scores {
            take(member, &score.to_bits().to_be_bytes());
        }
    }

    pub(crate) fn take_row(&mut self, sub: &[u8], value: &[u8]) -> bool {
        let Ok(bits) = value.try_into() else {
            return false;
        };
        let score = f64::from_bits(u64::from_be_bytes(bits));
        !score.is_nan() && self.insert(sub, score).is_none()
    }
}
