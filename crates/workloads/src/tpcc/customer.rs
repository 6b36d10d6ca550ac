//! Who a transaction is about: a customer by number, or the middle one of a last name.

use manxdb_storage::Direction;
use manxdb_txn::procedure::{ProcedureError, RowView, Touch};

use super::keys;
use crate::Partition;
use crate::codec::Cursor;

/// A customer, as the terminal knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// By number, from 1.
    Number(u32),
    /// By last name.
    LastName(u16),
}

const NUMBER: u8 = 0;
const LAST_NAME: u8 = 1;

impl Who {
    pub(super) fn is_name(self) -> bool {
        matches!(self, Who::LastName(_))
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let (tag, number) = match self {
            Who::Number(number) => (NUMBER, number),
            Who::LastName(name) => (LAST_NAME, name.into()),
        };
        out.push(tag);
        out.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn decode(input: &mut Cursor<'_>) -> Option<Self> {
        match (input.u8()?, input.u32()?) {
            (NUMBER, number) => Some(Who::Number(number)),
            (LAST_NAME, name) => Some(Who::LastName(u16::try_from(name).ok()?)),
            _ => None,
        }
    }

    /// The customer's number. Of several with one last name, the one in the middle by first
    /// name (clause 2.5.2.2).
    pub(super) fn find(
        self,
        w: Partition,
        d: u8,
        rows: &mut dyn RowView,
    ) -> Result<u32, ProcedureError> {
        let last = match self {
            Who::Number(number) => return Ok(number),
            Who::LastName(last) => last,
        };
        let range = keys::customers_by_name(w, d, last).range();
        let found = rows.scan(&range, Direction::Forward, usize::MAX)?;
        let middle = found.len().saturating_sub(1) / 2;
        let Some((key, _)) = found.get(middle) else {
            let what = format!(
                "nobody in district {d} of warehouse {} has name {last}",
                w.0
            );
            return Err(ProcedureError::Aborted(what));
        };
        Ok(keys::last_number(key))
    }

    /// What [`Who::find`] and then the customer's row take.
    pub(super) fn touches(self, w: Partition, d: u8, writes: bool) -> Vec<Touch> {
        match self {
            Who::Number(c) => {
                let key = keys::customer(w, d, c);
                let mut touch = Touch::read(key.as_slice());
                touch.writes = writes;
                vec![touch]
            }
            Who::LastName(last) => vec![
                Touch {
                    range: keys::customers_by_name(w, d, last).range(),
                    writes: false,
                },
                Touch {
                    range: keys::customers(w, d).range(),
                    writes,
                },
            ],
        }
    }
}
