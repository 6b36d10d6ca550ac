//! A vault: keys made ahead, used, and erased.
//!
//! | operation | disk |
//! |---|---|
//! | a new key ([`Vault::take_key`]) | none: it was made ahead, and is in both places; one of some hundreds waits for a batch |
//! | [`Vault::seal`], [`Vault::open_sealed`] | a read of 128 bytes for a key that is not in memory |
//! | [`Vault::erase`] | the slot in the first place, a sync, the slot in the mirror, a sync |
//!
//! One write is on disk before the other place is written, so that a crash damages one copy at most.

use std::collections::BTreeMap;
use std::fmt;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::cache::KeyCache;
use crate::disk::{Disk, Place};
use crate::error::VaultError;
use crate::header::{Header, MasterMark};
use crate::master::{MasterKeySource, MasterKeys};
use crate::random::{Nonces, Randomness};
use crate::secret::{KEY_BYTES, KeyId, NONCE_BYTES, Secret, TAG_BYTES};
use crate::slot::{Slot, WrappedKey};
use crate::slots::Slots;

/// Bytes that sealing adds.
pub const SEALED_BYTES_MORE: usize = NONCE_BYTES + TAG_BYTES;

/// Keys of the first batch; each batch that a commit waits for doubles the next.
const BATCH_MIN: usize = 64;
/// Keys made at once at most: half a megabyte in each place.
const BATCH_MAX: usize = 4096;

/// Keys in slots, or the reason why there are none to be had.
pub struct Vault {
    opened: Result<Opened, String>,
}

/// How a vault is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultStatus {
    /// Slots: keys that are, were, or are ready to be used.
    pub slots: u64,
    /// Keys made ahead.
    pub ready: usize,
    /// Generation of the master key.
    pub generation: u32,
    /// A rotation is under way, or was cut short.
    pub is_rotating: bool,
    /// Why keys cannot be unwrapped.
    pub problem: Option<String>,
}

pub(crate) struct Opened {
    pub(crate) slots: Slots,
    source: MasterKeySource,
    pub(crate) random: Box<dyn Randomness>,
    pub(crate) nonces: Nonces,
    pub(crate) masters: RwLock<Masters>,
    pub(crate) cache: KeyCache,
    ready: Mutex<Vec<KeyId>>,
    pub(crate) writer: Mutex<Writer>,
    /// Of the vault; never changes.
    pub(crate) vault: [u8; 16],
    pub(crate) rotating: Mutex<()>,
}

/// Keys that wrap slots, by generation.
#[derive(Debug, Default)]
pub(crate) struct Masters {
    pub(crate) wrapping: BTreeMap<u32, Secret>,
    /// Why there is none.
    problem: Option<String>,
}

/// What only one thread at a time does.
pub(crate) struct Writer {
    pub(crate) header: Header,
    /// The slot of the next new key.
    pub(crate) next: u64,
    batch: usize,
}

impl fmt::Debug for Vault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status() {
            Ok(status) => status.fmt(formatter),
            Err(error) => write!(formatter, "Vault({error})"),
        }
    }
}

/// The key that wraps slots, of a master key.
pub(crate) fn wrapping_key(master: &Secret) -> Secret {
    master.derive(b"manxdb slot wrapping")
}

impl Vault {
    /// Opens the vault on `disk`, or makes one where there is none. Without its master key it opens, and
    /// its keys answer [`VaultError::NoMasterKey`] or [`VaultError::WrongMasterKey`]. A rotation that was
    /// cut short is ended.
    ///
    /// # Errors
    /// The disk's; a header that is damaged in both places; no master key for a new vault.
    pub fn open(
        disk: Box<dyn Disk>,
        source: MasterKeySource,
        random: Box<dyn Randomness>,
    ) -> Result<Self, VaultError> {
        let slots = Slots::new(disk);
        let given = source.read();
        let header = match slots.open()? {
            Some(header) => header,
            None => make(&slots, given.as_ref(), random.as_ref())?,
        };
        let masters = Masters::of(&header, given);
        assert!(header.current.generation > 0, "generations begin at 1");
        let opened = Opened {
            source,
            nonces: Nonces::default(),
            masters: RwLock::new(masters),
            cache: KeyCache::default(),
            ready: Mutex::default(),
            rotating: Mutex::default(),
            vault: header.vault,
            writer: Mutex::new(Writer {
                header,
                next: slots.count()?,
                batch: BATCH_MIN,
            }),
            slots,
            random,
        };
        if header.next.is_some() && opened.masters.read().has_all(&header) {
            opened.end_rotation()?;
        }
        Ok(Self { opened: Ok(opened) })
    }

    /// A vault that is there and cannot be opened: every key answers why.
    #[must_use]
    pub fn not_open(reason: impl Into<String>) -> Self {
        Self {
            opened: Err(reason.into()),
        }
    }

    pub(crate) fn opened(&self) -> Result<&Opened, VaultError> {
        let opened = self.opened.as_ref();
        opened.map_err(|reason| VaultError::NotOpen(reason.clone()))
    }

