//! Rows: a key and bytes that go with it.

use crate::error::OlapError;

/// Bytes of a key, the first of its row.
const KEY: usize = 4;

/// What rows are joined or grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

impl Key {
    /// Of a row.
    pub fn of(row: &[u8]) -> Self {
        Self(row.first_chunk().map_or(0, |key| u32::from_le_bytes(*key)))
    }
}

/// Bytes of a row, key and all: what memory moves in whole words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(usize);

impl Width {
    /// The least: the paper's rows, of a key and four bytes.
    pub const MIN: usize = 8;
    /// The most.
    pub const MAX: usize = 1024;

    /// Rows of so many bytes.
    ///
    /// # Errors
    /// [`OlapError::Width`].
    pub fn new(bytes: usize) -> Result<Self, OlapError> {
        let fits = (Self::MIN..=Self::MAX).contains(&bytes) && bytes.is_multiple_of(8);
        if fits {
            Ok(Self(bytes))
        } else {
            Err(OlapError::Width {
                bytes,
                least: Self::MIN,
                most: Self::MAX,
            })
        }
    }

    pub(crate) const fn of_partials() -> Self {
        Self(24)
    }

    /// How many bytes.
    pub const fn bytes(self) -> usize {
        self.0
    }
}

/// Which relation of a join; aggregations have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Tables are built of it.
    Build,
    /// They are looked up with it.
    Probe,
}

/// Rows of one width, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    width: Width,
    bytes: Vec<u8>,
}

impl Rows {
    /// None yet.
    pub fn new(width: Width) -> Self {
        Self {
            width,
            bytes: Vec::new(),
        }
    }

    /// All zero, so many.
    pub(crate) fn zeroed(width: Width, count: usize) -> Self {
        Self {
            width,
            bytes: vec![0; count * width.bytes()],
        }
    }

    /// Bytes of each.
    pub fn width(&self) -> Width {
        self.width
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a row of a key and what goes with it, of which what is too long is left out and what
    /// is missing is zero.
    pub fn push(&mut self, key: Key, payload: &[u8]) {
        let end = self.bytes.len() + self.width.bytes();
        let region = self.width.bytes() - KEY;
        self.bytes.extend_from_slice(&key.0.to_le_bytes());
        self.bytes
            .extend_from_slice(payload.get(..region).unwrap_or(payload));
        self.bytes.resize(end, 0);
    }

    /// Adds rows as they lie.
    ///
    /// # Errors
    /// [`OlapError::Cut`]: the last is not whole.
    pub fn extend(&mut self, rows: &[u8]) -> Result<(), OlapError> {
        let width = self.width.bytes();
        if !rows.len().is_multiple_of(width) {
            let bytes = rows.len();
            return Err(OlapError::Cut { bytes, width });
        }
        self.bytes.extend_from_slice(rows);
        Ok(())
    }

    /// A row by its place; nothing behind the last.
    pub fn get(&self, place: usize) -> &[u8] {
        let start = place.saturating_mul(self.width.bytes());
        let end = start.saturating_add(self.width.bytes());
        self.bytes.get(start..end).unwrap_or_default()
    }

    pub(crate) fn set(&mut self, place: usize, row: &[u8]) {
        let start = place * self.width.bytes();
        if let Some(found) = self.bytes.get_mut(start..start + self.width.bytes()) {
            found.copy_from_slice(row);
        }
    }

    /// As they lie.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, u8> {
        self.bytes.chunks_exact(self.width.bytes())
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a [u8];
    type IntoIter = std::slice::ChunksExact<'a, u8>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_whole_words() {
        for bytes in [0, 4, 12, 1032] {
            let refused = Width::new(bytes).unwrap_err().to_string();
            assert!(refused.contains("8 to 1024"), "{refused}");
        }
        assert_eq!(Width::new(8).unwrap().bytes(), 8);
    }

    #[test]
    fn a_row_has_its_key_first_and_is_filled_up() {
        let mut rows = Rows::new(Width::new(16).unwrap());
        rows.push(Key(7), b"ab");
        rows.push(Key(u32::MAX), &[9; 40]);
        assert_eq!(rows.len(), 2);
        assert_eq!(Key::of(rows.get(0)), Key(7));
        assert_eq!(&rows.get(0)[4..8], b"ab\0\0");
        assert_eq!(Key::of(rows.get(1)), Key(u32::MAX));
        assert_eq!(&rows.get(1)[4..], [9; 12]);
        assert!(rows.get(2).is_empty());
        assert!(rows.extend(&[0; 8]).is_err());
        rows.extend(&[1; 32]).unwrap();
        assert_eq!(rows.iter().count(), 4);
    }
}
