//! Which etcd, as flags say: for the services that keep their state there.

use manxdb_compaction::transport::secrets;
use manxdb_etcd::{EtcdAddress, EtcdTls};

use crate::cli::EtcdArgs;
use crate::fault::Fault;

/// Where etcd is, and how to be let in.
///
/// # Errors
/// A password or a certificate cannot be read.
pub fn address(args: &EtcdArgs) -> Result<EtcdAddress, Fault> {
    Ok(EtcdAddress {
        members: args.etcd.clone(),
        user: user(args)?,
        tls: tls(args)?,
    })
}

fn read(path: &std::path::Path) -> Result<String, Fault> {
    secrets::read(path).map_err(Fault::Other)
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
