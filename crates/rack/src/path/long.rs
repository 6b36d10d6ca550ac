//! Values of any length in records of one: a value that does not fit is cut into pieces, which are
//! rows of the same transaction, and the row counts them.
//!
//! | key | value |
//! |---|---|
//! | `r` key | 0, the value; or 1, its length in eight bytes |
//! | `p` key, number of the piece in four bytes | the piece |

use std::ops::Bound;

use manxdb_fabric::{Fabric, Misuse};
use manxdb_rsi::rows::Failure;
use manxdb_storage::{KeyRange, StorageError};
use manxdb_txn::TxnError;

use super::{Rows, failed};
use crate::drive::now;
use crate::rows::bounds;

/// The first byte of the key of a row,
pub(super) const ROWS: u8 = b'r';
/// and of a piece of a value.
const PIECES: u8 = b'p';
/// Bytes before a value.
pub(super) const TAG: usize = 1;
const WHOLE: u8 = 0;
const CUT: u8 = 1;
const _: () = assert!(
    WHOLE != CUT && ROWS != PIECES,
    "a row is told from a piece of one"
);

/// What a row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry<'a> {
    Whole(&'a [u8]),
    /// Its value has so many bytes, in pieces.
    Cut(usize),
}

impl<'a> Entry<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        match value.split_first()? {
            (&WHOLE, value) => Some(Self::Whole(value)),
            (&CUT, length) => {
                let length = u64::from_le_bytes(length.try_into().ok()?);
                Some(Self::Cut(usize::try_from(length).ok()?))
            }
            _ => None,
        }
    }
}

/// The key of a row.
pub(super) fn row(key: &[u8]) -> Vec<u8> {
    [&[ROWS], key].concat()
}

fn piece(key: &[u8], number: u32) -> Vec<u8> {
    [&[PIECES], key, &number.to_be_bytes()].concat()
}

/// The keys of the rows of a range.
pub(super) fn rows(range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    let (low, high) = bounds::of(range);
    let high = match (&range.end, high) {
        (Bound::Unbounded, _) | (_, None) => vec![ROWS + 1],
        (_, Some(high)) => row(&high),
    };
    (row(&low), high)
}

/// How many pieces a value of so many bytes is cut into.
fn pieces(length: usize, piece_max: usize) -> u32 {
    u32::try_from(length.div_ceil(piece_max.max(1))).unwrap_or(u32::MAX)
}

/// Writes a row, whose value may be of any length; what was left of a longer one is deleted.
pub(super) fn write<F: Fabric>(
    rows: &mut Rows<'_, F>,
    key: &[u8],
    value: Option<&[u8]>,
    whole_max: usize,
) -> Result<(), Failure<Misuse>> {
    let row = row(key);
    let piece_max = whole_max + TAG;
    let former = now(rows.read(&row))?;
    let before = match former.as_deref().and_then(Entry::parse) {
        Some(Entry::Cut(length)) => pieces(length, piece_max),
        _ => 0,
    };
    let mut after = 0;
    let entry = match value {
        None => None,
        Some(value) if value.len() <= whole_max => Some([&[WHOLE], value].concat()),
        Some(value) => {
            for (number, part) in (0..).zip(value.chunks(piece_max)) {
                rows.write(piece(key, number), Some(part.to_vec()));
                after = number + 1;
            }
            assert_eq!(
                after,
                pieces(value.len(), piece_max),
                "a reader finds as many pieces as were written"
            );
            let length = (value.len() as u64).to_le_bytes();
            let entry = [&[CUT], &length[..]].concat();
            assert_eq!(
                Entry::parse(&entry),
                Some(Entry::Cut(value.len())),
                "a reader looks for all pieces"
            );
            Some(entry)
        }
    };
    for number in after..before {
        rows.write(piece(key, number), None);
    }
    rows.write(row, entry);
    Ok(())
}

/// The value of a row.
pub(super) fn whole<F: Fabric>(
    rows: &mut Rows<'_, F>,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<u8>, TxnError> {
    let corrupt = || {
        let what = format!("the row {} says what none does", key.escape_ascii());
        TxnError::from(StorageError::Corrupt(what))
    };
    let length = match Entry::parse(value).ok_or_else(corrupt)? {
        Entry::Whole(value) => return Ok(value.to_vec()),
        Entry::Cut(length) => length,
    };
    let mut whole = Vec::new();
    let mut number = 0;
    while whole.len() < length {
        let part = now(rows.read(&piece(key, number))).map_err(failed)?;
        let part = part.filter(|part| !part.is_empty()).ok_or_else(corrupt)?;
        whole.extend(part);
        number += 1;
    }
    if whole.len() == length {
        Ok(whole)
    } else {
        Err(corrupt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_row_says_is_none() {
        for bytes in [&[][..], &[2], &[CUT, 1], &[CUT; 10]] {
            assert_eq!(Entry::parse(bytes), None, "{bytes:?}");
        }
        assert_eq!(Entry::parse(&[WHOLE]), Some(Entry::Whole(&[])));
    }

    #[test]
    fn ranges_are_of_rows_only() {
        let everything = (vec![ROWS], vec![ROWS + 1]);
        assert_eq!(rows(&KeyRange::all()), everything);
        let (low, high) = rows(&KeyRange::prefix(b"ab"));
        assert_eq!((low, high), (b"rab".to_vec(), b"rac".to_vec()));
        const { assert!(PIECES < ROWS) };
    }
}
