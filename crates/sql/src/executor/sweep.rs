//! Many small key ranges that lie close together, read as one.
//!
//! `story_id IN (…)` of the fifty newest stories is fifty look-ups, each with a seek of its own,
//! or one walk over their neighbourhood that leaves out what nobody asked for. The walk is
//! given up when most of what it meets is of no use.

use std::ops::Bound;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::transaction::rest_behind;

/// Fewer ranges than this are read one by one.
const RANGES_MIN: usize = 4;
/// Possible values between the first and the last for each wanted one, at most: a seek costs
/// about as much as walking over a few entries.
const GAP_MAX: u64 = 3;
/// Bytes at the end of a key that are compared as a number.
const TAIL: usize = 8;

/// Keys and values.
pub(super) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A walk over ranges that are given by the prefixes of their keys.
pub(super) struct Sweep {
    /// Ascending, all of one length.
    prefixes: Vec<Vec<u8>>,
    /// The first prefix whose keys may still come.
    at: usize,
    rest: KeyRange,
}

/// How a walk goes on after a page.
pub(super) enum Next {
    /// With another page.
    Page(Sweep),
    /// As single ranges: too much was of no use.
    Ranges(Vec<KeyRange>),
    /// It is over.
    End,
}

impl Sweep {
    /// A walk over all keys with one of these ascending prefixes, if that is likely to pay.
    /// The prefixes must end in a whole number of fixed width.
    pub fn over(prefixes: &[Vec<u8>]) -> Option<Self> {
        let (first, last) = (prefixes.first()?, prefixes.last()?);
        let length = first.len();
        if prefixes.len() < RANGES_MIN || prefixes.iter().any(|p| p.len() != length) {
            return None;
        }
        let head = length.saturating_sub(TAIL);
        if first.get(..head) != last.get(..head) {
            return None;
        }
        let between = number(last.get(head..)?).saturating_sub(number(first.get(head..)?));
        let wanted = u64::try_from(prefixes.len()).unwrap_or(u64::MAX);
        if between > wanted.saturating_mul(GAP_MAX) {
            return None;
        }
        Some(Self {
            rest: KeyRange {
                start: Bound::Included(first.clone()),
                end: KeyRange::prefix(last).end,
            },
            prefixes: prefixes.to_vec(),
            at: 0,
        })
    }

    /// What to read next.
    pub fn range(&self) -> &KeyRange {
        &self.rest
    }

    /// Entries that the first page should hold, if each range has one.
    pub fn expected(&self) -> usize {
        self.prefixes.len() + 1
    }

    /// Leaves the wanted entries in `page`, which has `limit` of them unless it is the last one.
    pub fn take(mut self, page: &mut Entries, limit: usize) -> Next {
        let read = page.len();
        let last = page.last().map(|(key, _)| key.clone());
        page.retain(|(key, _)| self.wants(key));
        let Some(last) = last.filter(|_| read >= limit) else {
            return Next::End;
        };
        self.rest = rest_behind(&self.rest, &last, Direction::Forward);
        if page.len() * 2 >= read {
            return Next::Page(self);
        }
        let mut ranges: Vec<KeyRange> = self.prefixes[self.at..]
            .iter()
            .map(|prefix| KeyRange::prefix(prefix))
            .collect();
        if let Some(first) = ranges.first_mut().filter(|range| range.contains(&last)) {
            *first = rest_behind(first, &last, Direction::Forward);
        }
        Next::Ranges(ranges)
    }

    /// Whether `key` lies in one of the ranges. Keys come in ascending order.
    fn wants(&mut self, key: &[u8]) -> bool {
        while let Some(prefix) = self.prefixes.get(self.at) {
            if key.starts_with(prefix) {
                return true;
            }
            if key < prefix.as_slice() {
                return false;
            }
            self.at += 1;
        }
        false
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(numbers: &[u32]) -> Vec<Vec<u8>> {
        numbers
            .iter()
            .map(|n| [b"table", n.to_be_bytes().as_slice()].concat())
            .collect()
    }

    fn entry(number: u32, suffix: u8) -> (Vec<u8>, Vec<u8>) {
        let mut key = prefixes(&[number]).remove(0);
        key.push(suffix);
        (key, vec![suffix])
    }

    #[test]
    fn only_neighbours_are_swept() {
        assert!(Sweep::over(&prefixes(&[1, 2, 3, 4])).is_some());
        assert!(Sweep::over(&prefixes(&[1, 4, 7, 12])).is_some());
        assert!(Sweep::over(&prefixes(&[1, 2, 3])).is_none(), "too few");
        assert!(Sweep::over(&prefixes(&[1, 2, 3, 99])).is_none(), "too far");
        let mut uneven = prefixes(&[1, 2, 3, 4]);
        uneven[0].pop();
        assert!(Sweep::over(&uneven).is_none(), "a NULL among them");
    }

    #[test]
    fn entries_between_the_ranges_are_left_out() {
        let sweep = Sweep::over(&prefixes(&[1, 2, 4, 6])).unwrap();
        let mut page = vec![
            entry(1, 0),
            entry(1, 1),
            entry(3, 0),
            entry(4, 0),
            entry(6, 9),
        ];
        assert!(matches!(sweep.take(&mut page, 100), Next::End));
        assert_eq!(page, [entry(1, 0), entry(1, 1), entry(4, 0), entry(6, 9)]);
    }

    #[test]
    fn a_full_page_is_followed_by_the_keys_behind_it() {
        let sweep = Sweep::over(&prefixes(&[1, 2, 3, 4])).unwrap();
        let mut page = vec![entry(1, 0), entry(2, 0)];
        let Next::Page(sweep) = sweep.take(&mut page, 2) else {
            panic!("it goes on");
        };
        assert!(!sweep.range().contains(&entry(2, 0).0));
        assert!(sweep.range().contains(&entry(2, 1).0) && sweep.range().contains(&entry(4, 7).0));
    }

    #[test]
    fn a_walk_through_useless_entries_is_given_up_without_losing_any() {
        let sweep = Sweep::over(&prefixes(&[1, 2, 4, 5])).unwrap();
        let mut page = vec![entry(2, 0), entry(3, 0), entry(3, 1), entry(3, 2)];
        let Next::Ranges(ranges) = sweep.take(&mut page, 4) else {
            panic!("it is given up");
        };
        assert_eq!(page, [entry(2, 0)]);
        assert_eq!(ranges.len(), 2);
        assert!(ranges[0].contains(&entry(4, 0).0) && ranges[1].contains(&entry(5, 0).0));
    }

    #[test]
    fn a_walk_given_up_inside_a_wanted_range_goes_on_behind_its_last_key() {
        let sweep = Sweep::over(&prefixes(&[1, 2, 6, 7])).unwrap();
        let mut page = vec![entry(3, 0), entry(4, 0), entry(5, 0), entry(6, 3)];
        let Next::Ranges(ranges) = sweep.take(&mut page, 4) else {
            panic!("it is given up");
        };
        assert_eq!(page, [entry(6, 3)]);
        assert!(!ranges[0].contains(&entry(6, 3).0) && ranges[0].contains(&entry(6, 4).0));
    }
}
