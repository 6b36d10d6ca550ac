//! Memory that is given away: to whoever asks, in large pieces, for good.
//!
//! Each server has a word with the end of what it has given away. A client swaps it for one further
//! on, and all between is the client's, zero as the server has made it. What a client has not used
//! when it ends is lost: nobody knows which of its places the tree leads to.

use manxdb_fabric::{Address, Fabric, Operation, ServerId, WORD};
use manxdb_rsi::Layout;
use manxdb_rsi::rows::Extent;

use super::MemoryError;
use super::forming::number;
use super::geometry::{Geometry, NEXT};
use crate::drive::Driver;

/// Room for records and for nodes.
pub(super) struct Room {
    pub(super) records: Extent,
    pub(super) nodes: Extent,
}

/// Records to a node on average, also after splits.
const RECORDS_A_NODE: u64 = 4;
/// Nodes that come with the smallest room: enough for the splits of one key.
const NODES_LEAST: u64 = 32;

/// Takes room for so many records, on one of the servers; `first` is the one that is asked first.
///
/// # Errors
/// [`MemoryError::NoRoom`], or a fault.
pub(super) fn take<F: Fabric>(
    driver: &mut Driver<F>,
    geometry: Geometry,
    first: u16,
    records: u64,
) -> Result<Room, MemoryError> {
    let full = MemoryError::NoRoom(geometry.servers);
    let keyspace = geometry.keyspace().ok_or(MemoryError::Geometry)?;
    let nodes = NODES_LEAST + records / RECORDS_A_NODE;
    let bytes = |layout: Layout, count: u64| {
        let each = (layout.bytes() as u64).next_multiple_of(64);
        each.checked_mul(count)
    };
    let of_records = bytes(keyspace.records, records);
    let all = of_records.zip(bytes(keyspace.tree.layout(), nodes));
    let all = all.and_then(|(records, nodes)| records.checked_add(nodes));
    let Some(all) = all else { return Err(full) };
    for step in 0..geometry.servers {
        let server = ServerId((first % geometry.servers + step) % geometry.servers);
        let Some(base) = take_at(driver, geometry, server, all)? else {
            continue;
        };
        let records = Extent::new(base, keyspace.records.bytes(), records);
        let behind = records.as_ref().map(Extent::end);
        let nodes = behind.and_then(|end| Extent::new(end, keyspace.tree.layout().bytes(), nodes));
        let (Some(records), Some(nodes)) = (records, nodes) else {
            return Err(MemoryError::Geometry); // places reach as far as memory does
        };
        return Ok(Room { records, nodes });
    }
    Err(full)
}

/// Takes so many bytes at a server; none if it has not so many left.
fn take_at<F: Fabric>(
    driver: &mut Driver<F>,
    geometry: Geometry,
    server: ServerId,
    bytes: u64,
) -> Result<Option<Address>, MemoryError> {
    let at = Address {
        server,
        offset: NEXT,
    };
    let mut ask = |operation| -> Result<u64, MemoryError> {
        let outcome = driver.ask(vec![operation])?.into_iter().next();
        outcome.map_or(Ok(0), number)
    };
    let mut expected = ask(Operation::Read { at, bytes: WORD })?;
    loop {
        let offset = expected.max(geometry.rooms());
        let end = offset.checked_add(bytes);
        let Some(new) = end.filter(|end| *end <= geometry.bytes) else {
            return Ok(None);
        };
        let found = ask(Operation::CompareSwap { at, expected, new })?;
        if found == expected {
            return Ok(Some(Address { server, offset }));
        }
        expected = found; // somebody else has taken some
    }
}