    /// How it is.
    ///
    /// # Errors
    /// [`VaultError::NotOpen`].
    pub fn status(&self) -> Result<VaultStatus, VaultError> {
        let opened = self.opened()?;
        let (header, slots) = {
            let writer = opened.writer.lock();
            (writer.header, writer.next)
        };
        let masters = opened.masters.read();
        let missing = |mark: MasterMark| !masters.wrapping.contains_key(&mark.generation);
        let wrong = [Some(header.current), header.next].into_iter().flatten();
        let wrong = wrong.filter(|mark| missing(*mark)).map(|mark| {
            let error = masters.missing(mark.generation);
            error.to_string()
        });
        Ok(VaultStatus {
            slots,
            ready: opened.ready.lock().len(),
            generation: header.current.generation,
            is_rotating: header.next.is_some(),
            problem: wrong.min(),
        })
    }

    /// A key that nobody has, on disk in both places already. One that is not used after all is not
    /// given again.
    ///
    /// # Errors
    /// No master key; the disk's.
    pub fn take_key(&self) -> Result<KeyId, VaultError> {
        let opened = self.opened()?;
        if let Some(id) = opened.ready.lock().pop() {
            return Ok(id);
        }
        let mut writer = opened.writer.lock();
        // Somebody else may have waited for the same.
        if let Some(id) = opened.ready.lock().pop() {
            return Ok(id);
        }
        opened.make_keys(&mut writer)?;
        let taken = opened.ready.lock().pop();
        taken
            .ok_or_else(|| VaultError::NotOpen("keys are used up faster than they are made".into()))
    }

    /// Makes keys ahead where few are left, so that no commit waits for it; how many. To be called now
    /// and then.
    ///
    /// # Errors
    /// Those of [`Vault::take_key`].
    pub fn make_ahead(&self) -> Result<usize, VaultError> {
        let opened = self.opened()?;
        let mut writer = opened.writer.lock();
        if opened.ready.lock().len() > writer.batch / 4 {
            return Ok(0);
        }
        let before = writer.next;
        opened.make_keys(&mut writer)?;
        Ok(usize::try_from(writer.next - before).unwrap_or(usize::MAX))
    }

    /// Appends to `out` what `plain` is under a key: a nonce, and as many bytes as `plain` has and a tag.
    /// `aad` must be the same when it is opened.
    ///
    /// # Errors
    /// As [`Vault::open_sealed`].
    pub fn seal(
        &self,
        id: KeyId,
        aad: &[u8],
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), VaultError> {
        let opened = self.opened()?;
        let key = opened.key(id)?;
        let nonce = opened.nonces.next(opened.random.as_ref())?;
        out.extend_from_slice(&nonce);
        let from = out.len();
        out.extend_from_slice(plain);
        key.encrypt(nonce, aad, out, from);
        assert_eq!(
            out.len(),
            from - NONCE_BYTES + plain.len() + SEALED_BYTES_MORE,
            "sealing adds a nonce and a tag"
        );
        Ok(())
    }

    /// What was sealed under a key.
    ///
    /// # Errors
    /// [`VaultError::Erased`], [`VaultError::NoMasterKey`], [`VaultError::WrongMasterKey`],
    /// [`VaultError::Damaged`], [`VaultError::Unknown`], [`VaultError::NotAuthentic`]; the disk's.
    pub fn open_sealed(&self, id: KeyId, aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let opened = self.opened()?;
        let key = opened.key(id)?;
        let (nonce, rest) = sealed
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(VaultError::NotAuthentic(id))?;
        key.decrypt(*nonce, aad, rest)
            .ok_or(VaultError::NotAuthentic(id))
    }
}

/// A new vault.
fn make(
    slots: &Slots,
    given: Result<&MasterKeys, &VaultError>,
    random: &dyn Randomness,
) -> Result<Header, VaultError> {
    let keys = given.map_err(|error| VaultError::NoMasterKey(error.to_string()))?;
    let mut vault = [0; 16];
    random.fill(&mut vault)?;
    let header = Header {
        sequence: 0,
        vault,
        current: MasterMark::of(keys.newest(), &vault, 1),
        next: None,
    };
    slots.write_header(&header)?;
    assert_eq!(
        slots.open()?,
        Some(header),
        "a vault that was made can be opened"
    );
    Ok(header)
}

impl Masters {
    /// The keys among those given that a header names.
    fn of(header: &Header, given: Result<MasterKeys, VaultError>) -> Self {
        let keys = match given {
            Ok(keys) => keys,
            Err(error) => {
                return Self {
                    wrapping: BTreeMap::new(),
                    problem: Some(error.to_string()),
                };
            }
        };
        let mut wrapping = BTreeMap::new();
        for mark in [Some(header.current), header.next].into_iter().flatten() {
            let is_it = |key: &&Secret| {
                MasterMark::of(key, &header.vault, mark.generation).check == mark.check
            };
            if let Some(key) = keys.all().iter().find(is_it) {
                wrapping.insert(mark.generation, wrapping_key(key));
            }
        }
        assert!(wrapping.len() <= 2, "a vault has two master keys at most");
        Self {
            wrapping,
            problem: None,
        }
    }

