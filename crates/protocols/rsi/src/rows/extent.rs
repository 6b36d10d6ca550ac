//! Memory of a client's own, of which it gives places away.

use crate::block::Layout;
use std::collections::VecDeque;

use manxdb_fabric::Address;

use crate::directory::{PLACE, RecordAddress};

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
        RecordAddress::new(base)?;
        let last = Address {
            offset: end,
            ..base
        };
        RecordAddress::new(last)?;
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

    /// Where its memory begins.
    #[must_use]
    pub fn begin(&self) -> Address {
        self.base
    }

    /// Where the memory behind it begins.
    #[must_use]
    pub fn end(&self) -> Address {
        self.base.plus(self.bytes())
    }

    /// The places that are left, in order; [`Extent::take`] takes the first of them.
    pub fn left(&self) -> impl Iterator<Item = RecordAddress> + use<> {
        let (base, each) = (self.base, self.each);
        (self.taken..self.count)
            .filter_map(move |number| RecordAddress::new(base.plus(number * each)))
    }

    /// Whether a record of a layout has room in each place.
    pub(super) fn holds(&self, layout: Layout) -> bool {
        layout.bytes() as u64 <= self.each
    }

    /// How many places are left.
    #[must_use]
    pub fn count(&self) -> u64 {
        assert!(
            self.taken <= self.count,
            "no more places are taken than there are"
        );
        self.count - self.taken
    }

    /// The first places that are left are given away.
    pub fn take(&mut self, count: u64) {
        self.taken = self.taken.saturating_add(count).min(self.count);
    }

    /// Whether another extent, of which nothing is taken, goes on where this one ends.
    fn is_followed_by(&self, other: &Self) -> bool {
        other.taken == 0 && other.each == self.each && other.base == self.end()
    }

    /// Gives the first places that are left to another extent.
    fn split(&mut self, count: u64) -> Self {
        let first = Self {
            count: self.taken.saturating_add(count).min(self.count),
            ..self.clone()
        };
        self.take(count);
        assert!(
            first.taken <= first.count && first.count <= self.taken,
            "a place is in one of both parts"
        );
        first
    }
}

/// Places of one size in several pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stock(VecDeque<Extent>);

impl Stock {
    /// The places that are left, in order; [`Stock::take`] takes the first of them.
    pub(super) fn left(&self) -> impl Iterator<Item = RecordAddress> + '_ {
        self.0.iter().flat_map(Extent::left)
    }

    /// How many places are left.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(Extent::count).sum()
    }

    /// The pieces in order, none of them empty: where each begins, and how many places it has.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (RecordAddress, u64)> + '_ {
        let pieces = self.0.iter();
        pieces.filter_map(|piece| Some((piece.left().next()?, piece.count())))
    }

    /// Adds places behind the others.
    pub(super) fn add(&mut self, extent: Extent) {
        match self.0.back_mut() {
            _ if extent.count() == 0 => {}
            Some(last) if last.is_followed_by(&extent) => last.count += extent.count,
            _ => self.0.push_back(extent),
        }
    }

    /// The first places are given away.
    pub(super) fn take(&mut self, count: u64) {
        self.split(count);
    }

    /// Gives the first places to another stock: so many, or all.
    pub(super) fn split(&mut self, mut count: u64) -> Self {
        let before = self.count();
        let mut first = Self::default();
        while count > 0
            && let Some(piece) = self.0.front_mut()
        {
            let part = piece.split(count);
            count -= part.count();
            first.add(part);
            if piece.count() == 0 {
                self.0.pop_front();
            }
        }
        assert_eq!(
            first.count() + self.count(),
            before,
            "no place is lost or given twice"
        );
        first
    }

    /// Adds all of another stock behind the others.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Leaves the largest pieces, so many; the others are nobody's any more.
    pub(super) fn keep_largest(&mut self, most: usize) {
        while self.0.len() > most {
            let sizes = self.0.iter().map(Extent::count).enumerate();
            let Some((smallest, _)) = sizes.min_by_key(|(_, count)| *count) else {
                return; // not reached: there are some
            };
            self.0.remove(smallest);
        }
        assert!(
            self.0.len() <= most,
            "a record has words for so many pieces"
        );
    }
}

impl From<Extent> for Stock {
    fn from(extent: Extent) -> Self {
        let mut stock = Self::default();
        stock.add(extent);
        stock
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;

    fn extent(offset: u64, count: u64) -> Extent {
        let server = ServerId(0);
        Extent::new(Address { server, offset }, 100, count).unwrap()
    }

    fn offsets(places: impl Iterator<Item = RecordAddress>) -> Vec<u64> {
        places.map(|place| place.address().offset).collect()
    }

    #[test]
    fn what_is_split_off_a_stock_is_its_first_places() {
        let mut stock = Stock::from(extent(1_280, 2));
        stock.add(extent(6_400, 0));
        stock.add(extent(12_800, 3));
        assert_eq!(stock.count(), 5);
        let first = stock.split(3);
        assert_eq!(offsets(first.left()), [1_280, 1_408, 12_800]);
        assert_eq!(offsets(stock.left()), [12_928, 13_056]);
        stock.extend(first);
        stock.take(1);
        assert_eq!(offsets(stock.left()), [13_056, 1_280, 1_408, 12_800]);
        let pieces = stock
            .pieces()
            .map(|(place, count)| (place.address().offset, count));
        assert_eq!(
            pieces.collect::<Vec<_>>(),
            [(13_056, 1), (1_280, 2), (12_800, 1)]
        );
        // What lies behind the last piece is one with it.
        stock.add(extent(12_928, 2));
        assert_eq!(stock.pieces().count(), 3);
        assert_eq!(stock.split(u64::MAX).count(), 6);
        assert_eq!(stock, Stock::default());
    }

    #[test]
    fn of_too_many_pieces_the_smallest_go() {
        let mut stock = Stock::default();
        for (number, count) in (1..).zip([3, 1, 2, 5]) {
            stock.add(extent(number * 6_400, count));
        }
        stock.keep_largest(2);
        let counts: Vec<u64> = stock.pieces().map(|(_, count)| count).collect();
        assert_eq!(counts, [3, 5]);
    }
}
