//! All materialized views in use: which rows matter to them, and what commits are to them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use manxdb_txn::{CommitObserver, CommitPath, OrderedWrite, Reply, Transaction, TxnError, Waiter};
use manxdb_views::{Feed, Pool, Version, ViewStatistics};
use parking_lot::{Mutex, RwLock};

use super::contents::Held;
use super::delta::Changed;
use super::maintained::Maintained;
use super::shape::Shape;
use crate::catalog::record::RELATIONS;
use crate::catalog::{Catalog, MaterializedView, Table, TableId};
use crate::encoding::index_prefix;
use crate::error::{SqlError, SqlResult};

/// First bytes of a row's key: all of one table have the same.
const ROW_PREFIX_BYTES: usize = 9;

/// What all views share: the commits they hear of, and the bound on their bytes.
pub(crate) struct Shared {
    feed: Feed<Vec<Noted>>,
    pool: Pool<Held>,
}

impl Shared {
    /// Nothing up to this version is missing in any view.
    pub(super) fn applied(&self) -> Version {
        self.feed.applied()
    }

    pub(super) fn pool(&self) -> &Pool<Held> {
        &self.pool
    }
}

/// What matters of a commit.
pub(crate) enum Noted {
    /// A row of a watched table: its key, and its record or that it is deleted.
    Row(TableId, Vec<u8>, Option<Vec<u8>>),
    /// The record of a watched table.
    Definition(Vec<u8>),
}

/// What is watched.
#[derive(Default)]
struct Watched {
    views: Vec<Arc<Maintained>>,
    /// By the prefix of the rows' keys.
    tables: HashMap<Vec<u8>, TableId>,
    /// By the key of the table's record.
    definitions: HashMap<Vec<u8>, Vec<Arc<Maintained>>>,
}

impl Watched {
    /// What a write is to the views, if it is anything.
    fn note(&self, key: &[u8], value: Option<&Vec<u8>>) -> Option<Noted> {
        let is_of_catalog = key.starts_with(RELATIONS);
        if is_of_catalog {
            let known = self.definitions.contains_key(key);
            return known.then(|| Noted::Definition(key.to_vec()));
        }
        let table = self.tables.get(key.get(..ROW_PREFIX_BYTES)?)?;
        Some(Noted::Row(*table, key.to_vec(), value.cloned()))
    }

    fn of(views: Vec<Arc<Maintained>>) -> Self {
        let mut watched = Self {
            views,
            ..Self::default()
        };
        for view in &watched.views {
            for held in &view.shape.tables {
                let table = &held.table;
                let prefix = index_prefix(table, 0);
                watched.tables.insert(prefix, table.id);
                let key = crate::catalog::record::relation_key(&table.database, &table.name);
                let known = watched.definitions.entry(key).or_default();
                known.push(Arc::clone(view));
            }
        }
        watched
    }
}

/// All materialized views in use.
pub(crate) struct Views {
    is_active: AtomicBool,
    /// The commit path tells of commits.
    is_told: AtomicBool,
    watched: RwLock<Watched>,
    /// Held while views are added or taken away.
    changing: Mutex<()>,
    shared: Arc<Shared>,
    /// Where deltas of joins read.
    path: OnceLock<Weak<dyn CommitPath>>,
    #[cfg(feature = "mutants")]
    mutants: Mutex<manxdb_views::mutants::Mutants>,
}

impl Default for Views {
    fn default() -> Self {
        Self {
            is_active: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            watched: RwLock::default(),
            changing: Mutex::default(),
            shared: Arc::new(Shared {
                feed: Feed::default(),
                pool: Pool::new(super::MEMORY_BYTES),
            }),
            path: OnceLock::new(),
            #[cfg(feature = "mutants")]
            mutants: Mutex::default(),
        }
    }
}

impl Views {
    /// Asks `path` to tell of commits.
    pub fn attach(self: &Arc<Self>, path: &Arc<dyn CommitPath>) {
        let _ = self.path.set(Arc::downgrade(path));
        let told = path.observe(Arc::clone(self) as Arc<dyn CommitObserver>);
        self.is_told.store(told, Ordering::SeqCst);
    }

    /// Whether views can be kept up to date here.
    pub fn is_told(&self) -> bool {
        self.is_told.load(Ordering::SeqCst)
    }

    /// Changes the bound on the bytes of all views.
    pub fn set_limit(&self, bytes: usize) {
        if bytes != self.shared.pool.limit_bytes() {
            self.shared.pool.set_limit(bytes);
        }
    }

