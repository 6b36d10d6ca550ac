//! What files still have of a person's deleted rows: keys, which nobody reads any more.
//!
//! Nobody keeps the values of who was forgotten (decision 49), so the search begins with what is known, the
//! person's id. Keys that begin with it, of rows or of entries of indexes, say which rows named the person; then
//! all keys of such rows and of their entries are searched for. What rows further below have left, the records of
//! purges say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_storage::{Direction, KeyPrefixes, KeyRange, SearchedFiles, StoredVersion, Version};
use manxdb_txn::{ReadMode, Transaction};

use super::findings::GoneBy;
use super::{Recorded, Search};
use crate::catalog::record::index_prefix as prefix_of;
use crate::catalog::unowned::{unowned_row_key, unowned_rows_prefix};
use crate::catalog::{ForeignKey, IndexId, ROWS, Table, TableId};
use crate::encoding::{self, KEY_HEAD, encode_key_part, index_prefix, split_key};
use crate::error::{SqlError, SqlResult};
use crate::session::gdpr::audit::at;
use crate::session::gdpr::purge::ends_at;
use crate::session::session::Session;
use crate::statement::owners::{purges, requests, subjects};
use crate::statement::target::position;
use crate::statement::{LinkAccess, link_access};

/// Rows whose keys are searched for. With more, what was found of the others is said all the same.
const ROWS_MAX: usize = 1_000_000;

/// Characters of a time that are its day.
const DAY_LENGTH: usize = 10;

/// Keys of a table that name the person.
#[derive(Clone, Copy)]
struct Named {
    table: TableId,
    kind: NamedKind,
}

/// Where a key that names the person has the key suffix of its row.
#[derive(Clone, Copy)]
enum NamedKind {
    /// It is the key of the row: the link is the beginning of the primary key.
    RowKey,
    /// It is an entry of an index: behind what it begins with is the suffix, and nothing else.
    WholeEntry,
    /// It is an entry of an index: only its value says which row.
    Entry,
}

/// Keys of the person, and whether a version that a file has is one of them.
struct Traces<'a> {
    txn: &'a Transaction,
    person: TableId,
    suffix: &'a [u8],
    /// By what such keys begin with.
    named: BTreeMap<Vec<u8>, Named>,
    prefixes: KeyPrefixes,
    /// Rows that named the person, by table and key suffix, with the version up to which they did at least.
    rows: BTreeMap<TableId, BTreeMap<Vec<u8>, Version>>,
    /// By table, how long key suffixes of the person, and of those rows, are.
    lengths: BTreeMap<TableId, BTreeSet<usize>>,
    /// Records of requests and holds, of which the person was a part.
    records: BTreeSet<Vec<u8>>,
    count: usize,
    /// Whether the key that was asked for last is there for readers.
    last: Option<(Vec<u8>, bool)>,
    failed: Option<SqlError>,
}

impl Session {
    /// Files of this process.
    pub(super) fn files_left(&self, search: &mut Search<'_>, recorded: &Recorded) -> SqlResult<()> {
        let tables = search.referring();
        let mut traces = search.traces(&tables, recorded)?;
        let path = &self.instance().path;
        // Which rows named the person; then what there is of all of them.
        let named = traces.prefixes.clone();
        path.search_files(&named, &mut |found| {
            traces.learn(found);
            false
        })?;
        let all = traces.all(&search.person, &tables);
        let found = path.search_files(&all, &mut |found| traces.has(found))?;
        if let Some(error) = traces.failed.take() {
            return Err(error);
        }
        let Some(found) = found else {
            search
                .findings
                .no_files("not looked at: other processes have files or memory of the same rows");
            return Ok(());
        };
        let gone_by = self.gone_by(&search.txn, recorded)?;
        let kinds: [(&str, SearchedFiles); 4] = [
            ("sorted files", found.sorted),
            ("lists of sorted files", found.manifests),
            ("commit log", found.log),
            ("spare files of the commit log", found.spares),
        ];
        for (kind, found) in kinds {
            let files = (found.files, found.holding);
            search
                .findings
                .add_files(kind, files, found.versions, &gone_by);
        }
        Ok(())
    }

