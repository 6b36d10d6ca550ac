//! Tables of groups: one that grows, and one that fits a cache.

use super::Partial;
use crate::hash::{hash, slot};
use crate::rows::Key;

/// All groups that it is given. A place is empty if its count is zero.
#[derive(Debug, Default)]
pub(super) struct Groups {
    places: Vec<Partial>,
    used: usize,
}

impl Groups {
    /// Adds rows to their group.
    pub fn add(&mut self, partial: Partial) {
        if self.places.len() < 2 * (self.used + 1) {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let mut place = slot(hash(Key(partial.key)), mask);
        loop {
            let found = &mut self.places[place];
            if found.count == 0 {
                *found = partial;
                self.used += 1;
                return;
            }
            if found.key == partial.key {
                found.add(partial);
                return;
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let count = (2 * self.places.len()).max(16);
        let former = std::mem::replace(&mut self.places, vec![Partial::default(); count]);
        self.used = 0;
        for partial in former {
            if partial.count > 0 {
                self.add(partial);
            }
        }
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Partial> + '_ {
        self.places.iter().copied().filter(|place| place.count > 0)
    }
}

/// Groups that were seen lately: one for each place, where a newer one pushes it out.
#[derive(Debug)]
pub(super) struct Recent {
    places: Vec<Partial>,
}

impl Recent {
    /// In at most so many bytes.
    pub fn of_bytes(bytes: u64) -> Self {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Partial>();
        let count = 1_usize << most.max(1).ilog2();
        Self {
            places: vec![Partial::default(); count],
        }
    }

    /// Adds rows to their group; returns the one whose place it needs.
    pub fn add(&mut self, partial: Partial) -> Option<Partial> {
        let place = slot(hash(Key(partial.key)), self.places.len() - 1);
        let found = &mut self.places[place];
        if found.count > 0 && found.key == partial.key {
            found.add(partial);
            return None;
        }
        let pushed_out = std::mem::replace(found, partial);
        (pushed_out.count > 0).then_some(pushed_out)
    }

    /// Those that are left.
    pub fn iter(&self) -> impl Iterator<Item = Partial> + '_ {
        self.places.iter().copied().filter(|place| place.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn one(key: u32, sum: u64) -> Partial {
        let count = 1;
        Partial { key, count, sum }
    }

    #[test]
    fn a_table_that_grows_loses_nothing() {
        let mut groups = Groups::default();
        for number in 0..5_000 {
            groups.add(one(number % 1_000, u64::from(number)));
        }
        let found: BTreeMap<u32, Partial> = groups.iter().map(|one| (one.key, one)).collect();
        assert_eq!(found.len(), 1_000);
        assert_eq!((found[&7].count, found[&7].sum), (5, 5 * 7 + 10_000));
    }

    #[test]
    fn a_table_that_fits_a_cache_gives_back_what_it_has_no_place_for() {
        let mut recent = Recent::of_bytes(100);
        assert_eq!(recent.places.len(), 4);
        let pushed_out: Vec<Partial> = (0..100)
            .flat_map(|key| [recent.add(one(key, 1)), recent.add(one(key, 2))])
            .flatten()
            .collect();
        let all: Vec<Partial> = pushed_out.into_iter().chain(recent.iter()).collect();
        assert!(all.iter().all(|one| (one.count, one.sum) == (2, 3)));
        assert_eq!(all.len(), 100);
    }
}
