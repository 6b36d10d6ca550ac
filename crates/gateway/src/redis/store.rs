//! What comes from the store: names of keys after a start, values on their next use.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel,
};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use manxdb_redis::Keyspace;
use manxdb_redis::keyspace::{Load, LoadedRow, rows};
use manxdb_storage::{Direction, Engine, KeyRange, Rows, StorageError, Version};

use super::sync::Syncs;
use super::{RedisStore, Shared, garbage};

/// Rows that are read, or removed, at a time.
pub const PAGE_ROWS: usize = 2000;
/// Pages on their way to the loop.
const PAGES_AHEAD: usize = 4;
/// How often a thread looks whether it is to end.
pub const LOOK: Duration = Duration::from_millis(100);

/// What the threads tell the loop.
pub enum FromStore {
    /// Rows of keys.
    Page(Rows),
    /// There are no more.
    Complete,
    /// A value.
    Value(LoadedRow),
    /// Reading failed; the row that was wanted, if it was one.
    Failed(Option<Vec<u8>>, StorageError),
}

/// The loop's end.
pub struct Values {
    wanted: Sender<Load>,
    pages: Receiver<FromStore>,
    loaded: Receiver<FromStore>,
}

impl Values {
    /// Asks for a value.
    pub fn want(&self, load: Load) {
        // Nobody is there at the end only.
        let _ = self.wanted.send(load);
    }

    /// The next page of names, waited for; `None` when there are no more.
    pub fn wait_for_page(&self) -> Option<FromStore> {
        self.pages.recv().ok()
    }

    /// What has come.
    pub fn next(&self) -> Option<FromStore> {
        match self.loaded.try_recv() {
            Ok(value) => Some(value),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => self.pages.try_recv().ok(),
        }
    }
}

/// The value of a row.
pub fn get(engine: &dyn Engine, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
    let found = engine.get(key, Version::MAX)?;
    Ok(found.map(|versioned| versioned.value))
}

/// The keyspace of a store, without names and values as yet.
pub fn open(engine: &dyn Engine) -> Result<Keyspace, StorageError> {
    let mut epochs = Vec::new();
    for db in 0..manxdb_redis::keyspace::DATABASES {
        epochs.push(get(engine, &rows::epoch_key(db))?);
    }
    let reserved = get(engine, &rows::reserved_key())?;
    Ok(Keyspace::over_store(
        |db| epochs[db].clone(),
        reserved.as_deref(),
    ))
}

/// The codes of the libraries of functions of a store.
pub fn libraries(engine: &dyn Engine) -> Result<Vec<Vec<u8>>, StorageError> {
    let mut codes = Vec::new();
    each_page(engine, &rows::library_prefix(), |page| {
        codes.extend(page.into_iter().map(|(_, code)| code));
        true
    })?;
    Ok(codes)
}

/// Starts the threads.
pub fn start(
    shared: &Arc<Shared>,
    store: &RedisStore,
    syncs: &Arc<Syncs>,
) -> io::Result<(Values, Vec<JoinHandle<()>>)> {
    let (wanted, wishes) = channel();
    let (page_sender, pages) = sync_channel(PAGES_AHEAD);
    let (value_sender, values) = channel();
    let (for_names, names_store, syncs) = (Arc::clone(shared), store.clone(), Arc::clone(syncs));
    let names = thread::Builder::new().name("redis-names".to_owned());
    let names = names.spawn(move || {
        send_names(&for_names, &names_store, &page_sender);
        garbage::remove(&for_names, &names_store, &syncs);
    })?;
    let (for_values, values_store) = (Arc::clone(shared), store.clone());
    let loads = thread::Builder::new().name("redis-values".to_owned());
    let loads =
        loads.spawn(move || send_values(&for_values, &values_store, &wishes, &value_sender))?;
    let ends = Values {
        wanted,
        pages,
        loaded: values,
    };
    Ok((ends, vec![names, loads]))
}

fn send_names(shared: &Shared, store: &RedisStore, pages: &SyncSender<FromStore>) {
    let told = match each_page(store.engine.as_ref(), &rows::meta_prefix(), |page| {
        let is_taken = pages.send(FromStore::Page(page)).is_ok();
        shared.wake();
        is_taken && !shared.is_stopping.load(Ordering::SeqCst)
    }) {
        Ok(()) => FromStore::Complete,
        Err(error) => FromStore::Failed(None, error),
    };
    let _ = pages.send(told);
    shared.wake();
}

/// Hands rows whose keys begin with `prefix` on, until `take` says no.
pub fn each_page(
    engine: &dyn Engine,
    prefix: &[u8],
    mut take: impl FnMut(Rows) -> bool,
) -> Result<(), StorageError> {
    let mut range = KeyRange::prefix(prefix);
    loop {
        let mut page = Rows::new();
        let mut cursor = engine.scan(&range, Version::MAX, Direction::Forward)?;
        while page.len() < PAGE_ROWS
            && let Some(entry) = cursor.next()?
        {
            page.push((entry.key.to_vec(), entry.value.to_vec()));
        }
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        range.start = std::ops::Bound::Excluded(last.clone());
        if !take(page) {
            return Ok(());
        }
    }
}

fn send_values(
    shared: &Shared,
    store: &RedisStore,
    wishes: &Receiver<Load>,
    values: &Sender<FromStore>,
) {
    loop {
        match wishes.recv_timeout(LOOK) {
            Ok(load) => {
                let row = load.row.clone();
                let told = match value(store.engine.as_ref(), load) {
                    Ok(loaded) => FromStore::Value(loaded),
                    Err(error) => FromStore::Failed(Some(row), error),
                };
                let _ = values.send(told);
                shared.wake();
            }
            Err(RecvTimeoutError::Timeout) if !shared.is_stopping.load(Ordering::SeqCst) => {}
            Err(_) => return,
        }
    }
}

/// A value as it is in the store.
pub fn value(engine: &dyn Engine, load: Load) -> Result<LoadedRow, StorageError> {
    let meta = get(engine, &load.row)?;
    let prefix = meta
        .as_ref()
        .and_then(|meta| Keyspace::elements_of(&load.row, meta));
    let mut elements = Vec::new();
    if let Some(prefix) = prefix {
        each_page(engine, &prefix, |page| {
            let named = page
                .into_iter()
                .map(|(key, value)| (key[prefix.len()..].to_vec(), value));
            elements.extend(named);
            true
        })?;
    }
    Ok(LoadedRow {
        row: load.row,
        meta,
        elements,
    })
}
