//! People who are being forgotten, or were. Nothing is stored of the others.
//!
//! ```text
//! request number  0x02 0x00                             → u64 BE, the next one
//! subject         0x02 0x01 ‖ table u32 BE ‖ hash 16    → state u8 ‖ request u64 BE
//! open request    0x02 0x03 ‖ request u64 BE            → ForgetRequest (postcard)
//! done            0x02 0x05 ‖ request u64 BE            → ForgetRequest (postcard), without the key
//! ```
//! The hash is of the person's key, so that a key which says who the person was does not outlive them. An
//! open request holds the key itself, until the request is done.

use aws_lc_rs::digest::{SHA256, digest};
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};
use serde::{Deserialize, Serialize};

use super::purges;
use crate::catalog::{Table, TableId};
use crate::error::{SqlError, SqlResult};

const NEXT_REQUEST: &[u8] = &[0x02, 0x00];
const SUBJECTS: &[u8] = &[0x02, 0x01];
const OPEN_REQUESTS: &[u8] = &[0x02, 0x03];
const DONE_REQUESTS: &[u8] = &[0x02, 0x05];

const FORGETTING: u8 = 1;
const FORGOTTEN: u8 = 2;

/// Requests that are read at a time.
const PAGE: usize = 1_000;

/// What is known of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubjectState {
    /// Nothing: a person like others, or nobody.
    Live,
    /// A request is deleting the person's rows: nothing new may become theirs.
    Forgetting(u64),
    /// A request has deleted them.
    Forgotten(u64),
}

/// A request to forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForgetRequest {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) table_id: u32,
    /// Key suffix of the person's row; nothing when it is done.
    pub(crate) suffix: Vec<u8>,
    /// Rows changed so far.
    pub(crate) rows: u64,
    /// Who asked: `user@host`.
    pub(crate) asked_by: String,
    /// Why.
    pub(crate) reason: Option<String>,
    /// When it was asked for, microseconds since 1970.
    pub(crate) asked_at_micros: i64,
    /// When it was done; 0 before.
    pub(crate) done_at_micros: i64,
}

/// What stands for a person's key where the key itself must not stay.
pub(crate) fn hash(suffix: &[u8]) -> [u8; 16] {
    let whole = digest(&SHA256, suffix);
    let mut hash = [0; 16];
    for (to, from) in hash.iter_mut().zip(whole.as_ref()) {
        *to = *from;
    }
    assert!(whole.as_ref().len() >= hash.len(), "SHA-256 has 32 bytes");
    hash
}

fn subject_key(table: TableId, suffix: &[u8]) -> Vec<u8> {
    [SUBJECTS, &table.0.to_be_bytes(), &hash(suffix)].concat()
}

/// Under which a request is stored until it is done.
pub(crate) fn request_key(request: u64) -> Vec<u8> {
    [OPEN_REQUESTS, &request.to_be_bytes()].concat()
}

fn damaged(what: &str) -> SqlError {
    SqlError::new(1712, "HY000", format!("{what} is damaged"))
}

/// What is known of the person with this key; the commit depends on it.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn state(txn: &Transaction, table: TableId, suffix: &[u8]) -> SqlResult<SubjectState> {
    let Some(stored) = txn.get(&subject_key(table, suffix), ReadMode::Validate)? else {
        return Ok(SubjectState::Live);
    };
    let (state, request) = stored.split_first().ok_or_else(|| damaged("a subject"))?;
    let request = u64::from_be_bytes(request.try_into().map_err(|_| damaged("a subject"))?);
    match *state {
        FORGETTING => Ok(SubjectState::Forgetting(request)),
        FORGOTTEN => Ok(SubjectState::Forgotten(request)),
        _ => Err(damaged("a subject")),
    }
}

/// Notes what is known of a person.
///
/// # Errors
/// Those of writing.
pub(crate) fn set_state(
    txn: &Transaction,
    table: TableId,
    suffix: &[u8],
    state: SubjectState,
) -> SqlResult<()> {
    let key = subject_key(table, suffix);
    let (state, request) = match state {
        SubjectState::Live => return Ok(txn.delete(key)?),
        SubjectState::Forgetting(request) => (FORGETTING, request),
        SubjectState::Forgotten(request) => (FORGOTTEN, request),
    };
    let mut value = vec![state];
    value.extend_from_slice(&request.to_be_bytes());
    Ok(txn.put(key, value)?)
}

