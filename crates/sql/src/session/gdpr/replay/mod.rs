//! A store that is older than the audit beside the vault, as one from a backup is, learns who was forgotten,
//! and what was held, since, before anybody is served.
//!
//! 1. The records it lacks are taken over, in one transaction that notes that they are to be replayed.
//! 2. Holds and waiting requests that have ended since end here; those that were made since are made again.
//! 3. People whom the records say were forgotten, and who are here and readable, are forgotten again, but for
//!    what is held.
//! 4. Rows whose key is erased are removed with their index entries: nobody can read them.
//! 5. Links to them are cleared where they may be NULL.
//!
//! Each step may run twice: a crash begins at step 2 again. [`orders`] says what the records ask for.

mod orders;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use manxdb_ownership::proof::{AuditEvent, AuditKind, AuditRecord, CountedRows};
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};
use manxdb_vault::{KeyId, VaultError};

use crate::catalog::unowned::unowned_row_key;
use crate::catalog::{Table, TableId};
use crate::encoding::{self, KEY_HEAD};
use crate::error::{SqlError, SqlResult};
use crate::parser::quote_name;
use crate::session::instance::Instance;
use crate::session::session::Session;
use crate::statement::owners::requests as waiting;
use crate::statement::owners::{audit, purges, subjects};
use crate::types::Value;
use orders::{Orders, Person};

/// Keys read or deleted at a time.
const PAGE: usize = 1_000;

/// Takes a key and its value.
pub(super) type Each<'a> = dyn FnMut(&[u8], &[u8]) -> SqlResult<()> + 'a;

/// The rows of people whom records name: the table of each, and the key behind the table's prefix.
type Returned = BTreeMap<Person, (Arc<Table>, Vec<u8>)>;

/// By table, the keys of rows that were removed, behind the table's prefix.
type Removed = BTreeMap<TableId, (Arc<Table>, BTreeSet<Vec<u8>>)>;

/// Calls `each` with all keys and values of a range, as they are in `txn`.
pub(super) fn scan(txn: &Transaction, prefix: &[u8], each: &mut Each<'_>) -> SqlResult<()> {
    let mut range = KeyRange::prefix(prefix);
    loop {
        let page = txn.scan(&range, Direction::Forward, PAGE, ReadMode::Plain)?;
        for (key, value) in &page {
            each(key, value)?;
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE => range.start = Bound::Excluded(key.clone()),
            _ => return Ok(()),
        }
    }
}

impl Instance {
    /// Takes over the records that are beside the vault and not in the store.
    ///
    /// # Errors
    /// 51005 when neither continues the other; storage.
    pub(in crate::session) fn adopt_records(&self, recorded: Vec<AuditRecord>) -> SqlResult<()> {
        let Some((ledger_seq, ledger_hash)) = self.ledger_end() else {
            return Ok(());
        };
        let txn = self.store.begin();
        let (seq, hash) = audit::last(&txn, ReadMode::Validate)?;
        let is_older = seq < ledger_seq;
        let shared = if is_older {
            let before = usize::try_from(seq).unwrap_or(usize::MAX).checked_sub(1);
            before.is_none_or(|at| recorded.get(at).is_some_and(|record| record.hash == hash))
        } else {
            let last = ledger_seq.checked_sub(1);
            let behind = last.map(|before| audit::behind(&txn, before)).transpose()?;
            let same = behind.as_ref().and_then(|records| records.first());
            behind.is_none() || same.is_some_and(|record| record.hash == ledger_hash)
        };
        drop(txn);
        if !shared {
            let text = "the audit beside the vault is not of this data directory: start the server with the \
                        vault that the data directory was used with";
            return Err(SqlError::new(51005, "HY000", text));
        }
        if !is_older {
            return Ok(());
        }
        let at = usize::try_from(seq).unwrap_or(usize::MAX);
        let missing = recorded.get(at..).unwrap_or_default();
        tracing::info!(
            records = missing.len(),
            "this store is older than the audit: it is brought up to it"
        );
        self.in_transaction(|txn| {
            if audit::replay(txn)?.is_none() {
                audit::set_replay(txn, Some(seq))?;
            }
            for record in missing {
                audit::put(txn, record)?;
                let event = record.event();
                let numbers = event.map(|event| (event.request, event.hold));
                let (request, hold) = numbers.unwrap_or_default();
                subjects::request_is_used(txn, request.unwrap_or(0))?;
                waiting::hold_is_used(txn, hold.unwrap_or(0))?;
            }
            Ok(())
        })
    }

