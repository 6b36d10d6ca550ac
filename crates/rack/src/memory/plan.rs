//! Where everything is in the memory of servers that run for long.
//!
//! With one replica, at the servers themselves:
//!
//! ```text
//! every server   0 superblock | 512 FORMATION | 576 NEXT | 1024 …
//! the first one  1024 client slots, vector | logs | old versions | root of the tree, bound, free-extent records | rooms …
//! the others     1024 (unused)      | logs | old versions | (unused)                        | rooms …
//! ```
//!
//! With several, in regions of a [`Map`], whose servers have nothing of their own but
//!
//! ```text
//! every server   0 superblock | 512 FORMATION | 1024 epoch log | regions …
//! ```
//!
//! `FORMATION` says which database it is part of ([`super::forming`]). Memory that is nobody's yet
//! begins at `NEXT`, or is of chunks in chunk regions ([`super::chunks`]): a chunk region is a region for records and
//! one for nodes of the tree. A share of each server is left to no region, so that after one loss
//! every region finds a server for its new replica.

use std::sync::Arc;

use manxdb_fabric::{Address, ServerId, WORD};
use manxdb_rsi::directory::PLACE;
use manxdb_rsi::rows::{FreeExtentRecord, Keyspace};
use manxdb_rsi::{
    Chart, ClientSlots, DurablePositions, EpochLog, Layout, Log, LowWatermark, Map, Overflow,
    Owner, RecordAddress, RegionKind, Session, ThreadId, Tree, Vector, Ward,
};

use super::MemoryError;
use super::chunks::{Chunk, ChunkRegions, UnusedMemory};
use super::geometry::{Geometry, GeometryError};
use super::region_layout::RegionLayout;
use super::superblock::NAME_MAX;

/// Bytes of a superblock.
pub const SUPERBLOCK: u64 = 512;
/// Where the word of the formation is.
pub(super) const FORMATION: u64 = SUPERBLOCK;
/// Where the word with the end of what is given away is.
pub(super) const NEXT: u64 = SUPERBLOCK + LINE;
const TABLES: u64 = 1024;
pub(super) const LINE: u64 = 64;
const _: () = assert!(
    FORMATION + WORD <= NEXT && NEXT + WORD <= TABLES,
    "words of the formation and of what is given away lie before the tables"
);
const _: () = assert!(
    NAME_MAX as u64 + 17 * WORD <= SUPERBLOCK && LINE.is_multiple_of(PLACE),
    "a superblock has room for its name and its numbers, and places begin at lines"
);
/// Memory for rows, at least: below it there would be hardly any.
const ROOM_LEAST: u64 = 1 << 20;
/// Events that there is room for: losses, and regions that are whole again.
const EVENTS: u64 = 1 << 13;
/// Where everything is.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) geometry: Geometry,
    /// The first map, and where it is noted what becomes of it; none: everything is at servers.
    pub(super) first: Option<(EpochLog, Arc<Map>)>,
    /// The table of places.
    pub(super) table: Address,
    pub(super) vector: Vector,
    /// Where the vector is.
    pub(super) vector_at: Address,
    /// What the log archiver says; none: nothing is written to disk.
    pub(super) kept: Option<DurablePositions>,
    /// Where that is.
    pub(super) kept_at: Option<Address>,
    /// Where the logs of all places are, in their order: at several servers, or in a region.
    pub(super) logs: Vec<Vec<Address>>,
    /// Where versions that are pushed out of rows are kept, by places in their order.
    pub(super) rings: Vec<Address>,
    /// Which snapshots nobody uses any more.
    pub(super) low_watermark: LowWatermark,
    /// Its record, and the bytes of that.
    pub(super) bound: (Address, u64),
    /// Where the words of those who heed it are.
    pub(super) heeding: Address,
    /// Where the free-extent records of all places are, in their order, one behind the other.
    free_extent_records: Address,
    /// The tree and the rows.
    pub(super) keyspace: Keyspace,
    pub(super) unused: UnusedMemory,
}

