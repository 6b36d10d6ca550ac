//! Randomness that repeats, and a disk that loses power.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use std::sync::Mutex;

use manxdb_vault::{
    Disk, KeyId, MasterKeySource, MemoryDisk, Place, Randomness, Vault, VaultError,
};

/// The master keys of tests, oldest first.
pub const OLD: &str = "1111111111111111111111111111111111111111111111111111111111111111";
pub const NEW: &str = "2222222222222222222222222222222222222222222222222222222222222222";
pub const OTHER: &str = "3333333333333333333333333333333333333333333333333333333333333333";

pub fn source(keys: &[&str]) -> MasterKeySource {
    MasterKeySource::Text(keys.join("\n"))
}

/// Numbers that follow from a seed.
pub struct Seeded(AtomicU64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub fn next(&self) -> u64 {
        let mut word = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub fn below(&self, limit: u64) -> u64 {
        self.next() % limit
    }
}

impl Randomness for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), VaultError> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

const SECTOR: usize = 512;

/// A disk whose power goes after so many changes: every later one fails, and what was not waited for
/// is there, is not, or is damaged, sector by sector.
#[derive(Clone)]
pub struct PowerDisk(Arc<Mutex<State>>);

struct State {
    /// On disk.
    synced: [Vec<u8>; 2],
    /// What the operating system holds.
    held: [Vec<u8>; 2],
    changes: u64,
    fails_at: u64,
}

impl PowerDisk {
    pub fn new(first: Vec<u8>, mirror: Vec<u8>, fails_at: u64) -> Self {
        let synced = [first, mirror];
        let held = synced.clone();
        Self(Arc::new(Mutex::new(State {
            synced,
            held,
            changes: 0,
            fails_at,
        })))
    }

    /// Changes that were asked for.
    pub fn changes(&self) -> u64 {
        self.0.lock().unwrap().changes
    }

    pub fn is_dead(&self) -> bool {
        let state = self.0.lock().unwrap();
        state.changes > state.fails_at
    }

    /// What is on disk after the power has gone.
    pub fn after_power_loss(&self, random: &Seeded) -> [Vec<u8>; 2] {
        let state = self.0.lock().unwrap();
        [0, 1].map(|place| left(&state.synced[place], &state.held[place], random))
    }
}

fn left(synced: &[u8], held: &[u8], random: &Seeded) -> Vec<u8> {
    // Whether the file's new length is there is one decision, as its sectors are each.
    let longer = held.len() > synced.len() && random.below(2) == 0;
    let length = if longer { held.len() } else { synced.len() };
    let mut all = vec![0; length];
    for from in (0..length).step_by(SECTOR) {
        let to = length.min(from + SECTOR);
        let of = |bytes: &[u8]| {
            let mut sector = vec![0; to - from];
            let there = bytes.get(from..bytes.len().min(to)).unwrap_or_default();
            sector[..there.len()].copy_from_slice(there);
            sector
        };
        let (old, new) = (of(synced), of(held));
        let sector = match random.below(3) {
            _ if old == new => old,
            0 => old,
            1 => new,
            _ => new.iter().map(|byte| byte ^ 0x5a).collect(),
        };
        all[from..to].copy_from_slice(&sector);
    }
    all
}

impl State {
    fn change(&mut self) -> io::Result<()> {
        self.changes += 1;
        if self.changes > self.fails_at {
            return Err(io::Error::other("the power is gone"));
        }
        Ok(())
    }
}

impl Disk for PowerDisk {
    fn length(&self, place: Place) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().held[place as usize].len() as u64)
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let state = self.0.lock().unwrap();
        let there = state.held[place as usize]
            .get(usize::try_from(offset).unwrap()..)
            .unwrap_or_default();
        let count = there.len().min(bytes.len());
        bytes[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let survived = state.change();
        // A write that the power cuts short is held too: any part of it may be on disk.
        let held = &mut state.held[place as usize];
        let from = usize::try_from(offset).unwrap();
        if held.len() < from + bytes.len() {
            held.resize(from + bytes.len(), 0);
        }
        held[from..from + bytes.len()].copy_from_slice(bytes);
        survived
    }

    fn sync(&self, place: Place) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.change()?;
        let held = state.held[place as usize].clone();
        state.synced[place as usize] = held;
        Ok(())
    }
}

pub fn memory() -> Arc<MemoryDisk> {
    Arc::default()
}

pub fn open(disk: impl Disk + 'static, keys: &[&str]) -> Result<Vault, VaultError> {
    Vault::open(Box::new(disk), source(keys), Box::new(Seeded::new(7)))
}

pub fn open_bytes(bytes: &[Vec<u8>; 2], keys: &[&str]) -> Result<Vault, VaultError> {
    open(
        MemoryDisk::holding(bytes[0].clone(), bytes[1].clone()),
        keys,
    )
}

/// Something sealed under a key.
pub struct Sealed {
    pub id: KeyId,
    bytes: Vec<u8>,
}

const AAD: &[u8] = b"the row's place";

pub fn seal(vault: &Vault) -> Result<Sealed, VaultError> {
    let id = vault.take_key()?;
    let mut bytes = Vec::new();
    vault.seal(id, AAD, b"what nobody else may read", &mut bytes)?;
    Ok(Sealed { id, bytes })
}

impl Sealed {
    pub fn is_open(&self, vault: &Vault) -> Result<(), VaultError> {
        let plain = vault.open_sealed(self.id, AAD, &self.bytes)?;
        assert_eq!(plain, b"what nobody else may read");
        Ok(())
    }

    pub fn opens_elsewhere(&self, vault: &Vault, aad: &[u8]) -> bool {
        vault.open_sealed(self.id, aad, &self.bytes).is_ok()
    }

    pub fn damaged(&self, at: usize) -> Self {
        let mut bytes = self.bytes.clone();
        bytes[at] ^= 1;
        Self { id: self.id, bytes }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}