    /// The view of a definition over its tables as the catalog has them, taken into use if it is not;
    /// `make` gives its shapes, of which each is kept up to date for itself. None where views are off.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn in_use(
        &self,
        path: &dyn CommitPath,
        definition: &Arc<MaterializedView>,
        is_current: &dyn Fn(&Table) -> bool,
        make: &dyn Fn() -> SqlResult<Vec<Shape>>,
    ) -> SqlResult<Vec<Arc<Maintained>>> {
        let known = self.find(definition, is_current);
        if !known.is_empty() || !self.is_told() {
            return Ok(known);
        }
        let _changing = self.changing.lock();
        let known = self.find(definition, is_current);
        if !known.is_empty() {
            return Ok(known);
        }
        let shapes = make()?;
        let mut tables = shapes.iter().flat_map(|shape| &shape.tables);
        if !tables.all(|held| is_current(&held.table)) {
            return Ok(Vec::new());
        }
        let views = shapes.into_iter().map(|shape| {
            let view = Maintained::new(Arc::clone(definition), shape, Arc::clone(&self.shared));
            Arc::new(view)
        });
        Ok(self.begin(path, definition, views.collect()))
    }

    /// Takes the views of a definition into use: from here on they hear of commits, and what was
    /// ordered before is in the snapshots that they are filled from.
    fn begin(
        &self,
        path: &dyn CommitPath,
        definition: &MaterializedView,
        made: Vec<Arc<Maintained>>,
    ) -> Vec<Arc<Maintained>> {
        self.replace(|views| {
            let others = |other: &&Arc<Maintained>| {
                let is_same = other.definition.is_named_as(definition);
                if is_same {
                    other.keys.close();
                }
                !is_same
            };
            let mut views: Vec<_> = views.iter().filter(others).cloned().collect();
            views.extend(made.iter().cloned());
            views
        });
        let Some(assigned) = path.assigned() else {
            return Vec::new();
        };
        let Reply::Ready(Ok(snapshot)) = path.snapshot() else {
            return Vec::new();
        };
        assert!(
            snapshot.version <= assigned,
            "what is visible has its place in the order"
        );
        for view in &made {
            #[cfg(feature = "mutants")]
            view.keys.plant(*self.mutants.lock());
            view.begin(assigned);
        }
        self.shared.feed.skip_to(snapshot.version);
        for view in &made {
            self.shared.pool.add(Arc::clone(&view.keys));
        }
        made
    }

    fn replace(&self, change: impl FnOnce(&[Arc<Maintained>]) -> Vec<Arc<Maintained>>) {
        let mut watched = self.watched.write();
        *watched = Watched::of(change(&watched.views));
        let any = !watched.views.is_empty();
        self.is_active.store(any, Ordering::SeqCst);
        drop(watched);
        self.shared.pool.remove_closed();
    }

    /// The views of a definition; none when one of them cannot be used.
    fn find(
        &self,
        definition: &MaterializedView,
        is_current: &dyn Fn(&Table) -> bool,
    ) -> Vec<Arc<Maintained>> {
        let watched = self.watched.read();
        let views = watched.views.iter();
        let found: Vec<_> = views
            .filter(|view| *view.definition == *definition)
            .collect();
        let is_usable = |view: &&Arc<Maintained>| {
            let mut tables = view.shape.tables.iter();
            !view.keys.is_closed() && tables.all(|held| is_current(&held.table))
        };
        if !found.iter().all(is_usable) {
            return Vec::new();
        }
        found.into_iter().cloned().collect()
    }

    /// Takes views out of use that the catalog does not have.
    pub fn forget_dropped(&self, catalog: &Catalog) {
        let _changing = self.changing.lock();
        self.replace(|views| {
            let mut kept = Vec::new();
            for view in views {
                let id = &view.definition;
                let known = catalog.materialized(&id.database, &id.name);
                if known.is_some_and(|known| *known == *id) {
                    kept.push(Arc::clone(view));
                } else {
                    view.keys.close();
                }
            }
            kept
        });
    }

    /// Plants defects in all views to come.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutants: manxdb_views::mutants::Mutants) {
        *self.mutants.lock() = mutants;
        self.shared.feed.plant(mutants);
    }

    /// All views in use.
    pub(super) fn in_use_now(&self) -> Vec<Arc<Maintained>> {
        self.watched.read().views.clone()
    }

    /// Drops all that is held of all tables: what was erased is in no view, for no reader.
    pub fn empty_all(&self) {
        for view in &self.watched.read().views {
            view.keys.empty(Version::ZERO);
        }
    }

    /// Figures of the view of a definition, if it is in use.
    pub fn statistics(&self, definition: &MaterializedView) -> Option<ViewStatistics> {
        let watched = self.watched.read();
        let views = watched.views.iter();
        let of = views.filter(|view| *view.definition == *definition);
        of.map(|view| view.keys.statistics())
            .reduce(|one, other| one + other)
    }

    /// Rows that deltas of a definition's view have read, if it is in use.
    pub fn delta_rows(&self, definition: &MaterializedView) -> Option<u64> {
        let watched = self.watched.read();
        let views = watched.views.iter();
        let of = views.filter(|view| *view.definition == *definition);
        of.map(|view| view.delta_rows())
            .reduce(|one, other| one + other)
    }

    /// Rows that fills of a definition's view have touched, if it is in use.
    pub fn fill_rows(&self, definition: &MaterializedView) -> Option<u64> {
        let watched = self.watched.read();
        let views = watched.views.iter();
        let of = views.filter(|view| *view.definition == *definition);
        of.map(|view| view.fill_rows())
            .reduce(|one, other| one + other)
    }

    /// What a commit is to all views.
    fn apply(&self, path: &dyn CommitPath, version: Version, oldest: Version, noted: &[Noted]) {
        let watched = self.watched.read();
        for note in noted {
            if let Noted::Definition(key) = note {
                for view in watched.definitions.get(key).into_iter().flatten() {
                    if view.hears(version) {
                        view.keys.close();
                    }
                }
            }
        }
        for view in watched.views.iter().filter(|view| view.hears(version)) {
            let is_of_view = |note: &&Noted| matches!(note, Noted::Row(of, ..) if view.reads(*of));
            let rows: Vec<&Noted> = noted.iter().filter(is_of_view).collect();
            if rows.is_empty() || view.keys.pass_without_keys(version) {
                continue;
            }
            match self.changes_of(path, view, version, &rows) {
                Ok(changes) => view.apply(version, oldest, changes),
                Err(error) => {
                    tracing::debug!(%error, view = %view.definition.name, "a view is emptied");
                    view.keys.empty(version);
                }
            }
        }
    }

    /// What the rows of one commit are to a view: each with its predecessor, read at the version
    /// before.
    fn changes_of(
        &self,
        path: &dyn CommitPath,
        view: &Maintained,
        version: Version,
        rows: &[&Noted],
    ) -> SqlResult<Vec<super::delta::KeyChange>> {
        let before = Version(version.0.saturating_sub(1));
        let mut changed = Vec::with_capacity(rows.len());
        for note in rows {
            let Noted::Row(table, key, new) = note else {
                continue;
            };
            let old = match path.get(before, key) {
                Reply::Ready(old) => old?,
                Reply::Pending(_) => return Err(not_at_once()),
            };
            changed.push(Changed {
                table: *table,
                suffix: key.get(ROW_PREFIX_BYTES..).unwrap_or_default(),
                old,
                new: new.as_deref(),
            });
        }
        let states = || -> SqlResult<(Transaction, Transaction)> {
            let path = self.path.get().and_then(Weak::upgrade);
            let path = path.ok_or_else(not_at_once)?;
            let at = |version| Transaction::at(Arc::clone(&path), version, Arc::new(Never));
            Ok((at(before), at(version)))
        };
        view.changes(&changed, &states)
    }
}