    /// When the last of the person's requests is to be gone from files.
    fn gone_by(&self, txn: &Transaction, recorded: &Recorded) -> SqlResult<GoneBy> {
        if recorded.requests.is_empty() {
            return Ok(GoneBy::Nobody);
        }
        let to_purge = purges::all(txn)?;
        let own = to_purge
            .iter()
            .filter(|(request, _)| recorded.requests.contains(request));
        let Some(done_at) = own.map(|(_, done_at)| *done_at).max() else {
            return Ok(GoneBy::SeenGone);
        };
        let days = self.instance().globals.read().integer("gdpr_purge_days");
        let due = ends_at(done_at, days);
        let day: String = at(due).chars().take(DAY_LENGTH).collect();
        if due < self.instance().host.wall_micros() {
            return Ok(GoneBy::Overdue(day));
        }
        Ok(GoneBy::Day(day))
    }
}

impl Search<'_> {
    /// What is known before any file is read.
    fn traces(&self, tables: &[Arc<Table>], recorded: &Recorded) -> SqlResult<Traces<'_>> {
        let mut named = BTreeMap::new();
        for table in tables {
            for link in self.links_here(table) {
                let Some((key, kind)) = key_of(table, link) else {
                    continue;
                };
                let Some(prefix) = self.keys_to_person(table, key, link)? else {
                    continue;
                };
                let keys = Named {
                    table: table.id,
                    kind,
                };
                named.insert(prefix, keys);
            }
        }
        let requests = recorded.requests.iter().flat_map(|request| {
            let waiting = requests::waiting_key(*request);
            [subjects::request_key(*request), waiting]
        });
        let holds = recorded.holds.iter().map(|hold| requests::hold_key(*hold));
        Ok(Traces {
            txn: &self.txn,
            person: self.person.id,
            suffix: &self.suffix,
            prefixes: KeyPrefixes::new(named.keys().cloned().collect()),
            named,
            rows: BTreeMap::new(),
            lengths: BTreeMap::from([(self.person.id, BTreeSet::from([self.suffix.len()]))]),
            records: requests.chain(holds).collect(),
            count: 0,
            last: None,
            failed: None,
        })
    }

    /// What rows, or entries of an index, begin with that name the person by a link; `None` of a link that
    /// leads elsewhere than to the primary key.
    fn keys_to_person(
        &self,
        table: &Table,
        key: IndexId,
        link: &ForeignKey,
    ) -> SqlResult<Option<Vec<u8>>> {
        let mut prefix = index_prefix(table, key.0);
        for (at, referred) in link.columns.iter().zip(&link.ref_columns) {
            let place = position(&self.person, referred);
            let mut ids = self.person.primary_key.iter();
            let place = ids.position(|at| Some(*at) == place);
            let Some(value) = place.and_then(|place| self.id.get(place)) else {
                return Ok(None);
            };
            let part = (*at, None);
            match encode_key_part(table, key, part, value, &self.zone, &mut prefix) {
                Ok(()) => {}
                // The column cannot hold such a value.
                Err(error) if error.code == 1105 => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(prefix))
    }
}

/// The key of a table by which rows are found that a link leads from, and what its keys say of the row: the
/// primary key where it begins with the link, which then has no index of its own; else an index.
fn key_of(table: &Table, link: &ForeignKey) -> Option<(IndexId, NamedKind)> {
    let access = link_access(table, &link.columns);
    let kind = match &access {
        LinkAccess::Row | LinkAccess::RowPrefix => NamedKind::RowKey,
        LinkAccess::Index(index) if !index.unique && index.columns.len() == link.columns.len() => {
            NamedKind::WholeEntry
        }
        LinkAccess::Index(_) => NamedKind::Entry,
        LinkAccess::None => return None,
    };
    Some((access.key()?, kind))
}

