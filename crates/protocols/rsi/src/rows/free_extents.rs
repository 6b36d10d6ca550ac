//! What a place has of memory that nobody has used: it stays the place's when its owner dies.
//!
//! Memory comes to a client in large pieces, of which its *free-extent record* says what is left: a record that
//! goes with the place, so that its next owner goes on with it. A client draws from its free-extent record a
//! portion at a time, in a transaction of its own, and uses places only when they are out of the
//! free-extent record. So nobody uses a place twice, whoever dies when: what was drawn and not used is lost, and
//! no more. Nobody could give that to others, for he does not know which of it the tree leads to.
//!
//! On disk a free-extent record is a record like any other, and what a client enters comes behind what it has
//! drawn. A free-extent record that is restored has what no leaf leads to.

use manxdb_core::check::deep;

use crate::abort::Abort;
use crate::block::Layout;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::machine::Carrier;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::Seen;
use crate::rows::extent::{Extent, Stock};
use crate::rows::{Client, Failure, Keyspace};

/// Pieces of a free-extent record for records, and as many for nodes: when there are more, the smallest go.
const PIECES_MAX: usize = 8;
/// A word for how many pieces there are, and two for each.
const VALUE: usize = 2 * WORD * (1 + 2 * PIECES_MAX);
const _: () = assert!(
    VALUE <= Layout::VALUE_MAX,
    "a free-extent record is a record"
);
const WORD: usize = manxdb_fabric::WORD_LENGTH;
/// What is drawn at once, at least: so much is lost with a client, at most, if it needs no more.
const RECORDS: u64 = 64;
const NODES: u64 = 16;
/// How often it is tried: who copies a free-extent record to another server has it for a moment.
const TRIES_MAX: u32 = 64;

/// The record of a place's free-extent record, in memory that is all zero at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FreeExtentRecord(RecordAddress);

/// A free-extent record as its client has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    free_extent_record: FreeExtentRecord,
    seen: Seen,
    content: Content,
}

/// What a free-extent record has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Content {
    records: Stock,
    nodes: Stock,
}

impl FreeExtentRecord {
    /// How it lies in memory.
    pub const LAYOUT: Layout = match Layout::new(2, VALUE) {
        Ok(layout) => layout,
        Err(_) => panic!("a free-extent record has a layout"),
    };

    /// The one at a place.
    #[must_use]
    pub fn new(at: RecordAddress) -> Self {
        Self(at)
    }

    /// What is in a free-extent record whose record has this value: places for records and for nodes, with how
    /// these lie there. None: that is no free-extent record's value.
    #[must_use]
    pub fn content(keyspace: Keyspace, value: &[u8]) -> Option<[(Layout, Vec<RecordAddress>); 2]> {
        let Content { records, nodes } = Content::parse(keyspace, value)?;
        let records = (keyspace.records, records.left().collect());
        Some([records, (keyspace.tree.layout(), nodes.left().collect())])
    }
}

impl Opened {
    /// Whether so many records and nodes are in it.
    #[must_use]
    pub fn has(&self, lacking: (u64, u64)) -> bool {
        self.content.has(lacking)
    }
}

impl Content {
    fn parse(keyspace: Keyspace, value: &[u8]) -> Option<Self> {
        let (words, rest) = value.as_chunks::<WORD>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut stock = |layout: Layout| {
            let mut stock = Stock::default();
            for _ in 0..words.next()?.min(PIECES_MAX as u64) {
                let place = RecordAddress::parse(words.next()?)?;
                stock.add(Extent::new(place.address(), layout.bytes(), words.next()?)?);
            }
            Some(stock)
        };
        let content = Self {
            records: stock(keyspace.records)?,
            nodes: stock(keyspace.tree.layout())?,
        };
        (words.next().is_none() && rest.is_empty()).then_some(content)
    }

    fn value(&self) -> Vec<u8> {
        let words = [&self.records, &self.nodes].map(|stock| {
            let pieces = stock.pieces().collect::<Vec<_>>();
            let count = [pieces.len() as u64];
            let words = pieces
                .into_iter()
                .map(|(place, count)| [place.word(), count]);
            count.into_iter().chain(words.flatten()).collect::<Vec<_>>()
        });
        let words = words.into_iter().flatten();
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Whether both have the same places, in whatever pieces.
    fn is_equal(&self, other: &Self) -> bool {
        self.records.left().eq(other.records.left()) && self.nodes.left().eq(other.nodes.left())
    }

    fn add(&mut self, (records, nodes): (Extent, Extent)) {
        self.records.add(records);
        self.nodes.add(nodes);
    }

    fn has(&self, (records, nodes): (u64, u64)) -> bool {
        self.records.count() >= records && self.nodes.count() >= nodes
    }

    /// What a client gets that lacks so much, as far as there is as much: a portion at least.
    fn draw(&mut self, (records, nodes): (u64, u64)) -> Self {
        let portion = |lacking: u64, least: u64| if lacking == 0 { 0 } else { lacking.max(least) };
        let drawn = Self {
            records: self.records.split(portion(records, RECORDS)),
            nodes: self.nodes.split(portion(nodes, NODES)),
        };
        self.records.keep_largest(PIECES_MAX);
        self.nodes.keep_largest(PIECES_MAX);
        drawn
    }
}

impl<C: Carrier> Client<C> {
    /// Looks into its place's free-extent record, from which nobody else draws.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn open(
        &mut self,
        free_extent_record: FreeExtentRecord,
    ) -> Result<Opened, Failure<C::Error>> {
        let mut tries = 0;
        loop {
            match self.try_to_open(free_extent_record).await {
                Err(failure) if may_try_again(&failure, tries) => tries += 1,
                done => return done,
            }
        }
    }