fn not_at_once() -> SqlError {
    SqlError::internal("a path that tells of commits reads at once")
}

/// Deltas wait for nothing.
pub(super) struct Never;

impl Waiter for Never {
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        if ready() {
            Ok(())
        } else {
            Err(TxnError::LockTimeout)
        }
    }

    fn wake(&self) {}

    fn check(&self) -> Result<(), TxnError> {
        Ok(())
    }
}

impl CommitObserver for Views {
    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::SeqCst)
    }

    fn ordered(&self, writes: &[OrderedWrite]) {
        let watched = self.watched.read();
        for commit in writes.chunk_by(|a, b| a.0 == b.0) {
            let notes = commit
                .iter()
                .filter_map(|(_, key, value)| watched.note(key, value.as_ref()));
            let noted: Vec<Noted> = notes.collect();
            if let (false, Some((version, ..))) = (noted.is_empty(), commit.first()) {
                self.shared.feed.stage(*version, noted);
            }
        }
    }

    fn publishing(&self, path: &dyn CommitPath, version: Version, oldest: Version) {
        let mut any = false;
        let _guard = CloseOnPanic(self);
        self.shared.feed.apply(version, &mut |version, noted| {
            any = true;
            self.apply(path, version, oldest, &noted);
        });
        if any {
            self.shared.pool.keep_limit();
        }
    }
}

/// A commit that was not applied to its end is missing in views: they serve nobody any more.
struct CloseOnPanic<'a>(&'a Views);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for view in &self.0.watched.read().views {
                view.keys.close();
            }
        }
    }
}
