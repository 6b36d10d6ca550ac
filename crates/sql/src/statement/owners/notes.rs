//! What a transaction has done to the owners of rows. Notes outlive a ROLLBACK TO: each is a reason to
//! look at a row at COMMIT, and what is looked at is the row as it is then.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_txn::{ReadMode, Transaction};
use manxdb_vault::KeyId;

use super::graph::{OwnedTable, OwnerGraph, OwnerLink};
use super::keys::{KeyRule, key_of_new, new_key};
use super::mutants::{OwnershipMutant, is_planted};
use crate::catalog::{Table, TableId, copy_notes};
use crate::encoding;
use crate::error::SqlResult;
use crate::types::{Row, Value};

/// Notes of one transaction.
#[derive(Debug, Default)]
pub(crate) struct OwnerNotes {
    graph: RefCell<Option<Arc<OwnerGraph>>>,
    /// `foreign_key_checks` of the statement that writes.
    is_checked: Cell<bool>,
    rows: RefCell<BTreeMap<(TableId, Vec<u8>), OwnerNote>>,
    gone: RefCell<Vec<(TableId, Row)>>,
    /// The statement is one of FORGET: keys of rows that go are erased.
    is_forgetting: Cell<bool>,
    /// Keys that are to be erased when the transaction has committed.
    erased: RefCell<Vec<KeyId>>,
    /// People whom a plain DELETE removed while foreign keys were checked: row keys, with their keys.
    deleted: RefCell<Vec<(Vec<u8>, KeyId)>>,
}

/// Why a row is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnerNote {
    /// Foreign keys were checked when it was written: it must have an owner, or its table allows none.
    pub(super) is_checked: bool,
    /// It was inserted while they were: the rows that its links lead to are there.
    pub(super) is_new: bool,
    /// Others began to own it, and nothing else happened to it.
    pub(super) only_gains: bool,
}

impl OwnerNote {
    /// Both reasons.
    fn with(self, other: Self) -> Self {
        Self {
            is_checked: self.is_checked || other.is_checked,
            is_new: self.is_new && other.is_new,
            only_gains: self.only_gains && other.only_gains,
        }
    }
}

/// What is to be looked at.
pub(super) struct TakenNotes {
    pub(super) graph: Arc<OwnerGraph>,
    pub(super) rows: BTreeMap<(TableId, Vec<u8>), OwnerNote>,
    /// Rows that went while foreign keys were not checked, and rows that are sealed under another key:
    /// rows that lead to them are still there.
    pub(super) gone: Vec<(TableId, Row)>,
}

impl OwnerNotes {
    /// A statement begins, under this graph.
    pub(crate) fn begin_statement(
        &self,
        graph: Option<Arc<OwnerGraph>>,
        is_checked: bool,
        is_forgetting: bool,
    ) {
        self.graph.replace(graph);
        self.is_checked.set(is_checked);
        self.is_forgetting.set(is_forgetting);
    }

    /// Keys that the transaction has left without a row.
    ///
    /// # Errors
    /// Storage, conflicts.
    pub(crate) fn take_erased(&self, txn: &Transaction) -> SqlResult<Vec<KeyId>> {
        let mut erased = self.erased.take();
        for (row, key) in self.deleted.take() {
            // A ROLLBACK TO may have brought it back.
            let stored = txn.get(&row, ReadMode::Update)?;
            if stored.as_deref().and_then(encoding::key_of) != Some(key) {
                erased.push(key);
            }
        }
        if is_planted(OwnershipMutant::KeptKey) {
            return Ok(Vec::new());
        }
        Ok(erased)
    }

    /// Whether no table says whose its rows are.
    pub(crate) fn is_idle(&self) -> bool {
        self.graph.borrow().is_none()
    }

    /// Nothing has happened.
    pub(crate) fn clear(&self) {
        self.rows.borrow_mut().clear();
        self.gone.borrow_mut().clear();
        self.erased.borrow_mut().clear();
        self.deleted.borrow_mut().clear();
    }

