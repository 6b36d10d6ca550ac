//! Memory of a client's own, of which it gives places away.

use manxdb_fabric::Address;

use crate::directory::{PLACE, Place};

/// Places of one size, one behind the other, whose memory is all zero at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    base: Address,
    each: u64,
    count: u64,
    taken: u64,
}

impl Extent {
    /// So many places of so many bytes; none if a place cannot begin there.
    #[must_use]
    pub fn new(base: Address, bytes: usize, count: u64) -> Option<Self> {
        let each = (bytes as u64).next_multiple_of(PLACE);
        let end = base.offset.checked_add(each.checked_mul(count)?)?;
        Place::new(base)?;
        let last = Address {
            offset: end,
            ..base
        };
        Place::new(last)?;
        let taken = 0;
        Some(Self {
            base,
            each,
            count,
            taken,
        })
    }

    /// Bytes that it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.each * self.count
    }

    /// Where the memory behind it begins.
    #[must_use]
    pub fn end(&self) -> Address {
        self.base.plus(self.bytes())
    }

    /// The places that are left, in order; [`Extent::take`] takes the first of them.
    pub fn left(&self) -> impl Iterator<Item = Place> + use<> {
        let (base, each) = (self.base, self.each);
        (self.taken..self.count).filter_map(move |number| Place::new(base.plus(number * each)))
    }

    /// How many places are left.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count - self.taken
    }

    /// The first places that are left are given away.
    pub fn take(&mut self, count: u64) {
        self.taken = self.taken.saturating_add(count).min(self.count);
    }
}