impl Plan {
    /// Finds places for all.
    ///
    /// # Errors
    /// [`GeometryError`].
    pub fn of(geometry: Geometry) -> Result<Self, GeometryError> {
        geometry.check_numbers()?;
        let last = Address {
            server: ServerId(geometry.servers - 1),
            offset: geometry.bytes / LINE * LINE,
        };
        RecordAddress::new(last).ok_or(GeometryError::Large(geometry.bytes))?;
        let plan = if geometry.is_replicated() {
            Self::in_regions(geometry)?
        } else {
            Self::at_servers(geometry)?
        };
        let checked = plan.check_areas();
        assert!(checked.is_ok(), "areas of memory lie apart: {checked:?}");
        let places = usize::from(geometry.places);
        assert!(
            plan.logs.len() == places && plan.rings.len() == places,
            "each place has a log and a ring: {} and {} of {places}",
            plan.logs.len(),
            plan.rings.len()
        );
        let copies = usize::from(if geometry.is_replicated() {
            1 // a region, which has replicas
        } else {
            geometry.log_copies
        });
        assert!(
            plan.logs.iter().all(|log| log.len() == copies),
            "each log has {copies} copies"
        );
        Ok(plan)
    }

    fn at_servers(geometry: Geometry) -> Result<Self, GeometryError> {
        let first = |offset| {
            let server = ServerId(0);
            Address { server, offset }
        };
        let table = first(TABLES);
        let client_slots = lines(ClientSlots::new(table, geometry.places).bytes());
        let vector_at = first(TABLES + client_slots);
        let vector = vector(vector_at, geometry)?;
        let mut next = TABLES + client_slots + lines(vector.bytes());
        let kept = kept(first(next), geometry);
        let kept_at = kept.map(|_| first(next));
        next += kept.map_or(0, |kept| lines(kept.bytes()));
        let mut logs = Vec::new();
        for number in 0..geometry.places {
            let servers = (0..geometry.servers).filter(|server| has_log(geometry, *server, number));
            let offset = next;
            let at = servers.map(|server| Address {
                server: ServerId(server),
                offset,
            });
            logs.push(at.collect());
            next += ring(geometry);
        }
        let old = |number: u16| Address {
            server: ServerId(number % geometry.servers),
            offset: next + u64::from(number / geometry.servers) * lines(geometry.log_bytes),
        };
        let rings = (0..geometry.places).map(old).collect();
        next += rings_each(geometry);
        let keyspace = keyspace(geometry, first(next))?;
        next += bytes(keyspace.tree.layout());
        let (record, words) = low_watermark_bytes(geometry)?;
        let bound = (first(next), record);
        let heeding = first(next + record);
        let low_watermark = low_watermark(geometry, first(next), first(next + record))?;
        next += record + words;
        let free_extent_records = first(next);
        next += free_extent_record_bytes(geometry);
        let least = next + ROOM_LEAST;
        if geometry.bytes < least {
            let (bytes, places) = (geometry.bytes, geometry.places);
            return Err(GeometryError::Small(bytes, places, next, least));
        }
        Ok(Self {
            geometry,
            first: None,
            table,
            vector,
            vector_at,
            kept,
            kept_at,
            logs,
            rings,
            low_watermark,
            bound,
            heeding,
            free_extent_records,
            keyspace,
            unused: UnusedMemory::Servers(next),
        })
    }

