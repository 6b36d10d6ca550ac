//! What control planes must not forget: in a file of one, or in etcd, where several take turns.

pub mod etcd;
pub mod file;
pub mod keys;

use std::path::PathBuf;

use manxdb_etcd::EtcdError;
use manxdb_jobs::Term;
use manxdb_jobs::record::{Durable, Record};
use serde::Serialize;

use self::etcd::{EtcdSettings, EtcdStore, Renewer};
use self::file::FileStore;
use crate::seal;

/// Where the state is.
#[derive(Debug, Clone)]
pub enum StoreLocation {
    /// In a file: there is one control plane.
    File(PathBuf),
    /// In etcd: there may be several, of which one leads.
    Etcd(Box<EtcdSettings>),
}

/// A store that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened, read or written.
    #[error("the control plane's store {0}: {1}")]
    Failed(&'static str, Box<redb::Error>),
    /// A newer release wrote it, or it is damaged.
    #[error("the control plane's store is not one that this release can read: {0}")]
    Format(String),
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// This control plane does not lead any more: nothing was written.
    #[error("term {} is over", .0.0)]
    Deposed(Term),
}

/// How a campaign ended.
#[derive(Debug)]
pub enum Campaign {
    /// We lead, over this.
    Elected(Term, Durable),
    /// Another control plane leads, at this address.
    Taken(String),
}

/// A store of either kind.
pub enum Store {
    /// A file.
    File(FileStore),
    /// etcd.
    Etcd(Box<EtcdStore>),
}

impl Store {
    /// Opens the store at `place`.
    ///
    /// # Errors
    /// [`StoreError`]: it is in use, damaged, of a newer release, or not reachable.
    pub fn open(place: &StoreLocation) -> Result<Self, StoreError> {
        Ok(match place {
            StoreLocation::File(path) => Self::File(FileStore::open(path)?),
            StoreLocation::Etcd(settings) => Self::Etcd(Box::new(EtcdStore::open(settings)?)),
        })
    }

    /// The renewer of the lease, for a store that several control planes share.
    ///
    /// # Errors
    /// [`StoreError::Etcd`].
    pub fn renewer(&self) -> Result<Option<Renewer>, StoreError> {
        match self {
            Self::File(_) => Ok(None),
            Self::Etcd(etcd) => etcd.renewer().map(Some),
        }
    }

    /// Writes records in this order; `first` is the number of the first one in its term, and
    /// records that are already stored are skipped. Returns the number of the last record that is
    /// durable.
    ///
    /// # Errors
    /// [`StoreError`]: it is unknown what was written; the same records may be written again, with
    /// others after them. [`StoreError::Deposed`]: nothing was written.
    pub fn write(&mut self, term: Term, first: u64, records: &[Record]) -> Result<u64, StoreError> {
        match self {
            Self::File(file) => file.write_from(first, records),
            Self::Etcd(etcd) => etcd.write(term, first, records),
        }
    }
}

/// A key or a value as it is kept.
fn packed<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    seal::pack(value).map_err(|error| StoreError::Format(error.to_string()))
}

/// Records that are not kept yet, and the number before the first of them; none when some before
/// them are missing.
pub(crate) fn new_of(written: u64, first: u64, records: &[Record]) -> Option<&[Record]> {
    let known = usize::try_from((written + 1).checked_sub(first)?).ok()?;
    Some(records.get(known..).unwrap_or_default())
}
