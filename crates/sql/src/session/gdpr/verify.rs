//! `GDPR VERIFY kind id`: looks for a person again, in all rows and entries and not by index, as if FORGET could
//! not be trusted.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_ownership::OwnershipGraph;
use manxdb_ownership::proof::AuditRecord;
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
use crate::types::{Row, Value};

const COLUMNS: [&str; 3] = ["Place", "What", "Found"];

/// What was looked at, and how much of the person was there.
#[derive(Default)]
struct Findings(Vec<(String, String, u64)>);

impl Findings {
    fn add(&mut self, place: &str, what: String, found: u64) {
        self.0.push((place.to_string(), what, found));
    }

    fn into_rows(self) -> Vec<Row> {
        let all: u64 = self.0.iter().map(|(_, _, found)| found).sum();
        let verdict = if all == 0 { "clean" } else { "not clean" };
        let verdict = ("all".to_string(), verdict.to_string(), all);
        let text = Value::Text;
        let rows = self.0.into_iter().chain([verdict]);
        rows.map(|(place, what, found)| vec![text(place), text(what), Value::UInt(found)])
            .collect()
    }
}

/// Looks at one state of the store.
struct Search<'a> {
    txn: Transaction,
    catalog: &'a Catalog,
    graph: &'a OwnershipGraph,
    person: Arc<Table>,
    suffix: Vec<u8>,
    zone: TimeZone,
    findings: Findings,
}

impl Session {
    /// A row for each place that was looked at, and one for all. Needs the privilege GDPR on the server or the
    /// database.
    ///
    /// # Errors
    /// 51004 for an unknown kind; 51005 when sealed rows cannot be read; storage.
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
            suffix: key.suffix,
            zone: self.state.settings().time_zone.clone(),
            findings: Findings::default(),
        };
        search.person()?;
        search.rows_that_name()?;
        search.rows_without_owner()?;
        self.keys_left(&mut search)?;
        let rows = search.findings.into_rows();
        self.send_rows(&COLUMNS, &rows, sink, more)
    }

    /// Keys of the person's requests that are not erased.
    fn keys_left(&self, search: &mut Search<'_>) -> SqlResult<()> {
        let Some(vault) = self.instance().sealing.vault() else {
            return Ok(());
        };
        let key = self.instance().proof_key()?;
        let subject = key.subject(search.person.id.0, &subjects::hash(&search.suffix));
        let events: Vec<_> = audit::behind(&search.txn, 0)?
            .iter()
            .filter_map(AuditRecord::event)
            .collect();
        let of_person = events
            .iter()
            .filter(|event| event.subject.as_ref() == Some(&subject));
        let requests: BTreeSet<u64> = of_person.filter_map(|event| event.request).collect();
        let own = events
            .iter()
            .filter(|event| event.request.is_some_and(|n| requests.contains(&n)));
        let keys: BTreeSet<&String> = own.flat_map(|event| &event.keys).collect();
        let mut left = 0;
        for id in &keys {
            let id = u64::from_str_radix(id, 16).map(KeyId::from_stored);
            let is_gone = match id {
                Ok(id) => vault.is_erased(id).unwrap_or(false),
                Err(_) => false,
            };
            left += u64::from(!is_gone);
        }
        let what = format!(
            "{} keys of requests about the person: not erased",
            keys.len()
        );
        search.findings.add("vault", what, left);
        let orders = erasure::open_orders(&search.txn)?;
        let open = orders
            .iter()
            .filter(|order| order.request.is_some_and(|n| requests.contains(&n)));
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
        let databases = self.catalog.stored().databases.values();
        let tables: Vec<Arc<Table>> = databases
            .flat_map(|database| database.tables.values().cloned())
            .collect();
        for table in tables {
            let keys = table.foreign_keys.iter().filter(|key| self.leads_here(key));
            let keys: Vec<&ForeignKey> = keys.collect();
            if keys.is_empty() {
                continue;
            }
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

    /// Rows below the person's table whose owner is not there: nobody would find them.
    fn rows_without_owner(&mut self) -> SqlResult<()> {
        let mut open = vec![ownership::name(&self.person)];
        let mut seen: BTreeSet<_> = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            let graph = self.graph;
            for child in graph.tables() {
                let owned = child.links.iter().filter(|link| {
                    let gives = link.edge.is_some_and(|edge| edge.kind.gives_ownership());
                    gives && link.target == name
                });
                if owned.count() > 0 && seen.insert(child.name.clone()) {
                    open.push(child.name.clone());
                }
            }
        }
        for name in seen {
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
