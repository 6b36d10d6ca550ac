//! Which elements of an object changed since its rows were written.

/// Elements up to which an object is one row, and bytes.
pub const SMALL_ELEMENTS: usize = 128;
/// Bytes up to which an object is one row.
pub const SMALL_BYTES: usize = 8 << 10;

/// Changes of an object. Small ones are one row, which is written whole: nothing is noted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pending {
    /// Whether each element has a row.
    pub in_rows: bool,
    /// Whether all rows must be written again, under a new generation.
    pub is_rewritten: bool,
    changed: Vec<Box<[u8]>>,
}

impl Pending {
    /// Notes that the element named `sub` was added, changed or removed.
    pub fn note(&mut self, sub: &[u8]) {
        if self.in_rows && !self.is_rewritten {
            self.changed.push(sub.into());
        }
    }

    /// Notes that rows no longer name the right elements.
    pub fn rewrite(&mut self) {
        if self.in_rows {
            self.is_rewritten = true;
            self.changed.clear();
        }
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
        self.is_rewritten = false;
    }
}
