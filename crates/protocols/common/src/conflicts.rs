//! Which transactions of a shard meet on a row: an index of their touches.
//!
//! Janus asks it for the parents of a transaction, SLOG for those whose locks come first, TAPIR
//! for what is prepared on a row.

use std::collections::BTreeMap;
use std::ops::Bound;

use manxdb_storage::KeyRange;
use manxdb_txn::procedure::Touch;

/// Who touches a row or a range, each once, and whether it may write there.
type Holders<N> = BTreeMap<N, bool>;

/// The touches of transactions, or of pieces of them, by name.
///
/// A name touches with everything it was added with. Ranges that are equal are looked at once,
/// however many touch them, so a question costs the keys it names and the distinct ranges there
/// are.
#[derive(Debug, Clone)]
pub struct Conflicts<N> {
    points: BTreeMap<Vec<u8>, Holders<N>>,
    ranges: Vec<(KeyRange, Holders<N>)>,
    touches: BTreeMap<N, Vec<Touch>>,
}

impl<N> Default for Conflicts<N> {
    fn default() -> Self {
        Self {
            points: BTreeMap::new(),
            ranges: Vec::new(),
            touches: BTreeMap::new(),
        }
    }
}

/// The key of a range that holds this one key.
fn point_of(range: &KeyRange) -> Option<&Vec<u8>> {
    match (&range.start, &range.end) {
        (Bound::Included(start), Bound::Included(end)) if start == end => Some(start),
        _ => None,
    }
}

impl<N: Ord + Copy> Conflicts<N> {
    /// Adds a name that is not there yet.
    ///
    /// # Panics
    /// When it is: a defect of the caller.
    pub fn add(&mut self, name: N, touches: Vec<Touch>) {
        for touch in &touches {
            let holders = match point_of(&touch.range) {
                Some(key) => self.points.entry(key.clone()).or_default(),
                None => self.holders_of(&touch.range),
            };
            *holders.entry(name).or_default() |= touch.writes;
        }
        let before = self.touches.insert(name, touches);
        assert!(before.is_none(), "a name is added once");
    }

    fn holders_of(&mut self, range: &KeyRange) -> &mut Holders<N> {
        let known = self.ranges.iter().position(|(other, _)| other == range);
        let place = known.unwrap_or(self.ranges.len());
        if known.is_none() {
            self.ranges.push((range.clone(), Holders::new()));
        }
        &mut self.ranges[place].1
    }

    /// Takes a name out; what it touched, none if it is not there.
    pub fn remove(&mut self, name: N) -> Option<Vec<Touch>> {
        let touches = self.touches.remove(&name)?;
        for touch in &touches {
            if let Some(key) = point_of(&touch.range) {
                if let Some(holders) = self.points.get_mut(key) {
                    holders.remove(&name);
                    if holders.is_empty() {
                        self.points.remove(key);
                    }
                }
                continue;
            }
            let place = self
                .ranges
                .iter()
                .position(|(other, _)| *other == touch.range);
            if let Some(place) = place {
                self.ranges[place].1.remove(&name);
                if self.ranges[place].1.is_empty() {
                    self.ranges.swap_remove(place);
                }
            }
        }
        Some(touches)
    }

    /// Those whose order with something that touches so matters, ascending, each once.
    #[must_use]
    pub fn clashing(&self, touches: &[Touch]) -> Vec<N> {
        let mut found = Vec::new();
        for touch in touches {
            let mut take = |holders: &Holders<N>| {
                let clashing = holders
                    .iter()
                    .filter(|(_, writes)| touch.writes || **writes);
                found.extend(clashing.map(|(name, _)| *name));
            };
            if let Some(key) = point_of(&touch.range) {
                self.points.get(key).into_iter().for_each(&mut take);
            } else if !touch.range.is_empty() {
                let bounds = (touch.range.start.clone(), touch.range.end.clone());
                self.points
                    .range(bounds)
                    .for_each(|(_, holders)| take(holders));
            }
            let ranges = self.ranges.iter();
            let meeting = ranges.filter(|(range, _)| range.overlaps(&touch.range));
            meeting.for_each(|(_, holders)| take(holders));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What a name touches.
    #[must_use]
    pub fn touches(&self, name: N) -> Option<&[Touch]> {
        self.touches.get(&name).map(Vec::as_slice)
    }

    /// All names, ascending.
    pub fn names(&self) -> impl Iterator<Item = N> + '_ {
        self.touches.keys().copied()
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.touches.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.touches.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let key = prop::collection::vec(0_u8..4, 0..3);
        prop_oneof![
            key.clone().prop_map(Bound::Included),
            key.prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    }

    fn range() -> impl Strategy<Value = KeyRange> {
        prop_oneof![
            prop::collection::vec(0_u8..4, 0..3).prop_map(|key| KeyRange::point(&key)),
            prop::collection::vec(0_u8..4, 0..2).prop_map(|key| KeyRange::prefix(&key)),
            (bound(), bound()).prop_map(|(start, end)| KeyRange { start, end }),
        ]
    }

    fn touches() -> impl Strategy<Value = Vec<Touch>> {
        let touch = (range(), any::<bool>()).prop_map(|(range, writes)| Touch { range, writes });
        prop::collection::vec(touch, 0..4)
    }

    proptest! {
        #[test]
        fn it_finds_what_a_list_finds(
            steps in prop::collection::vec((0_u8..8, touches()), 0..40),
            question in touches(),
        ) {
            let mut index = Conflicts::default();
            let mut list: Vec<(u8, Vec<Touch>)> = Vec::new();
            for (name, touches) in steps {
                let place = list.iter().position(|(other, _)| *other == name);
                match place {
                    Some(place) => {
                        let (_, expected) = list.remove(place);
                        prop_assert_eq!(index.remove(name), Some(expected));
                    }
                    None => {
                        index.add(name, touches.clone());
                        list.push((name, touches));
                    }
                }
                prop_assert_eq!(index.len(), list.len());
                let clashes = |touches: &[Touch]| {
                    question.iter().any(|own| touches.iter().any(|other| own.clashes(other)))
                };
                let meeting = list.iter().filter(|(_, touches)| clashes(touches));
                let mut expected: Vec<u8> = meeting.map(|(name, _)| *name).collect();
                expected.sort_unstable();
                prop_assert_eq!(index.clashing(&question), expected);
            }
            for (name, _) in list {
                index.remove(name);
            }
            prop_assert!(index.points.is_empty() && index.ranges.is_empty());
        }
    }
}
