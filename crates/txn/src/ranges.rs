//! Bounds of key ranges as ordered maps want them.

use std::ops::Bound;

use manxdb_storage::KeyRange;

pub(crate) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Whether no key can lie in `range`; ordered maps panic on some of these.
pub(crate) fn is_empty(range: &KeyRange) -> bool {
    match (&range.start, &range.end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
    }
}
