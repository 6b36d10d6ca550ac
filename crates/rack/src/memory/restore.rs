//! Memory servers that have been started again, and wait for the rows that are on disk.
//!
//! Whoever writes them is alone: nobody is let have a place before the servers are formed. Who dies
//! over it is followed by another one, which writes everything once more.

use manxdb_core::check::deep;
use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::Random;
use manxdb_fabric::{Address, Operation, OperationOutcome, ServerId, WORD, WORD_LENGTH};
use manxdb_rsi::rows::FreeExtentRecord;
use manxdb_rsi::{Bootstrap, Layout, Replayed};

use super::chunks::{Chunk, UnusedMemory};
use super::plan::{FORMATION, NEXT, Plan, bytes};
use super::{MemoryError, Superblock, Transport, forming};
use crate::drive::Driver;

/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
const _: () = assert!(
    PIECE as u64 <= manxdb_fabric::operation::BYTES_MAX,
    "one operation writes a piece"
);

/// What a server's memory begins with. `waiting`, a number by chance, when its rows are on disk.
#[must_use]
pub fn first_words(superblock: &Superblock, waiting: Option<u64>) -> Vec<(u64, Vec<u8>)> {
    let word = |draw| (FORMATION, forming::waiting(draw).to_le_bytes().to_vec());
    let superblock = (0, superblock.encode());
    [superblock].into_iter().chain(waiting.map(word)).collect()
}

/// Memory servers that wait for their rows, all of them.
pub struct MemoryRestore<W: Transport> {
    superblock: Superblock,
    plan: Plan,
    driver: Driver<W::Fabric>,
    /// What each server said.
    words: Vec<u64>,
    /// Under which they are to be formed.
    formation: u64,
    /// Where at each server what is given away ends, by what was written.
    ends: BTreeMap<u16, u64>,
    /// Words of chunks that are given away, by what was written.
    chunks: BTreeSet<Address>,
}

impl<W: Transport> MemoryRestore<W> {
    /// Connects to all of them. None: one does not wait for anything.
    ///
    /// # Errors
    /// [`MemoryError`]: one is not there, or does not belong to the others.
    pub fn open(way: &W, seed: u64) -> Result<Option<Self>, MemoryError> {
        let mut random = Random::stream(seed, &[0x6167_6169]);
        let superblock = super::any_superblock(way, &mut random)?;
        let plan = Plan::of(superblock.geometry).map_err(|_| MemoryError::Geometry)?;
        let servers = superblock.geometry.servers;
        let all: Vec<u16> = (0..servers).collect();
        let (fabric, missing) = way.reach(&all, super::guest(&mut random).client())?;
        if let Some(one) = missing.into_iter().next() {
            return Err(one.error);
        }
        let mut driver = Driver::new(fabric);
        for other in super::superblocks(&mut driver, &all)? {
            other.belongs_to(&superblock)?;
        }
        let words = forming::waiting_ones(&mut driver, servers)?;
        Ok(words.map(|words| Self {
            superblock,
            plan,
            driver,
            words,
            formation: forming::formation(random.next_bits()),
            ends: BTreeMap::new(),
            chunks: BTreeSet::new(),
        }))
    }

    /// What all servers say.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Under which the database is to be formed.
    #[must_use]
    pub fn formation(&self) -> u64 {
        self.formation
    }

    /// Threads that there are.
    #[must_use]
    pub fn threads(&self) -> u16 {
        self.plan.geometry().places
    }