    /// Does what records say that were taken over.
    ///
    /// # Errors
    /// Storage; those of forgetting.
    pub(in crate::session) fn replay(self: &Arc<Self>) -> SqlResult<()> {
        let Some(from) = self.in_transaction(audit::replay)? else {
            return Ok(());
        };
        match self.replay_from(from) {
            // Without its master key the server starts, and sealed rows cannot be read.
            Err(error) if error.code == 51005 => {
                tracing::error!(%error, "people who were forgotten since the backup may be here still");
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.in_transaction(|txn| audit::set_replay(txn, None))?;
                self.mirror_audit()
            }
        }
    }

    fn replay_from(self: &Arc<Self>, from: u64) -> SqlResult<()> {
        let txn = self.store.begin();
        txn.declare_read_only();
        let records = audit::behind(&txn, from)?;
        let orders = Orders::of(records.iter().filter_map(AuditRecord::event));
        let people = self.people_who_are_here(&txn, &orders)?;
        drop(txn);
        let mut session = self.own_session("gdpr@localhost");
        session.is_replaying = true;
        self.in_transaction(|txn| orders.end(txn))?;
        for (number, (person, event)) in &orders.holds {
            match people.get(person) {
                Some((table, suffix)) => session.hold_again((table, suffix), *number, event)?,
                None => tracing::warn!(hold = *number, "whom a hold is on is not in this store"),
            }
        }
        for (number, (person, event)) in &orders.waiting {
            if let Some((table, suffix)) = people.get(person) {
                session.wait_again((table, suffix), *number, event)?;
            }
        }
        for (person, request) in &orders.forgotten {
            if let Some((table, suffix)) = people.get(person) {
                session.forget_again(table, suffix, *request)?;
            }
        }
        let removed = self.remove_unreadable()?;
        session.clear_links(&removed)?;
        let rows = removed.values().map(|(table, rows)| CountedRows {
            table: table.name.clone(),
            action: "delete".to_string(),
            rows: rows.len() as u64,
            why: "its key is erased".to_string(),
        });
        let event = AuditEvent {
            rows: rows.collect(),
            ..AuditEvent::new(AuditKind::Replayed, self.audit_time())
        };
        self.in_transaction(|txn| audit::append_unlocked(txn, &event))?;
        self.purge_again(&orders)?;
        self.views.empty_all();
        Ok(())
    }

