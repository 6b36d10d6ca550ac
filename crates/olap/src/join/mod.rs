//! Equi-joins of two relations whose rows are spread over all nodes (Binnig et al., §5.1 and §5.2).
//!
//! A join sends every row to the node of its key, where rows of both relations that belong together
//! meet; each node joins what has come to it. What the algorithms differ in is how rows travel and
//! how often they are copied on the way:
//!
//! - GHJ and RDMA GHJ send by node; rows that have come are divided a second time, into partitions
//!   whose tables fit a cache.
//! - RRJ divides that finely before it sends, so that what comes is joined as it lies.
//! - Bloom filters of both relations are exchanged before rows are, each node's of its own rows,
//!   which then need not travel if no node's rows of the other relation have their key.

mod local;

use std::collections::BTreeMap;

use manxdb_fabric::Fabric;

use self::local::{Table, divide};
use crate::bloom::Bloom;
use crate::error::OlapError;
use crate::memory::{Gathered, Node, Scatter};
use crate::rows::{Rows, Side, Width};
use crate::sockets::{Kind, Message, Sockets};
use crate::traffic::Traffic;

/// Bytes of a table that stays in a core's own cache while it is looked up.
const CACHE: u64 = 256 << 10;
/// Bytes of a row's places in a table.
const PLACES: u64 = 8;

/// A node's rows of both relations.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// Tables are built of these: the smaller relation.
    pub build: &'a Rows,
    /// They are looked up with these.
    pub probe: &'a Rows,
}

impl Tables<'_> {
    fn empty(self) -> [Rows; 2] {
        [self.build, self.probe].map(|rows| Rows::new(rows.width()))
    }
}

/// Partitions into which a node divides so many rows so that the table of each fits a cache.
pub fn parts(rows: u64, width: Width) -> u32 {
    let bytes = rows.saturating_mul(width.bytes() as u64 + PLACES);
    u32::try_from(bytes.div_ceil(CACHE).max(1)).unwrap_or(u32::MAX)
}

/// Which rows travel as messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// All whose key belongs to another node.
    All,
    /// Of these, those whose key the other relation may have: Bloom filters say so.
    Filtered,
}