/// Whether a new row may be the person's whose row a link leads to. `is_there`: that row exists.
///
/// # Errors
/// 51002 when the person is being forgotten, or was and is not there; storage.
pub(crate) fn may_gain(
    txn: &Transaction,
    table: &Table,
    suffix: &[u8],
    is_there: bool,
) -> SqlResult<()> {
    let (what, request) = match state(txn, table.id, suffix)? {
        SubjectState::Forgetting(request) => ("is being forgotten", request),
        SubjectState::Forgotten(request) if !is_there => ("was forgotten", request),
        _ => return Ok(()),
    };
    let text = format!(
        "A row of '{}.{}' that this one refers to {what} (request {request}): nothing new may be theirs",
        table.database, table.name
    );
    Err(SqlError::new(51002, "HY000", text))
}

/// The number of a new request.
///
/// # Errors
/// 1712 for a damaged counter; storage.
pub(crate) fn next_request(txn: &Transaction) -> SqlResult<u64> {
    let next = match txn.get(NEXT_REQUEST, ReadMode::Update)? {
        None => 1,
        Some(stored) => u64::from_be_bytes(
            stored
                .as_slice()
                .try_into()
                .map_err(|_| damaged("the counter of requests"))?,
        ),
    };
    txn.put(NEXT_REQUEST.to_vec(), (next + 1).to_be_bytes().to_vec())?;
    Ok(next)
}

/// A request of this number was made elsewhere: new ones have greater numbers.
///
/// # Errors
/// 1712 for a damaged counter; storage.
pub(crate) fn request_is_used(txn: &Transaction, number: u64) -> SqlResult<()> {
    let next = next_request(txn)?;
    // The number that was just taken is given again.
    let next = next.max(number.saturating_add(1));
    Ok(txn.put(NEXT_REQUEST.to_vec(), next.to_be_bytes().to_vec())?)
}

/// Notes a request that will take several transactions, or how far it has come.
///
/// # Errors
/// Those of writing.
pub(crate) fn put_request(
    txn: &Transaction,
    number: u64,
    request: &ForgetRequest,
) -> SqlResult<()> {
    assert!(
        !request.suffix.is_empty(),
        "an open request says whose it is"
    );
    Ok(txn.put(request_key(number), encode(request)?)?)
}

/// An open request.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn request(txn: &Transaction, number: u64) -> SqlResult<Option<ForgetRequest>> {
    let stored = txn.get(&request_key(number), ReadMode::Update)?;
    stored.map(|value| decode(&value)).transpose()
}

/// A request is no longer open: it waits, or was undone.
///
/// # Errors
/// Those of writing.
pub(crate) fn close_request(txn: &Transaction, number: u64) -> SqlResult<()> {
    Ok(txn.delete(request_key(number))?)
}

/// A request has come to its end.
///
/// # Errors
/// Those of writing.
pub(crate) fn end_request(
    txn: &Transaction,
    number: u64,
    request: &ForgetRequest,
) -> SqlResult<()> {
    assert!(request.done_at_micros > 0, "a request that ends is done");
    let done = ForgetRequest {
        suffix: Vec::new(),
        ..request.clone()
    };
    txn.delete(request_key(number))?;
    purges::put(txn, number, request.done_at_micros)?;
    let key = [DONE_REQUESTS, &number.to_be_bytes()].concat();
    Ok(txn.put(key, encode(&done)?)?)
}

/// Requests that have not come to their end, newest first.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn open_requests(txn: &Transaction) -> SqlResult<Vec<(u64, ForgetRequest)>> {
    requests(txn, OPEN_REQUESTS)
}

/// Requests that are done, the newest thousand, newest first.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn done_requests(txn: &Transaction) -> SqlResult<Vec<(u64, ForgetRequest)>> {
    requests(txn, DONE_REQUESTS)
}

fn requests(txn: &Transaction, prefix: &[u8]) -> SqlResult<Vec<(u64, ForgetRequest)>> {
    let range = KeyRange::prefix(prefix);
    let page = txn.scan(&range, Direction::Reverse, PAGE, ReadMode::Plain)?;
    page.into_iter()
        .map(|(key, value)| {
            let number = key.get(prefix.len()..).unwrap_or_default();
            let number = number.try_into().map(u64::from_be_bytes);
            let number = number.map_err(|_| damaged("a request to forget"))?;
            Ok((number, decode(&value)?))
        })
        .collect()
}

fn encode(request: &ForgetRequest) -> SqlResult<Vec<u8>> {
    postcard::to_stdvec(request)
        .map_err(|error| SqlError::internal(format!("a request to forget: {error}")))
}

fn decode(value: &[u8]) -> SqlResult<ForgetRequest> {
    postcard::from_bytes(value).map_err(|_| damaged("a request to forget"))
}
