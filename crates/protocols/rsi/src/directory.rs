//! Where the record under a key is: a hash directory that clients read and write one-sided.
//!
//! A table has buckets of eight words: seven entries and a link to the next bucket of the chain.
//! An entry is sixteen bits of the key's hash and where the record is. Entries are only ever added,
//! by a swap of the chain's first empty one, so that of two clients who add the same key one loses
//! the swap and finds the other's entry when it looks again: that is what makes keys unique.
//!
//! In a region of several replicas a word is the primary's first, and its backups' a little later,
//! unless that server is lost in between. So who finds an entry to a record that nobody has written
//! yet, or adds one behind a link, makes sure that all replicas have what it builds on, by swapping
//! the word for itself: the first version of a record is not there before its entry is everywhere.
//!
//! Adding a key is not part of a transaction: it adds a record that nobody has written yet, which
//! any transaction may write or leave alone ([`crate::find`], [`crate::add`]). What a transaction
//! inserts is a version of that record, and all that holds of versions holds of it.

use manxdb_fabric::{Address, Operation, ServerId, WORD, WORD_LENGTH};
use twox_hash::XxHash3_64;

use crate::block::Layout;

pub use crate::record_address::{PLACE, RecordAddress};

/// Words of a bucket, the last of which links to the next.
const WORDS: usize = 8;
/// Entries of a bucket.
pub(crate) const ENTRIES: usize = WORDS - 1;
/// Bytes of a bucket: a line of memory.
pub const BUCKET: u64 = WORDS as u64 * WORD;
const _: () = assert!(
    BUCKET.is_multiple_of(PLACE),
    "a bucket behind a bucket begins at a place"
);

/// Sixteen bits of a key's hash, which tell most keys of a bucket apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Print(u16);

/// An entry as it is in memory.
pub(crate) fn entry(print: Print, place: RecordAddress) -> u64 {
    u64::from(print.0) << RecordAddress::BITS | place.word()
}

/// A table's directory, and how its records lie in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    layout: Layout,
    /// Each has as many buckets.
    shares: Vec<Address>,
    /// First buckets of chains at each share.
    buckets: u64,
    /// Hashes begin with it, so that nobody can make keys that all fall into one chain.
    seed: u64,
}

/// A table that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Its records have no keys.
    #[error("a table needs records with keys of at least one byte")]
    Keyless,
    /// It has no buckets.
    #[error("a table needs at least one share of its directory with one bucket")]
    Empty,
    /// A share does not begin where a bucket can.
    #[error(
        "the share of the directory at {0} does not begin at a multiple of {PLACE} bytes that a place can name"
    )]
    Unplaced(Address),
}

/// What a copy of a bucket says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) at: Address,
    words: [u64; WORDS],
}

impl Table {
    /// A table with so many buckets at each of its shares of memory, all zero at first.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn new(
        layout: Layout,
        shares: Vec<Address>,
        buckets: u64,
        seed: u64,
    ) -> Result<Self, TableError> {
        if layout.key_max() == 0 {
            return Err(TableError::Keyless);
        }
        if shares.is_empty() || buckets == 0 {
            return Err(TableError::Empty);
        }
        let is_unplaced = |share: &&Address| {
            let last = share.plus(buckets.saturating_mul(BUCKET));
            !share.offset.is_multiple_of(PLACE) || RecordAddress::new(last).is_none()
        };
        match shares.iter().find(is_unplaced) {
            Some(share) => Err(TableError::Unplaced(*share)),
            None => Ok(Self {
                layout,
                shares,
                buckets,
                seed,
            }),
        }
    }

    /// How its records lie in memory.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The first bucket of a key's chain, and the key's print.
    pub(crate) fn chain(&self, key: &[u8]) -> (Address, Print) {
        let hash = XxHash3_64::oneshot_with_seed(self.seed, key);
        let [a, b, rest @ ..] = hash.to_le_bytes();
        let mut low = [0; WORD_LENGTH];
        low[..rest.len()].copy_from_slice(&rest);
        let number = u64::from_le_bytes(low) % (self.buckets * self.shares.len() as u64);
        let share = usize::try_from(number / self.buckets).unwrap_or(usize::MAX);
        assert!(
            share < self.shares.len(),
            "a key's chain is in a share of the directory: {share} of {}",
            self.shares.len()
        );
        // `new` has let in none without shares, and `number` is below shares × buckets.
        let share = self.shares.get(share).copied().unwrap_or(Address {
            server: ServerId(0),
            offset: 0,
        });
        let bucket = share.plus(number % self.buckets * BUCKET);
        (bucket, Print(u16::from_le_bytes([a, b])))
    }
}

