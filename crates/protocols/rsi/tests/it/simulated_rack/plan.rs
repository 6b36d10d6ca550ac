//! Where everything is in the tests' memory.

use std::sync::Arc;

use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::{
    Chart, ClientSlots, DurablePositions, EpochLog, Layout, Log, Map, Owner, RegionKind, Session,
    ThreadId, Vector, Ward,
};

use super::rack::LEASE;
use crate::common::{LAYOUT, LOG_BYTES};

/// Three may be lost, one after the other, and three must be left to agree.
pub const SERVERS: u16 = 6;
/// Replicas of each region.
pub const REPLICAS: usize = 3;
/// Fewer than those who come one after another, so that places are given out again.
pub const THREADS: u16 = 7;
/// Regions of records,
const EXTENTS: u64 = 3;
/// and records of each.
const EACH: u64 = 2;
pub const RECORDS: u64 = EXTENTS * EACH;
/// Some six keys a node, so that a tree has several levels; and rows that it leads to.
pub const NODES: Layout = match Layout::new(3, 200) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
pub const ROWS: Layout = match Layout::new(2, 40) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};
/// Places for each of both, if logs are rings.
pub const PLACES: u64 = 240;
/// Where events are noted, at each server.
pub const ANNALS: u64 = 64;

/// Bytes of a server where logs have so many slots.
pub fn bytes_of_server(slots: u64) -> u64 {
    slots << 17
}

/// Where everything is, by the addresses of regions.
#[derive(Clone)]
pub struct Plan {
    /// Slots of a log: one, or those of a ring.
    slots: u64,
    pub chart: Chart,
    pub client_slots: ClientSlots,
    pub vector: Vector,
    /// Where the vector is.
    pub lines: Address,
    logs: Address,
    /// Where a log archiver says how far it is, if logs are rings.
    pub kept: Option<DurablePositions>,
    extents: Vec<Address>,
    /// Nodes and rows, if logs are rings.
    pub tree: Option<(Address, Address)>,
}

/// Bytes from one record to the next.
pub fn each(layout: Layout) -> u64 {
    (layout.bytes() as u64).next_multiple_of(64)
}

impl Plan {
    /// The table is the first region, so that its primary is the first server, and a log archiver.
    pub fn new(slots: u64) -> Self {
        let epoch_log = EpochLog::new(ANNALS, 32);
        let from = ANNALS + epoch_log.bytes();
        let servers: Vec<_> = (0..SERVERS)
            .map(|number| (ServerId(number), from, bytes_of_server(slots)))
            .collect();
        let mut map = Map::new(&servers, REPLICAS).unwrap();
        let nowhere = Address {
            server: ServerId(0),
            offset: 0,
        };
        let bytes = ClientSlots::new(nowhere, THREADS).bytes();
        let client_slots = map.add(RegionKind::Places, bytes).unwrap();
        let bytes = Vector::new(nowhere, THREADS).unwrap().bytes();
        let vector = map.add(RegionKind::Lines, bytes).unwrap();
        let logs = u64::from(THREADS) * slots * LOG_BYTES;
        let logs = map.add(RegionKind::Logs, logs).unwrap();
        let extent = |map: &mut Map, layout, count| {
            let bytes = count * each(layout);
            map.add(RegionKind::Records(layout), bytes).unwrap()
        };
        let extents = (0..EXTENTS).map(|_| extent(&mut map, LAYOUT, EACH));
        let extents = extents.collect();
        let bytes = DurablePositions::new(nowhere, THREADS).bytes();
        let mut kept =
            || DurablePositions::new(map.add(RegionKind::Lines, bytes).unwrap(), THREADS);
        let kept = (slots > 1).then(&mut kept);
        let mut tree = || {
            let nodes = extent(&mut map, NODES, PLACES);
            (nodes, extent(&mut map, ROWS, PLACES))
        };
        let tree = (slots > 1).then(&mut tree);
        Self {
            slots,
            chart: Chart::new(epoch_log, Arc::new(map)),
            client_slots: ClientSlots::new(client_slots, THREADS),
            vector: Vector::new(vector, THREADS).unwrap(),
            lines: vector,
            logs,
            kept,
            extents,
            tree,
        }
    }

    pub fn record(&self, number: u64) -> Address {
        let extent = self.extents[usize::try_from(number % EXTENTS).unwrap()];
        extent.plus(number / EXTENTS * each(LAYOUT))
    }

    /// All records that there can be, and how they lie there.
    pub fn records(&self) -> Vec<(Address, Layout)> {
        let numbered = (0..RECORDS).map(|number| (self.record(number), LAYOUT));
        let placed = self.tree.into_iter().flat_map(|(nodes, rows)| {
            let all = move |base: Address, layout| {
                (0..PLACES).map(move |place| (base.plus(place * each(layout)), layout))
            };
            all(nodes, NODES).chain(all(rows, ROWS))
        });
        numbered.chain(placed).collect()
    }

    fn log(&self, thread: ThreadId) -> Log {
        let at = u64::from(thread.number()) * self.slots * LOG_BYTES;
        Log::new(vec![self.logs.plus(at)], LOG_BYTES, self.slots).unwrap()
    }

    /// The logs of all threads, at servers.
    pub fn logs(&self, map: &Map) -> Vec<Log> {
        let threads = (0..THREADS).filter_map(ThreadId::new);
        let logs = threads.map(|thread| map.log_on_servers(&self.log(thread)).unwrap());
        logs.collect()
    }

    pub fn session(&self, owner: Owner, map: &Map) -> Session {
        let session = Session::new(owner.thread, self.vector, owner.after).unwrap();
        let session = session.with_log(map.log_on_servers(&self.log(owner.thread)).unwrap());
        match self.kept {
            Some(kept) => session.with_durable_positions(kept).unwrap(),
            None => session,
        }
    }

    pub fn ward(&self) -> Ward {
        let threads = (0..THREADS).filter_map(ThreadId::new);
        Ward {
            client_slots: self.client_slots,
            vector: self.vector,
            logs: threads.map(|thread| self.log(thread)).collect(),
            lease: LEASE,
            chart: self.chart.clone(),
        }
    }
}

/// Where whole replicas have something, the primary first.
pub fn replicas(map: &Map, at: Address) -> Vec<Address> {
    let region = &map.regions()[usize::from(at.server.0 - Map::FIRST)];
    let whole = region.replicas().iter().filter(|replica| replica.is_whole);
    whole.map(|replica| replica.at.plus(at.offset)).collect()
}
