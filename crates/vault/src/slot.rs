//! One slot: 128 bytes, within one sector of a disk.
//!
//! ```text
//! 0    state        u8    1 live, 2 erased
//! 1    generation   u32   of the master key it is wrapped by
//! 5    key id       u64
//! 13   nonce        12
//! 25   wrapped key  48    32 bytes and a tag
//! 73   zero         51
//! 124  checksum     u32   CRC-32 of the bytes before
//! ```
//! Numbers are little-endian. The key is wrapped with the vault's id, the generation and the key's id as
//! associated data: a slot moved elsewhere does not open.

use crate::secret::{KEY_BYTES, KeyId, NONCE_BYTES, Secret, TAG_BYTES};

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 128;

const LIVE: u8 = 1;
const ERASED: u8 = 2;
const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;
const NONCE_AT: usize = 13;
const WRAPPED_AT: usize = NONCE_AT + NONCE_BYTES;
const CHECKSUM_AT: usize = SLOT_BYTES - 4;

const _: () = assert!(
    WRAPPED_AT + WRAPPED_BYTES <= CHECKSUM_AT,
    "a slot holds its key"
);
const _: () = assert!(
    512 % SLOT_BYTES == 0,
    "no slot lies across two sectors of a disk"
);

/// What a slot says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A key.
    Live(WrappedKey),
    /// A key that was destroyed.
    Erased(KeyId),
    /// Nothing that was written whole.
    Damaged,
}

/// A key as it lies in its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrappedKey {
    pub(crate) generation: u32,
    pub(crate) id: KeyId,
    nonce: [u8; NONCE_BYTES],
    wrapped: [u8; WRAPPED_BYTES],
}

fn aad(vault: &[u8; 16], generation: u32, id: KeyId) -> Vec<u8> {
    [
        b"manxdb slot".as_slice(),
        vault,
        &generation.to_le_bytes(),
        &id.get().to_le_bytes(),
    ]
    .concat()
}

impl WrappedKey {
    /// `key` under the master key's wrapping key.
    pub(crate) fn wrap(
        key: &Secret,
        id: KeyId,
        vault: &[u8; 16],
        (generation, master): (u32, &Secret),
        nonce: [u8; NONCE_BYTES],
    ) -> Self {
        let mut bytes = Vec::with_capacity(WRAPPED_BYTES);
        bytes.extend_from_slice(key.bytes());
        master.encrypt(nonce, &aad(vault, generation, id), &mut bytes, 0);
        assert_eq!(bytes.len(), WRAPPED_BYTES, "a wrapped key has one length");
        let mut wrapped = [0; WRAPPED_BYTES];
        wrapped.copy_from_slice(&bytes);
        assert_ne!(
            &wrapped[..KEY_BYTES],
            key.bytes(),
            "a wrapped key is no key"
        );
        assert!(generation > 0, "generations of master keys begin at 1");
        Self {
            generation,
            id,
            nonce,
            wrapped,
        }
    }

    /// The key; `None` under another master key, or when the slot is no key of this vault.
    pub(crate) fn unwrap(&self, vault: &[u8; 16], master: &Secret) -> Option<Secret> {
        let aad = aad(vault, self.generation, self.id);
        let bytes = zeroize::Zeroizing::new(master.decrypt(self.nonce, &aad, &self.wrapped)?);
        let mut key = [0; KEY_BYTES];
        assert_eq!(bytes.len(), KEY_BYTES, "a slot holds one key");
        key.copy_from_slice(&bytes);
        Some(Secret::new(key))
    }
}

impl Slot {
    pub(crate) fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        match self {
            Self::Live(key) => {
                bytes[0] = LIVE;
                bytes[1..5].copy_from_slice(&key.generation.to_le_bytes());
                bytes[5..13].copy_from_slice(&key.id.get().to_le_bytes());
                bytes[NONCE_AT..WRAPPED_AT].copy_from_slice(&key.nonce);
                bytes[WRAPPED_AT..WRAPPED_AT + WRAPPED_BYTES].copy_from_slice(&key.wrapped);
            }
            Self::Erased(id) => {
                bytes[0] = ERASED;
                bytes[5..13].copy_from_slice(&id.get().to_le_bytes());
            }
            Self::Damaged => {}
        }
        let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// What the bytes of slot `number` say.
    pub(crate) fn decode(bytes: &[u8], number: u64) -> Self {
        assert_eq!(bytes.len(), SLOT_BYTES, "a slot is read whole");
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        if word(CHECKSUM_AT) != crc32fast::hash(&bytes[..CHECKSUM_AT]) {
            return Self::Damaged;
        }
        let id = u64::from(word(5)) | u64::from(word(9)) << 32;
        let id = KeyId::from_stored(id);
        if id.slot() != number {
            return Self::Damaged;
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&bytes[NONCE_AT..WRAPPED_AT]);
        let mut wrapped = [0; WRAPPED_BYTES];
        wrapped.copy_from_slice(&bytes[WRAPPED_AT..WRAPPED_AT + WRAPPED_BYTES]);
        match bytes[0] {
            LIVE => Self::Live(WrappedKey {
                generation: word(1),
                id,
                nonce,
                wrapped,
            }),
            ERASED => Self::Erased(id),
            _ => Self::Damaged,
        }
    }
}
