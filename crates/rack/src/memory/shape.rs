//! How the regions of replicated memory are cut: what is left of a server beside tables and logs is
//! shelves, and of those so many that after a loss every region finds a place.

use manxdb_fabric::{Address, ServerId, WORD};
use manxdb_rsi::Seats;

use super::geometry::{Geometry, GeometryError};
use super::plan::{bytes, horizon_bytes, kept, keyspace, lines, purse_bytes, ring, vector};
use super::rooms::Lot;

/// Shelves for each server, so that no region is large; and of all servers.
const SHELVES_EACH: u64 = 8;
const SHELVES_MAX: u64 = 184;
/// Shelves that a server may get more of after a loss than its share.
const SHELVES_SPARE: u64 = 2;
/// Lots that one operation looks at.
const LOTS_MAX: u64 = manxdb_fabric::operation::BYTES_MAX / WORD;

/// How the regions of replicated memory are cut.
pub(super) struct Shape {
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
    pub(super) horizon: u64,
    /// Purses of all places.
    pub(super) purses: u64,
    /// What the keeper says.
    pub(super) kept: u64,
    /// Shelves, and lots of each.
    pub(super) shelves: u64,
    pub(super) lots: u64,
    /// Bytes of a lot.
    pub(super) lot: u64,
}

impl Shape {
    pub(super) fn of(geometry: Geometry, begin: u64) -> Result<Self, GeometryError> {
        let nowhere = Address {
            server: ServerId(0),
            offset: begin,
        };
        let (records, nodes) = (geometry.records()?, geometry.nodes()?);
        keyspace(geometry, nowhere)?;
        let lot = Lot::RECORDS * bytes(records) + Lot::NODES * bytes(nodes);
        let servers = u64::from(geometry.servers);
        let mut shape = Self {
            geometry,
            begin,
            table: lines(Seats::new(nowhere, geometry.places).bytes()),
            lines: lines(vector(nowhere, geometry)?.bytes()),
            root: bytes(nodes),
            words: lines(geometry.bytes / lot * servers * WORD),
            logs: u64::from(geometry.places).div_ceil(servers),
            horizon: {
                let (record, words) = horizon_bytes(geometry)?;
                record + words
            },
            purses: purse_bytes(geometry),
            kept: kept(nowhere, geometry).map_or(0, |kept| lines(kept.bytes())),
            shelves: (SHELVES_EACH * servers).min(SHELVES_MAX),
            lots: 0,
            lot,
        };
        let free = geometry.bytes.saturating_sub(shape.taken());
        loop {
            let lots = free / (shape.held() * lot);
            if lots > 0 {
                shape.lots = lots.min(LOTS_MAX);
                return Ok(shape);
            }
            if shape.shelves == 1 {
                return Err(shape.small());
            }
            shape.shelves /= 2;
        }
    }

    /// Bytes of a server that are no shelves', if it has all else.
    fn taken(&self) -> u64 {
        let each = ring(self.geometry) + lines(self.geometry.log_bytes);
        let logs = u64::from(self.geometry.servers) * self.logs * each;
        let tables = self.table + self.lines + self.root + self.words;
        let tables = tables + self.horizon + self.purses + self.kept;
        self.begin + tables + logs
    }

    /// Shelves that a server has after a loss; where all servers have all, that changes nothing.
    fn held(&self) -> u64 {
        let (servers, replicas) = (self.geometry.servers, self.geometry.replicas);
        if servers == replicas {
            return self.shelves;
        }
        let all = self.shelves * u64::from(replicas);
        all.div_ceil(u64::from(servers - 1)) + SHELVES_SPARE
    }

    pub(super) fn small(&self) -> GeometryError {
        let taken = self.taken();
        let least = taken + self.held() * self.lot;
        GeometryError::Small(self.geometry.bytes, self.geometry.places, taken, least)
    }
}
