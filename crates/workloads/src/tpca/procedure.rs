//! The procedure.

use std::ops::Bound;

use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Touch, Values,
};

use crate::Partition;
use crate::codec::{Cursor, malformed, strange_row};

/// Name of the procedure.
pub const NAME: &str = "tpca.increment";

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The first.
    Customer,
    /// The second.
    Teller,
    /// The third.
    Branch,
}

impl Table {
    /// All of them; the index of each is its piece's part.
    pub const ALL: [Table; 3] = [Table::Customer, Table::Teller, Table::Branch];

    pub(super) fn of_key(key: &[u8]) -> Option<(Self, u32)> {
        let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
        let table = key[Partition::KEY_BYTES].checked_sub(FIRST_TABLE)?;
        let table = Self::ALL.get(usize::from(table))?;
        let number = key.last_chunk::<4>()?;
        Some((*table, u32::from_be_bytes(*number)))
    }
}

const FIRST_TABLE: u8 = 0x20;
const END_TABLE: u8 = 0x23;
const KEY_BYTES: usize = 9;
const TABLES: usize = Table::ALL.len();
const ARGS_BYTES: usize = TABLES * 8;

/// The rows of a partition.
pub(super) fn key_range(partition: Partition) -> KeyRange {
    let bound = |table| {
        let mut key = partition.prefix().to_vec();
        key.push(table);
        key
    };
    KeyRange {
        start: Bound::Included(bound(FIRST_TABLE)),
        end: Bound::Excluded(bound(END_TABLE)),
    }
}

/// A row of each table: where it lives, and its key.
type Targets = [(Partition, u32); TABLES];

/// Adds one to a row of each table.
#[derive(Debug, Default, Clone, Copy)]
pub struct Increment;

/// The arguments: the row of each table.
#[must_use]
pub fn encode(targets: Targets) -> Vec<u8> {
    let mut out = Vec::with_capacity(ARGS_BYTES);
    for (partition, key) in targets {
        out.extend_from_slice(&partition.0.to_le_bytes());
        out.extend_from_slice(&key.to_le_bytes());
    }
    out
}

fn target(args: &[u8], part: u32) -> Result<[u8; KEY_BYTES], ProcedureError> {
    let read = || {
        let args: &[u8; ARGS_BYTES] = args.try_into().ok()?;
        let index = usize::try_from(part).ok()?;
        let mut input = Cursor::new(args.as_chunks::<8>().0.get(index)?);
        let partition = Partition(input.u32()?);
        let mut key = [FIRST_TABLE; KEY_BYTES];
        key[..4].copy_from_slice(&partition.prefix());
        key[4] += u8::try_from(part).ok()?;
        key[5..].copy_from_slice(&input.u32()?.to_be_bytes());
        Some(key)
    };
    read().ok_or_else(|| malformed(NAME))
}

impl Procedure for Increment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let piece = |part| {
            Ok(ProcedurePiece {
                part,
                shard: placement.shard_of(&target(args, part)?),
                needs: Vec::new(),
                gives: Vec::new(),
                steps: 1,
            })
        };
        (0..3).map(piece).collect()
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let key = target(args, piece.part)?;
        let count = match rows.get_for_update(&key)? {
            Some(value) => number(&value).ok_or_else(|| strange_row(&key))?,
            None => 0,
        };
        let value = count.wrapping_add(1).to_le_bytes();
        rows.write(key.to_vec(), Some(value.to_vec()))?;
        Ok(Values::new())
    }

    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        match target(args, piece.part) {
            Ok(key) => vec![Touch::write(&key)],
            Err(_) => vec![Touch::everything()],
        }
    }

    /// Nothing: the client is not told what it increments.
    fn predetermined(&self, piece: &ProcedurePiece, args: &[u8]) -> Option<Values> {
        target(args, piece.part).is_ok().then(Values::new)
    }
}

pub(super) fn number(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(value.try_into().ok()?))
}
