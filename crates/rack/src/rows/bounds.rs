//! Ends of ranges, as keys.

use std::ops::Bound;

use manxdb_storage::KeyRange;

/// The first key of a range, and the first behind it, if there is one.
pub(crate) fn of(range: &KeyRange) -> (Vec<u8>, Option<Vec<u8>>) {
    let low = match &range.start {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => behind(key),
    };
    let high = match &range.end {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(behind(key)),
        Bound::Excluded(key) => Some(key.clone()),
    };
    (low, high)
}

/// The first key behind one.
pub(crate) fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
