//! Bytes that are not what was written.

use manxdb_vault::{Place, VaultError};

use crate::world::{OLD, memory, open, open_bytes, seal};

const SLOTS_AT: usize = 8192;

#[test]
fn any_damaged_byte_of_one_place_loses_nothing() {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let sealed = seal(&vault).unwrap();
    let whole = Place::BOTH.map(|place| disk.bytes(place));
    // The header, what follows it, and the first slots.
    let places = (0..80).chain(4096..4200).chain(SLOTS_AT..SLOTS_AT + 256);
    for at in places {
        for place in [0, 1] {
            let mut copy = whole.clone();
            copy[place][at] ^= 0x40;
            match open_bytes(&copy, &[OLD]) {
                Ok(vault) => sealed.is_open(&vault).unwrap(),
                // The format's own byte says that another release wrote this.
                Err(VaultError::Format(_)) => assert_eq!(at, 7),
                Err(error) => panic!("byte {at} of place {place}: {error}"),
            }
        }
    }
}

#[test]
fn a_slot_that_is_damaged_in_both_places_is_named_and_harms_no_other() {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let (lost, kept) = (seal(&vault).unwrap(), seal(&vault).unwrap());
    let mut copy = Place::BOTH.map(|place| disk.bytes(place));
    for place in &mut copy {
        place[SLOTS_AT + 30] ^= 1;
    }
    let vault = open_bytes(&copy, &[OLD]).unwrap();
    let error = lost.is_open(&vault).unwrap_err();
    assert!(matches!(error, VaultError::Damaged(_)), "{error}");
    kept.is_open(&vault).unwrap();
    seal(&vault).unwrap().is_open(&vault).unwrap();
    vault.erase(&[lost.id]).unwrap();
    let error = lost.is_open(&vault).unwrap_err();
    assert!(matches!(error, VaultError::Erased(_)), "{error}");
}

#[test]
fn a_place_that_is_empty_is_filled_from_the_other() {
    let disk = memory();
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let sealed: Vec<_> = (0..100).map(|_| seal(&vault).unwrap()).collect();
    vault.erase(&[sealed[0].id]).unwrap();
    let [first, mirror] = Place::BOTH.map(|place| disk.bytes(place));
    assert_eq!(first, mirror);
    for copy in [[Vec::new(), mirror.clone()], [first.clone(), Vec::new()]] {
        let disk = memory();
        for (place, bytes) in Place::BOTH.into_iter().zip(&copy) {
            manxdb_vault::Disk::write(&disk, place, 0, bytes).unwrap();
        }
        let vault = open(disk.clone(), &[OLD]).unwrap();
        for sealed in &sealed[1..] {
            sealed.is_open(&vault).unwrap();
        }
        assert!(sealed[0].is_open(&vault).is_err());
        assert_eq!(
            disk.bytes(Place::First)[SLOTS_AT..],
            disk.bytes(Place::Mirror)[SLOTS_AT..]
        );
    }
}

#[test]
fn places_of_two_vaults_and_headers_that_are_gone_are_refused() {
    let (one, other) = (memory(), memory());
    open(one.clone(), &[OLD]).unwrap().take_key().unwrap();
    let random = Box::new(crate::world::Seeded::new(8));
    let source = crate::world::source(&[OLD]);
    manxdb_vault::Vault::open(Box::new(other.clone()), source, random).unwrap();
    let mixed = [one.bytes(Place::First), other.bytes(Place::Mirror)];
    let error = open_bytes(&mixed, &[OLD]).unwrap_err();
    assert!(matches!(error, VaultError::NotOfOneVault), "{error}");
    let mut headless = Place::BOTH.map(|place| one.bytes(place));
    for place in &mut headless {
        place[..SLOTS_AT].fill(0);
    }
    let error = open_bytes(&headless, &[OLD]).unwrap_err();
    assert!(matches!(error, VaultError::Damaged(_)), "{error}");
}