impl Bucket {
    /// Reads one.
    pub(crate) fn read(at: Address) -> Operation {
        Operation::Read { at, bytes: BUCKET }
    }

    /// What a copy of a whole bucket says.
    pub(crate) fn parse(at: Address, copy: &[u8]) -> Self {
        assert_eq!(copy.len() as u64, BUCKET, "a bucket is read whole");
        let (found, _) = copy.as_chunks::<WORD_LENGTH>();
        let mut words = [0; WORDS];
        for (word, found) in words.iter_mut().zip(found) {
            *word = u64::from_le_bytes(*found);
        }
        Self { at, words }
    }

    /// Where records are whose keys have this print.
    pub(crate) fn places(&self, print: Print) -> impl Iterator<Item = RecordAddress> {
        let entries = self.words.into_iter().take(ENTRIES);
        entries
            .filter(move |word| word >> RecordAddress::BITS == u64::from(print.0))
            .filter_map(RecordAddress::of_word)
    }

    /// The first empty entry.
    pub(crate) fn vacancy(&self) -> Option<Address> {
        let entries = self.words.iter().take(ENTRIES);
        let number = entries.zip(0..).find(|(word, _)| **word == 0)?.1;
        Some(self.at.plus(number * WORD))
    }

    /// Takes the first empty entry for another's.
    #[cfg(feature = "mutants")]
    pub(crate) fn fill_first(&mut self) {
        if let Some(word) = self.words.iter_mut().take(ENTRIES).find(|word| **word == 0) {
            *word = 1;
        }
    }

    /// Swaps an entry for itself, so that it is on all replicas of a region.
    pub(crate) fn confirm(&self, word: u64) -> Option<Operation> {
        let entries = self.words.iter().take(ENTRIES);
        let number = entries.zip(0..).find(|(found, _)| **found == word)?.1;
        Some(same(self.at.plus(number * WORD), word))
    }

    /// The same with the link to the next bucket.
    pub(crate) fn confirm_link(&self) -> Operation {
        same(self.link(), self.words[WORDS - 1])
    }

    /// The next bucket of the chain.
    pub(crate) fn next(&self) -> Option<Address> {
        RecordAddress::of_word(self.words[WORDS - 1]).map(RecordAddress::address)
    }

    /// Where the link to it goes.
    pub(crate) fn link(&self) -> Address {
        self.at.plus(ENTRIES as u64 * WORD)
    }
}

fn same(at: Address, word: u64) -> Operation {
    Operation::CompareSwap {
        at,
        expected: word,
        new: word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(server: u16, offset: u64) -> Address {
        Address {
            server: ServerId(server),
            offset,
        }
    }

    fn layout() -> Layout {
        Layout::keyed(2, 8, 8).unwrap()
    }

    #[test]
    fn a_place_is_an_address_or_none() {
        for address in [at(0, 64), at(1023, 0), at(7, ((1 << 38) - 1) * 64)] {
            assert_eq!(RecordAddress::new(address).unwrap().address(), address);
        }
        for address in [at(0, 0), at(0, 8), at(1024, 64), at(0, 1 << 44)] {
            assert_eq!(RecordAddress::new(address), None, "{address}");
        }
    }

    #[test]
    fn keys_spread_over_all_buckets_of_all_shares() {
        let shares = vec![at(0, 64), at(1, 0)];
        let table = Table::new(layout(), shares, 8, 1).unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for key in 0..16_000_u64 {
            *counts.entry(table.chain(&key.to_le_bytes()).0).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 16);
        assert!(counts.values().all(|count| (850..1150).contains(count)));
        let other = Table::new(layout(), vec![at(0, 64), at(1, 0)], 8, 2).unwrap();
        assert!(
            (0..16_u64)
                .any(|key| table.chain(&key.to_le_bytes()) != other.chain(&key.to_le_bytes()))
        );
    }

    #[test]
    fn a_table_that_cannot_be_says_why() {
        let keyless = Layout::new(2, 8).unwrap();
        let made = |layout, shares, buckets| Table::new(layout, shares, buckets, 0);
        let place = vec![at(0, 64)];
        assert_eq!(made(keyless, place.clone(), 1), Err(TableError::Keyless));
        assert_eq!(made(layout(), vec![], 1), Err(TableError::Empty));
        assert_eq!(made(layout(), place, 0), Err(TableError::Empty));
        let odd = at(0, 72);
        assert_eq!(made(layout(), vec![odd], 1), Err(TableError::Unplaced(odd)));
    }
}
