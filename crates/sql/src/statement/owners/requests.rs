//! Requests that wait, and what is held.
//!
//! ```text
//! next hold        0x02 0x10                → u64 BE
//! hold             0x02 0x11 ‖ hold u64 BE    → Hold (postcard)
//! waiting request  0x02 0x12 ‖ request u64 BE → WaitingRequest (postcard)
//! ```
//! A request waits while it may be undone (GRACE), and when it has left rows that are held or to be kept by
//! RETAIN. The person is fenced in both: nothing new becomes theirs.

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::subjects::{self, ForgetRequest};
use crate::error::{SqlError, SqlResult};

const NEXT_HOLD: &[u8] = &[0x02, 0x10];
const HOLDS: &[u8] = &[0x02, 0x11];
const WAITING: &[u8] = &[0x02, 0x12];

/// Holds, or requests that wait, that are read: more are refused where they are made.
pub(crate) const LISTED_MAX: usize = 100_000;

/// Why a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WaitReason {
    /// It may be undone until it is due; `before`: the request that had forgotten a person of the same key.
    Grace { before: Option<u64> },
    /// Rows that it leaves are held, or are to be kept.
    PutOff { rows: u64 },
}

impl std::fmt::Display for WaitReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WaitReason::Grace { .. } => f.write_str("grace"),
            WaitReason::PutOff { rows } => write!(f, "{rows} rows put off"),
        }
    }
}

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingRequest {
    pub(crate) request: ForgetRequest,
    pub(crate) why: WaitReason,
    /// When it goes on by itself, microseconds since 1970; `None`: when a hold is released.
    pub(crate) due_at_micros: Option<i64>,
}

/// Rows of a person that stay until they are released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) database: String,
    pub(crate) kind: String,
    pub(crate) kind_id: u32,
    /// [`subjects::hash`] of the person's key.
    pub(crate) subject: [u8; 16],
    /// The person's key as SHOW GDPR HOLDS shows it.
    pub(crate) shown: String,
    /// Id and name of the table whose rows are held; `None`: all of the person's.
    pub(crate) table: Option<(u32, String)>,
    pub(crate) reason: String,
    pub(crate) held_by: String,
    pub(crate) held_at_micros: i64,
}

fn numbered(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

/// Under which a request is stored while it waits.
pub(crate) fn waiting_key(request: u64) -> Vec<u8> {
    numbered(WAITING, request)
}

/// Under which a hold is stored.
pub(crate) fn hold_key(hold: u64) -> Vec<u8> {
    numbered(HOLDS, hold)
}

fn damaged(what: &str) -> SqlError {
    SqlError::new(1712, "HY000", format!("{what} is damaged"))
}

fn encode<T: Serialize>(what: &T) -> SqlResult<Vec<u8>> {
    postcard::to_stdvec(what)
        .map_err(|error| SqlError::internal(format!("a record of ownership: {error}")))
}

fn all<T: DeserializeOwned>(
    txn: &Transaction,
    prefix: &[u8],
    what: &str,
) -> SqlResult<Vec<(u64, T)>> {
    let range = KeyRange::prefix(prefix);
    let page = txn.scan(&range, Direction::Forward, LISTED_MAX, ReadMode::Validate)?;
    page.into_iter()
        .map(|(key, value)| {
            let number = key.get(prefix.len()..).unwrap_or_default();
            let number = number.try_into().map(u64::from_be_bytes);
            let number = number.map_err(|_| damaged(what))?;
            let record = postcard::from_bytes(&value).map_err(|_| damaged(what))?;
            Ok((number, record))
        })
        .collect()
}

/// All holds by number, oldest first; the commit depends on there being no others.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn holds(txn: &Transaction) -> SqlResult<Vec<(u64, Hold)>> {
    all(txn, HOLDS, "a hold")
}

/// Notes a hold; its number.
///
/// # Errors
/// 51008 when there are too many; 1712 for a damaged counter; storage.
pub(crate) fn put_hold(txn: &Transaction, hold: &Hold) -> SqlResult<u64> {
    if holds(txn)?.len() >= LISTED_MAX {
        let text =
            format!("There are {LISTED_MAX} holds, which is as many as may be: GDPR RELEASE some");
        return Err(SqlError::new(51008, "HY000", text));
    }
    let number = next_hold(txn)?;
    txn.put(NEXT_HOLD.to_vec(), (number + 1).to_be_bytes().to_vec())?;
    txn.put(numbered(HOLDS, number), encode(hold)?)?;
    Ok(number)
}

fn next_hold(txn: &Transaction) -> SqlResult<u64> {
    let Some(stored) = txn.get(NEXT_HOLD, ReadMode::Update)? else {
        return Ok(1);
    };
    let stored = stored.as_slice().try_into();
    Ok(u64::from_be_bytes(
        stored.map_err(|_| damaged("the counter of holds"))?,
    ))
}

/// A hold of this number was made elsewhere: new ones have greater numbers.
///
/// # Errors
/// 1712 for a damaged counter; storage.
pub(crate) fn hold_is_used(txn: &Transaction, number: u64) -> SqlResult<()> {
    let next = next_hold(txn)?.max(number.saturating_add(1));
    Ok(txn.put(NEXT_HOLD.to_vec(), next.to_be_bytes().to_vec())?)
}

/// Notes a hold that was made elsewhere, under its number ([`hold_is_used`]).
///
/// # Errors
/// 1712 for a damaged counter; storage.
pub(crate) fn put_hold_again(txn: &Transaction, number: u64, hold: &Hold) -> SqlResult<()> {
    assert!(
        number < next_hold(txn)?,
        "the number of a hold that was made elsewhere is given to no other"
    );
    Ok(txn.put(numbered(HOLDS, number), encode(hold)?)?)
}

/// A hold is over.
///
/// # Errors
/// Those of writing.
pub(crate) fn release(txn: &Transaction, number: u64) -> SqlResult<()> {
    Ok(txn.delete(numbered(HOLDS, number))?)
}

/// All requests that wait, oldest first.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn waiting(txn: &Transaction) -> SqlResult<Vec<(u64, WaitingRequest)>> {
    all(txn, WAITING, "a request that waits")
}

/// A request that waits.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn waiting_request(txn: &Transaction, number: u64) -> SqlResult<Option<WaitingRequest>> {
    let stored = txn.get(&numbered(WAITING, number), ReadMode::Update)?;
    let decode =
        |value: Vec<u8>| postcard::from_bytes(&value).map_err(|_| damaged("a request that waits"));
    stored.map(decode).transpose()
}

/// A request waits from now on, and is not open.
///
/// # Errors
/// Those of writing.
pub(crate) fn put_waiting(
    txn: &Transaction,
    number: u64,
    waiting: &WaitingRequest,
) -> SqlResult<()> {
    assert!(
        !waiting.request.suffix.is_empty(),
        "a request that waits says whose it is"
    );
    subjects::close_request(txn, number)?;
    Ok(txn.put(numbered(WAITING, number), encode(waiting)?)?)
}

/// A request waits no longer.
///
/// # Errors
/// Those of writing.
pub(crate) fn end_waiting(txn: &Transaction, number: u64) -> SqlResult<()> {
    Ok(txn.delete(numbered(WAITING, number))?)
}

/// The request that is forgetting a person, open or waiting.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn begun(txn: &Transaction, number: u64) -> SqlResult<Option<ForgetRequest>> {
    match subjects::request(txn, number)? {
        Some(request) => Ok(Some(request)),
        None => Ok(waiting_request(txn, number)?.map(|waiting| waiting.request)),
    }
}