    fn in_regions(geometry: Geometry) -> Result<Self, GeometryError> {
        let epoch_log = EpochLog::new(TABLES, EVENTS);
        let begin = lines(TABLES + epoch_log.bytes());
        let shape = RegionLayout::of(geometry, begin)?;
        let server = |number| (ServerId(number), begin, geometry.bytes);
        let servers: Vec<_> = (0..geometry.servers).map(server).collect();
        // All numbers are checked: what does not fit now is memory that was cut too fine.
        let full = |_| shape.small();
        let mut map = Map::new(&servers, geometry.replicas.into()).map_err(full)?;
        let mut add = |kind, bytes| map.add(kind, bytes).map_err(full);
        let table = add(RegionKind::Places, shape.table)?;
        let vector_at = add(RegionKind::Lines, shape.lines)?;
        let vector = vector(vector_at, geometry)?;
        let nodes = geometry.nodes()?;
        let keyspace = keyspace(geometry, add(RegionKind::Records(nodes), bytes(nodes))?)?;
        let words = add(RegionKind::Entries, shape.words)?;
        let (mut logs, mut rings) = (Vec::new(), Vec::new());
        for _ in 0..geometry.servers {
            let base = add(RegionKind::Logs, shape.logs * ring(geometry))?;
            // What is kept for old snapshots is written as lines are, and may be lost.
            let old = add(RegionKind::Lines, shape.logs * lines(geometry.log_bytes))?;
            for number in 0..shape.logs {
                logs.push(vec![base.plus(number * ring(geometry))]);
                rings.push(old.plus(number * lines(geometry.log_bytes)));
            }
        }
        logs.truncate(geometry.places.into());
        rings.truncate(geometry.places.into());
        let (record, heeding) = low_watermark_bytes(geometry)?;
        let layout = LowWatermark::layout(geometry.places);
        let layout = layout.ok_or(GeometryError::Large(geometry.bytes))?; // not reached
        let bound = add(RegionKind::Records(layout), record)?;
        let heeding = add(RegionKind::Lines, heeding)?;
        let low_watermark = low_watermark(geometry, bound, heeding)?;
        let bound = (bound, record);
        let free_extent_records = add(
            RegionKind::Records(FreeExtentRecord::LAYOUT),
            free_extent_record_bytes(geometry),
        )?;
        let sized = kept(bound.0, geometry);
        let kept_at = sized.map(|sized| add(RegionKind::Lines, lines(sized.bytes())));
        let kept_at = kept_at.transpose()?;
        let kept = kept_at.and_then(|at| kept(at, geometry));
        let mut chunk_regions = |layout: Layout, each: u64| {
            let kind = RegionKind::Records(layout);
            let bytes = shape.chunks * each * bytes(layout);
            let all = (0..shape.chunk_regions).map(|_| add(kind, bytes));
            all.collect::<Result<Vec<_>, _>>()
        };
        let unused = UnusedMemory::ChunkRegions(ChunkRegions {
            words,
            chunks: shape.chunks,
            records: chunk_regions(keyspace.records, Chunk::RECORDS)?,
            nodes: chunk_regions(nodes, Chunk::NODES)?,
        });
        Ok(Self {
            geometry,
            first: Some((epoch_log, Arc::new(map))),
            table,
            vector,
            vector_at,
            kept,
            kept_at,
            logs,
            rings,
            low_watermark,
            bound,
            heeding,
            free_extent_records,
            keyspace,
            unused,
        })
    }

    /// The numbers that decided it.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// What is known of the memory by who comes in.
    pub(super) fn chart(&self) -> Chart {
        match &self.first {
            None => Chart::fixed(),
            Some((epoch_log, map)) => Chart::new(*epoch_log, Arc::clone(map)),
        }
    }

    /// What a recovery coordinator is to know.
    pub(super) fn ward(&self, chart: Chart) -> Ward {
        let threads = (0..self.geometry.places).filter_map(ThreadId::new);
        let logs: Vec<Log> = threads.filter_map(|thread| self.log(thread)).collect();
        assert_eq!(
            logs.len(),
            usize::from(self.geometry.places),
            "whoever dies in a place is recovered from its log"
        );
        Ward {
            client_slots: self.client_slots(),
            vector: self.vector,
            logs,
            lease: self.geometry.lease,
            chart,
        }
    }

    /// The table of places.
    #[must_use]
    pub fn client_slots(&self) -> ClientSlots {
        ClientSlots::new(self.table, self.geometry.places)
    }

    pub(super) fn log(&self, thread: ThreadId) -> Option<Log> {
        let places = self.logs.get(usize::from(thread.number()))?;
        let slots = self.geometry.log_slots.into();
        Log::new(places.clone(), self.geometry.log_bytes, slots)
    }

    /// The free-extent record of a place.
    ///
    /// # Errors
    /// [`MemoryError::Geometry`]: there is no such place.
    pub(super) fn free_extent_record(
        &self,
        thread: ThreadId,
    ) -> Result<FreeExtentRecord, MemoryError> {
        let number = u64::from(thread.number());
        let at = self
            .free_extent_records
            .plus(number * bytes(FreeExtentRecord::LAYOUT));
        let at = RecordAddress::new(at).filter(|_| thread.number() < self.geometry.places);
        assert!(
            at.is_none_or(|at| self.is_free_extent_record(at.address())),
            "the record of a place lies among those of all places"
        );
        at.map(FreeExtentRecord::new).ok_or(MemoryError::Geometry)
    }

    /// Whether a free-extent record is there.
    pub(super) fn is_free_extent_record(&self, at: Address) -> bool {
        let (first, bytes) = self.free_extent_records();
        at.server == first.server && (first.offset..first.offset + bytes).contains(&at.offset)
    }

    /// Where all free-extent records are, and their bytes.
    pub(super) fn free_extent_records(&self) -> (Address, u64) {
        (
            self.free_extent_records,
            free_extent_record_bytes(self.geometry),
        )
    }

