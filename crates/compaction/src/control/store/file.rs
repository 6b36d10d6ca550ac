//! The control plane's durable state in a file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use manxdb_jobs::job::{DatabaseId, JobId};
use manxdb_jobs::record::{Account, Durable, Record, Stored};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, Table, TableDefinition};

use super::{StoreError, new_of, packed};
use crate::seal::unpack;

/// Jobs that are not over, by their names.
const JOBS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("jobs");
/// Workers not to be trusted.
const BANNED: TableDefinition<'_, u64, ()> = TableDefinition::new("banned");
/// Accounts by database. A release that does not know this table leaves it alone.
const ACCOUNTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("accounts");
/// How it is written.
const FORMAT: TableDefinition<'_, (), u32> = TableDefinition::new("format");

/// The only format there is: keys and values sealed, in postcard.
const CURRENT: u32 = 2;

fn failed<E: Into<redb::Error>>(what: &'static str) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::Failed(what, Box::new(error.into()))
}

/// Keeps [`Durable`] in a file; one process at a time.
pub struct FileStore {
    path: PathBuf,
    /// None after an error of the disk: the file is opened again before anything is written.
    database: Option<Database>,
    durable: Durable,
    /// Records that were written since it was opened.
    written: u64,
}

impl FileStore {
    /// Opens the store at `path`, making it when it is new.
    ///
    /// # Errors
    /// [`StoreError`]: it is in use, damaged, or of a newer release.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        guarded(|| Self::open_whole(path))
    }

    fn open_whole(path: &Path) -> Result<Self, StoreError> {
        let mut database = Database::create(path).map_err(failed("cannot be opened"))?;
        let is_whole = database.check_integrity();
        if !is_whole.map_err(failed("cannot be checked"))? {
            return Err(damaged());
        }
        check_format(&database)?;
        let durable = read(&database)?;
        Ok(Self {
            path: path.to_owned(),
            database: Some(database),
            durable,
            written: 0,
        })
    }

    /// All that it keeps.
    #[must_use]
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Writes records that are counted since it was opened, but for those that it has.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_from(&mut self, first: u64, records: &[Record]) -> Result<u64, StoreError> {
        if let Some(new) = new_of(self.written, first, records)
            && !new.is_empty()
        {
            self.write(new)?;
            self.written += new.len() as u64;
        }
        Ok(self.written)
    }

    /// Writes records, all or none; they are on disk when this returns.
    ///
    /// # Errors
    /// [`StoreError`]: it is unknown whether the records were written; the same records may be
    /// written again, with others after them.
    pub fn write(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let changed = self.durable.changed_by(records);
        let former = self.database.take();
        let written = guarded(|| {
            let database = match former {
                Some(database) => database,
                None => Database::create(&self.path).map_err(failed("cannot be opened again"))?,
            };
            write(&database, records, &changed)?;
            Ok(database)
        });
        self.database = Some(written?);
        for record in records {
            self.durable.apply(record.clone());
        }
        Ok(())
    }
}

/// Does something with a file that may be damaged: redb panics over some kinds of damage.
fn guarded<T>(what: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|_| Err(damaged()))
}

fn damaged() -> StoreError {
    StoreError::Format("it is damaged".to_owned())
}

fn check_format(database: &Database) -> Result<(), StoreError> {
    let write = database.begin_write().map_err(failed("is not writable"))?;
    {
        let mut table = write
            .open_table(FORMAT)
            .map_err(failed("is not readable"))?;
        let found = table
            .get(())
            .map_err(failed("is not readable"))?
            .map(|format| format.value());
        match found {
            Some(CURRENT) => {}
            Some(other) => {
                return Err(StoreError::Format(format!("its format is {other}")));
            }
            None => {
                table
                    .insert((), CURRENT)
                    .map_err(failed("is not writable"))?;
            }
        }
        write.open_table(JOBS).map_err(failed("is not writable"))?;
        write
            .open_table(BANNED)
            .map_err(failed("is not writable"))?;
        write
            .open_table(ACCOUNTS)
            .map_err(failed("is not writable"))?;
    }
    write.commit().map_err(failed("is not writable"))
}

fn read(database: &Database) -> Result<Durable, StoreError> {
    let mut durable = Durable::default();
    let read = database.begin_read().map_err(failed("is not readable"))?;
    let jobs = read.open_table(JOBS).map_err(failed("is not readable"))?;
    for row in jobs.iter().map_err(failed("is not readable"))? {
        let (key, value) = row.map_err(failed("is not readable"))?;
        let job: JobId = unpack(key.value()).ok_or_else(damaged)?;
        let stored: Stored = unpack(value.value()).ok_or_else(damaged)?;
        durable.jobs.insert(job, stored);
    }
    let banned = read.open_table(BANNED).map_err(failed("is not readable"))?;
    for row in banned.iter().map_err(failed("is not readable"))? {
        let (worker, ()) = {
            let (key, value) = row.map_err(failed("is not readable"))?;
            (key.value(), value.value())
        };
        durable.banned.insert(manxdb_jobs::WorkerId(worker));
    }
    let accounts = read
        .open_table(ACCOUNTS)
        .map_err(failed("is not readable"))?;
    for row in accounts.iter().map_err(failed("is not readable"))? {
        let (key, value) = row.map_err(failed("is not readable"))?;
        let account: Account = unpack(value.value()).ok_or_else(damaged)?;
        durable.accounts.insert(DatabaseId(key.value()), account);
    }
    Ok(durable)
}

