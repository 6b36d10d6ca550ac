//! What the memory of a server says about itself, in its first bytes.
//!
//! ```text
//! MAGIC 8 | version | server | directory | servers | replicas | bytes | places | log copies |
//! log bytes | log slots | versions | value | node | lease | length of the name | name, 64 bytes |
//! CRC-32 of all before
//! ```
//! Words, little-endian. The server writes it before anybody is let in, and nobody ever changes it.

use manxdb_core::Nanos;
use manxdb_core::check::deep;
use manxdb_fabric::WORD_LENGTH;

use super::geometry::Geometry;
use super::plan::SUPERBLOCK;

const MAGIC: [u8; 8] = *b"MANXROWS";
/// Of what lies behind it, too.
const VERSION: u64 = 5;
/// Bytes of the longest name.
pub const NAME_MAX: usize = 64;

/// A memory server, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// The database that it is for, so that nobody takes one for another.
    pub name: String,
    /// Its number.
    pub server: u16,
    /// The number of the directory that rows are written to; 0: they are in memory alone.
    pub directory: u64,
    /// Where everything is.
    pub geometry: Geometry,
}

/// What is there is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SuperblockError {
    /// Somebody else's.
    #[error("its memory does not begin as that of rows does")]
    Unrecognized,
    /// Of another release.
    #[error("its memory is laid out in version {0}, and this release knows version {VERSION}")]
    Version(u64),
    /// Its sum is another one.
    #[error("its superblock is damaged")]
    Damaged,
}

/// Two servers that do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {own} at memory server {server} and {other} at memory server {first}")]
pub struct Mismatch {
    what: &'static str,
    server: u16,
    own: String,
    first: u16,
    other: String,
}

impl Superblock {
    /// How memory is laid out that this release knows.
    pub const VERSION: u64 = VERSION;

    /// As it is in memory.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut put = |word: u64| bytes.extend(word.to_le_bytes());
        put(VERSION);
        put(self.server.into());
        put(self.directory);
        for (_, number) in numbers(&self.geometry) {
            put(number);
        }
        put(self.name.len() as u64);
        let name = self.name.bytes().chain(std::iter::repeat(0));
        bytes.extend(name.take(NAME_MAX));
        let sum = u64::from(crc32fast::hash(&bytes));
        bytes.extend(sum.to_le_bytes());
        assert!(
            bytes.len() as u64 <= SUPERBLOCK && bytes.len().is_multiple_of(WORD_LENGTH),
            "a superblock lies in its place, and is made of words: {} bytes",
            bytes.len()
        );
        if deep() && self.name.len() <= NAME_MAX {
            let read = Self::decode(&bytes);
            assert_eq!(
                read.as_ref(),
                Ok(self),
                "a superblock is read as it was written"
            );
        }
        bytes
    }

    /// What memory says that begins with these bytes.
    ///
    /// # Errors
    /// [`SuperblockError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, SuperblockError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(SuperblockError::Unrecognized);
        }
        let (words, _) = bytes.as_chunks::<WORD_LENGTH>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word)).skip(1);
        let mut next = || words.next().ok_or(SuperblockError::Damaged);
        let version = next()?;
        if version != VERSION {
            return Err(SuperblockError::Version(version));
        }
        let server = narrow(next()?)?;
        let directory = next()?;
        let geometry = Geometry {
            servers: narrow(next()?)?,
            replicas: narrow(next()?)?,
            bytes: next()?,
            places: narrow(next()?)?,
            log_copies: narrow(next()?)?,
            log_bytes: next()?,
            log_slots: narrow(next()?)?,
            versions: narrow(next()?)?,
            value: next()?,
            node: next()?,
            lease: Nanos(next()?),
        };
        let length = usize::try_from(next()?).map_err(|_| SuperblockError::Damaged)?;
        let before = (5 + numbers(&geometry).len()) * WORD_LENGTH;
        let said = bytes
            .get(..before + NAME_MAX)
            .ok_or(SuperblockError::Damaged)?;
        let sum = bytes.get(before + NAME_MAX..).and_then(<[u8]>::first_chunk);
        if sum.map(|sum| u64::from_le_bytes(*sum)) != Some(crc32fast::hash(said).into()) {
            return Err(SuperblockError::Damaged);
        }
        let name = said.get(before..before + length.min(NAME_MAX));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        Ok(Self {
            name: name.ok_or(SuperblockError::Damaged)?.to_owned(),
            server,
            directory,
            geometry,
        })
    }

    /// Whether two servers are of one database.
    ///
    /// # Errors
    /// [`Mismatch`], of what differs first.
    pub fn belongs_to(&self, first: &Self) -> Result<(), Mismatch> {
        let differ = |(what, own, other)| Mismatch {
            what,
            server: self.server,
            own,
            first: first.server,
            other,
        };
        match self.differs(first, &|_| true).map(differ) {
            None => Ok(()),
            Some(mismatch) => Err(mismatch),
        }
    }

    /// What differs first of what decides where everything is, if anything does: its name, as it is
    /// here, and as it is there.
    #[must_use]
    pub fn lies_otherwise(&self, other: &Self) -> Option<(&'static str, String, String)> {
        self.differs(other, &|what| what != LEASE && what != DIRECTORY)
    }

    fn differs(
        &self,
        other: &Self,
        counts: &dyn Fn(&str) -> bool,
    ) -> Option<(&'static str, String, String)> {
        if self.name != other.name {
            let (own, other) = (format!("'{}'", self.name), format!("'{}'", other.name));
            return Some(("the name of the database", own, other));
        }
        if counts(DIRECTORY) && self.directory != other.directory {
            let said = |number| match number {
                0 => "none".to_owned(),
                number => format!("{number:016x}"),
            };
            return Some((DIRECTORY, said(self.directory), said(other.directory)));
        }
        let pairs = numbers(&self.geometry)
            .into_iter()
            .zip(numbers(&other.geometry));
        let mut pairs = pairs.filter(|((what, own), (_, other))| counts(what) && own != other);
        let ((what, own), (_, other)) = pairs.next()?;
        Some((what, own.to_string(), other.to_string()))
    }
}

