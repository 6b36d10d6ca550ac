//! Memory that is given away: to whoever asks, in large pieces, for good.
//!
//! Each server has a word with the end of what it has given away. A client swaps it for one further
//! on, and all between is the client's, zero as the server has made it.
//!
//! Such a word, which changes again and again, is not to be replicated: of two clients the one who
//! swapped first may write it to the backups last. So in replicated memory there are *chunks* with a
//! word each, which is swapped once, from 0, as an entry of a directory. Chunks beside each other are
//! one room. A swap that meets a loss may count or not: then the chunk is nobody's.
//!
//! What a client has not used when it ends is in the free-extent record of its place ([`FreeExtentRecord`]), but for a
//! portion: nobody knows which of that the tree leads to.
//!
//! [`FreeExtentRecord`]: manxdb_rsi::rows::Free-extent record

use manxdb_fabric::{Address, Fabric, Operation, OperationOutcome, ServerId, WORD, WORD_LENGTH};
use manxdb_rsi::Layout;
use manxdb_rsi::rows::{Extent, Keyspace};

use super::MemoryError;
use super::forming::number;
use super::plan::{NEXT, Plan, bytes};
use crate::drive::Driver;

/// Where memory is that is nobody's yet.
#[derive(Debug, Clone)]
pub(super) enum UnusedMemory {
    /// At each server, from here on.
    Servers(u64),
    /// In regions.
    ChunkRegions(ChunkRegions),
}

/// Regions of chunks.
#[derive(Debug, Clone)]
pub(super) struct ChunkRegions {
    /// Words of the chunks of all chunk regions.
    pub(super) words: Address,
    /// Chunks of each chunk region.
    pub(super) chunks: u64,
    /// Where the records of each chunk region begin, and its nodes.
    pub(super) records: Vec<Address>,
    pub(super) nodes: Vec<Address>,
}

/// The smallest room of replicated memory.
pub(super) struct Chunk;

impl Chunk {
    pub(super) const RECORDS: u64 = 2048;
    pub(super) const NODES: u64 = NODES_LEAST + Self::RECORDS / RECORDS_A_NODE;
}

/// Room for records and for nodes.
pub(super) struct ExtentPair {
    pub(super) records: Extent,
    pub(super) nodes: Extent,
}

/// Records to a node: with nodes of 8 KiB that are half full, keys of 48 bytes on average. Where keys are
/// longer, memory for nodes is given away before memory for records.
const RECORDS_A_NODE: u64 = 64;
/// Nodes that come with any room beside those that are asked for: enough for the splits of one key.
const NODES_LEAST: u64 = 32;

/// Records that are taken room for at once, at least.
const RECORDS_LEAST: u64 = 1024;

/// Takes room for so many records and nodes at least, on one of the servers, or chunk regions; `first` is a
/// number by chance, which says where to look first.
///
/// # Errors
/// [`MemoryError::NoRoom`], or a fault.
pub(super) fn take<F: Fabric>(
    driver: &mut Driver<F>,
    plan: &Plan,
    first: u64,
    (records, nodes): (u64, u64),
) -> Result<ExtentPair, MemoryError> {
    match &plan.unused {
        UnusedMemory::Servers(begin) => {
            let (records, nodes) = (
                records.max(RECORDS_LEAST),
                nodes.saturating_add(NODES_LEAST),
            );
            take_of_servers(driver, plan, (*begin, first), (records, nodes))
        }
        UnusedMemory::ChunkRegions(chunk_regions) => {
            chunk_regions.take(driver, plan, first, (records, nodes))
        }
    }
}

fn take_of_servers<F: Fabric>(
    driver: &mut Driver<F>,
    plan: &Plan,
    (begin, first): (u64, u64),
    (records, nodes): (u64, u64),
) -> Result<ExtentPair, MemoryError> {
    let servers = plan.geometry.servers;
    let full = MemoryError::NoRoom {
        living: servers,
        of: servers,
    };
    let of = |layout: Layout, count: u64| bytes(layout).checked_mul(count);
    let of_records = of(plan.keyspace.records, records);
    let all = of_records.zip(of(plan.keyspace.tree.layout(), nodes));
    let all = all.and_then(|(records, nodes)| records.checked_add(nodes));
    let Some(all) = all else { return Err(full) };
    for step in 0..servers {
        let server = (first + u64::from(step)) % u64::from(servers);
        let server = ServerId(u16::try_from(server).unwrap_or(0)); // it is below `servers`
        let end = plan.geometry.bytes;
        if let Some(base) = take_at(driver, (server, begin, end), all)? {
            let behind = base.plus(records * bytes(plan.keyspace.records));
            return room(plan.keyspace, (base, records), (behind, nodes));
        }
    }
    Err(full)
}

fn room(
    keyspace: Keyspace,
    (records_at, records): (Address, u64),
    (nodes_at, nodes): (Address, u64),
) -> Result<ExtentPair, MemoryError> {
    let records = Extent::new(records_at, keyspace.records.bytes(), records);
    let nodes = Extent::new(nodes_at, keyspace.tree.layout().bytes(), nodes);
    let both = records.zip(nodes);
    assert!(
        both.as_ref().is_none_or(|(records, nodes)| {
            records_at.server != nodes_at.server
                || records.end().offset <= nodes_at.offset
                || nodes.end().offset <= records_at.offset
        }),
        "records and nodes do not share memory"
    );
    let room = both.map(|(records, nodes)| ExtentPair { records, nodes });
    room.ok_or(MemoryError::Geometry) // not reached: places reach as far as memory does
}

