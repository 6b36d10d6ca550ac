//! Materialized views as a plan knows them: what a reader may ask of one.

use std::fmt::Debug;

use manxdb_storage::{KeyRange, Version};

use crate::error::SqlResult;
use crate::types::{Row, Value};

/// A materialized view that may answer a query.
pub trait HeldView: Debug + Send + Sync {
    /// Name and key, for EXPLAIN.
    fn shown(&self) -> String;

    /// Where the rows of its tables are stored.
    fn row_ranges(&self) -> Vec<KeyRange>;

    /// The bytes of a key; `None` when the view cannot tell, and the base plan answers.
    fn key(&self, values: &[Value]) -> Option<Vec<u8>>;

    /// Bytes that one key may take.
    fn key_bytes_max(&self) -> usize;

    /// What a reader at a snapshot gets for a key.
    ///
    /// # Errors
    /// 1105 when what is held cannot be read back, which is a defect.
    fn read(&self, key: &[u8], at: Version) -> SqlResult<ViewRead<'_>>;
}

/// What a reader of a [`HeldView`] gets.
pub enum ViewRead<'v> {
    /// The rows that the tail begins with.
    Hit(Vec<Row>),
    /// The reader may fill the key with what its snapshot has.
    Fill(Box<dyn ViewFill + 'v>),
    /// The base plan answers.
    Base,
}

/// A key that is being filled; dropped, it is left as it was.
pub trait ViewFill {
    /// Counts rows that operators of the fill have touched.
    fn note_touched(&self, rows: u64);

    /// Keeps `rows`, which the fill's plan gave, and returns the rows that the tail begins with.
    /// `None`: the key cannot be held, and the base plan answers.
    ///
    /// # Errors
    /// 1105 when what is held cannot be read back, which is a defect.
    fn finish(self: Box<Self>, rows: Vec<Row>) -> SqlResult<Option<Vec<Row>>>;
}
