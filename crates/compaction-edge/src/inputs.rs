//! What a database tells of the inputs of a job.

/// What a database knows about the inputs of a job beside their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inputs {
    /// Smallest and largest user key of all of them.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries of all of them.
    pub entries: Option<u64>,
}
