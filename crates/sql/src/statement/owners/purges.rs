//! Requests of which something may be left in files.
//!
//! ```text
//! to be purged    0x02 0x17 ‖ request u64 BE    → when it was done, microseconds since 1970, i64 BE
//! ```
//! Written with the end of a request, and taken away when its rows are seen to be gone from files.

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};

use crate::error::{SqlError, SqlResult};

const TO_PURGE: &[u8] = &[0x02, 0x17];

/// Requests that are looked at at a time; others wait for the next time.
const PAGE: usize = 10_000;

fn damaged() -> SqlError {
    SqlError::new(
        1712,
        "HY000",
        "a request whose rows are to go from files is damaged",
    )
}

fn key(request: u64) -> Vec<u8> {
    [TO_PURGE, &request.to_be_bytes()].concat()
}

fn micros(stored: &[u8]) -> SqlResult<i64> {
    let stored = stored.try_into().map_err(|_| damaged())?;
    Ok(i64::from_be_bytes(stored))
}

/// Notes that a request, done at this time, has left something in files.
///
/// # Errors
/// Those of writing.
pub(crate) fn put(txn: &Transaction, request: u64, done_at_micros: i64) -> SqlResult<()> {
    let value = done_at_micros.to_be_bytes().to_vec();
    Ok(txn.put(key(request), value)?)
}

/// All such requests, oldest first, with when they were done.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn all(txn: &Transaction) -> SqlResult<Vec<(u64, i64)>> {
    let range = KeyRange::prefix(TO_PURGE);
    let page = txn.scan(&range, Direction::Forward, PAGE, ReadMode::Plain)?;
    page.into_iter()
        .map(|(key, value)| {
            let number = key.get(TO_PURGE.len()..).unwrap_or_default();
            let number = number.try_into().map_err(|_| damaged())?;
            Ok((u64::from_be_bytes(number), micros(&value)?))
        })
        .collect()
}

/// Writes a request again as it is, if it is there.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn touch(txn: &Transaction, request: u64, done_at_micros: i64) -> SqlResult<()> {
    if is_there(txn, request, done_at_micros)? {
        put(txn, request, done_at_micros)?;
    }
    Ok(())
}

fn is_there(txn: &Transaction, request: u64, done_at_micros: i64) -> SqlResult<bool> {
    match txn.get(&key(request), ReadMode::Validate)? {
        Some(stored) => Ok(micros(&stored)? == done_at_micros),
        None => Ok(false),
    }
}

/// Takes a request away, unless it was done once more since; whether it was there.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn end(txn: &Transaction, request: u64, done_at_micros: i64) -> SqlResult<bool> {
    let is_there = is_there(txn, request, done_at_micros)?;
    if is_there {
        txn.delete(key(request))?;
    }
    Ok(is_there)
}
