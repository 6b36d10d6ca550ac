//! Bounds of key ranges as ordered maps want them.

use std::ops::Bound;

pub(crate) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
