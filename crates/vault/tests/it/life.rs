//! Keys are made, used and erased.

use std::collections::BTreeSet;

use manxdb_vault::mutants::{VaultMutant, plant};
use manxdb_vault::{Place, SEALED_BYTES_MORE, VaultError};

use crate::world::{NEW, OLD, memory, open, open_bytes, seal};

#[test]
fn what_is_sealed_opens_at_its_own_place_only() {
    let vault = open(memory(), &[OLD]).unwrap();
    let sealed = seal(&vault).unwrap();
    assert_eq!(sealed.len(), 25 + SEALED_BYTES_MORE);
    sealed.is_open(&vault).unwrap();
    assert!(!sealed.opens_elsewhere(&vault, b"another row's place"));
    for at in 0..sealed.len() {
        let error = sealed.damaged(at).is_open(&vault).unwrap_err();
        assert!(matches!(error, VaultError::NotAuthentic(_)), "{error}");
    }
}

#[test]
fn every_key_is_given_once_and_outlives_the_process() {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let sealed: Vec<_> = (0..200).map(|_| seal(&vault).unwrap()).collect();
    let ids: BTreeSet<_> = sealed.iter().map(|sealed| sealed.id).collect();
    assert_eq!(ids.len(), sealed.len());
    drop(vault);
    let vault = open(disk, &[OLD]).unwrap();
    for sealed in &sealed {
        sealed.is_open(&vault).unwrap();
    }
    let later = seal(&vault).unwrap();
    assert!(!ids.contains(&later.id));
}

#[test]
fn keys_made_ahead_need_no_write_when_they_are_taken() {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    assert_eq!(vault.make_ahead().unwrap(), 64);
    assert_eq!(vault.make_ahead().unwrap(), 0, "there are enough");
    let before = Place::BOTH.map(|place| disk.bytes(place));
    for _ in 0..64 {
        vault.take_key().unwrap();
    }
    assert_eq!(Place::BOTH.map(|place| disk.bytes(place)), before);
    vault.take_key().unwrap();
    assert_ne!(Place::BOTH.map(|place| disk.bytes(place)), before);
}

#[test]
fn no_place_holds_a_key_or_what_was_sealed() {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let sealed = seal(&vault).unwrap();
    for keys in [&[NEW][..], &[]] {
        let copy = Place::BOTH.map(|place| disk.bytes(place));
        let other = open_bytes(&copy, keys).unwrap();
        assert!(sealed.is_open(&other).is_err());
    }
}

/// Whether an erased key opens anything in this process, or from either place alone.
fn an_erased_key_opens() -> bool {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let (gone, kept) = (seal(&vault).unwrap(), seal(&vault).unwrap());
    vault.erase(&[gone.id]).unwrap();
    vault.erase(&[gone.id]).unwrap();
    let [first, mirror] = Place::BOTH.map(|place| disk.bytes(place));
    let mut found = gone.is_open(&vault).is_ok();
    kept.is_open(&vault).unwrap();
    for copy in [
        [first.clone(), mirror.clone()],
        [first, Vec::new()],
        [Vec::new(), mirror],
    ] {
        let copy = open_bytes(&copy, &[OLD]).unwrap();
        kept.is_open(&copy).unwrap();
        found |= gone.is_open(&copy).is_ok();
    }
    found
}

#[test]
fn an_erased_key_opens_nothing_from_either_place() {
    assert!(!an_erased_key_opens());
    for mutant in [VaultMutant::KeptSlot, VaultMutant::KeptMirror] {
        plant(Some(mutant));
        let found = an_erased_key_opens();
        plant(None);
        assert!(found, "{mutant:?} is not found");
    }
}

#[test]
fn keys_of_another_vault_are_unknown_and_are_not_erased_in_this_one() {
    let (one, other) = (memory(), memory());
    let one = open(one, &[OLD]).unwrap();
    // The other vault draws other numbers.
    let other = manxdb_vault::Vault::open(
        Box::new(other),
        crate::world::source(&[OLD]),
        Box::new(crate::world::Seeded::new(8)),
    )
    .unwrap();
    let (mine, theirs) = (seal(&one).unwrap(), seal(&other).unwrap());
    let error = theirs.is_open(&one).unwrap_err();
    assert!(matches!(error, VaultError::Unknown(_)), "{error}");
    one.erase(&[theirs.id]).unwrap();
    mine.is_open(&one).unwrap();
}

#[test]
fn a_vault_that_is_not_open_says_why() {
    let vault = manxdb_vault::Vault::not_open("the disk is away");
    let error = vault.take_key().unwrap_err().to_string();
    assert_eq!(error, "the vault is not open: the disk is away");
}
