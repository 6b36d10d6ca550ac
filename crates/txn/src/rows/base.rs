//! Rows that are there from the start.

use manxdb_storage::{Direction, KeyRange};

use crate::model::Page;

/// Immutable initial rows. Answers may be made up on the fly, but always the same ones.
pub trait Base: Send + Sync {
    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Option<Vec<u8>>;

    /// Up to `limit` rows of `range`, in the order of `direction`.
    fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page;
}

/// Nothing at the start.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoRows;

impl Base for NoRows {
    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn scan(&self, _range: &KeyRange, _direction: Direction, _limit: usize) -> Page {
        Page::new()
    }
}
