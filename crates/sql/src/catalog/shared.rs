//! Several servers on the same rows ([`manxdb_txn::Others`]): how each hears what others have changed
//! in the catalog, and keeps out of their way while it changes something itself.
//!
//! | key | says | so that |
//! |---|---|---|
//! | catalog changes | how often the catalog was changed | every command begins with the newest one |
//! | account changes | the same of accounts | |
//! | turn | which server changes the catalog now | a change of several transactions is not met half way |
//!
//! Statements of one server share its turn; between themselves they lock what they change
//! ([`super::name_locks`]). A server that dies in its turn has the turn taken by the next one that wants it, which puts right
//! what was cut short. Servers alone on their rows have none of these keys.

use std::cell::RefCell;
use std::sync::Arc;

use manxdb_storage::Durability;
use manxdb_txn::{ReadMode, Transaction, TxnError, Waiter};

use super::change::CatalogChange;
use super::name_locks::{LockedNames, NameGuard};
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

/// How many changes of the catalog there are with the one at hand.
pub(super) struct ChangeCount {
    /// Where several servers make them.
    pub(super) others: Option<u64>,
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

/// The right to change some names of the catalog, for as long as it lives.
pub(crate) struct Changing<'s> {
    _turn: TurnShare<'s>,
    _names: NameGuard<'s>,
}

/// A share in this server's turn: the turn ends with the last one.
struct TurnShare<'s> {
    store: &'s CatalogStore,
}

impl Drop for TurnShare<'_> {
    fn drop(&mut self) {
        let mut shares = self.store.turn_shares.lock();
        *shares = shares.saturating_sub(1);
        if *shares > 0 {
            return;
        }
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
        let Some(turn) = self.join_turn()? else {
            return Ok(());
        };
        drop(turn);
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
        self.sealing.attach(&mut catalog);
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

    /// Makes the current catalog one with `changes`, the `count`th of all servers, which are
    /// committed. Call in the order of commits.
    pub(super) fn publish_changes(&self, changes: &[CatalogChange], count: Option<u64>) {
        let mut catalog = (*self.current()).clone();
        for change in changes {
            change.apply(&mut catalog);
        }
        self.publish(catalog, count);
    }

    /// Makes a transaction one that changes the catalog that is current here. `None`: it began
    /// before another statement of this server changed it, and must begin anew.
    ///
    /// # Errors
    /// Storage.
    pub(super) fn count_change(&self, txn: &Transaction) -> SqlResult<Option<ChangeCount>> {
        if !self.is_shared() {
            return Ok(Some(ChangeCount { others: None }));
        }
        let changes = number(txn, record::CATALOG_CHANGES, ReadMode::Validate)?;
        if changes != self.heard.lock().catalog {
            return Ok(None);
        }
        put(txn, record::CATALOG_CHANGES, changes + 1)?;
        Ok(Some(ChangeCount {
            others: Some(changes + 1),
        }))
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

    /// Takes the right to change `names`, and makes this server the one that changes the catalog.
    /// Statements of one server share its turn; the catalog is the newest then.
    ///
    /// # Errors
    /// 1205: another server does not come to its end; 1317; storage.
    pub(crate) fn lock(
        &self,
        names: &LockedNames,
        waiter: &Arc<dyn Waiter>,
    ) -> SqlResult<Changing<'_>> {
        let held = self.names.acquire(names, waiter)?;
        let mut turn = self.join_turn()?;
        if turn.is_none() {
            let joined = RefCell::new(Ok(None));
            waiter.wait(&|| {
                let found = self.join_turn();
                let is_over = !matches!(found, Ok(None));
                *joined.borrow_mut() = found;
                is_over
            })?;
            turn = joined.into_inner()?;
        }
        let turn = turn.ok_or_else(|| SqlError::internal("a turn that was taken is not there"))?;
        Ok(Changing {
            _turn: turn,
            _names: held,
        })
    }

    /// A share in this server's turn, which it takes if it can; `None`: another server has it.
    fn join_turn(&self) -> SqlResult<Option<TurnShare<'_>>> {
        let mut shares = self.turn_shares.lock();
        if *shares == 0 {
            let turn = self.take_turn()?;
            if turn == Turn::NotYet {
                return Ok(None);
            }
            if let Err(error) = self.put_right(turn) {
                // Whoever comes next tries again; until then the turn is nobody's.
                self.give_turn_back()?;
                return Err(error);
            }
        }
        *shares += 1;
        drop(shares);
        Ok(Some(TurnShare { store: self }))
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
            self.abandon_reserved_ids()?;
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