    /// Takes all notes, to be looked at under `graph`.
    pub(super) fn take(&self, graph: Arc<OwnerGraph>) -> TakenNotes {
        TakenNotes {
            graph,
            rows: self.rows.take(),
            gone: self.gone.take(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.borrow().is_empty() && self.gone.borrow().is_empty()
    }

    fn add(&self, table: TableId, suffix: Vec<u8>, note: OwnerNote) {
        let mut rows = self.rows.borrow_mut();
        let known = rows.entry((table, suffix)).or_insert(note);
        *known = known.with(note);
    }

    fn note(&self) -> OwnerNote {
        OwnerNote {
            is_checked: self.is_checked.get(),
            is_new: false,
            only_gains: false,
        }
    }

    fn on<T: Default>(
        &self,
        table: &Table,
        work: impl FnOnce(&OwnedTable) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let graph = self.graph.borrow();
        match graph.as_ref().and_then(|graph| graph.table(table.id)) {
            Some(owned) => work(owned),
            None => Ok(T::default()),
        }
    }

    /// The key that a new row is sealed under; `None`: it is plain.
    ///
    /// # Errors
    /// 51005 when there is a vault and no key is to be had.
    pub(crate) fn key_of_inserted(
        &self,
        txn: &Transaction,
        table: &Table,
        row: &[Value],
        tz: &TimeZone,
    ) -> SqlResult<Option<KeyId>> {
        if table.sealing.vault().is_none() || is_planted(OwnershipMutant::PlainRow) {
            return Ok(None);
        }
        self.on(table, |owned| {
            key_of_new(txn, table, owned.key_rule(), row, self.parent_mode(), tz)
        })
    }

    /// How the row that a link leads to is read: as the foreign key reads it, which is checked or not.
    fn parent_mode(&self) -> ReadMode {
        if self.is_checked.get() {
            return ReadMode::Share;
        }
        ReadMode::Validate
    }

    /// The key that a changed row, stored under `suffix` before, is sealed under: the one it has, unless
    /// its link says otherwise. FORGET gives a row that others keep another one, so that what it was
    /// before cannot be read from old files.
    ///
    /// # Errors
    /// As [`OwnerNotes::key_of_inserted`].
    pub(crate) fn key_of_updated(
        &self,
        txn: &Transaction,
        table: &Table,
        (old, new): (&[Value], &[Value]),
        suffix: &[u8],
        tz: &TimeZone,
    ) -> SqlResult<Option<KeyId>> {
        if table.sealing.vault().is_none() {
            return Ok(None);
        }
        self.on(table, |owned| {
            let rule = owned.key_rule();
            let stored = txn.get(&encoding::row_key(table, suffix), ReadMode::Update)?;
            let has = stored.as_deref().and_then(encoding::key_of);
            let key = match rule {
                KeyRule::Own if self.is_forgetting.get() && !owned.is_subject() => match has {
                    Some(has) => {
                        self.erased.borrow_mut().push(has);
                        new_key(table)?
                    }
                    None => None,
                },
                KeyRule::Through(link) if link.differs(old, new) => {
                    key_of_new(txn, table, rule, new, self.parent_mode(), tz)?
                }
                KeyRule::Own | KeyRule::Through(_) => has,
                KeyRule::Plain => None,
            };
            let goes_down = key != has && !is_planted(OwnershipMutant::KeptBelow);
            if goes_down && !owned.children.is_empty() {
                self.gone.borrow_mut().push((table.id, new.to_vec()));
            }
            Ok(key)
        })
    }

    /// A person's row, or one that may have several owners, stays while rows below it have gone: it gets another
    /// key, and the one under which they were sealed is erased.
    ///
    /// # Errors
    /// As [`OwnerNotes::key_of_inserted`].
    pub(crate) fn rekey(
        &self,
        txn: &Transaction,
        table: &Table,
        suffix: &[u8],
        tz: &TimeZone,
    ) -> SqlResult<()> {
        if table.sealing.vault().is_none() {
            return Ok(());
        }
        self.on(table, |owned| {
            let row_key = encoding::row_key(table, suffix);
            let stored = txn.get(&row_key, ReadMode::Update)?;
            let has = stored.as_deref().and_then(encoding::key_of);
            let (KeyRule::Own, Some(has), Some(record)) = (owned.key_rule(), has, stored) else {
                return Ok(());
            };
            let Some(key) = new_key(table)? else {
                return Ok(());
            };
            if is_planted(OwnershipMutant::KeptUnderErasedKey) {
                self.erased.borrow_mut().push(has);
                return Ok(());
            }
            if let Some(copy) = table.copying {
                txn.put(copy_notes::changed_row_key(copy, suffix), Vec::new())?;
            }
            let row = encoding::decode_row(table, (suffix, &record), tz)?;
            let plain = encoding::encode_row(table, &row, tz);
            txn.put(row_key, encoding::seal(table, suffix, key, &plain)?)?;
            self.erased.borrow_mut().push(has);
            if !owned.children.is_empty() {
                self.gone.borrow_mut().push((table.id, row));
            }
            Ok(())
        })
    }

    /// A row is about to be deleted. When a person is forgotten its own key goes with it; so does that of a person
    /// whom a plain DELETE removes, as foreign keys let none go who has rows left.
    ///
    /// # Errors
    /// Storage, conflicts.
    pub(crate) fn note_going(
        &self,
        txn: &Transaction,
        table: &Table,
        suffix: &[u8],
    ) -> SqlResult<()> {
        let is_forgetting = self.is_forgetting.get();
        if !(is_forgetting || self.is_checked.get()) || table.sealing.vault().is_none() {
            return Ok(());
        }
        self.on(table, |owned| {
            let is_own = matches!(owned.key_rule(), KeyRule::Own);
            if is_own && (is_forgetting || owned.is_subject()) {
                let row = encoding::row_key(table, suffix);
                let stored = txn.get(&row, ReadMode::Update)?;
                let key = stored.as_deref().and_then(encoding::key_of);
                if is_forgetting {
                    self.erased.borrow_mut().extend(key);
                } else {
                    self.deleted.borrow_mut().extend(key.map(|key| (row, key)));
                }
            }
            Ok(())
        })
    }

    /// A row was inserted.
    pub(crate) fn inserted(
        &self,
        table: &Table,
        row: &[Value],
        suffix: &[u8],
        tz: &TimeZone,
    ) -> SqlResult<()> {
        self.on(table, |owned| {
            let is_checked = self.is_checked.get();
            // The foreign key has found the person.
            let names_person = |link: &OwnerLink| link.leads_to_person() && link.is_set(row);
            let is_owned = is_checked && owned.owned_by.iter().any(names_person);
            if owned.is_ownable() && !is_owned {
                let note = OwnerNote {
                    is_new: is_checked,
                    ..self.note()
                };
                self.add(table.id, suffix.to_vec(), note);
            }
            owned.owns.iter().try_for_each(|link| {
                if let Some((target, suffix)) = link.target_of(row, tz)? {
                    self.gained(target, suffix);
                }
                Ok(())
            })
        })
    }

    fn gained(&self, table: TableId, suffix: Vec<u8>) {
        let note = OwnerNote {
            only_gains: true,
            ..self.note()
        };
        self.add(table, suffix, note);
    }

    /// A row was deleted.
    pub(crate) fn deleted(
        &self,
        table: &Table,
        row: &[Value],
        suffix: &[u8],
        tz: &TimeZone,
    ) -> SqlResult<()> {
        self.on(table, |owned| {
            if owned.is_ownable() {
                self.add(table.id, suffix.to_vec(), self.note());
            }
            if !self.is_checked.get() && !owned.children.is_empty() {
                self.gone.borrow_mut().push((table.id, row.to_vec()));
            }
            if is_planted(OwnershipMutant::KeptOwner) {
                return Ok(());
            }
            owned.owns.iter().try_for_each(|link| {
                if let Some((target, suffix)) = link.target_of(row, tz)? {
                    self.add(target, suffix, self.note());
                }
                Ok(())
            })
        })
    }

    /// A row was changed; `suffixes` are its key before and now.
    pub(crate) fn updated(
        &self,
        table: &Table,
        (old, new): (&[Value], &[Value]),
        suffixes: (&[u8], &[u8]),
        tz: &TimeZone,
    ) -> SqlResult<()> {
        self.on(table, |owned| {
            let moved = suffixes.0 != suffixes.1;
            if !moved {
                let mut links = owned.owned_by.iter().chain(&owned.owns);
                if !links.any(|link| link.differs(old, new)) {
                    return Ok(());
                }
            }
            if owned.is_ownable() {
                self.add(table.id, suffixes.1.to_vec(), self.note());
                if moved {
                    self.add(table.id, suffixes.0.to_vec(), self.note());
                }
            }
            if moved && !self.is_checked.get() && !owned.children.is_empty() {
                self.gone.borrow_mut().push((table.id, old.to_vec()));
            }
            for link in owned
                .owns
                .iter()
                .filter(|link| moved || link.differs(old, new))
            {
                if let Some((target, suffix)) = link.target_of(old, tz)? {
                    self.add(target, suffix, self.note());
                }
                if let Some((target, suffix)) = link.target_of(new, tz)? {
                    self.gained(target, suffix);
                }
            }
            Ok(())
        })
    }
}
