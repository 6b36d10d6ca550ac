//! The smallest of some timestamps that change one at a time.

use manxdb_core::check::ensure;

use crate::timestamp::Timestamp;

/// A tree over the timestamps in which each place holds the smaller of the two below it: one that
/// changes is carried up until it makes no difference.
#[derive(Debug)]
pub(super) struct Slowest {
    /// The root at 1, the two below `place` at `2 · place` and `2 · place + 1`, the timestamps
    /// themselves in the second half.
    tree: Vec<Timestamp>,
}

impl Slowest {
    /// `count` timestamps, none of which counts yet.
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Self {
            tree: vec![Timestamp::MAX; leaves * 2],
        }
    }

    /// Sets one; [`Timestamp::MAX`] when it does not count.
    pub(super) fn set(&mut self, index: usize, at: Timestamp) {
        let mut place = self.tree.len() / 2 + index;
        assert!(
            place < self.tree.len(),
            "a timestamp that was not reckoned with"
        );
        self.tree[place] = at;
        while place > 1 {
            let smaller = self.tree[place].min(self.tree[place ^ 1]);
            place /= 2;
            if self.tree[place] == smaller {
                return;
            }
            self.tree[place] = smaller;
        }
    }

    /// One of them; [`Timestamp::MAX`] when it does not count.
    pub(super) fn at(&self, index: usize) -> Timestamp {
        self.tree[self.tree.len() / 2 + index]
    }

    /// That the root is what a scan finds.
    pub(super) fn check(&self) -> Result<(), String> {
        let leaves = self.tree.iter().skip(self.tree.len() / 2);
        let (least, root) = (leaves.min().copied(), self.smallest());
        ensure(least == Some(root), || {
            format!("K7: {least:?} is the slowest clock, and {root:?} counts as that")
        })
    }

    /// The smallest of those that count; [`Timestamp::MAX`] when none does.
    pub(super) fn smallest(&self) -> Timestamp {
        self.tree[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_core::Random;

    #[test]
    fn it_is_what_a_scan_finds() {
        for count in [1, 2, 3, 6, 30] {
            let mut slowest = Slowest::new(count);
            let mut all = vec![Timestamp::MAX; count];
            let mut random = Random::new(count as u64);
            assert_eq!(slowest.smallest(), Timestamp::MAX);
            for _ in 0..500 {
                let index = usize::try_from(random.below(count as u64)).unwrap();
                let at = Timestamp::at(random.below(20), 1);
                let at = if at.micros == 0 { Timestamp::MAX } else { at };
                all[index] = at;
                slowest.set(index, at);
                assert_eq!(Some(slowest.smallest()), all.iter().min().copied());
            }
        }
    }
}
