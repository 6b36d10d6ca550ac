//! Receiving: where the pieces of each partition lie in this node's own memory.

use manxdb_fabric::{Fabric, Operation, OperationOutcome};

use super::node::{Node, astray};
use super::region::{HEAD, NodeRegion};
use super::scatter::Head;
use crate::error::OlapError;
use crate::rows::{Rows, Side, Width};

/// Pieces, or heads of pieces, that are read together.
const TOGETHER: usize = 64;

/// The pieces that have come.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// By relation and partition: the number of a piece, and the bytes of its rows.
    pieces: [Vec<Vec<(u64, u64)>>; 2],
}

impl Gathered {
    /// Finds them, once all nodes have written everything.
    ///
    /// # Errors
    /// A piece makes no sense.
    pub fn find<F: Fabric>(node: &mut Node<F>) -> Result<Self, OlapError> {
        let (region, me) = (node.region, node.me);
        let given = node.read(NodeRegion::counter(me), HEAD)?;
        let given = given
            .first_chunk()
            .map_or(0, |one| u64::from_le_bytes(*one));
        let numbers: Vec<u64> = (0..given.min(region.pieces())).collect();
        let parts = usize::try_from(region.parts()).unwrap_or(0);
        let mut pieces = [vec![Vec::new(); parts], vec![Vec::new(); parts]];
        for numbers in numbers.chunks(TOGETHER) {
            let wanted = numbers.iter().map(|number| (*number, HEAD));
            let mut numbers = numbers.iter();
            read_each(node, wanted, 0, |head| {
                let number = numbers.next().copied().unwrap_or(0);
                let word = head.first_chunk().map_or(0, |one| u64::from_le_bytes(*one));
                let Some(head) = Head::of(word) else {
                    return Ok(()); // given to somebody who had no more rows
                };
                let of_side = &mut pieces[usize::from(head.is_probe)];
                let part = usize::try_from(head.part).unwrap_or(usize::MAX);
                let fits = u64::from(head.bytes) + HEAD <= region.piece_bytes() as u64;
                let Some(part) = of_side.get_mut(part).filter(|_| fits) else {
                    let what = format!("piece {number} is {head:?}");
                    return Err(OlapError::Nonsense { node: me, what });
                };
                part.push((number, u64::from(head.bytes)));
                Ok(())
            })?;
        }
        Ok(Self { pieces })
    }

    /// Partitions of this node.
    pub fn parts(&self) -> usize {
        self.pieces[0].len()
    }

    /// The rows of a partition.
    ///
    /// # Errors
    /// This node's memory is gone.
    pub fn rows<F: Fabric>(
        &self,
        node: &mut Node<F>,
        (side, part): (Side, usize),
        width: Width,
    ) -> Result<Rows, OlapError> {
        let mut rows = Rows::new(width);
        self.each(node, (side, part), |piece| rows.extend(piece))?;
        Ok(rows)
    }

    /// Calls a function for each piece of a partition.
    ///
    /// # Errors
    /// This node's memory is gone, or the function says so.
    pub fn each<F: Fabric>(
        &self,
        node: &mut Node<F>,
        (side, part): (Side, usize),
        mut take: impl FnMut(&[u8]) -> Result<(), OlapError>,
    ) -> Result<(), OlapError> {
        let of_side = &self.pieces[usize::from(side == Side::Probe)];
        let pieces = of_side.get(part).map(Vec::as_slice).unwrap_or_default();
        for pieces in pieces.chunks(TOGETHER) {
            read_each(node, pieces.iter().copied(), HEAD, &mut take)?;
        }
        Ok(())
    }
}

/// Reads so many bytes of each piece by its number, from an offset in it on.
fn read_each<F: Fabric>(
    node: &mut Node<F>,
    wanted: impl Iterator<Item = (u64, u64)>,
    offset: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), OlapError>,
) -> Result<(), OlapError> {
    let (region, me) = (node.region, node.me);
    let read = |(number, bytes)| Operation::Read {
        at: region.piece(me, number).plus(offset),
        bytes,
    };
    for outcome in node.pipe.ask(wanted.map(read).collect())? {
        match outcome {
            OperationOutcome::Read(copy) => take(&copy)?,
            _ => return Err(astray(me)),
        }
    }
    Ok(())
}
