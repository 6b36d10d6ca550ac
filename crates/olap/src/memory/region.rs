//! Where everything is in the memory of a node: the same for all nodes of a query.

use manxdb_fabric::{Address, ServerId, WORD};

use crate::error::OlapError;
use crate::rows::Width;

/// The counter of places that are given away.
const COUNTER: u64 = 0;
/// Behind it, in a line of its own, a word for each node: it has written all.
const ENDS: u64 = 64;
/// Bytes before the rows of a piece: which partition, how many bytes.
pub(super) const HEAD: u64 = WORD;
/// Places that a node is given at a time.
pub(super) const AT_A_TIME: u64 = 8;

/// Rows of a relation, as many as all nodes together have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// How many, at most.
    pub rows: u64,
    /// Of so many bytes.
    pub width: Width,
}

/// How the memory of each node is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRegion {
    nodes: u16,
    /// Partitions of each node.
    parts: u32,
    /// Bytes of a piece, with its head.
    piece: u64,
    pieces: u64,
}

impl NodeRegion {
    /// Bytes of a piece at most: what one operation moves.
    pub const PIECE_MAX: u64 = manxdb_fabric::operation::BYTES_MAX;
    /// Partitions of all nodes at most, so that a head can say which.
    pub const PARTS_MAX: u64 = 1 << 24;

    /// Room at each node for all rows of these relations, should all belong to it, in pieces of so
    /// many bytes. Memory that is not written need not exist: what is asked of a system that gives
    /// it away by the page is about what arrives.
    ///
    /// # Errors
    /// [`OlapError::NodeRegion`].
    pub fn new(nodes: u16, parts: u32, piece: u64, loads: &[Load]) -> Result<Self, OlapError> {
        let refused = |what: String| Err(OlapError::NodeRegion(what));
        let all_parts = u64::from(nodes) * u64::from(parts);
        if nodes == 0 || parts == 0 || all_parts > Self::PARTS_MAX {
            return refused(format!(
                "{nodes} nodes of {parts} partitions: together they have 1 to {}",
                Self::PARTS_MAX
            ));
        }
        if piece > Self::PIECE_MAX || !piece.is_multiple_of(WORD) {
            return refused(format!(
                "pieces of {piece} bytes: at most {}, a multiple of {WORD}",
                Self::PIECE_MAX
            ));
        }
        let mut pieces = u64::from(nodes) * AT_A_TIME;
        for load in loads {
            let each = piece.saturating_sub(HEAD) / load.width.bytes() as u64;
            if each == 0 {
                let width = load.width.bytes();
                return refused(format!("pieces of {piece} bytes hold no row of {width}"));
            }
            // The last piece of each partition of each sender may be nearly empty.
            pieces += load.rows.div_ceil(each) + u64::from(nodes) * u64::from(parts);
        }
        let region = Self {
            nodes,
            parts,
            piece,
            pieces,
        };
        let bytes = u128::from(region.first()) + u128::from(pieces) * u128::from(piece);
        if bytes > 1 << 47 {
            return refused(format!("{bytes} bytes are more than memory has addresses"));
        }
        Ok(region)
    }

    /// The same with fewer places: rows that are spread evenly need no more.
    #[must_use]
    pub fn with_pieces(self, pieces: u64) -> Self {
        Self { pieces, ..self }
    }

    /// Nodes, numbered from 0 as servers of memory are.
    pub fn nodes(self) -> u16 {
        self.nodes
    }

    /// Partitions of each node.
    pub fn parts(self) -> u32 {
        self.parts
    }

    /// Places for pieces.
    pub fn pieces(self) -> u64 {
        self.pieces
    }

    /// Bytes that each node registers, all zero.
    pub fn bytes(self) -> u64 {
        self.first() + self.pieces * self.piece
    }

    /// Bytes of rows that a piece holds.
    pub(super) fn piece_rows(self, width: Width) -> usize {
        let width = width.bytes();
        usize::try_from(self.piece - HEAD).unwrap_or(0) / width * width
    }

    /// Bytes of a piece.
    pub(super) fn piece_bytes(self) -> usize {
        usize::try_from(self.piece).unwrap_or(0)
    }

    fn first(self) -> u64 {
        (ENDS + u64::from(self.nodes) * WORD).next_multiple_of(64)
    }

    pub(super) const fn counter(node: u16) -> Address {
        place(node, COUNTER)
    }

    /// Where a node says at another one that it has written all; behind it the next one does.
    pub(super) fn end(at: u16, of: u16) -> Address {
        place(at, ENDS + u64::from(of) * WORD)
    }

    pub(super) fn piece(self, node: u16, number: u64) -> Address {
        place(node, self.first() + number * self.piece)
    }
}

const fn place(node: u16, offset: u64) -> Address {
    Address {
        server: ServerId(node),
        offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rows: u64, width: usize) -> Load {
        let width = Width::new(width).unwrap();
        Load { rows, width }
    }

    #[test]
    fn places_do_not_meet() {
        let region = NodeRegion::new(3, 2, 64, &[load(100, 8)]).unwrap();
        let mut places = vec![NodeRegion::counter(1).offset];
        places.extend((0..3).map(|of| NodeRegion::end(1, of).offset));
        places.extend((0..region.pieces()).map(|number| region.piece(1, number).offset));
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(*places.last().unwrap() + 64, region.bytes());
        assert_eq!(region.piece_rows(Width::new(24).unwrap()), 48);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let said = |region: Result<NodeRegion, OlapError>| region.unwrap_err().to_string();
        assert!(said(NodeRegion::new(0, 1, 64, &[])).contains("1 to 16777216"));
        assert!(said(NodeRegion::new(4, 0, 64, &[])).contains("4 nodes of 0 partitions"));
        assert!(said(NodeRegion::new(4, u32::MAX, 64, &[])).contains("together"));
        assert!(said(NodeRegion::new(1, 1, 60, &[])).contains("a multiple of 8"));
        assert!(said(NodeRegion::new(1, 1, 2 << 20, &[])).contains("at most 1048576"));
        assert!(said(NodeRegion::new(1, 1, 64, &[load(1, 64)])).contains("hold no row of 64"));
        let endless = NodeRegion::new(1, 1, 64, &[load(u64::MAX >> 1, 8)]);
        assert!(said(endless).contains("more than memory has addresses"));
    }
}