    /// The session of an owner, over a map of its epoch; none if there is no such place.
    pub(super) fn session(&self, owner: Owner, map: &Map) -> Option<Session> {
        let session = Session::new(owner.thread, self.vector, owner.after)?;
        let session = session.with_log(map.log_on_servers(&self.log(owner.thread)?)?);
        let session = match self.kept {
            Some(kept) => session.with_durable_positions(kept)?,
            None => session,
        };
        let ring = *self.rings.get(usize::from(owner.thread.number()))?;
        let ring = Overflow::new(ring, self.geometry.log_bytes, self.keyspace.records);
        // A ring that is too small for one version keeps none.
        Some(match ring {
            Some(ring) => session.with_overflow(ring),
            None => session,
        })
    }

    /// Where on a server something is; none if it is elsewhere. Of regions, as they were at first.
    pub(super) fn here(&self, server: u16, at: Address) -> Option<u64> {
        let server = ServerId(server);
        let Some((_, map)) = &self.first else {
            return (at.server == server).then_some(at.offset);
        };
        let number = at.server.0.checked_sub(Map::FIRST)?;
        let replicas = map.regions().get(usize::from(number))?.replicas();
        let here = replicas.iter().find(|replica| replica.at.server == server);
        let here = here.map(|replica| replica.at.plus(at.offset).offset);
        assert!(
            here.is_none_or(|offset| offset < self.geometry.bytes),
            "what is on a server lies in its memory: {here:?}"
        );
        here
    }

    /// Where on a server the log of a place is, if it has a copy.
    pub(super) fn log_here(&self, server: u16, thread: ThreadId) -> Option<u64> {
        let places = self.logs.get(usize::from(thread.number()))?;
        places.iter().find_map(|at| self.here(server, *at))
    }
}

/// Bytes from one record or node to the next.
pub(super) fn bytes(layout: Layout) -> u64 {
    lines(layout.bytes() as u64)
}

pub(super) fn lines(bytes: u64) -> u64 {
    bytes.next_multiple_of(LINE)
}

pub(super) fn vector(base: Address, geometry: Geometry) -> Result<Vector, GeometryError> {
    Vector::new(base, geometry.places).ok_or(GeometryError::Large(geometry.bytes)) // not reached
}

/// Bytes of a log: all its slots.
pub(super) fn ring(geometry: Geometry) -> u64 {
    lines(geometry.log_bytes * u64::from(geometry.log_slots))
}

/// What the log archiver says, at an address; none where there is none.
pub(super) fn kept(base: Address, geometry: Geometry) -> Option<DurablePositions> {
    let kept = DurablePositions::new(base, geometry.places);
    geometry.is_kept().then_some(kept)
}

/// Bytes of a server that rings for old versions take, where memory is not replicated.
fn rings_each(geometry: Geometry) -> u64 {
    u64::from(geometry.places.div_ceil(geometry.servers)) * lines(geometry.log_bytes)
}

/// Bytes of the bound of snapshots, and of the words of those who heed it.
pub(super) fn low_watermark_bytes(geometry: Geometry) -> Result<(u64, u64), GeometryError> {
    let layout = LowWatermark::layout(geometry.places);
    let layout = layout.ok_or(GeometryError::Large(geometry.bytes))?; // not reached
    Ok((bytes(layout), lines(LowWatermark::bytes(geometry.places))))
}

/// Bytes of the free-extent records of all places.
pub(super) fn free_extent_record_bytes(geometry: Geometry) -> u64 {
    u64::from(geometry.places) * bytes(FreeExtentRecord::LAYOUT)
}

fn low_watermark(
    geometry: Geometry,
    record: Address,
    words: Address,
) -> Result<LowWatermark, GeometryError> {
    let low_watermark = LowWatermark::new(record, words, geometry.places);
    low_watermark.ok_or(GeometryError::Large(geometry.bytes)) // not reached
}

pub(super) fn keyspace(geometry: Geometry, root: Address) -> Result<Keyspace, GeometryError> {
    let root = RecordAddress::new(root).ok_or(GeometryError::Large(geometry.bytes))?;
    Ok(Keyspace {
        tree: Tree::new(root, geometry.nodes()?)?,
        records: geometry.records()?,
    })
}

/// Whether a server has a copy of a place's log, where memory is not replicated.
fn has_log(geometry: Geometry, server: u16, place: u16) -> bool {
    let first = place % geometry.servers;
    (server + geometry.servers - first) % geometry.servers < geometry.log_copies
}

#[cfg(test)]
mod tests;
