//! How the regions of replicated memory are cut: what is left of a server beside tables and logs is
//! chunk regions, and of those so many that after a loss every region finds a place.

use manxdb_fabric::{Address, ServerId, WORD};
use manxdb_rsi::ClientSlots;

use super::chunks::Chunk;
use super::geometry::{Geometry, GeometryError};
use super::plan::{
    bytes, free_extent_record_bytes, kept, keyspace, lines, low_watermark_bytes, ring, vector,
};

/// Chunk regions for each server, so that no region is large; and of all servers.
const CHUNK_REGIONS_EACH: u64 = 8;
const CHUNK_REGIONS_MAX: u64 = 184;
/// Chunk regions that a server may get more of after a loss than its share.
const CHUNK_REGIONS_SPARE: u64 = 2;
/// Chunks that one operation looks at.
const CHUNKS_MAX: u64 = manxdb_fabric::operation::BYTES_MAX / WORD;
const _: () = assert!(
    CHUNK_REGIONS_MAX <= manxdb_rsi::Map::REGIONS_MAX as u64 / 2,
    "a map has regions for records and for nodes of all chunk regions"
);

/// How the regions of replicated memory are cut.
pub(super) struct RegionLayout {
    pub(super) geometry: Geometry,
    /// Bytes before the regions.
    pub(super) begin: u64,
    /// Bytes of regions that there are one of, or as many as servers.
    pub(super) table: u64,
    pub(super) lines: u64,
    pub(super) root: u64,
    pub(super) words: u64,
    /// Logs of a region, and rings for old versions, which are as many.
    pub(super) logs: u64,
    /// The bound of snapshots, and who heeds it.
    pub(super) low_watermark: u64,
    /// Free-extent records of all places.
    pub(super) free_extent_records: u64,
    /// What the log archiver says.
    pub(super) kept: u64,
    /// Chunk regions, and chunks of each.
    pub(super) chunk_regions: u64,
    pub(super) chunks: u64,
    /// Bytes of a chunk.
    pub(super) chunk: u64,
}

impl RegionLayout {
    pub(super) fn of(geometry: Geometry, begin: u64) -> Result<Self, GeometryError> {
        let nowhere = Address {
            server: ServerId(0),
            offset: begin,
        };
        let (records, nodes) = (geometry.records()?, geometry.nodes()?);
        keyspace(geometry, nowhere)?;
        let chunk = Chunk::RECORDS * bytes(records) + Chunk::NODES * bytes(nodes);
        let servers = u64::from(geometry.servers);
        let mut shape = Self {
            geometry,
            begin,
            table: lines(ClientSlots::new(nowhere, geometry.places).bytes()),
            lines: lines(vector(nowhere, geometry)?.bytes()),
            root: bytes(nodes),
            words: lines(geometry.bytes / chunk * servers * WORD),
            logs: u64::from(geometry.places).div_ceil(servers),
            low_watermark: {
                let (record, words) = low_watermark_bytes(geometry)?;
                record + words
            },
            free_extent_records: free_extent_record_bytes(geometry),
            kept: kept(nowhere, geometry).map_or(0, |kept| lines(kept.bytes())),
            chunk_regions: (CHUNK_REGIONS_EACH * servers).min(CHUNK_REGIONS_MAX),
            chunks: 0,
            chunk,
        };
        let free = geometry.bytes.saturating_sub(shape.taken());
        loop {
            let chunks = free / (shape.held() * chunk);
            if chunks > 0 {
                shape.chunks = chunks.min(CHUNKS_MAX);
                assert!(
                    shape.taken() + shape.held() * shape.chunks * chunk <= geometry.bytes,
                    "after a loss a server has room for what it gets"
                );
                assert!(
                    shape.chunk_regions * shape.chunks * WORD <= shape.words,
                    "each chunk has a word"
                );
                return Ok(shape);
            }
            if shape.chunk_regions == 1 {
                return Err(shape.small());
            }
            shape.chunk_regions /= 2;
        }
    }

    /// Bytes of a server that are no chunk regions', if it has all else.
    fn taken(&self) -> u64 {
        let each = ring(self.geometry) + lines(self.geometry.log_bytes);
        let logs = u64::from(self.geometry.servers) * self.logs * each;
        let tables = self.table + self.lines + self.root + self.words;
        let tables = tables + self.low_watermark + self.free_extent_records + self.kept;
        self.begin + tables + logs
    }

    /// Chunk regions that a server has after a loss; where all servers have all, that changes nothing.
    fn held(&self) -> u64 {
        let (servers, replicas) = (self.geometry.servers, self.geometry.replicas);
        if servers == replicas {
            return self.chunk_regions;
        }
        let all = self.chunk_regions * u64::from(replicas);
        all.div_ceil(u64::from(servers - 1)) + CHUNK_REGIONS_SPARE
    }

    pub(super) fn small(&self) -> GeometryError {
        let taken = self.taken();
        let least = taken + self.held() * self.chunk;
        GeometryError::Small(self.geometry.bytes, self.geometry.places, taken, least)
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::tests::GEOMETRY;
    use super::*;

    /// Bytes of a server for each record that it has a copy of.
    fn bytes_a_record(bytes: u64) -> u64 {
        let geometry = Geometry {
            servers: 4,
            replicas: 3,
            log_copies: 3,
            places: 32,
            log_bytes: 512 << 10,
            value: 256,
            node: 8192,
            bytes,
            ..GEOMETRY
        };
        let layout = RegionLayout::of(geometry, 4096).unwrap();
        let records = layout.chunk_regions * layout.chunks * Chunk::RECORDS;
        let copies = u64::from(geometry.replicas);
        bytes * u64::from(geometry.servers) / (records * copies)
    }

    #[test]
    fn a_record_takes_little_more_than_its_versions() {
        // Four versions of 256 bytes, with what a lost server had kept free.
        for megabytes in [256, 1024] {
            let each = bytes_a_record(megabytes << 20);
            assert!(each <= 2750, "{megabytes} MiB: {each} bytes a record");
        }
    }
}
