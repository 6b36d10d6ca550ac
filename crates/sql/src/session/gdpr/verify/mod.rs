//! `GDPR VERIFY kind id`: looks for a person again, in all rows and entries and not by index, as if FORGET could
//! not be trusted.
//!
//! | file | looks at |
//! |---|---|
//! | this one | rows, entries of indexes, slots of the vault |
//! | [`views`] | what materialized views hold in memory |
//! | [`files`] | keys that were deleted, in sorted files, lists of them, the commit log and spare files |
//! | [`findings`] | what was found, and the verdict |

mod files;
mod findings;
mod views;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_ownership::proof::AuditRecord;
use manxdb_ownership::{OwnershipGraph, TableName};
use manxdb_txn::Transaction;
use manxdb_vault::KeyId;
use sqlparser::ast::{Expr, ObjectName};

use super::replay::scan;
use crate::catalog::{Catalog, ForeignKey, ROWS, Table, ownership};
use crate::encoding::{self, KEY_HEAD, encode_key_part};
use crate::error::SqlResult;
use crate::session::ResultSink;
use crate::session::session::Session;
use crate::statement::owners::subjects::{self, SubjectState};
use crate::statement::owners::{audit, erasure};
use crate::statement::target::position;
use crate::types::Value;
use findings::Findings;

/// Looks at one state of the store.
struct Search<'a> {
    txn: Transaction,
    catalog: &'a Catalog,
    graph: &'a OwnershipGraph,
    person: Arc<Table>,
    /// The person's primary key, and as keys have it.
    id: Vec<Value>,
    suffix: Vec<u8>,
    zone: TimeZone,
    findings: Findings,
}

/// What the audit has of a person.
#[derive(Default)]
struct Recorded {
    requests: BTreeSet<u64>,
    holds: BTreeSet<u64>,
    /// Ids of keys that requests have ordered to be erased.
    keys: BTreeSet<String>,
}

impl Session {
    /// A row for each place that was looked at, and one for all. Needs the privilege GDPR on the server or the
    /// database.
    ///
    /// # Errors
    /// 51004 for an unknown kind, or an id that no row of it can have; 51005 when sealed rows cannot be read;
    /// storage.
    pub(in crate::session) fn gdpr_verify(
        &mut self,
        kind: &ObjectName,
        id: &[Expr],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let whom = self.named_person(kind, id)?;
        self.unlock_tables()?;
        self.commit()?;
        let key = self.in_forgetting(&mut |session| session.key_of_person(&whom))?;
        let catalog = self.instance().store.current();
        let graph = ownership::graph(&catalog, None);
        let txn = self.instance().store.begin();
        txn.declare_read_only();
        let mut search = Search {
            txn,
            catalog: &catalog,
            graph: &graph,
            person: Arc::clone(catalog.table(&whom.database, &whom.table)?),
            id: whom.id,
            suffix: key.suffix,
            zone: self.state.settings().time_zone.clone(),
            findings: Findings::default(),
        };
        search.person()?;
        search.rows_that_name()?;
        search.rows_without_owner()?;
        let recorded = self.recorded(&search)?;
        self.keys_left(&mut search, &recorded)?;
        self.views_left(&mut search)?;
        self.files_left(&mut search, &recorded)?;
        let rows = search.findings.into_rows();
        self.send_rows(&findings::COLUMNS, &rows, sink, more)
    }

    /// What the audit has of the person.
    fn recorded(&self, search: &Search<'_>) -> SqlResult<Recorded> {
        let records = audit::behind(&search.txn, 0)?;
        if records.is_empty() {
            return Ok(Recorded::default());
        }
        let key = self.instance().proof_key()?;
        let subject = key.subject(search.person.id.0, &subjects::hash(&search.suffix));
        let events: Vec<_> = records.iter().filter_map(AuditRecord::event).collect();
        let mut recorded = Recorded::default();
        for event in events
            .iter()
            .filter(|event| event.subject.as_ref() == Some(&subject))
        {
            recorded.requests.extend(event.request);
            recorded.holds.extend(event.hold);
        }
        for event in events {
            if event
                .request
                .is_some_and(|n| recorded.requests.contains(&n))
            {
                recorded.keys.extend(event.keys);
            }
        }
        Ok(recorded)
    }

    /// Keys of the person's requests that are not erased.
    fn keys_left(&self, search: &mut Search<'_>, recorded: &Recorded) -> SqlResult<()> {
        let Some(vault) = self.instance().sealing.vault() else {
            return Ok(());
        };
        let mut left = 0;
        for id in &recorded.keys {
            let id = u64::from_str_radix(id, 16).map(KeyId::from_stored);
            let is_gone = match id {
                Ok(id) => vault.is_erased(id).unwrap_or(false),
                Err(_) => false,
            };
            left += u64::from(!is_gone);
        }
        let what = format!(
            "{} keys of requests about the person: not erased",
            recorded.keys.len()
        );
        search.findings.add("vault", what, left);
        let orders = erasure::open_orders(&search.txn)?;
        let open = orders.iter().filter(|order| {
            order
                .request
                .is_some_and(|n| recorded.requests.contains(&n))
        });
        let open = open.count() as u64;
        search
            .findings
            .add("orders", "to erase keys: not carried out".to_string(), open);
        Ok(())
    }
}

