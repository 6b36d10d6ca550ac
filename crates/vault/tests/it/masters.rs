//! Master keys: where they come from, the wrong one, another one.

use manxdb_vault::{MasterKeySource, Place, VaultError};

use crate::world::{NEW, OLD, OTHER, memory, open, open_bytes, seal, source};

#[test]
fn a_source_is_a_file_a_variable_or_a_command_and_says_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("master");
    std::fs::write(&file, format!("# made today\n\n{OLD}\n  {NEW}  \n")).unwrap();
    MasterKeySource::File(file.clone()).read().unwrap();
    let command = format!("cat '{}'", file.display());
    MasterKeySource::Command(command).read().unwrap();
    let refused = [
        (MasterKeySource::File(folder.path().join("nothing")), "file"),
        (
            MasterKeySource::Environment("MANXDB_NO_SUCH_KEY".into()),
            "is not set",
        ),
        (MasterKeySource::Command("exit 3".into()), "ended with"),
        (MasterKeySource::Text("# nothing\n".into()), "holds no key"),
        (
            MasterKeySource::Text(format!("{OLD}\nabc\n")),
            "line 2 is no key",
        ),
        (
            MasterKeySource::Text(format!("{}\n", OLD.replace('1', "g"))),
            "line 1",
        ),
    ];
    for (source, expected) in refused {
        let error = source.read().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("1111"), "a message shows no key: {error}");
    }
}

#[test]
fn a_new_vault_needs_a_master_key_and_one_that_is_there_opens_without() {
    let disk = memory();
    let error = open(disk.clone(), &[]).unwrap_err();
    assert!(matches!(error, VaultError::NoMasterKey(_)), "{error}");
    let sealed = seal(&open(disk.clone(), &[OLD]).unwrap()).unwrap();
    let without = open(disk.clone(), &[]).unwrap();
    let error = sealed.is_open(&without).unwrap_err();
    assert!(matches!(error, VaultError::NoMasterKey(_)), "{error}");
    let error = without.take_key().unwrap_err();
    assert!(matches!(error, VaultError::NoMasterKey(_)), "{error}");
    assert!(without.status().unwrap().problem.is_some());
    // Erasing needs none.
    without.erase(&[sealed.id]).unwrap();
    let wrong = open(disk.clone(), &[NEW]).unwrap();
    let error = wrong.take_key().unwrap_err();
    assert!(
        matches!(error, VaultError::WrongMasterKey { generation: 1 }),
        "{error}"
    );
    let error = sealed.is_open(&open(disk, &[OLD]).unwrap()).unwrap_err();
    assert!(matches!(error, VaultError::Erased(_)), "{error}");
}

#[test]
fn after_a_rotation_only_the_new_master_key_opens_and_old_copies_know_only_the_old() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("master");
    std::fs::write(&file, OLD).unwrap();
    let disk = memory();
    let vault = manxdb_vault::Vault::open(
        Box::new(disk.clone()),
        MasterKeySource::File(file.clone()),
        Box::new(crate::world::Seeded::new(7)),
    )
    .unwrap();
    let kept: Vec<_> = (0..150).map(|_| seal(&vault).unwrap()).collect();
    let gone = seal(&vault).unwrap();
    let before = Place::BOTH.map(|place| disk.bytes(place));
    vault.erase(&[gone.id]).unwrap();
    let error = vault.rotate().unwrap_err();
    assert!(matches!(error, VaultError::SameMasterKey), "{error}");
    std::fs::write(&file, format!("{OLD}\n{NEW}\n")).unwrap();
    assert_eq!(vault.rotate().unwrap(), 2);
    let later = seal(&vault).unwrap();
    let after = Place::BOTH.map(|place| disk.bytes(place));
    for vault in [&vault, &open_bytes(&after, &[NEW]).unwrap()] {
        for sealed in kept.iter().chain([&later]) {
            sealed.is_open(vault).unwrap();
        }
        assert!(gone.is_open(vault).is_err());
    }
    for sealed in &kept {
        let old = open_bytes(&after, &[OLD]).unwrap();
        assert!(sealed.is_open(&old).is_err());
    }
    // The old vault under the new master key opens nothing, erased or not.
    let copy = open_bytes(&before, &[NEW]).unwrap();
    assert!(gone.is_open(&copy).is_err() && kept[0].is_open(&copy).is_err());
    std::fs::write(&file, format!("{OLD}\n{NEW}\n{OTHER}\n")).unwrap();
    assert_eq!(vault.rotate().unwrap(), 3);
    kept[149].is_open(&vault).unwrap();
    assert_eq!(source(&[OTHER]).read().map(|_| ()).ok(), Some(()));
}
