//! Several servers on the same rows ([`manxdb_txn::Others`]): how each hears what others have changed
//! in the catalog, and keeps out of their way while it changes something itself.
//!
//! | key | says | so that |
//! |---|---|---|
//! | catalog changes | how often the catalog was changed | every command begins with the newest one |
//! | account changes | the same of accounts | |
//! | turn | which server changes the catalog now | a change of several transactions is not met half way |
//!
//! A server that dies in its turn has the turn taken by the next one that wants it, which puts right
//! what was cut short. Servers alone on their rows have none of these keys.

use std::cell::RefCell;
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{ReadMode, Transaction, TxnError, Waiter};
use parking_lot::MutexGuard;

use super::{Catalog, CatalogStore, record};
use crate::error::{SqlError, SqlResult};

/// Tries to give a turn back that others look at.
const TRIES_MAX: usize = 100;

/// Changes by all servers that this one knows of.
#[derive(Debug, Default)]
pub(super) struct Heard {
    catalog: u64,
    accounts: u64,
}

/// What has become of a try to take the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Taken,
    /// It was that of a server that has died.
    TakenFromTheDead,
    /// Somebody else's.
    NotYet,
}

/// The right to change the catalog, for as long as it lives.
pub(crate) struct Changing<'s> {
    store: &'s CatalogStore,
    _guard: MutexGuard<'s, ()>,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.store.give_turn_back() {
            tracing::warn!(%error, "other servers cannot change the catalog for now");
        }
    }
}

/// A number that is stored; 0: none.
fn number(txn: &Transaction, key: &[u8], mode: ReadMode) -> SqlResult<u64> {
    let stored = txn.get(key, mode)?;
    match stored.as_deref().map(TryInto::<[u8; 8]>::try_into) {
        None => Ok(0),
        Some(Ok(bytes)) => Ok(u64::from_be_bytes(bytes)),
        Some(Err(_)) => Err(SqlError::new(
            1712,
            "HY000",
            "a count of changes is damaged",
        )),
    }
}

fn put(txn: &Transaction, key: &[u8], number: u64) -> SqlResult<()> {
    Ok(txn.put(key.to_vec(), number.to_be_bytes().to_vec())?)
}

impl CatalogStore {
    pub(super) fn is_shared(&self) -> bool {
        self.path.others().is_some()
    }

    /// Loads the catalog, and puts right what servers that have died left behind; what those that
    /// live do is left alone.
    pub(super) fn open_shared(&self) -> SqlResult<()> {
        self.refresh()?;
        let guard = self.ddl.lock();
        let turn = self.take_turn()?;
        if turn == Turn::NotYet {
            return Ok(());
        }
        let changing = Changing {
            store: self,
            _guard: guard,
        };
        self.put_right(turn)?;
        drop(changing);
        self.end_left_temporary(&|| match self.path.others() {
            Some(others) => Ok(others.is_alone()?),
            None => Ok(true),
        })
    }

    /// Reads anew what other servers have changed; whether accounts are among it.
    pub(crate) fn refresh(&self) -> SqlResult<bool> {
        if !self.is_shared() {
            return Ok(false);
        }
        let txn = self.begin();
        txn.declare_read_only();
        let changes = number(&txn, record::CATALOG_CHANGES, ReadMode::Plain)?;
        let accounts = number(&txn, record::ACCOUNT_CHANGES, ReadMode::Plain)?;
        let (is_first, is_known, are_accounts_known) = {
            let heard = self.heard.lock();
            let is_first = self.current.load().version == 0;
            (
                is_first,
                heard.catalog >= changes,
                heard.accounts >= accounts,
            )
        };
        if is_first || !is_known {
            let catalog = Self::load(&txn)?;
            self.publish(catalog, Some(changes));
        }
        Ok(!are_accounts_known)
    }

    /// Makes a catalog the current one, unless a newer one is. `changes` is how many there were with
    /// it, where others make them too.
    pub(super) fn publish(&self, mut catalog: Catalog, changes: Option<u64>) {
        let mut heard = self.heard.lock();
        let before = self.current.load().version;
        if let Some(changes) = changes {
            if before > 0 && changes <= heard.catalog {
                return;
            }
            heard.catalog = changes;
        }
        catalog.version = before + 1;
        self.current.store(Arc::new(catalog));
    }

    /// Makes a transaction one that changes the catalog that is current here; how many changes
    /// there are with it, where others make them too.
    ///
    /// # Errors
    /// 1412: somebody else has changed it.
    pub(super) fn count_change(&self, txn: &Transaction) -> SqlResult<Option<u64>> {
        if !self.is_shared() {
            return Ok(None);
        }
        let changes = number(txn, record::CATALOG_CHANGES, ReadMode::Validate)?;
        if changes != self.heard.lock().catalog {
            return Err(changed_elsewhere());
        }
        put(txn, record::CATALOG_CHANGES, changes + 1)?;
        Ok(Some(changes + 1))
    }