    /// Writes what lay at an address, wherever it lies now.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn put(&mut self, at: Address, bytes: &[u8]) -> Result<(), MemoryError> {
        for (number, part) in (0..).zip(bytes.chunks(PIECE)) {
            let at = at.plus(number * PIECE as u64);
            let write = |at| Operation::Write {
                at,
                bytes: part.to_vec(),
            };
            let places = self.plan.places(at)?;
            self.ask(places.into_iter().map(write).collect())?;
        }
        Ok(())
    }

    /// Writes a record, and has room given away: what the record is in, what a node leads to, written
    /// or not, and what is in a free-extent record.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn put_record(&mut self, record: &Replayed) -> Result<(), MemoryError> {
        self.put(record.at(), &record.bytes())?;
        self.give(record.at(), record.layout());
        let keyspace = self.plan.keyspace;
        let value = record.redo.value.as_ref();
        let value = value.filter(|_| self.plan.is_free_extent_record(record.at()));
        let content = value.and_then(|value| FreeExtentRecord::content(keyspace, value));
        let content = content.into_iter().flatten();
        for (layout, places) in content.chain(keyspace.leads_to(record)) {
            for place in places {
                self.give(place.address(), layout);
            }
        }
        Ok(())
    }

    /// What is at an address is somebody's.
    fn give(&mut self, at: Address, layout: Layout) {
        match &self.plan.unused {
            UnusedMemory::Servers(begin) if at.offset >= *begin => {
                let end = self.ends.entry(at.server.0).or_default();
                *end = (*end).max(at.offset + bytes(layout));
            }
            UnusedMemory::Servers(_) => {}
            UnusedMemory::ChunkRegions(_) => self.chunks.extend(self.plan.chunk_of(at)),
        }
    }

    /// Writes all else that a database needs which begins so: lines, places, how far the log archiver is.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn put_tables(&mut self, anew: &Bootstrap) -> Result<(), MemoryError> {
        let kept = self.plan.kept.ok_or(MemoryError::Geometry)?;
        for operation in anew.operations(self.plan.vector, self.plan.client_slots(), kept) {
            assert!(
                matches!(operation, Operation::Write { .. }),
                "a table that was not written would be that of before: {operation:?}"
            );
            if let Operation::Write { at, bytes } = operation {
                self.put(at, &bytes)?;
            }
        }
        for word in std::mem::take(&mut self.chunks) {
            self.put(word, &1_u64.to_le_bytes())?;
        }
        for (server, end) in std::mem::take(&mut self.ends) {
            let at = Address {
                server: ServerId(server),
                offset: NEXT,
            };
            if self.word(at)? < end {
                self.put(at, &end.to_le_bytes())?;
            }
        }
        Ok(())
    }

    fn word(&mut self, at: Address) -> Result<u64, MemoryError> {
        let outcomes = self.ask(vec![Operation::Read { at, bytes: WORD }])?;
        assert_eq!(outcomes.len(), 1, "a word that was not read is not 0");
        outcomes.into_iter().next().map_or(Ok(0), forming::number)
    }

    fn ask(&mut self, operations: Vec<Operation>) -> Result<Vec<OperationOutcome>, MemoryError> {
        let outcomes = self.driver.ask(operations)?;
        let fault = outcomes.iter().find_map(|outcome| match outcome {
            OperationOutcome::Failed(fault) => Some(*fault),
            _ => None,
        });
        fault.map_or(Ok(outcomes), |fault| Err(fault.into()))
    }

    /// All memory that is given away: each piece is given to somebody.
    ///
    /// # Errors
    /// [`MemoryError`], and what `each` says.
    pub fn copy<E: From<MemoryError>>(
        &mut self,
        mut each: impl FnMut(Address, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let plan = self.plan.clone();
        let words = plan.words_of_chunks();
        let mut found = Vec::new();
        for (at, bytes) in &words {
            found.push(self.read(*at, *bytes)?);
        }
        for (at, bytes) in plan.given_away(&words, &found) {
            let copy = self.read(at, bytes)?;
            each(at, &copy)?;
        }
        Ok(())
    }

    /// Reads where the first replica lies.
    fn read(&mut self, at: Address, bytes: u64) -> Result<Vec<u8>, MemoryError> {
        let at = self.plan.places(at)?.into_iter().next();
        let at = at.ok_or(MemoryError::Geometry)?; // not reached: every region has replicas
        let outcomes = self.ask(vec![Operation::Read { at, bytes }])?;
        match outcomes.into_iter().next() {
            Some(OperationOutcome::Read(copy)) => Ok(copy),
            _ => Err(MemoryError::Geometry), // no carrier answers a read otherwise
        }
    }

    /// Says that all servers have their rows: whoever comes forms the database.
    ///
    /// # Errors
    /// [`MemoryError`]: a server was started anew meanwhile.
    pub fn end(mut self) -> Result<(), MemoryError> {
        forming::are_ready(&mut self.driver, &self.words, self.formation)
    }
}

impl Plan {
    /// Where something lies on each server that has it at first.
    fn places(&self, at: Address) -> Result<Vec<Address>, MemoryError> {
        let Some((_, map)) = &self.first else {
            return Ok(vec![at]);
        };
        let number = at.server.0.checked_sub(manxdb_rsi::Map::FIRST);
        let region = number.and_then(|number| map.regions().get(usize::from(number)));
        let region = region.ok_or(MemoryError::Geometry)?;
        let replicas = region.replicas().iter();
        let places: Vec<Address> = replicas.map(|replica| replica.at.plus(at.offset)).collect();
        assert!(!places.is_empty(), "a region has a replica: {at}");
        let is_distinct = || {
            let servers: BTreeSet<ServerId> = places.iter().map(|place| place.server).collect();
            servers.len() == places.len()
        };
        assert!(
            !deep() || is_distinct(),
            "each replica lies on a server of its own: {places:?}"
        );
        Ok(places)
    }

