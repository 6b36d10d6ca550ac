//! A vault in two folders.

use std::os::unix::fs::PermissionsExt as _;

use manxdb_vault::{FileDisk, SystemRandomness, Vault};

use crate::world::{OLD, seal, source};

#[test]
fn two_folders_hold_a_vault_that_its_owner_alone_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let (first, mirror) = (
        folder.path().join("a/first"),
        folder.path().join("b/mirror"),
    );
    assert!(!FileDisk::is_there(&first, &mirror));
    let open = || {
        let disk = FileDisk::open(&first, &mirror).unwrap();
        let random = Box::new(SystemRandomness::default());
        Vault::open(Box::new(disk), source(&[OLD]), random).unwrap()
    };
    let vault = open();
    let error = FileDisk::open(&first, &mirror).unwrap_err();
    assert!(error.to_string().contains("another server"), "{error}");
    let (kept, gone) = (seal(&vault).unwrap(), seal(&vault).unwrap());
    vault.erase(&[gone.id]).unwrap();
    drop(vault);
    assert!(FileDisk::is_there(&first, &mirror));
    let mode = std::fs::metadata(first.join("keys.vault")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    std::fs::remove_dir_all(&first).unwrap();
    let vault = open();
    kept.is_open(&vault).unwrap();
    assert!(gone.is_open(&vault).is_err());
}

#[test]
fn one_folder_is_not_two_places() {
    let folder = tempfile::tempdir().unwrap();
    let error = FileDisk::open(folder.path(), &folder.path().join(".")).unwrap_err();
    assert!(error.to_string().contains("both places"), "{error}");
}
