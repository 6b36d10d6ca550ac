//! The vault of a server that starts. What is wrong with it keeps no server from starting: only rows that
//! are sealed cannot be read then, nor written.

use std::sync::Arc;

use manxdb_vault::{Disk, FileDisk, MasterKeySource, SystemRandomness, Vault};

use crate::config::{Rows, VaultSettings};

/// Opens the audit beside a vault, which no backup has.
pub fn open_audit(settings: &VaultSettings) -> Option<Arc<dyn Disk>> {
    let opened = FileDisk::open_audit(&settings.first, &settings.mirror);
    match opened {
        Ok(disk) => Some(Arc::new(disk)),
        Err(error) => {
            let vault = settings.first.display();
            tracing::error!(%vault, "the audit beside the vault cannot be opened: {error}");
            None
        }
    }
}

/// Opens the vault; `None` where there is none, and no master key to make one.
pub fn open(settings: &VaultSettings, rows: &Rows) -> Option<Arc<Vault>> {
    let (first, mirror) = (&settings.first, &settings.mirror);
    let is_there = FileDisk::is_there(first, mirror);
    if *rows != Rows::Local || settings.master.is_none() && !is_there {
        return None;
    }
    let source = settings.master.clone().unwrap_or(MasterKeySource::Nowhere);
    let opened = FileDisk::open(first, mirror)
        .map_err(|error| error.to_string())
        .and_then(|disk| {
            let random = Box::new(SystemRandomness::default());
            Vault::open(Box::new(disk), source, random).map_err(|error| error.to_string())
        });
    let vault = opened.unwrap_or_else(Vault::not_open);
    match vault.status() {
        Ok(status) => match status.problem {
            Some(problem) => {
                tracing::error!(vault = %first.display(), "sealed rows cannot be read: {problem}");
            }
            None => {
                let (slots, generation) = (status.slots, status.generation);
                tracing::info!(vault = %first.display(), slots, generation, "rows of people are sealed");
            }
        },
        Err(error) => {
            tracing::error!(vault = %first.display(), "sealed rows cannot be read: {error}");
        }
    }
    Some(Arc::new(vault))
}
