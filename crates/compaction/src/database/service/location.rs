//! Where a database is, here and for others.

use std::path::{Path, PathBuf};

use manxdb_jobs::job::{DatabaseId, SessionId, Zone};

use super::RemotePool;
use crate::database::uploads::Uploads;
use crate::object_store::volume::Volume;
use crate::order::{ProfileId, relative};

/// Where the database is, here and for others.
pub(super) struct DatabaseLocation {
    pub id: DatabaseId,
    pub session: SessionId,
    pub volume: String,
    pub database: PathBuf,
    pub shared: Shared,
    pub zone: Zone,
    pub profile_id: ProfileId,
    pub bytes_min: u64,
}

impl DatabaseLocation {
    /// The place of a database that lies in `directory`.
    ///
    /// # Errors
    /// It is not on the volume, or the system has no thread left.
    pub(super) fn of(
        pool: &RemotePool,
        directory: &Path,
        profile_id: ProfileId,
    ) -> Result<Self, String> {
        Ok(Self {
            id: pool.database_id,
            session: pool.session,
            volume: pool.volume.clone(),
            database: directory.to_owned(),
            shared: Shared::of(pool, directory)?,
            zone: pool.zone,
            profile_id,
            bytes_min: pool.bytes_min,
        })
    }
}

/// How others come to the database's files.
pub(super) enum Shared {
    /// They are on the volume, under this name.
    Directory(String),
    /// As copies.
    Uploads(Uploads),
}

impl Shared {
    fn of(pool: &RemotePool, directory: &Path) -> Result<Self, String> {
        match &pool.storage {
            Volume::Directory(root) => Ok(Self::Directory(relative(root, directory)?)),
            Volume::Objects(objects) => {
                let (database, session) = (pool.database_id, pool.session);
                let uploads = Uploads::start(objects, directory, database, session);
                Ok(Self::Uploads(uploads.map_err(|error| error.to_string())?))
            }
        }
    }

    pub(super) fn uploads(&self) -> Option<&Uploads> {
        match self {
            Self::Directory(_) => None,
            Self::Uploads(uploads) => Some(uploads),
        }
    }
}
