//! Counts and sums by key, of rows that are spread over all nodes (Binnig et al., §5.3).
//!
//! The answer to `SELECT key, COUNT(*), SUM(value) … GROUP BY key`, where a row's value is the four
//! bytes behind its key. Rows that are added up are *partials*: a key, a count, a sum; partials of
//! equal keys can be added up again, in any order.
//!
//! - AGG adds up all rows of a node first, in a table as large as it has groups, and sends the
//!   partials when it has them all. (The paper does not say who adds partials up; here each node
//!   does it for its share of groups.)
//! - RDMA AGG has a table that fits a cache, and sends a partial as soon as another group needs its
//!   place. What comes is in as many partitions as let each of them be added up in a cache.

mod groups;

use manxdb_fabric::Fabric;

use self::groups::{Groups, Recent};
use crate::error::OlapError;
use crate::memory::{Gathered, Node, Scatter};
use crate::rows::{Key, Rows, Side, Width};
use crate::sockets::{Kind, Message, Sockets};
use crate::traffic::Traffic;

/// Bytes of a table that stays in a core's own cache.
const CACHE: u64 = 256 << 10;

/// What is known of a group: the answer, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Partial {
    /// What its rows have in common.
    pub key: u32,
    /// How many.
    pub count: u64,
    /// Of their values; beyond 2^64 from 0 on again.
    pub sum: u64,
}

impl Partial {
    /// Bytes of one that travels.
    pub const WIDTH: Width = Width::of_partials();

    fn of_row(row: &[u8]) -> Self {
        let value = row.get(4..8).and_then(|value| value.first_chunk());
        Self {
            key: Key::of(row).0,
            count: 1,
            sum: value.map_or(0, |value| u64::from(u32::from_le_bytes(*value))),
        }
    }

    /// One that has travelled.
    fn of_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes.get(at..at + 8).and_then(|word| word.first_chunk());
        let word = |at| word(at).map_or(0, |word| u64::from_le_bytes(*word));
        Self {
            key: Key::of(bytes).0,
            count: word(8),
            sum: word(16),
        }
    }

    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.count.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sum.to_le_bytes());
        bytes
    }

    fn add(&mut self, other: Self) {
        self.count = self.count.wrapping_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Partitions of a node so that the table of each fits a cache, if so many groups belong to it.
pub fn parts(groups: u64) -> u32 {
    // Half of a table's places are empty.
    let bytes = groups.saturating_mul(2 * Partial::WIDTH.bytes() as u64);
    u32::try_from(bytes.div_ceil(CACHE).max(1)).unwrap_or(u32::MAX)
}

/// AGG: partials travel as messages. Returns what this node has sent; `each` is called for each of
/// the groups that belong to it.
///
/// # Errors
/// [`OlapError`]: nothing was found.
pub fn by_messages(
    sockets: &mut Sockets,
    rows: &Rows,
    mut each: impl FnMut(Partial),
) -> Result<Traffic, OlapError> {
    let before = sockets.sent();
    let mut local = Groups::default();
    for row in rows {
        local.add(Partial::of_row(row));
    }
    let mut partials = Rows::new(Partial::WIDTH);
    for partial in local.iter() {
        partials.extend(&partial.to_bytes())?;
    }
    drop(local);
    let mut come = Rows::new(Partial::WIDTH);
    sockets.send_rows(Side::Build, &partials, |_| true, &mut come)?;
    sockets.end_stage(|message| keep(message, &mut come))?;
    add_up(&come).iter().for_each(&mut each);
    Ok(sockets.sent().since(before))
}

/// Partials that have come as a message.
fn keep(message: Message, come: &mut Rows) -> Result<(), OlapError> {
    let node = message.from;
    let nonsense = |what: String| OlapError::Nonsense { node, what };
    if message.kind != Kind::Rows || message.side != Side::Build {
        return Err(nonsense("a join, when groups are awaited".to_owned()));
    }
    let added = come.extend(&message.payload);
    added.map_err(|error| nonsense(error.to_string()))
}

fn add_up(partials: &Rows) -> Groups {
    let mut groups = Groups::default();
    for partial in partials {
        groups.add(Partial::of_bytes(partial));
    }
    groups
}

/// RDMA AGG: partials travel as writes into the memory of the nodes of their keys, by the
/// partitions of the node's room. Returns what this node has sent; `each` is called for each of the
/// groups that belong to it.
///
/// # Errors
/// [`OlapError`]; groups that were found by then are not all.
pub fn by_writes<F: Fabric>(
    node: &mut Node<F>,
    rows: &Rows,
    mut each: impl FnMut(Partial),
) -> Result<Traffic, OlapError> {
    let sent = node.exchange(|node| {
        let mut recent = Recent::of_bytes(CACHE);
        let mut scatter = Scatter::new(node, Side::Build, Partial::WIDTH);
        for row in rows {
            if let Some(pushed_out) = recent.add(Partial::of_row(row)) {
                scatter.send(&pushed_out.to_bytes())?;
            }
        }
        for partial in recent.iter() {
            scatter.send(&partial.to_bytes())?;
        }
        scatter.finish()
    })?;
    let gathered = Gathered::find(node)?;
    for part in 0..gathered.parts() {
        let partials = gathered.rows(node, (Side::Build, part), Partial::WIDTH)?;
        add_up(&partials).iter().for_each(&mut each);
    }
    Ok(sent)
}
