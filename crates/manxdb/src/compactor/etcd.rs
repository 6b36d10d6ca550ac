//! Where a control plane keeps its state, as its flags say.

use std::time::Duration;

use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::control::store::etcd::EtcdSettings;
use manxdb_etcd::{EtcdAddress, EtcdTls};

use super::read;
use crate::cli::{ControlArgs, EtcdArgs};
use crate::fault::Fault;

/// The file, or etcd when one is given.
///
/// # Errors
/// A password or a certificate cannot be read.
pub fn place(args: &ControlArgs) -> Result<StoreLocation, Fault> {
    if args.etcd.etcd.is_empty() {
        return Ok(StoreLocation::File(args.store.clone()));
    }
    let etcd = &args.etcd;
    let settings = EtcdSettings {
        address: EtcdAddress {
            members: etcd.etcd.clone(),
            user: user(etcd)?,
            tls: tls(etcd)?,
        },
        prefix: etcd.etcd_prefix.clone(),
        lease: Duration::from_secs(etcd.etcd_lease.into()),
        name: etcd.advertise.clone().unwrap_or_default(),
    };
    Ok(StoreLocation::Etcd(Box::new(settings)))
}

fn user(args: &EtcdArgs) -> Result<Option<(String, String)>, Fault> {
    let (Some(name), Some(file)) = (&args.etcd_user, &args.etcd_password_file) else {
        return Ok(None); // flags come together
    };
    let password = read(file)?;
    Ok(Some((
        name.clone(),
        password.trim_end_matches('\n').to_owned(),
    )))
}

fn tls(args: &EtcdArgs) -> Result<Option<EtcdTls>, Fault> {
    let Some(authority) = &args.etcd_tls_ca else {
        return Ok(None);
    };
    let own = match (&args.etcd_tls_cert, &args.etcd_tls_key) {
        (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
        _ => None,
    };
    let authority = read(authority)?;
    Ok(Some(EtcdTls { authority, own }))
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
