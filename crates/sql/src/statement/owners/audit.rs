//! The chain of audit records in the store.
//!
//! ```text
//! last record    0x02 0x13                 → seq u64 BE ‖ hash, 64 digits
//! record         0x02 0x14 ‖ seq u64 BE      → AuditRecord (postcard)
//! signing seed   0x02 0x15                 → 1 ‖ seed | 2 ‖ key id u64 BE ‖ sealed seed
//! replay         0x02 0x16                 → seq u64 BE: records behind it came from beside the vault, and what
//!                                             they say is not done here yet
//! ```

use std::ops::Bound;

use manxdb_ownership::proof::{AuditEvent, AuditRecord, GENESIS};
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};

use crate::error::{SqlError, SqlResult};

const LAST: &[u8] = &[0x02, 0x13];
const RECORDS: &[u8] = &[0x02, 0x14];
const SEED: &[u8] = &[0x02, 0x15];
const REPLAY: &[u8] = &[0x02, 0x16];

/// Records read at a time.
const PAGE: usize = 10_000;

fn damaged(what: &str) -> SqlError {
    SqlError::new(1712, "HY000", format!("{what} is damaged"))
}

fn record_key(seq: u64) -> Vec<u8> {
    [RECORDS, &seq.to_be_bytes()].concat()
}

/// Number and hash of the last record.
///
/// # Errors
/// 1712 when it is damaged; storage.
pub(crate) fn last(txn: &Transaction, mode: ReadMode) -> SqlResult<(u64, String)> {
    let Some(stored) = txn.get(LAST, mode)? else {
        return Ok((0, GENESIS.to_string()));
    };
    let lost = || damaged("the end of the audit");
    let (seq, hash) = stored.split_first_chunk::<8>().ok_or_else(lost)?;
    let hash = std::str::from_utf8(hash).map_err(|_| lost())?;
    Ok((u64::from_be_bytes(*seq), hash.to_string()))
}

/// Records an event behind all others, with the transaction.
///
/// # Errors
/// 1712 when the end of the chain is damaged; storage.
pub(crate) fn append(txn: &Transaction, event: &AuditEvent) -> SqlResult<()> {
    append_as(txn, event, ReadMode::Update)
}

/// As [`append`] from a transaction of the server's own, which waits for no lock and is repeated when it loses.
///
/// # Errors
/// As [`append`].
pub(crate) fn append_unlocked(txn: &Transaction, event: &AuditEvent) -> SqlResult<()> {
    append_as(txn, event, ReadMode::Validate)
}

fn append_as(txn: &Transaction, event: &AuditEvent, mode: ReadMode) -> SqlResult<()> {
    let (seq, hash) = last(txn, mode)?;
    put(txn, &AuditRecord::behind(seq, &hash, event))
}

/// Stores a record that follows the last.
///
/// # Errors
/// Those of writing.
pub(crate) fn put(txn: &Transaction, record: &AuditRecord) -> SqlResult<()> {
    let end = [&record.seq.to_be_bytes()[..], record.hash.as_bytes()].concat();
    txn.put(LAST.to_vec(), end)?;
    let stored = postcard::to_stdvec(record)
        .map_err(|error| SqlError::internal(format!("an audit record: {error}")))?;
    Ok(txn.put(record_key(record.seq), stored)?)
}

/// All records behind `seq`.
///
/// # Errors
/// 1712 for a damaged one; storage.
pub(crate) fn behind(txn: &Transaction, seq: u64) -> SqlResult<Vec<AuditRecord>> {
    let mut records: Vec<AuditRecord> = Vec::new();
    let mut range = KeyRange::prefix(RECORDS);
    range.start = Bound::Included(record_key(seq.saturating_add(1)));
    loop {
        let page = txn.scan(&range, Direction::Forward, PAGE, ReadMode::Plain)?;
        let is_last = page.len() < PAGE;
        for (_, value) in page {
            let record = postcard::from_bytes(&value).map_err(|_| damaged("an audit record"))?;
            records.push(record);
        }
        match records.last() {
            Some(record) if !is_last => {
                range.start = Bound::Included(record_key(record.seq.saturating_add(1)));
            }
            _ => return Ok(records),
        }
    }
}

/// The stored seed of the signing key, as it was put.
///
/// # Errors
/// Storage.
pub(crate) fn seed(txn: &Transaction) -> SqlResult<Option<Vec<u8>>> {
    Ok(txn.get(SEED, ReadMode::Update)?)
}

/// Stores the seed of the signing key.
///
/// # Errors
/// Those of writing.
pub(crate) fn put_seed(txn: &Transaction, seed: Vec<u8>) -> SqlResult<()> {
    Ok(txn.put(SEED.to_vec(), seed)?)
}

/// Behind which record what was recorded elsewhere is not done here yet.
///
/// # Errors
/// 1712 when it is damaged; storage.
pub(crate) fn replay(txn: &Transaction) -> SqlResult<Option<u64>> {
    let stored = txn.get(REPLAY, ReadMode::Update)?;
    let decode = |stored: Vec<u8>| {
        let seq = stored.as_slice().try_into().map(u64::from_be_bytes);
        seq.map_err(|_| damaged("how far the audit was replayed"))
    };
    stored.map(decode).transpose()
}

/// Notes it, or that all is done.
///
/// # Errors
/// Those of writing.
pub(crate) fn set_replay(txn: &Transaction, seq: Option<u64>) -> SqlResult<()> {
    match seq {
        Some(seq) => Ok(txn.put(REPLAY.to_vec(), seq.to_be_bytes().to_vec())?),
        None => Ok(txn.delete(REPLAY.to_vec())?),
    }
}