/// GHJ: rows travel as messages. Each node divides what has come to it into so many partitions.
/// Returns what this node has sent; `each` is called for every pair of rows of equal keys that this
/// node finds.
///
/// # Errors
/// [`OlapError`]; pairs that were found by then are not all.
pub fn by_messages(
    sockets: &mut Sockets,
    tables: Tables<'_>,
    travel: Travel,
    parts: u32,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<Traffic, OlapError> {
    let before = sockets.sent();
    let mut come = tables.empty();
    match travel {
        Travel::All => {
            sockets.send_rows(Side::Build, tables.build, |_| true, &mut come[0])?;
            sockets.send_rows(Side::Probe, tables.probe, |_| true, &mut come[1])?;
        }
        Travel::Filtered => {
            // Each relation travels through the filters of the other one.
            let [of_build, of_probe] = filters(sockets, tables, &mut come)?;
            let keeps = |key| of_probe.iter().any(|filter| filter.may_have(key));
            sockets.send_rows(Side::Build, tables.build, keeps, &mut come[0])?;
            let keeps = |key| of_build.iter().any(|filter| filter.may_have(key));
            sockets.send_rows(Side::Probe, tables.probe, keeps, &mut come[1])?;
        }
    }
    sockets.end_stage(|message| keep(message, &mut come))?;
    let [build, probe] = &come;
    meet(build, probe, sockets.nodes(), parts, &mut each)?;
    Ok(sockets.sent().since(before))
}

/// Rows that have come as a message.
fn keep(message: Message, come: &mut [Rows; 2]) -> Result<(), OlapError> {
    let node = message.from;
    let nonsense = |what: String| OlapError::Nonsense { node, what };
    if message.kind != Kind::Rows {
        return Err(nonsense("a filter, when rows are awaited".to_owned()));
    }
    let [build, probe] = come;
    let rows = match message.side {
        Side::Build => build,
        Side::Probe => probe,
    };
    let added = rows.extend(&message.payload);
    added.map_err(|error| nonsense(error.to_string()))
}

/// Exchanges filters of both relations, one of each node. Nodes that are ahead send rows by then.
fn filters(
    sockets: &mut Sockets,
    tables: Tables<'_>,
    come: &mut [Rows; 2],
) -> Result<[Vec<Bloom>; 2], OlapError> {
    let own = [Bloom::of(tables.build), Bloom::of(tables.probe)];
    sockets.send_filter(Side::Build, &own[0].to_bytes())?;
    sockets.send_filter(Side::Probe, &own[1].to_bytes())?;
    let mut parts: BTreeMap<(u16, Side), Vec<u8>> = BTreeMap::new();
    sockets.end_stage(|message| {
        if message.kind == Kind::Filter {
            let part = parts.entry((message.from, message.side)).or_default();
            part.extend(message.payload);
            return Ok(());
        }
        keep(message, come)
    })?;
    let [mut of_build, mut of_probe] = own.map(|filter| vec![filter]);
    for ((node, side), filter) in parts {
        let what = "a filter that is cut off".to_owned();
        let filter = Bloom::from_bytes(&filter).ok_or(OlapError::Nonsense { node, what })?;
        match side {
            Side::Build => of_build.push(filter),
            Side::Probe => of_probe.push(filter),
        }
    }
    Ok([of_build, of_probe])
}

/// RDMA GHJ and RRJ: rows travel as writes into the memory of the nodes of their keys, by the
/// partitions of the node's room, each of which the receiver divides into so many: with many
/// partitions in the region and a division into one it is RRJ, the other way round RDMA GHJ. Returns
/// what this node has sent; `each` is called for every pair of rows of equal keys that it finds.
///
/// # Errors
/// [`OlapError`]; pairs that were found by then are not all.
pub fn by_writes<F: Fabric>(
    node: &mut Node<F>,
    tables: Tables<'_>,
    divided: u32,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<Traffic, OlapError> {
    let sent = node.exchange(|node| {
        for (side, rows) in [(Side::Build, tables.build), (Side::Probe, tables.probe)] {
            let mut scatter = Scatter::new(node, side, rows.width());
            for row in rows {
                scatter.send(row)?;
            }
            scatter.finish()?;
        }
        Ok(())
    })?;
    let gathered = Gathered::find(node)?;
    let (build_width, probe_width) = (tables.build.width(), tables.probe.width());
    let shares = usize::from(node.region().nodes()) * gathered.parts();
    for part in 0..gathered.parts() {
        let build = gathered.rows(node, (Side::Build, part), build_width)?;
        if divided > 1 {
            let probe = gathered.rows(node, (Side::Probe, part), probe_width)?;
            meet(&build, &probe, shares, divided, &mut each)?;
        } else {
            let table = Table::of(&build, 0..build.len())?;
            gathered.each(node, (Side::Probe, part), |rows| {
                table.probe(rows.chunks_exact(probe_width.bytes()), &mut each);
                Ok(())
            })?;
        }
    }
    Ok(sent)
}

/// Joins rows of one of so many shares, divided into so many partitions.
fn meet(
    build: &Rows,
    probe: &Rows,
    shares: usize,
    parts: u32,
    each: &mut impl FnMut(&[u8], &[u8]),
) -> Result<(), OlapError> {
    let parts = usize::try_from(parts).unwrap_or(1).max(1);
    let build = divide(build, shares, parts)?;
    let probe = divide(probe, shares, parts)?;
    for part in 0..parts {
        let table = Table::of(&build.rows, build.part(part))?;
        let rows = probe.part(part).map(|place| probe.rows.get(place));
        table.probe(rows, each);
    }
    Ok(())
}