/// What may be another one when memory servers are started again.
const LEASE: &str = "the lease in nanoseconds";
const DIRECTORY: &str = "the identity of the directory that rows are written to";

/// All that must be equal, with its names.
fn numbers(geometry: &Geometry) -> [(&'static str, u64); 11] {
    [
        ("the number of memory servers", geometry.servers.into()),
        ("the number of replicas", geometry.replicas.into()),
        ("the size of memory in bytes", geometry.bytes),
        ("the number of places", geometry.places.into()),
        ("the number of copies of a log", geometry.log_copies.into()),
        ("the size of a log in bytes", geometry.log_bytes),
        ("the number of slots of a log", geometry.log_slots.into()),
        ("the number of versions", geometry.versions.into()),
        ("the size of a row in bytes", geometry.value),
        ("the size of a node in bytes", geometry.node),
        (LEASE, geometry.lease.0),
    ]
}

fn narrow(word: u64) -> Result<u16, SuperblockError> {
    u16::try_from(word).map_err(|_| SuperblockError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::super::geometry::tests::GEOMETRY;
    use super::super::plan::SUPERBLOCK;
    use super::*;

    fn superblock() -> Superblock {
        Superblock {
            name: "bänk".into(),
            server: 2,
            directory: 5,
            geometry: GEOMETRY,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = superblock().encode();
        assert!(bytes.len() as u64 <= SUPERBLOCK && bytes.len().is_multiple_of(8));
        let mut whole = bytes.clone();
        whole.resize(512, 0);
        assert_eq!(Superblock::decode(&whole), Ok(superblock()));
    }

    #[test]
    fn no_bit_flips_unseen() {
        let bytes = superblock().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Superblock::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn servers_that_do_not_belong_together_say_what_differs() {
        let first = Superblock {
            server: 0,
            ..superblock()
        };
        assert_eq!(superblock().belongs_to(&first), Ok(()));
        let other = Superblock {
            name: "shop".into(),
            ..superblock()
        };
        let said = other.belongs_to(&first).unwrap_err().to_string();
        assert_eq!(
            said,
            "the name of the database is 'shop' at memory server 2 and 'bänk' at memory server 0"
        );
        let other = Superblock {
            directory: 0,
            ..superblock()
        };
        let said = other.belongs_to(&first).unwrap_err().to_string();
        let words = "rows are written to is none at memory server 2 and 0000000000000005 at";
        assert!(said.contains(words), "{said}");
        assert_eq!(other.lies_otherwise(&first), None);
        let geometry = Geometry {
            places: 9,
            ..GEOMETRY
        };
        let other = Superblock {
            geometry,
            ..superblock()
        };
        let said = other.belongs_to(&first).unwrap_err().to_string();
        assert!(
            said.contains("places is 9 at memory server 2 and 8"),
            "{said}"
        );
    }
}
