//! What a file says of itself, in its first bytes.
//!
//! ```text
//! MAGIC 8 | version | kind | number | formation | first | superblock | zeros | needs | CRC-32 of all before
//! ```
//! Words, little-endian; [`Header::BYTES`] in all.

use std::path::Path;

use manxdb_core::check::deep;
use manxdb_fabric::WORD_LENGTH;

use super::DiskError;
use crate::memory::{Superblock, SuperblockError};

const MAGIC: [u8; WORD_LENGTH] = *b"MANXDISK";
const VERSION: u64 = 1;
/// Words before the superblock.
const WORDS: usize = 6;

/// What a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Batches, one behind the other.
    Batches,
    /// All memory that was given away.
    Checkpoint,
}

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// What it has.
    pub kind: FileKind,
    /// Of a segment, which one it is; of a checkpoint, the first that is needed beside it.
    pub number: u64,
    /// Under which the database was formed that it is of.
    pub formation: u64,
    /// The first batch in it; of a checkpoint, the first that is needed beside it.
    pub first: u64,
    /// Of a segment, a batch that is in no file: what is in this one is of use with a checkpoint that
    /// replaces that batch. 0: none is lost.
    pub needs: u64,
    /// Name and sizes of the database.
    pub superblock: Superblock,
}

impl Header {
    /// Bytes of it.
    pub const BYTES: usize = 512;

    /// As it is in a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let kind = match self.kind {
            FileKind::Batches => 1_u64,
            FileKind::Checkpoint => 2,
        };
        for word in [VERSION, kind, self.number, self.formation, self.first] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.superblock.encode());
        assert!(
            bytes.len() <= Self::BYTES - 2 * WORD_LENGTH,
            "a superblock fits into a header: {} bytes",
            bytes.len()
        );
        bytes.resize(Self::BYTES - 2 * WORD_LENGTH, 0);
        bytes.extend(self.needs.to_le_bytes());
        let sum = u64::from(crc32fast::hash(&bytes));
        bytes.extend(sum.to_le_bytes());
        assert_eq!(bytes.len(), Self::BYTES, "a header has one length");
        assert!(
            self.needs < self.first.max(1),
            "a batch that is lost comes before those of the file: {} and {}",
            self.needs,
            self.first
        );
        let is_same = |read: Self| {
            let superblock = self.superblock.clone(); // which sees to itself
            Self { superblock, ..read } == *self
        };
        assert!(
            !deep() || Self::decode(&bytes, Path::new("")).is_ok_and(is_same),
            "a file is read as it was written"
        );
        bytes
    }

    /// What a file says that begins with these bytes.
    ///
    /// # Errors
    /// [`DiskError`], with the name of the file.
    pub fn decode(bytes: &[u8], file: &Path) -> Result<Self, DiskError> {
        let unrecognized = || DiskError::Unrecognized(file.to_owned());
        let damaged = || DiskError::Damaged(file.to_owned(), 0);
        if !bytes.starts_with(&MAGIC) {
            return Err(unrecognized());
        }
        let header = bytes.first_chunk::<{ Self::BYTES }>().ok_or_else(damaged)?;
        let (said, sum) = header
            .split_last_chunk::<WORD_LENGTH>()
            .ok_or_else(damaged)?;
        if u64::from(crc32fast::hash(said)) != u64::from_le_bytes(*sum) {
            return Err(damaged());
        }
        let (said, needs) = said.split_last_chunk().ok_or_else(damaged)?;
        let (words, superblock) = said.split_at(WORDS * WORD_LENGTH);
        let (words, _) = words.as_chunks::<WORD_LENGTH>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word)).skip(1);
        let mut next = || words.next().ok_or_else(damaged);
        let version = next()?;
        if version != VERSION {
            return Err(DiskError::Version(file.to_owned(), version, VERSION));
        }
        let kind = match next()? {
            1 => FileKind::Batches,
            2 => FileKind::Checkpoint,
            _ => return Err(damaged()),
        };
        let (number, formation, first) = (next()?, next()?, next()?);
        let superblock = Superblock::decode(superblock).map_err(|error| match error {
            SuperblockError::Version(version) => {
                DiskError::Version(file.to_owned(), version, Superblock::VERSION)
            }
            _ => damaged(),
        })?;
        Ok(Self {
            kind,
            number,
            formation,
            first,
            needs: u64::from_le_bytes(*needs),
            superblock,
        })
    }

    /// Whether memory servers with a superblock can have what is in the file.
    ///
    /// # Errors
    /// [`DiskError::Differs`].
    pub fn fits(&self, own: &Superblock, file: &Path) -> Result<(), DiskError> {
        match own.lies_otherwise(&self.superblock) {
            None => Ok(()),
            Some((what, own, other)) => Err(DiskError::Differs {
                file: file.to_owned(),
                what,
                own,
                other,
            }),
        }
    }
}