    /// Bytes of the rows of a chunk, and of its nodes.
    fn chunk_bytes(&self) -> (u64, u64) {
        let records = Chunk::RECORDS * bytes(self.keyspace.records);
        (records, Chunk::NODES * bytes(self.keyspace.tree.layout()))
    }

    /// The word of the chunk that something on a chunk region is in.
    fn chunk_of(&self, at: Address) -> Option<Address> {
        let UnusedMemory::ChunkRegions(chunk_regions) = &self.unused else {
            return None;
        };
        let (record, node) = self.chunk_bytes();
        let kinds = [
            (&chunk_regions.records, record),
            (&chunk_regions.nodes, node),
        ];
        kinds.into_iter().find_map(|(bases, each)| {
            let chunk_region = bases.iter().position(|base| base.server == at.server)? as u64;
            Some(
                chunk_regions
                    .words
                    .plus((chunk_region * chunk_regions.chunks + at.offset / each) * WORD),
            )
        })
    }

    /// Words that say what is given away, in pieces that are read at once.
    pub(crate) fn words_of_chunks(&self) -> Vec<(Address, u64)> {
        match &self.unused {
            UnusedMemory::Servers(_) => {
                let next = |server| Address {
                    server: ServerId(server),
                    offset: NEXT,
                };
                let servers = 0..self.geometry.servers;
                servers.map(|server| (next(server), WORD)).collect()
            }
            UnusedMemory::ChunkRegions(chunk_regions) => {
                let chunk_region = |number| {
                    chunk_regions
                        .words
                        .plus(number * chunk_regions.chunks * WORD)
                };
                let count = chunk_regions.records.len() as u64;
                let each =
                    (0..count).map(|number| (chunk_region(number), chunk_regions.chunks * WORD));
                each.collect()
            }
        }
    }

    /// What is to be copied, by copies of these words: the words, tables, and rooms.
    pub(crate) fn given_away(
        &self,
        words: &[(Address, u64)],
        found: &[Vec<u8>],
    ) -> Vec<(Address, u64)> {
        let root = self.keyspace.tree.root().address();
        let root = (root, bytes(self.keyspace.tree.layout()));
        let tables = [root, self.bound, self.free_extent_records()];
        let words_of = |copy: &Vec<u8>| -> Vec<u64> {
            let words = copy.as_chunks::<WORD_LENGTH>().0.iter();
            words.map(|word| u64::from_le_bytes(*word)).collect()
        };
        assert_eq!(
            words.len(),
            found.len(),
            "each piece of these words was read"
        );
        assert!(
            words
                .iter()
                .zip(found)
                .all(|((_, bytes), copy)| copy.len() as u64 == *bytes),
            "words that were not read would pass for memory that is nobody's"
        );
        let found = found.iter().map(words_of);
        let unused: Vec<(Address, u64)> = match &self.unused {
            UnusedMemory::Servers(begin) => {
                let room = |((at, _), words): (&(Address, u64), Vec<u64>)| {
                    let end = words.first().copied().unwrap_or(0).min(self.geometry.bytes);
                    let at = Address {
                        offset: *begin,
                        ..*at
                    };
                    (at, end.saturating_sub(*begin))
                };
                words.iter().zip(found).map(room).collect()
            }
            UnusedMemory::ChunkRegions(chunk_regions) => {
                let (record, node) = self.chunk_bytes();
                let bases = chunk_regions.records.iter().zip(&chunk_regions.nodes);
                let chunks = bases.zip(found).flat_map(|((records, nodes), words)| {
                    let given = (0..).zip(words).filter(|(_, word)| *word != 0);
                    given.flat_map(move |(chunk, _)| {
                        let records = (records.plus(chunk * record), record);
                        [records, (nodes.plus(chunk * node), node)]
                    })
                });
                chunks.collect()
            }
        };
        let all = words.iter().copied().chain(tables).chain(unused);
        let all: Vec<(Address, u64)> = all.collect();
        if deep() {
            let is_in =
                |(at, bytes): &(Address, u64)| *bytes == 0 || self.is_in_an_area(*at, *bytes);
            assert!(
                all.iter().all(is_in),
                "what is copied lies in areas: {all:?}"
            );
        }
        all.into_iter()
            .flat_map(|(at, bytes)| pieces(at, bytes))
            .collect()
    }
}

/// The same in pieces that one operation reads.
fn pieces(at: Address, bytes: u64) -> impl Iterator<Item = (Address, u64)> {
    let offsets = (0..bytes).step_by(PIECE);
    offsets.map(move |offset| (at.plus(offset), (bytes - offset).min(PIECE as u64)))
}
