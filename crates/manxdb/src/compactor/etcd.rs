//! Where a control plane keeps its state, as its flags say.

use std::time::Duration;

use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::control::store::etcd::EtcdSettings;

use crate::cli::ControlArgs;
use crate::etcd;
use crate::fault::Fault;

/// The file, or etcd when one is given.
///
/// # Errors
/// A password or a certificate cannot be read.
pub fn place(args: &ControlArgs) -> Result<StoreLocation, Fault> {
    if args.etcd.etcd.is_empty() {
        return Ok(StoreLocation::File(args.store.clone()));
    }
    let settings = EtcdSettings {
        address: etcd::address(&args.etcd)?,
        prefix: args.etcd_prefix.clone(),
        lease: Duration::from_secs(args.etcd.etcd_lease.into()),
        name: args.advertise.clone().unwrap_or_default(),
    };
    Ok(StoreLocation::Etcd(Box::new(settings)))
}

/// What people call it.
pub fn name(place: &StoreLocation) -> String {
    match place {
        StoreLocation::File(path) => path.display().to_string(),
        StoreLocation::Etcd(settings) => {
            let members = settings.address.members.join(",");
            format!("etcd {members}, {}", settings.prefix)
        }
    }
}