    fn has_all(&self, header: &Header) -> bool {
        let mut marks = [Some(header.current), header.next].into_iter().flatten();
        marks.all(|mark| self.wrapping.contains_key(&mark.generation))
    }

    /// Why a generation's key is not there.
    pub(crate) fn missing(&self, generation: u32) -> VaultError {
        match &self.problem {
            Some(problem) => {
                let text = problem.strip_prefix("no master key: ").unwrap_or(problem);
                VaultError::NoMasterKey(text.to_owned())
            }
            None => VaultError::WrongMasterKey { generation },
        }
    }
}

impl Opened {
    /// Reads the source of the master key anew.
    pub(crate) fn read_source(&self) -> Result<MasterKeys, VaultError> {
        self.source.read()
    }

    /// The newest generation that is known, for new slots.
    fn newest_master(&self, header: &Header) -> Result<(u32, Secret), VaultError> {
        let masters = self.masters.read();
        let mut marks = [header.next, Some(header.current)].into_iter().flatten();
        let known =
            marks.find_map(|mark| Some((mark.generation, masters.wrapping.get(&mark.generation)?)));
        match known {
            Some((generation, key)) => Ok((generation, key.clone())),
            None => Err(masters.missing(header.current.generation)),
        }
    }

    /// Makes a batch of keys. When it fails none of them is given, and the next batch overwrites them.
    fn make_keys(&self, writer: &mut MutexGuard<'_, Writer>) -> Result<(), VaultError> {
        let master = self.newest_master(&writer.header)?;
        let (first, count) = (writer.next, writer.batch);
        let mut made = Vec::with_capacity(count);
        let mut slots = Vec::with_capacity(count);
        for number in (first..).take(count) {
            let mut bytes = zeroize::Zeroizing::new([0; KEY_BYTES + 4]);
            self.random.fill(bytes.as_mut_slice())?;
            let (tag, key) = bytes.split_at(4);
            let tag = u32::from_le_bytes([tag[0], tag[1], tag[2], tag[3]]);
            let mut secret = [0; KEY_BYTES];
            secret.copy_from_slice(key);
            let secret = Secret::new(secret);
            let id = KeyId::new(number, tag);
            let nonce = self.nonces.next(self.random.as_ref())?;
            let master = (master.0, &master.1);
            let wrapped = WrappedKey::wrap(&secret, id, &self.vault, master, nonce);
            slots.push(Slot::Live(wrapped));
            made.push((id, secret));
        }
        assert_eq!(made.len(), slots.len(), "each key has a slot");
        for place in Place::BOTH {
            self.slots.write_slots(place, first, &slots)?;
            self.slots.sync(place)?;
        }
        writer.next = first + count as u64;
        writer.batch = (2 * count).min(BATCH_MAX);
        assert!(writer.next > first, "slots of keys are not given twice");
        assert!(
            made.iter().all(|(id, _)| id.slot() < writer.next),
            "a key that is given has a slot on disk"
        );
        let erasures = self.cache.erasures();
        for (id, secret) in &made {
            self.cache.keep(*id, secret, erasures);
        }
        // Given in the order of their slots.
        self.ready
            .lock()
            .extend(made.iter().rev().map(|(id, _)| *id));
        Ok(())
    }

    pub(crate) fn key(&self, id: KeyId) -> Result<Secret, VaultError> {
        if let Some(key) = self.cache.get(id) {
            return Ok(key);
        }
        let erasures = self.cache.erasures();
        let key = match self.unwrap(id) {
            Ok(key) => key,
            // It may have been read while it was overwritten.
            Err(_) => {
                let _writer = self.writer.lock();
                self.unwrap(id)?
            }
        };
        self.cache.keep(id, &key, erasures);
        Ok(key)
    }

    /// Reads a key from its slot.
    fn unwrap(&self, id: KeyId) -> Result<Secret, VaultError> {
        let wrapped = match self.slots.read_slot(id.slot())? {
            Slot::Live(wrapped) if wrapped.id == id => wrapped,
            Slot::Erased(erased) if erased == id => return Err(VaultError::Erased(id)),
            Slot::Live(_) | Slot::Erased(_) => return Err(VaultError::Unknown(id)),
            Slot::Damaged if id.slot() >= self.slots.count()? => {
                return Err(VaultError::Unknown(id));
            }
            Slot::Damaged => return Err(VaultError::Damaged(format!("the slot of key {id}"))),
        };
        self.unwrap_slot(&wrapped)
    }

    pub(crate) fn unwrap_slot(&self, wrapped: &WrappedKey) -> Result<Secret, VaultError> {
        let masters = self.masters.read();
        let Some(master) = masters.wrapping.get(&wrapped.generation) else {
            return Err(masters.missing(wrapped.generation));
        };
        let key = wrapped.unwrap(&self.vault, master);
        key.ok_or_else(|| VaultError::Damaged(format!("the slot of key {}", wrapped.id)))
    }
}