impl Traces<'_> {
    /// Whether readers find something under a key: then it is no remains, whatever versions there are.
    fn is_there(&mut self, key: &[u8]) -> bool {
        if let Some((last, is_there)) = &self.last
            && last == key
        {
            return *is_there;
        }
        let is_there = match self.txn.get(key, ReadMode::Plain) {
            Ok(found) => found.is_some(),
            Err(error) => {
                self.failed.get_or_insert(error.into());
                false
            }
        };
        self.last = Some((key.to_vec(), is_there));
        is_there
    }

    /// Whether readers find a key that begins like this.
    fn begins_one(&mut self, prefix: &[u8]) -> bool {
        let range = KeyRange::prefix(prefix);
        match self
            .txn
            .scan(&range, Direction::Forward, 1, ReadMode::Plain)
        {
            Ok(page) => !page.is_empty(),
            Err(error) => {
                self.failed.get_or_insert(error.into());
                false
            }
        }
    }

    /// A key that named the person says which row did.
    fn learn(&mut self, found: &StoredVersion<'_>) {
        let Some(prefix) = self.prefixes.of(found.key) else {
            return;
        };
        let behind = found.key.get(prefix.len()..).unwrap_or_default();
        let Some(&Named { table, kind }) = self.named.get(prefix) else {
            return;
        };
        let suffix = match kind {
            // Its value is the record of the row.
            NamedKind::RowKey => found.key.get(KEY_HEAD..),
            NamedKind::WholeEntry => found.value.or(Some(behind)),
            NamedKind::Entry => found.value,
        };
        let Some(suffix) = suffix.filter(|suffix| !suffix.is_empty()) else {
            return;
        };
        let suffix = suffix.to_vec();
        if self.count >= ROWS_MAX || self.is_there(found.key) {
            return;
        }
        let lengths = self.lengths.entry(table).or_default();
        lengths.insert(suffix.len());
        let rows = self.rows.entry(table).or_default();
        let until = rows.entry(suffix).or_insert_with(|| {
            self.count += 1;
            Version::ZERO
        });
        *until = (*until).max(found.version);
    }

    /// Beginnings of all keys that are looked at.
    fn all(&self, person: &Table, tables: &[Arc<Table>]) -> KeyPrefixes {
        let mut all: Vec<Vec<u8>> = self.records.iter().cloned().collect();
        all.extend(self.named.keys().cloned());
        all.push(encoding::row_key(person, self.suffix));
        all.push(unowned_row_key(person.id, self.suffix));
        let indexes = person.indexes.iter();
        all.extend(indexes.map(|index| index_prefix(person, index.id.0)));
        for table in tables {
            let Some(rows) = self.rows.get(&table.id) else {
                continue;
            };
            let indexes = table.indexes.iter();
            all.extend(indexes.map(|index| index_prefix(table, index.id.0)));
            all.extend(rows.keys().map(|suffix| encoding::row_key(table, suffix)));
            all.push(unowned_rows_prefix(table.id));
        }
        KeyPrefixes::new(all)
    }

    /// Whether a version is of the person, and no reader is given it.
    fn has(&mut self, found: &StoredVersion<'_>) -> bool {
        if self.records.contains(found.key) {
            return found.value.is_some() && !self.is_there(found.key);
        }
        let Some((table, index, rest)) = split_key(found.key) else {
            return false;
        };
        if self.prefixes.of(found.key).is_some() {
            // Of some only the beginning is known.
            return match found.version {
                Version::ZERO => !self.begins_one(found.key),
                _ => !self.is_there(found.key),
            };
        }
        if index == ROWS.0 || found.key.starts_with(&unowned_rows_prefix(table)) {
            if table == self.person && rest == self.suffix {
                return !self.is_there(found.key);
            }
            return self.until(table, rest).is_some_and(|until| {
                // A row that stays was the person's up to then.
                let was_theirs = found.version != Version::ZERO && found.version < until;
                !self.is_there(found.key) || was_theirs
            });
        }
        let Some(suffix) = self.led_to(table, rest, found.value) else {
            return false;
        };
        if self.is_there(found.key) {
            return false;
        }
        let Some(until) = self.until(table, &suffix) else {
            return true;
        };
        let row = [prefix_of(table, ROWS.0), suffix].concat();
        !self.is_there(&row) || found.version != Version::ZERO && found.version < until
    }

    /// Up to when a row named the person.
    fn until(&self, table: TableId, suffix: &[u8]) -> Option<Version> {
        self.rows.get(&table)?.get(suffix).copied()
    }

    /// The row of the person's, by its key suffix, that an entry of an index leads to: as its value says, or, of
    /// a deletion, the end of its key.
    fn led_to(&self, table: TableId, rest: &[u8], value: Option<&[u8]>) -> Option<Vec<u8>> {
        let is_own = |suffix: &[u8]| {
            table == self.person && suffix == self.suffix || self.until(table, suffix).is_some()
        };
        if let Some(value) = value {
            return is_own(value).then(|| value.to_vec());
        }
        let lengths = self.lengths.get(&table).into_iter().flatten();
        let mut ends = lengths.filter_map(|length| rest.get(rest.len().checked_sub(*length)?..));
        ends.find(|end| is_own(end)).map(<[u8]>::to_vec)
    }
}