    /// Gives it so many records and nodes, or more, out of its place's free-extent record; if that has less, all of
    /// it. Before that `more` comes into it, memory that nobody has written: nobody's if this fails.
    ///
    /// # Errors
    /// [`Failure`]: what may have been drawn is nobody's any more.
    pub async fn draw(
        &mut self,
        mut opened: Opened,
        more: Option<(Extent, Extent)>,
        lacking: (u64, u64),
    ) -> Result<(), Failure<C::Error>> {
        let free_extent_record = opened.free_extent_record;
        let mut tries = 0;
        loop {
            match self.try_to_draw(opened, more.clone(), lacking).await {
                Err(failure) if may_try_again(&failure, tries) => tries += 1,
                done => return done,
            }
            opened = self.open(free_extent_record).await?;
        }
    }

    async fn try_to_open(
        &mut self,
        free_extent_record: FreeExtentRecord,
    ) -> Result<Opened, Failure<C::Error>> {
        let snapshot = self.snapshot().await?;
        let at = free_extent_record.0.address();
        let read = self.session.read(&snapshot, at, FreeExtentRecord::LAYOUT);
        let seen = self.run(read).await??;
        let content = match seen.value() {
            None => Content::default(),
            Some(value) => {
                let parsed = Content::parse(self.keyspace, value);
                parsed.ok_or(Failure::Abort(Abort::Damaged(at)))?
            }
        };
        Ok(Opened {
            free_extent_record,
            seen,
            content,
        })
    }

    async fn try_to_draw(
        &mut self,
        opened: Opened,
        more: Option<(Extent, Extent)>,
        lacking: (u64, u64),
    ) -> Result<(), Failure<C::Error>> {
        let Opened {
            seen, mut content, ..
        } = opened;
        if let Some(more) = more {
            content.add(more);
        }
        #[cfg(feature = "mutants")]
        let before = content.value();
        let drawn = content.draw(lacking);
        let value = content.value();
        let read = || Content::parse(self.keyspace, &value);
        assert!(
            !deep() || read().is_some_and(|read| read.is_equal(&content)),
            "what is left is read as it was written: {content:?}"
        );
        #[cfg(feature = "mutants")]
        let value = match self.session.mutant {
            Some(Mutant::UsesWhatIsInTheFreeExtentRecord) => before,
            _ => value,
        };
        assert!(
            value.len() <= VALUE,
            "what is left fits into the record: {} bytes",
            value.len()
        );
        let value = Some(value);
        self.commit_alone(vec![Change { seen, value }]).await?;
        self.records.extend(drawn.records);
        self.nodes.extend(drawn.nodes);
        Ok(())
    }
}

fn may_try_again<E>(failure: &Failure<E>, tries: u32) -> bool {
    failure.is_conflict() && !failure.is_unwritten() && tries < TRIES_MAX
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::{Address, ServerId};

    use super::*;
    use crate::tree::Tree;

    fn at(offset: u64) -> Address {
        let server = ServerId(3);
        Address { server, offset }
    }

    fn keyspace() -> Keyspace {
        let root = RecordAddress::new(at(64)).unwrap();
        Keyspace {
            tree: Tree::new(root, Layout::new(2, 400).unwrap()).unwrap(),
            records: Layout::new(4, 100).unwrap(),
        }
    }

    fn piece(layout: Layout, offset: u64, count: u64) -> Extent {
        Extent::new(at(offset), layout.bytes(), count).unwrap()
    }

    fn content(pieces: u64) -> Content {
        let keyspace = keyspace();
        let mut content = Content::default();
        for number in 1..=pieces {
            let records = piece(keyspace.records, number << 20, number);
            let nodes = piece(
                keyspace.tree.layout(),
                (number << 20) + (1 << 19),
                2 * number,
            );
            content.add((records, nodes));
        }
        content
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        for pieces in 0..=8 {
            let content = content(pieces);
            let value = content.value();
            assert!(value.len() <= FreeExtentRecord::LAYOUT.value_max());
            assert_eq!(Content::parse(keyspace(), &value), Some(content));
            for length in 0..value.len() {
                assert_eq!(Content::parse(keyspace(), &value[..length]), None);
            }
            let longer = [value, vec![0; WORD]].concat();
            assert_eq!(Content::parse(keyspace(), &longer), None);
        }
        // A count that no memory has room for.
        let words = [1, RecordAddress::new(at(64)).unwrap().word(), u64::MAX, 0];
        let value = words.map(u64::to_le_bytes).concat();
        assert_eq!(Content::parse(keyspace(), &value), None);
    }

    #[test]
    fn a_portion_is_drawn_or_more_and_the_largest_pieces_stay() {
        let mut free_extent_record = content(10);
        assert!(
            free_extent_record.has((55, 110))
                && !free_extent_record.has((56, 0))
                && !free_extent_record.has((0, 111))
        );
        let drawn = free_extent_record.draw((1, 0));
        assert_eq!((drawn.records.count(), drawn.nodes.count()), (55, 0));
        assert_eq!(
            (
                free_extent_record.records.count(),
                free_extent_record.nodes.count()
            ),
            (0, 110 - 2 - 4)
        );
        let drawn = free_extent_record.draw((0, 20));
        assert_eq!((drawn.records.count(), drawn.nodes.count()), (0, 20));
        assert_eq!(free_extent_record.nodes.count(), 84);
    }
}
