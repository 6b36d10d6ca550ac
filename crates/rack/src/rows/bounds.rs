//! Ends of ranges, as keys.

use std::ops::Bound;

use manxdb_rsi::tree::scan::after;
use manxdb_storage::KeyRange;

/// The first key of a range, and the first behind it, if there is one.
pub(crate) fn of(range: &KeyRange) -> (Vec<u8>, Option<Vec<u8>>) {
    let low = match &range.start {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => after(key),
    };
    let high = match &range.end {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(after(key)),
        Bound::Excluded(key) => Some(key.clone()),
    };
    (low, high)
}
