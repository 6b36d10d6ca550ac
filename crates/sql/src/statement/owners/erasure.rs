//! Keys that a committed transaction has ordered to be erased. The order is committed with the deletions,
//! so that a crash before the slots are overwritten loses none: what is ordered is done until it is.
//!
//! ```text
//! order    0x02 0x06 ‖ first key id u64 BE  → key ids (postcard), and the request whose order it is
//! sealing  0x02 0x08                       → u8, 1 begun, 2 all rows that were there are sealed
//! ```

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};
use manxdb_vault::KeyId;

use crate::error::{SqlError, SqlResult};

const ORDERS: &[u8] = &[0x02, 0x06];
/// How far sealing has come.
const SEALING: &[u8] = &[0x02, 0x08];

/// Key ids in one order.
const KEYS_MAX: usize = 4096;
/// Orders read at a time.
const PAGE: usize = 64;

/// An order to erase keys: where it is stored, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EraseOrder {
    key: Vec<u8>,
    pub(crate) ids: Vec<KeyId>,
    /// Whose order it is; `None`: a plain DELETE's.
    pub(crate) request: Option<u64>,
}

/// Orders that `ids` be erased once the transaction has committed.
///
/// # Errors
/// Those of writing.
pub(crate) fn order(
    txn: &Transaction,
    ids: &[KeyId],
    request: Option<u64>,
) -> SqlResult<Vec<EraseOrder>> {
    let mut orders = Vec::new();
    for ids in ids.chunks(KEYS_MAX) {
        let Some(first) = ids.first() else { continue };
        let key = [ORDERS, &first.get().to_be_bytes()].concat();
        let stored: Vec<u64> = ids.iter().map(|id| id.get()).collect();
        let stored = postcard::to_stdvec(&(stored, request))
            .map_err(|error| SqlError::internal(format!("an order to erase keys: {error}")))?;
        txn.put(key.clone(), stored)?;
        let ids = ids.to_vec();
        orders.push(EraseOrder { key, ids, request });
    }
    Ok(orders)
}

/// Orders that are not carried out yet.
///
/// # Errors
/// 1712 for a damaged one; storage.
pub(crate) fn open_orders(txn: &Transaction) -> SqlResult<Vec<EraseOrder>> {
    let range = KeyRange::prefix(ORDERS);
    let page = txn.scan(&range, Direction::Forward, PAGE, ReadMode::Plain)?;
    let decode = |(key, value): (Vec<u8>, Vec<u8>)| {
        let damaged = |_| SqlError::new(1712, "HY000", "an order to erase keys is damaged");
        let (ids, rest): (Vec<u64>, &[u8]) = postcard::take_from_bytes(&value).map_err(damaged)?;
        // Earlier releases wrote ids alone.
        let request = match rest {
            [] => None,
            rest => postcard::from_bytes(rest).map_err(damaged)?,
        };
        let ids = ids.into_iter().map(KeyId::from_stored).collect();
        Ok(EraseOrder { key, ids, request })
    };
    page.into_iter().map(decode).collect()
}

/// The order is carried out.
///
/// # Errors
/// Those of writing.
pub(crate) fn done(txn: &Transaction, order: &EraseOrder) -> SqlResult<()> {
    Ok(txn.delete(order.key.clone())?)
}

/// How far sealing has come in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealingState {
    /// There was no vault yet.
    Never,
    /// New rows are sealed; some from before may be plain.
    Begun,
    /// So are rows from before.
    All,
}

/// How far sealing has come.
///
/// # Errors
/// 1712 for a damaged record; storage.
pub(crate) fn sealing(txn: &Transaction) -> SqlResult<SealingState> {
    let stored = txn.get(SEALING, ReadMode::Validate)?;
    match stored.as_deref() {
        None => Ok(SealingState::Never),
        Some([1]) => Ok(SealingState::Begun),
        Some([2]) => Ok(SealingState::All),
        Some(_) => {
            let text = "what says how far sealing has come is damaged";
            Err(SqlError::new(1712, "HY000", text))
        }
    }
}

/// Notes how far sealing has come.
///
/// # Errors
/// Those of writing.
pub(crate) fn set_sealing(txn: &Transaction, state: SealingState) -> SqlResult<()> {
    let stored = match state {
        SealingState::Never => return Ok(txn.delete(SEALING.to_vec())?),
        SealingState::Begun => 1,
        SealingState::All => 2,
    };
    Ok(txn.put(SEALING.to_vec(), vec![stored])?)
}
