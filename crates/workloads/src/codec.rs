//! Bytes of arguments: fixed widths, little-endian, nothing left over.

use manxdb_txn::procedure::ProcedureError;

/// Takes bytes from the front; `None` when they end early.
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// All of a call's arguments, by what reads them from their beginning.
///
/// # Errors
/// [`ProcedureError::Arguments`]: they end early, go on, or `read` refuses them.
pub(crate) fn arguments<T>(
    procedure: &str,
    args: &[u8],
    read: impl FnOnce(&mut Cursor<'_>) -> Option<T>,
) -> Result<T, ProcedureError> {
    let mut input = Cursor::new(args);
    let read = read(&mut input).filter(|_| input.is_at_end());
    read.ok_or_else(|| malformed(procedure))
}

/// The error of arguments that cannot be read.
pub(crate) fn malformed(procedure: &str) -> ProcedureError {
    ProcedureError::Arguments(format!("not the arguments of {procedure}"))
}

/// The error of a row that nobody of this workload wrote.
pub(crate) fn strange_row(key: &[u8]) -> ProcedureError {
    let key = key.escape_ascii();
    ProcedureError::Aborted(format!("the row of key {key} is not this workload's"))
}
