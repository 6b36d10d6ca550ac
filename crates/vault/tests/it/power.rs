//! The power goes at each change of the disk: what was promised before holds, and keys that were about
//! to be erased can be erased again.

use manxdb_vault::mutants::{VaultMutant, plant};
use manxdb_vault::{Vault, VaultError};

use crate::world::{NEW, OLD, PowerDisk, Sealed, Seeded, open, open_bytes, seal};

/// Ways to lose power at one change.
const LOSSES: u64 = 4;

/// What a run was told before the power went.
#[derive(Default)]
struct Told {
    sealed: Vec<Sealed>,
    /// Of `sealed`: erasing was asked for, and whether it returned.
    erased: Vec<(usize, bool)>,
    is_rotated: bool,
}

/// What a server does with a vault: keys, erasures, a rotation, more of both.
fn run(vault: &Vault, told: &mut Told) -> Result<(), VaultError> {
    for _ in 0..70 {
        told.sealed.push(seal(vault)?);
    }
    erase(vault, told, 3)?;
    vault.rotate()?;
    told.is_rotated = true;
    for _ in 0..70 {
        told.sealed.push(seal(vault)?);
    }
    erase(vault, told, 5)?;
    erase(vault, told, 100)
}

fn erase(vault: &Vault, told: &mut Told, at: usize) -> Result<(), VaultError> {
    told.erased.push((at, false));
    vault.erase(&[told.sealed[at].id])?;
    if let Some((_, done)) = told.erased.last_mut() {
        *done = true;
    }
    Ok(())
}

/// What is wrong with a vault after a loss of power.
fn judge(told: &Told, left: &[Vec<u8>; 2]) -> Result<(), String> {
    let keys: &[&str] = if told.is_rotated { &[NEW] } else { &[OLD, NEW] };
    let vault = open_bytes(left, keys).map_err(|error| format!("it does not open: {error}"))?;
    for (at, sealed) in told.sealed.iter().enumerate() {
        let order = told.erased.iter().find(|(erased, _)| *erased == at);
        match (order, sealed.is_open(&vault)) {
            (None, Err(error)) => return Err(format!("key {at} is lost: {error}")),
            (Some((_, true)), Ok(())) => return Err(format!("key {at} was erased and opens")),
            _ => {}
        }
    }
    // The order is carried out again.
    for (at, _) in &told.erased {
        let again = vault.erase(&[told.sealed[*at].id]);
        again.map_err(|error| format!("key {at} cannot be erased: {error}"))?;
        if told.sealed[*at].is_open(&vault).is_ok() {
            return Err(format!("key {at} was erased again and opens"));
        }
    }
    let later = seal(&vault).map_err(|error| format!("no new key: {error}"))?;
    later
        .is_open(&vault)
        .map_err(|error| format!("a new key opens nothing: {error}"))
}

/// Loses power after each change; the first thing that is wrong.
fn lose_power_everywhere() -> Result<u64, String> {
    for fails_at in 0.. {
        for loss in 0..LOSSES {
            let disk = PowerDisk::new(Vec::new(), Vec::new(), fails_at);
            let mut told = Told::default();
            let outcome = start(&disk, &mut told);
            if !disk.is_dead() {
                outcome.map_err(|error| format!("without a loss: {error}"))?;
                return Ok(disk.changes());
            }
            let random = Seeded::new(fails_at * LOSSES + loss);
            let left = disk.after_power_loss(&random);
            judge(&told, &left).map_err(|wrong| format!("after change {fails_at}: {wrong}"))?;
        }
    }
    unreachable!("a run has an end")
}

fn start(disk: &PowerDisk, told: &mut Told) -> Result<(), VaultError> {
    // Made under the old key; the source has the new one behind it from then on.
    drop(open(disk.clone(), &[OLD])?);
    let vault = open(disk.clone(), &[OLD, NEW])?;
    run(&vault, told)
}

#[test]
fn no_loss_of_power_loses_a_key_or_brings_an_erased_one_back() {
    let changes = lose_power_everywhere().unwrap();
    assert!(changes > 100, "{changes} changes are few for this run");
}

#[test]
fn the_judge_finds_planted_defects() {
    for mutant in [
        VaultMutant::KeptSlot,
        VaultMutant::KeptMirror,
        VaultMutant::SkippedSync,
        VaultMutant::BothPlacesAtOnce,
    ] {
        plant(Some(mutant));
        let found = lose_power_everywhere();
        plant(None);
        assert!(found.is_err(), "{mutant:?} is not found");
    }
}

#[test]
fn a_write_that_fails_is_told_and_can_be_done_again() {
    let disk = PowerDisk::new(Vec::new(), Vec::new(), u64::MAX);
    let vault = open(disk.clone(), &[OLD]).unwrap();
    let sealed = seal(&vault).unwrap();
    let [first, mirror] = disk.after_power_loss(&Seeded::new(1));
    for fails_at in 0..4 {
        let disk = PowerDisk::new(first.clone(), mirror.clone(), fails_at);
        let vault = open(disk.clone(), &[OLD]).unwrap();
        let error = vault.erase(&[sealed.id]).unwrap_err();
        assert!(matches!(error, VaultError::Io { .. }), "{error}");
    }
}
