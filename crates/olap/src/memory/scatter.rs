//! Sending: rows are kept by partition until a piece is full, which is then written.

use manxdb_fabric::{Fabric, Operation};

use super::node::Node;
use super::region::HEAD;
use crate::error::OlapError;
use crate::hash::{hash, share};
use crate::rows::{Key, Side, Width};

/// Sends rows of one relation.
pub(crate) struct Scatter<'a, F> {
    node: &'a mut Node<F>,
    side: Side,
    /// Bytes of rows that a piece holds.
    full: usize,
    /// A piece being filled for each partition of all nodes, behind room for its head; empty: none.
    pieces: Vec<Vec<u8>>,
}

impl<'a, F: Fabric> Scatter<'a, F> {
    pub fn new(node: &'a mut Node<F>, side: Side, width: Width) -> Self {
        let region = node.region;
        let parts = usize::from(region.nodes()) * usize::try_from(region.parts()).unwrap_or(0);
        Self {
            full: region.piece_rows(width) + HEAD_LENGTH,
            node,
            side,
            pieces: vec![Vec::new(); parts],
        }
    }

    /// Sends a row to where its key belongs.
    ///
    /// # Errors
    /// A node is gone, or has no room.
    pub fn send(&mut self, row: &[u8]) -> Result<(), OlapError> {
        let part = share(hash(Key::of(row)), self.pieces.len());
        let Some(piece) = self.pieces.get_mut(part) else {
            return Ok(()); // unreachable: a share is below their number
        };
        if piece.is_empty() {
            piece.reserve_exact(self.node.region.piece_bytes());
            piece.extend_from_slice(&[0; HEAD_LENGTH]);
        }
        piece.extend_from_slice(row);
        if piece.len() >= self.full {
            self.write(part)?;
        }
        Ok(())
    }

    /// Sends what is left.
    ///
    /// # Errors
    /// As [`Scatter::send`].
    pub fn finish(mut self) -> Result<(), OlapError> {
        for part in 0..self.pieces.len() {
            self.write(part)?;
        }
        Ok(())
    }

    /// Writes the piece of a partition, if there is one.
    fn write(&mut self, part: usize) -> Result<(), OlapError> {
        let piece = self.pieces.get_mut(part).map(std::mem::take);
        let Some(mut bytes) = piece.filter(|piece| !piece.is_empty()) else {
            return Ok(());
        };
        let parts = usize::try_from(self.node.region.parts()).unwrap_or(1);
        let (node, own) = (part / parts, part % parts);
        let rows = bytes.len() - HEAD_LENGTH;
        if let Some(head) = bytes.first_chunk_mut() {
            *head = Head::new(self.side, own, rows).to_bytes();
        }
        let at = self.node.place(u16::try_from(node).unwrap_or(u16::MAX))?;
        self.node.pipe.post(Operation::Write { at, bytes })
    }
}

const HEAD_LENGTH: usize = 8;
const _: () = assert!(HEAD_LENGTH as u64 == HEAD);

/// What a piece says of itself. A place that nobody has written has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub is_probe: bool,
    /// Of its node's.
    pub part: u32,
    /// Of its rows.
    pub bytes: u32,
}

impl Head {
    fn new(side: Side, part: usize, bytes: usize) -> Self {
        Self {
            is_probe: side == Side::Probe,
            // Both are bounded by the region.
            part: u32::try_from(part).unwrap_or(u32::MAX),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        }
    }

    fn to_bytes(self) -> [u8; HEAD_LENGTH] {
        let side = u64::from(self.is_probe) << 63;
        let word = side | u64::from(self.part) << 32 | u64::from(self.bytes);
        word.to_le_bytes()
    }

    /// None: nobody has written here.
    pub fn of(word: u64) -> Option<Self> {
        let bytes = u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
        let part = u32::try_from((word << 1) >> 33).unwrap_or(0);
        (bytes > 0).then_some(Self {
            is_probe: word >> 63 == 1,
            part,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_what_it_was_made_of() {
        for side in [Side::Build, Side::Probe] {
            for (part, bytes) in [(0, 8), (1 << 24, 1 << 20)] {
                let head = Head::new(side, part, bytes);
                let word = u64::from_le_bytes(head.to_bytes());
                assert_eq!(Head::of(word), Some(head));
            }
        }
        assert_eq!(Head::of(0), None);
    }
}
