//! How long records and their parts are.

use manxdb_fabric::WORD_LENGTH;
use manxdb_fabric::operation::BYTES_MAX;

/// Sizes of the records of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    pub(super) versions: usize,
    pub(super) value: usize,
    /// 0: records have no keys.
    pub(super) key: usize,
    /// Versions that leave a record are kept elsewhere.
    pub(super) has_overflow: bool,
}

/// A layout that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a block keeps {} to {} versions of 1 to {} bytes under keys of at most {} bytes, not \
     {versions} of {value} under {key}",
    Layout::VERSIONS_MIN,
    Layout::VERSIONS_MAX,
    Layout::VALUE_MAX,
    Layout::KEY_MAX
)]
pub struct LayoutError {
    versions: usize,
    value: usize,
    key: usize,
}

impl Layout {
    /// With one version readers would have to wait for writers.
    pub const VERSIONS_MIN: usize = 2;
    /// More than the paper's tables need.
    pub const VERSIONS_MAX: usize = 16;
    /// A value of the largest layout fits into one operation of the fabric, with all its versions.
    pub const VALUE_MAX: usize = 32 << 10;
    /// Longer than the keys of MySQL's indexes.
    pub const KEY_MAX: usize = 4 << 10;

    /// One operation moves a block of any layout.
    const FITS: () = {
        let largest = Self {
            versions: Self::VERSIONS_MAX,
            value: Self::VALUE_MAX,
            key: Self::KEY_MAX,
            has_overflow: true,
        };
        assert!(
            largest.bytes() as u64 <= BYTES_MAX,
            "a block is moved by one operation"
        );
        assert!(
            largest.front() >= largest.words() * WORD_LENGTH,
            "a front has all that a block says of its versions"
        );
    };

    /// Blocks without keys, of so many versions with values of at most so many bytes.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub const fn new(versions: usize, value: usize) -> Result<Self, LayoutError> {
        Self::keyed(versions, value, 0)
    }

    /// The same with keys of at most so many bytes.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub const fn keyed(versions: usize, value: usize, key: usize) -> Result<Self, LayoutError> {
        let () = Self::FITS;
        let is_fine = versions >= Self::VERSIONS_MIN
            && versions <= Self::VERSIONS_MAX
            && value >= 1
            && value <= Self::VALUE_MAX
            && key <= Self::KEY_MAX;
        if is_fine {
            Ok(Self {
                versions,
                value,
                key,
                has_overflow: false,
            })
        } else {
            Err(LayoutError {
                versions,
                value,
                key,
            })
        }
    }

    /// The same, where versions that leave a record are kept elsewhere ([`crate::overflow`]).
    #[must_use]
    pub const fn with_overflow(self) -> Self {
        Self {
            has_overflow: true,
            ..self
        }
    }

    /// Whether versions that leave a record are kept elsewhere.
    #[must_use]
    pub const fn has_overflow(self) -> bool {
        self.has_overflow
    }

    /// Versions, bytes of the longest value, bytes of the longest key.
    #[must_use]
    pub const fn sizes(self) -> (usize, usize, usize) {
        (self.versions, self.value, self.key)
    }

    /// Bytes of the longest key.
    #[must_use]
    pub const fn key_max(self) -> usize {
        self.key
    }

    /// Bytes of the longest value.
    #[must_use]
    pub const fn value_max(self) -> usize {
        self.value
    }

    /// Bytes of a slot's value, whole words.
    pub(crate) const fn slot(self) -> usize {
        self.value.next_multiple_of(WORD_LENGTH)
    }

    /// Words of the key: its length, and room for the longest.
    const fn key_words(self) -> usize {
        match self.key {
            0 => 0,
            key => 1 + key.div_ceil(WORD_LENGTH),
        }
    }

    /// Words before the labels: head, generation, key.
    const fn first_label(self) -> usize {
        2 + self.key_words()
    }

    /// Where behind the head labels begin, in bytes.
    pub(super) const fn labels(self) -> usize {
        (self.first_label() - 1) * WORD_LENGTH
    }

    /// Where behind the head values begin, in bytes.
    pub(super) const fn values(self) -> usize {
        (self.words() - 1) * WORD_LENGTH
    }

    /// Words before the values: those before the labels, two for each slot, where the version
    /// before is, sum.
    pub(super) const fn words(self) -> usize {
        self.first_label() + 2 * self.versions + self.has_overflow as usize + 1
    }

    /// Bytes of a block; blocks begin at multiples of 64.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.words() * WORD_LENGTH + self.versions * self.slot()
    }

    /// Bytes of its front: all but the value of its oldest version. That one falls off with the
    /// next write, so that who writes a record needs no more, and who reads it seldom does.
    #[must_use]
    pub const fn front(self) -> usize {
        self.bytes() - self.slot()
    }
}
