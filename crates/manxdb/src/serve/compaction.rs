//! The pool that compactions are done by.

use std::path::Path;

use manxdb_compaction::database::identity::{identity, machine};
use manxdb_compaction::database::service::RemotePool;
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::order::{database_id, relative};
use manxdb_compaction::transport::link::Route;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, SessionId, Zone};

use crate::compactor::{check, security, volume};
use crate::config::RemoteCompaction;
use crate::fault::Fault;
use crate::process::random_u64;

/// Background threads of the store when a pool compacts: each job that is away keeps one waiting.
/// While the pool is away as many compact here at a time, though only when writes are near a stop.
pub const JOBS: u16 = 6;

/// The pool that the settings name. Whether it and an object store are there shows later: the
/// server serves without.
///
/// # Errors
/// A file cannot be read, an address or a volume is none.
pub fn pool(settings: &RemoteCompaction, data: &Path) -> Result<RemotePool, Fault> {
    let security = security(&settings.security)?;
    let route = Route::new(&settings.control, &security).map_err(Fault::Config)?;
    let (volume, storage) = volume("compaction_volume", &settings.volume)?;
    std::fs::create_dir_all(data)
        .map_err(|error| Fault::io(format!("cannot make {}", data.display()), error))?;
    if matches!(storage, Volume::Directory(_)) {
        check(&volume, &storage)?;
    }
    let database_id = known_as(&volume, &storage, data)?;
    let control = settings.control.join(", ");
    tracing::info!(control, volume, "compactions are handed to a pool");
    Ok(RemotePool {
        route,
        database_id,
        volume,
        storage,
        session: SessionId(random_u64()?),
        zone: Zone(settings.zone),
        bytes_min: settings.bytes_min,
        client: ClientOptions {
            weight: settings.weight,
            ..ClientOptions::default()
        },
    })
}

/// What the pool knows the data directory by.
///
/// # Errors
/// As [`pool`].
pub fn database_of(settings: &RemoteCompaction, data: &Path) -> Result<DatabaseId, Fault> {
    let (volume, storage) = volume("compaction_volume", &settings.volume)?;
    known_as(&volume, &storage, data)
}

fn known_as(volume: &str, storage: &Volume, data: &Path) -> Result<DatabaseId, Fault> {
    match storage {
        Volume::Directory(root) => {
            let place = relative(root, data).map_err(Fault::Config)?;
            Ok(database_id(volume, &place))
        }
        Volume::Objects(_) => identity(data, machine(), random_u64()?)
            .map_err(|error| Fault::io(format!("cannot keep a name in {}", data.display()), error)),
    }
}
