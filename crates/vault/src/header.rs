//! The header: which vault, and which master keys its slots are wrapped by.
//!
//! ```text
//! 0   magic       8     "MANXVLT" and the format
//! 8   sequence    u64   grows with each header; header n lies at 4096 · (n mod 2)
//! 16  vault id    16
//! 32  current     u32   generation of the master key
//! 36  check       16    what tells that master key from others
//! 52  next        u32   generation that a rotation is leading to, or 0
//! 56  check       16
//! 72  checksum    u32
//! ```

use crate::secret::Secret;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 76;
/// Bytes from one header to the other: they share no page.
pub(crate) const HEADER_STRIDE: u64 = 4096;

const MAGIC: &[u8; 7] = b"MANXVLT";
const FORMAT: u8 = 1;
const CHECKSUM_AT: usize = HEADER_BYTES - 4;

const _: () = assert!(HEADER_BYTES <= 512, "a header lies in one sector");

/// A master key's generation, and what tells it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MasterMark {
    pub(crate) generation: u32,
    pub(crate) check: [u8; 16],
}

/// What is written at the head of both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    pub(crate) vault: [u8; 16],
    pub(crate) current: MasterMark,
    pub(crate) next: Option<MasterMark>,
}

/// What bytes at a header's place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadHeader {
    Valid(Header),
    /// Of a release with this format.
    Other(u8),
    Nothing,
}

impl MasterMark {
    /// The mark of `master` in the vault `vault`. It says nothing of the key.
    pub(crate) fn of(master: &Secret, vault: &[u8; 16], generation: u32) -> Self {
        let label = [b"manxdb master key check".as_slice(), vault].concat();
        let derived = master.derive(&label);
        let mut check = [0; 16];
        check.copy_from_slice(&derived.bytes()[..16]);
        Self { generation, check }
    }
}

impl Header {
    /// Where the header lies.
    pub(crate) fn offset(&self) -> u64 {
        self.sequence % 2 * HEADER_STRIDE
    }

    /// The header that replaces this one.
    pub(crate) fn followed_by(&self, current: MasterMark, next: Option<MasterMark>) -> Self {
        let follower = Self {
            sequence: self.sequence + 1,
            vault: self.vault,
            current,
            next,
        };
        assert!(
            next.is_none_or(|next| next.generation == current.generation + 1),
            "generations follow each other"
        );
        assert!(
            current.generation >= self.current.generation,
            "no master key comes back"
        );
        assert_ne!(
            follower.offset(),
            self.offset(),
            "a header never overwrites the one before it"
        );
        follower
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..7].copy_from_slice(MAGIC);
        bytes[7] = FORMAT;
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.vault);
        for (at, mark) in [(32, Some(self.current)), (52, self.next)] {
            if let Some(mark) = mark {
                assert!(mark.generation > 0, "generations begin at 1");
                bytes[at..at + 4].copy_from_slice(&mark.generation.to_le_bytes());
                bytes[at + 4..at + 20].copy_from_slice(&mark.check);
            }
        }
        let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(
            Self::decode(&bytes),
            ReadHeader::Valid(*self),
            "a header that is written can be read"
        );
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> ReadHeader {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let is_whole = word(CHECKSUM_AT) == crc32fast::hash(&bytes[..CHECKSUM_AT]);
        if &bytes[..7] != MAGIC || !is_whole && bytes[7] == FORMAT {
            return ReadHeader::Nothing;
        }
        if bytes[7] != FORMAT {
            return ReadHeader::Other(bytes[7]);
        }
        let mark = |at: usize| {
            let mut check = [0; 16];
            check.copy_from_slice(&bytes[at + 4..at + 20]);
            MasterMark {
                generation: word(at),
                check,
            }
        };
        let mut vault = [0; 16];
        vault.copy_from_slice(&bytes[16..32]);
        let header = Self {
            sequence: u64::from(word(8)) | u64::from(word(12)) << 32,
            vault,
            current: mark(32),
            next: Some(mark(52)).filter(|next| next.generation > 0),
        };
        if header.current.generation == 0 {
            return ReadHeader::Nothing;
        }
        ReadHeader::Valid(header)
    }
}