fn write(database: &Database, records: &[Record], changed: &Durable) -> Result<(), StoreError> {
    let write = database.begin_write().map_err(failed("is not writable"))?;
    {
        let mut jobs = write.open_table(JOBS).map_err(failed("is not writable"))?;
        let mut banned = write
            .open_table(BANNED)
            .map_err(failed("is not writable"))?;
        let mut accounts = write
            .open_table(ACCOUNTS)
            .map_err(failed("is not writable"))?;
        for record in records {
            if let Record::Banned { worker } = record {
                let inserted = banned.insert(worker.0, ());
                inserted.map_err(failed("is not writable"))?;
            }
            if let Some(database) = record.account_of() {
                write_account(&mut accounts, database, changed)?;
            }
            let Some(job) = record.job() else {
                continue;
            };
            let key = packed(&job)?;
            let written = match changed.jobs.get(&job) {
                Some(stored) => jobs.insert(key.as_slice(), packed(stored)?.as_slice()),
                None => jobs.remove(key.as_slice()),
            };
            written.map_err(failed("is not writable"))?;
        }
    }
    write.commit().map_err(failed("is not writable"))
}

fn write_account(
    accounts: &mut Table<'_, u64, &[u8]>,
    database: DatabaseId,
    changed: &Durable,
) -> Result<(), StoreError> {
    let written = match changed.accounts.get(&database) {
        Some(account) => accounts.insert(database.0, packed(account)?.as_slice()),
        None => accounts.remove(database.0),
    };
    written.map(|_| ()).map_err(failed("is not writable"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_jobs::{AttemptId, Spec, WorkerId};

    fn job(number: u64) -> JobId {
        JobId {
            number,
            ..JobId::default()
        }
    }

    fn account(lately: u64) -> Account {
        Account {
            lately,
            ..Account::default()
        }
    }

    fn history() -> Vec<Record> {
        let taken = |number| Record::Job {
            job: job(number),
            spec: Spec::default(),
        };
        let attempt = AttemptId {
            job: job(2),
            number: 1,
            token: 9,
        };
        let worker = WorkerId(7);
        vec![
            taken(1),
            taken(2),
            Record::Leased {
                attempt,
                worker,
                account: account(5),
            },
            Record::Over { job: job(1) },
            Record::Gone {
                database: DatabaseId::default(),
            },
            taken(3),
            Record::Leased {
                attempt,
                worker,
                account: account(6),
            },
            Record::Result {
                attempt,
                worker,
                result: (&b"outputs"[..]).into(),
            },
            Record::Banned { worker },
        ]
    }

    #[test]
    fn what_was_written_is_there_when_it_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        for cut in 0..self::history().len() {
            let _ = std::fs::remove_file(&path);
            let history = self::history();
            let (before, after) = history.split_at(cut);
            let mut store = FileStore::open(&path).unwrap();
            for record in before {
                store.write(std::slice::from_ref(record)).unwrap();
            }
            drop(store);
            let mut store = FileStore::open(&path).unwrap();
            assert_eq!(*store.durable(), Durable::of(before.iter().cloned()));
            store.write(after).unwrap();
            drop(store);
            let store = FileStore::open(&path).unwrap();
            assert_eq!(*store.durable(), Durable::of(history.iter().cloned()));
        }
    }

    #[test]
    fn a_file_that_is_no_store_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        std::fs::write(&path, b"a letter").unwrap();
        assert!(FileStore::open(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    }

    /// After any damage: an error, or everything that was written.
    #[test]
    fn damage_is_an_error_or_harmless() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        let mut store = FileStore::open(&path).unwrap();
        store.write(&history()).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        let used = whole.iter().enumerate().filter(|(_, byte)| **byte != 0);
        let used: Vec<usize> = used.map(|(place, _)| place).collect();
        let mut random = manxdb_core::Random::new(5);
        let mut refused = 0;
        for _ in 0..100 {
            let mut damaged = whole.clone();
            for _ in 0..=random.below(8) {
                let place = usize::try_from(random.below(used.len() as u64)).unwrap();
                damaged[used[place]] ^= 1 << random.below(8);
            }
            if random.below(4) == 0 {
                let length = random.below(whole.len() as u64);
                damaged.truncate(usize::try_from(length).unwrap());
            }
            std::fs::write(&path, &damaged).unwrap();
            match std::panic::catch_unwind(|| FileStore::open(&path)) {
                Ok(Ok(store)) => assert_eq!(*store.durable(), Durable::of(history())),
                Ok(Err(_)) => refused += 1,
                Err(panic) => panic!("a damaged file ends the process: {panic:?}"),
            }
        }
        assert!(refused > 0);
    }

    #[test]
    fn a_store_is_open_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        let store = FileStore::open(&path).unwrap();
        assert!(FileStore::open(&path).is_err());
        drop(store);
        assert!(FileStore::open(&path).is_ok());
    }
}