/// Takes so many bytes at a server, of memory between two offsets; none if it has not so many left.
fn take_at<F: Fabric>(
    driver: &mut Driver<F>,
    (server, begin, end): (ServerId, u64, u64),
    bytes: u64,
) -> Result<Option<Address>, MemoryError> {
    let at = Address {
        server,
        offset: NEXT,
    };
    let mut ask = |operation| -> Result<u64, MemoryError> {
        let outcome = driver.ask(vec![operation])?.into_iter().next();
        assert!(outcome.is_some(), "a word that was not read is not 0");
        outcome.map_or(Ok(0), number)
    };
    let mut expected = ask(Operation::Read { at, bytes: WORD })?;
    loop {
        let offset = expected.max(begin);
        let Some(new) = offset.checked_add(bytes).filter(|new| *new <= end) else {
            return Ok(None);
        };
        assert!(
            begin <= offset && offset < new,
            "what is given away lies behind the tables, and there is some of it: {offset:#x} to {new:#x}"
        );
        let found = ask(Operation::CompareSwap { at, expected, new })?;
        if found == expected {
            return Ok(Some(Address { server, offset }));
        }
        expected = found; // somebody else has taken some
    }
}

impl ChunkRegions {
    fn take<F: Fabric>(
        &self,
        driver: &mut Driver<F>,
        plan: &Plan,
        first: u64,
        (records, nodes): (u64, u64),
    ) -> Result<ExtentPair, MemoryError> {
        let (wanted_records, wanted_nodes) = (records, nodes);
        let wanted = records.div_ceil(Chunk::RECORDS).max(1);
        let wanted = wanted.max(nodes.div_ceil(Chunk::NODES));
        if wanted > self.chunks {
            return Err(MemoryError::Large(records, self.chunks * Chunk::RECORDS));
        }
        let chunk_regions = self.records.len() as u64;
        for step in 0..chunk_regions {
            let chunk_region = (first + step) % chunk_regions;
            if let Some(chunk) = self.take_on(driver, chunk_region, wanted)? {
                let place = usize::try_from(chunk_region).unwrap_or(usize::MAX);
                let bases = self.records.get(place).zip(self.nodes.get(place));
                let (records, nodes) = bases.ok_or(MemoryError::Geometry)?; // not reached
                let (before, keyspace) = (chunk * Chunk::RECORDS, plan.keyspace);
                let records = records.plus(before * bytes(keyspace.records));
                let nodes = nodes.plus(chunk * Chunk::NODES * bytes(keyspace.tree.layout()));
                let (of_records, of_nodes) = (wanted * Chunk::RECORDS, wanted * Chunk::NODES);
                assert!(
                    of_records >= wanted_records && of_nodes >= wanted_nodes,
                    "chunks have as much as was asked for"
                );
                return room(keyspace, (records, of_records), (nodes, of_nodes));
            }
        }
        let of = plan.geometry.servers;
        let living = driver
            .map()
            .map_or(of, |map| u16::try_from(map.servers().count()).unwrap_or(of));
        Err(MemoryError::NoRoom { living, of })
    }

    /// Takes chunks beside each other; none if a chunk region has not so many.
    fn take_on<F: Fabric>(
        &self,
        driver: &mut Driver<F>,
        chunk_region: u64,
        wanted: u64,
    ) -> Result<Option<u64>, MemoryError> {
        let words = self.words.plus(chunk_region * self.chunks * WORD);
        loop {
            let read = Operation::Read {
                at: words,
                bytes: self.chunks * WORD,
            };
            let outcomes = driver.ask_regions(vec![read])?;
            let Some(chunk) = free(outcomes, wanted)? else {
                return Ok(None);
            };
            assert!(
                chunk + wanted <= self.chunks,
                "chunks {chunk} and {wanted} from it on are of one region of {}",
                self.chunks
            );
            let swap = |chunk: u64| Operation::CompareSwap {
                at: words.plus(chunk * WORD),
                expected: 0,
                new: 1,
            };
            let outcomes = driver.ask_regions((chunk..chunk + wanted).map(swap).collect())?;
            assert_eq!(outcomes.len() as u64, wanted, "each chunk was asked for");
            let found = outcomes.into_iter().map(number);
            // Or somebody else has taken one of them, and the others are nobody's.
            if found.sum::<Result<u64, _>>()? == 0 {
                return Ok(Some(chunk));
            }
        }
    }
}

/// The first of so many free chunks beside each other.
fn free(outcomes: Vec<OperationOutcome>, wanted: u64) -> Result<Option<u64>, MemoryError> {
    let copy = match outcomes.into_iter().next() {
        Some(OperationOutcome::Read(copy)) => copy,
        Some(OperationOutcome::Failed(fault)) => return Err(fault.into()),
        other => {
            assert!(
                matches!(other, Some(OperationOutcome::Read(_))),
                "a read is answered by a copy"
            );
            return Ok(None);
        }
    };
    let mut run = 0;
    for (chunk, word) in (0..).zip(copy.as_chunks::<WORD_LENGTH>().0) {
        run = if *word == [0; WORD_LENGTH] {
            run + 1
        } else {
            0
        };
        if run == wanted {
            return Ok(Some(chunk + 1 - wanted));
        }
    }
    Ok(None)
}