    /// The files of this store are older than those that may have had nothing left of what was forgotten.
    fn purge_again(&self, orders: &Orders) -> SqlResult<()> {
        for (request, was_seen) in &orders.purged {
            let event = AuditEvent {
                request: Some(*request),
                ..AuditEvent::new(AuditKind::Replayed, self.audit_time())
            };
            let now = self.host.wall_micros();
            self.in_transaction(|txn| {
                purges::put(txn, *request, now)?;
                // A certificate says it no longer.
                if *was_seen {
                    audit::append_unlocked(txn, &event)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Rows of people whom something is to be done for.
    fn people_who_are_here(&self, txn: &Transaction, orders: &Orders) -> SqlResult<Returned> {
        let mut people = BTreeMap::new();
        let wanted = orders.people();
        if wanted.is_empty() {
            return Ok(people);
        }
        let key = self.proof_key()?;
        let catalog = self.store.current();
        let databases = catalog.stored().databases.values();
        let tables = databases.flat_map(|database| database.tables.values());
        for table in tables.filter(|table| table.data_subject) {
            scan(txn, &encoding::index_prefix(table, 0), &mut |row, _| {
                let suffix = row.get(KEY_HEAD..).unwrap_or_default();
                let person = (table.id.0, key.subject(table.id.0, &subjects::hash(suffix)));
                if wanted.contains(&person) {
                    people.insert(person, (Arc::clone(table), suffix.to_vec()));
                }
                Ok(())
            })?;
        }
        Ok(people)
    }

    /// Removes rows whose key is erased; their tables and key suffixes.
    fn remove_unreadable(&self) -> SqlResult<Removed> {
        let mut removed = BTreeMap::new();
        let (Some(vault), Some(graph)) = (self.sealing.vault(), self.owner_graph()) else {
            return Ok(removed);
        };
        let mut known: BTreeMap<KeyId, bool> = BTreeMap::new();
        for id in graph.sealed_in_order() {
            let Some(owned) = graph.table(id) else {
                continue;
            };
            let table = &owned.table;
            let txn = self.store.begin();
            txn.declare_read_only();
            let mut rows: BTreeSet<Vec<u8>> = BTreeSet::new();
            scan(
                &txn,
                &encoding::index_prefix(table, 0),
                &mut |row, record| {
                    if let Some(key) = encoding::key_of(record) {
                        let is_erased =
                            || matches!(vault.fingerprint(key), Err(VaultError::Erased(_)));
                        if *known.entry(key).or_insert_with(is_erased) {
                            rows.insert(row.get(KEY_HEAD..).unwrap_or_default().to_vec());
                        }
                    }
                    Ok(())
                },
            )?;
            if rows.is_empty() {
                continue;
            }
            let mut keys: Vec<Vec<u8>> = Vec::new();
            for suffix in &rows {
                keys.push(encoding::row_key(table, suffix));
                keys.push(unowned_row_key(table.id, suffix));
            }
            for index in &table.indexes {
                let prefix = encoding::index_prefix(table, index.id.0);
                scan(&txn, &prefix, &mut |entry, suffix| {
                    if rows.contains(suffix) {
                        keys.push(entry.to_vec());
                    }
                    Ok(())
                })?;
            }
            // Entries go first: a row that is there still is found by the next attempt.
            keys.reverse();
            for keys in keys.chunks(PAGE) {
                self.in_transaction(|txn| {
                    keys.iter().try_for_each(|key| Ok(txn.delete(key.clone())?))
                })?;
            }
            removed.insert(table.id, (Arc::clone(table), rows));
        }
        Ok(removed)
    }
}

impl Session {
    /// Forgets a person by a request of a newer store.
    fn forget_again(&mut self, table: &Table, suffix: &[u8], request: u64) -> SqlResult<()> {
        let is_readable = self.in_forgetting(&mut |session| {
            let zone = session.state.settings().time_zone.clone();
            let txn = session.open_transaction()?;
            let Some(record) = txn.get(&encoding::row_key(table, suffix), ReadMode::Update)? else {
                return Ok(false);
            };
            match encoding::decode_row(table, (suffix, &record), &zone) {
                // It is removed as a row whose key is erased.
                Err(error) if error.code == 51006 => {
                    let state = subjects::SubjectState::Forgotten(request);
                    subjects::set_state(txn, table.id, suffix, state)?;
                    Ok(false)
                }
                Err(error) => Err(error),
                Ok(_) => {
                    session.begin_again(table, suffix, request)?;
                    Ok(true)
                }
            }
        })?;
        if is_readable {
            self.resume(request)?;
        }
        Ok(())
    }

    /// Links to rows that were removed become NULL where they may.
    fn clear_links(
        &mut self,
        removed: &BTreeMap<TableId, (Arc<Table>, BTreeSet<Vec<u8>>)>,
    ) -> SqlResult<()> {
        let catalog = self.instance().store.current();
        let databases = catalog.stored().databases.values();
        let children: Vec<Arc<Table>> = databases
            .flat_map(|database| database.tables.values().cloned())
            .collect();
        for child in children {
            for (number, key) in child
                .foreign_keys
                .iter()
                .enumerate()
                .filter(|(_, key)| key.enforced)
            {
                let target = catalog.table(&key.ref_database, &key.ref_table).ok();
                let Some(target) = target.filter(|target| removed.contains_key(&target.id)) else {
                    continue;
                };
                if let Some(text) = clearing(&child, number, target) {
                    self.in_forgetting(&mut |session| {
                        let compiled = Arc::new(session.compile_whole(&text)?);
                        let none: [Value; 0] = [];
                        session.collect(&compiled, &none).map(|_| ())
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The statement that clears a foreign key where it names no row.
fn clearing(child: &Table, number: usize, target: &Table) -> Option<String> {
    let key = child.foreign_keys.get(number)?;
    // A statement that changes a table reads no other row of it.
    if child.id == target.id {
        return None;
    }
    let name = |table: &Table| {
        format!(
            "{}.{}",
            quote_name(&table.database),
            quote_name(&table.name)
        )
    };
    let columns: Option<Vec<String>> = key
        .columns
        .iter()
        .map(|at| Some(quote_name(&child.columns.get(*at)?.name)))
        .collect();
    let columns = columns?;
    let cleared: Vec<String> = key
        .columns
        .iter()
        .zip(&columns)
        .filter(|(at, _)| super::forget::may_clear(child, number, **at))
        .map(|(_, name)| format!("{name} = NULL"))
        .collect();
    if cleared.is_empty() {
        return None;
    }
    let given: Vec<String> = columns
        .iter()
        .map(|name| format!("{name} IS NOT NULL"))
        .collect();
    let pairs = columns.iter().zip(&key.ref_columns);
    let joined: Vec<String> = pairs
        .map(|(mine, theirs)| format!("named.{} = {}.{mine}", quote_name(theirs), name(child)))
        .collect();
    Some(format!(
        "UPDATE {} SET {} WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS named WHERE {})",
        name(child),
        cleared.join(", "),
        given.join(" AND "),
        name(target),
        joined.join(" AND "),
    ))
}