impl Search<'_> {
    /// The person's own row, its index entries, and the state of the person.
    fn person(&mut self) -> SqlResult<()> {
        let table = Arc::clone(&self.person);
        let row = encoding::row_key(&table, &self.suffix);
        let found = self.txn.get(&row, manxdb_txn::ReadMode::Plain)?.is_some();
        let what = format!("{}: the row with this key", table.name);
        self.findings.add("rows", what, u64::from(found));
        let rows = BTreeSet::from([self.suffix.clone()]);
        self.entries(&table, &rows)?;
        if let SubjectState::Forgetting(request) =
            subjects::state(&self.txn, table.id, &self.suffix)?
        {
            let what = format!("request {request} is not at its end");
            self.findings.add("requests", what, 1);
        }
        Ok(())
    }

    /// Entries of a table's indexes that lead to `rows`.
    fn entries(&mut self, table: &Table, rows: &BTreeSet<Vec<u8>>) -> SqlResult<()> {
        for index in &table.indexes {
            let mut found = 0;
            let prefix = encoding::index_prefix(table, index.id.0);
            scan(&self.txn, &prefix, &mut |_, suffix| {
                found += u64::from(rows.contains(suffix));
                Ok(())
            })?;
            let what = format!("{}.{}: entries of such rows", table.name, index.name);
            self.findings.add("indexes", what, found);
        }
        Ok(())
    }

    /// Rows of all tables with a foreign key to the person's table that name the person, whatever it means.
    fn rows_that_name(&mut self) -> SqlResult<()> {
        for table in self.referring() {
            let keys: Vec<&ForeignKey> = self.links_here(&table).collect();
            let (mut named, mut unreadable) = (BTreeSet::new(), 0);
            scan(
                &self.txn,
                &encoding::index_prefix(&table, 0),
                &mut |row, record| {
                    let suffix = row.get(KEY_HEAD..).unwrap_or_default();
                    let values = match encoding::decode_row(&table, (suffix, record), &self.zone) {
                        Err(error) if error.code == 51006 => {
                            unreadable += 1;
                            return Ok(());
                        }
                        values => values?,
                    };
                    let names = |key: &&ForeignKey| {
                        self.target(key, &values).as_ref() == Some(&self.suffix)
                    };
                    if keys.iter().any(names) {
                        named.insert(suffix.to_vec());
                    }
                    Ok(())
                },
            )?;
            let what = format!("{}: rows that name the person", table.name);
            self.findings.add("rows", what, named.len() as u64);
            if unreadable > 0 {
                let what = format!("{}: rows whose key is erased", table.name);
                self.findings.add("rows", what, unreadable);
            }
            self.entries(&table, &named)?;
        }
        Ok(())
    }

    /// Tables with a foreign key to the person's table.
    fn referring(&self) -> Vec<Arc<Table>> {
        let databases = self.catalog.stored().databases.values();
        let tables = databases.flat_map(|database| database.tables.values());
        let refer = |table: &&Arc<Table>| self.links_here(table).next().is_some();
        tables.filter(refer).cloned().collect()
    }

    /// A table's foreign keys to the person's table.
    fn links_here<'t>(&'t self, table: &'t Table) -> impl Iterator<Item = &'t ForeignKey> {
        table.foreign_keys.iter().filter(|key| self.leads_here(key))
    }

    fn leads_here(&self, key: &ForeignKey) -> bool {
        let lower = |text: &str| text.to_lowercase();
        lower(&key.ref_database) == lower(&self.person.database)
            && lower(&key.ref_table) == lower(&self.person.name)
    }

    /// The key suffix of the row of the person's table that a foreign key of a row leads to.
    fn target(&self, key: &ForeignKey, row: &[Value]) -> Option<Vec<u8>> {
        let mut suffix = Vec::new();
        for at in &self.person.primary_key {
            let mut referred = key.ref_columns.iter();
            let place = referred.position(|name| position(&self.person, name) == Some(*at))?;
            let value = row
                .get(*key.columns.get(place)?)
                .filter(|value| !value.is_null())?;
            encode_key_part(
                &self.person,
                ROWS,
                (*at, None),
                value,
                &self.zone,
                &mut suffix,
            )
            .ok()?;
        }
        Some(suffix)
    }

    /// The person's table and all tables below it.
    fn below(&self) -> BTreeSet<TableName> {
        let mut open = vec![ownership::name(&self.person)];
        let mut seen: BTreeSet<_> = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for table in self.graph.tables() {
                for link in &table.links {
                    let gives = link.edge.filter(|edge| edge.kind.gives_ownership());
                    let (owner, owned) = match gives {
                        Some(edge) if edge.kind.leads_to_target() => (&table.name, &link.target),
                        Some(_) => (&link.target, &table.name),
                        None => continue,
                    };
                    if *owner == name && seen.insert(owned.clone()) {
                        open.push(owned.clone());
                    }
                }
            }
        }
        seen
    }

    /// Rows below the person's table whose owner is not there: nobody would find them.
    fn rows_without_owner(&mut self) -> SqlResult<()> {
        for name in self.below() {
            let Ok(table) = self.catalog.table(&name.database, &name.name) else {
                continue;
            };
            if table.data_subject || table.ownership.unowned_allowed {
                continue;
            }
            let mut found = 0;
            let prefix = crate::catalog::unowned::unowned_rows_prefix(table.id);
            scan(&self.txn, &prefix, &mut |_, _| {
                found += 1;
                Ok(())
            })?;
            let what = format!("{}: rows that have lost their owner", table.name);
            self.findings.add("rows", what, found);
        }
        Ok(())
    }
}