    /// Makes a transaction one that changes the accounts that are known here.
    ///
    /// # Errors
    /// 1412: somebody else has changed them.
    pub(crate) fn count_account_change(&self, txn: &Transaction) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let changes = number(txn, record::ACCOUNT_CHANGES, ReadMode::Validate)?;
        if changes != self.heard.lock().accounts {
            return Err(changed_elsewhere());
        }
        put(txn, record::ACCOUNT_CHANGES, changes + 1)
    }

    /// How often accounts were changed, as a transaction sees it.
    pub(crate) fn account_changes(&self, txn: &Transaction) -> SqlResult<u64> {
        if self.is_shared() {
            number(txn, record::ACCOUNT_CHANGES, ReadMode::Plain)
        } else {
            Ok(0)
        }
    }

    /// The accounts with so many changes are known here.
    pub(crate) fn heard_of_accounts(&self, changes: u64) {
        let mut heard = self.heard.lock();
        heard.accounts = heard.accounts.max(changes);
    }

    /// Takes the right to change the catalog; one at a time, of all servers. The catalog is the
    /// newest then.
    ///
    /// # Errors
    /// 1205: another server does not come to its end; storage.
    pub(crate) fn lock(&self, waiter: &Arc<dyn Waiter>) -> SqlResult<Changing<'_>> {
        let guard = self.ddl.lock();
        let mut turn = self.take_turn();
        if matches!(turn, Ok(Turn::NotYet)) {
            let taken = RefCell::new(turn);
            waiter.wait(&|| {
                let found = self.take_turn();
                let is_over = !matches!(found, Ok(Turn::NotYet));
                *taken.borrow_mut() = found;
                is_over
            })?;
            turn = taken.into_inner();
        }
        let turn = turn?;
        let changing = Changing {
            store: self,
            _guard: guard,
        };
        self.put_right(turn)?;
        Ok(changing)
    }

    /// The right to delete what is dropped, if nobody changes the catalog and there is something.
    pub(super) fn try_to_clean(&self) -> SqlResult<Option<Changing<'_>>> {
        let Some(guard) = self.ddl.try_lock() else {
            return Ok(None);
        };
        if self.is_shared() && (!self.has_garbage()? || self.take_turn()? == Turn::NotYet) {
            return Ok(None);
        }
        Ok(Some(Changing {
            store: self,
            _guard: guard,
        }))
    }

    /// Whether something is to be deleted.
    pub(super) fn has_garbage(&self) -> SqlResult<bool> {
        let txn = self.begin();
        txn.declare_read_only();
        let notes = KeyRange::prefix(record::GARBAGE);
        let page = txn.scan(&notes, Direction::Forward, 1, ReadMode::Plain)?;
        Ok(!page.is_empty())
    }

    fn take_turn(&self) -> SqlResult<Turn> {
        let Some(others) = self.path.others() else {
            return Ok(Turn::Taken);
        };
        let me = others.me()?;
        let txn = self.begin();
        let holder = number(&txn, record::TURN, ReadMode::Validate)?;
        if holder != 0 && holder != me && others.may_live(holder)? {
            return Ok(Turn::NotYet);
        }
        put(&txn, record::TURN, me)?;
        match txn.commit(Durability::Async) {
            Ok(_) if holder == 0 => Ok(Turn::Taken),
            Ok(_) => Ok(Turn::TakenFromTheDead),
            Err(TxnError::Conflict { .. } | TxnError::Deadlock) => Ok(Turn::NotYet),
            Err(error) => Err(error.into()),
        }
    }

    /// In our turn: knows the newest catalog, without what the dead left half done.
    fn put_right(&self, turn: Turn) -> SqlResult<()> {
        self.refresh()?;
        if turn == Turn::TakenFromTheDead {
            self.take_back_unfinished()?;
            self.drop_half_made_indexes()?;
        }
        Ok(())
    }

    fn give_turn_back(&self) -> SqlResult<()> {
        let Some(others) = self.path.others() else {
            return Ok(());
        };
        let me = others.me()?;
        for _ in 0..TRIES_MAX {
            let txn = self.begin();
            if number(&txn, record::TURN, ReadMode::Validate)? != me {
                return Ok(());
            }
            put(&txn, record::TURN, 0)?;
            match txn.commit(Durability::Async) {
                Ok(_) => return Ok(()),
                Err(TxnError::Conflict { .. } | TxnError::Deadlock) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SqlError::from(TxnError::Deadlock))
    }
}

/// 1412: what this server knows is not the newest any more.
fn changed_elsewhere() -> SqlError {
    SqlError::new(
        1412,
        "HY000",
        "Table definition has changed, please retry transaction",
    )
}
