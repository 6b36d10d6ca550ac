//! Which elements of an object changed since its rows were written.

/// Elements up to which an object is one row, and bytes.
pub const SMALL_ELEMENTS: usize = 128;
/// Bytes up to which an object is one row.
pub const SMALL_BYTES: usize = 8 << 10;
/// Elements up to which a list is one row, and bytes: fewer than of others, because a queue grows
/// by pushes, each of which would write the row again.
pub const SMALL_LIST_ELEMENTS: usize = 16;
/// Bytes up to which a list is one row.
pub const SMALL_LIST_BYTES: usize = 512;

/// Changes of an object. Small ones are one row, which is written whole: nothing is noted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pending {
    /// Whether each element has a row.
    pub in_rows: bool,
    /// Whether rows have another form now than those that were written.
    is_anew: bool,
    changed: Vec<Box<[u8]>>,
}

impl Pending {
    /// Notes that the element named `sub` was added, changed or removed.
    pub fn note(&mut self, sub: &[u8]) {
        if self.in_rows {
            self.changed.push(sub.into());
        }
    }

    /// Says that rows have another form from now on: all are written again, under another generation.
    pub fn write_anew(&mut self) {
        self.is_anew = true;
    }

    /// Whether there are rows, of a form that is no longer theirs.
    #[must_use]
    pub fn is_anew(&self) -> bool {
        self.in_rows && self.is_anew
    }

    /// All noted elements, once.
    pub fn take(&mut self) -> Vec<Box<[u8]>> {
        let mut changed = std::mem::take(&mut self.changed);
        if changed.len() > 1 {
            changed.sort_unstable();
            changed.dedup();
        }
        changed
    }

    /// Forgets what was noted.
    pub fn forget(&mut self) {
        self.changed.clear();
        self.is_anew = false;
    }
}
