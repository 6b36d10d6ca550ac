//! How operations become calls.

#[cfg(doc)]
use crate::address::WORD;

/// How bytes get into the memory of a server and out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// By remote reads and writes, of which libfabric does not say what others see in between: for
    /// hardware that moves whole words. Over TCP a word may arrive in two halves.
    Directly,
    /// By atomic reads and writes of words, which are all that libfabric promises to be whole.
    ByWords,
}

/// How operations are cut into calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) copies: Copies,
    /// Bytes of a piece; a multiple of [`WORD`].
    pub(super) piece: u64,
    /// Writes are placed in the order in which they are posted.
    pub(super) in_order: bool,
}

/// What one call asks of the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Copies bytes from there, whole words if the hardware does.
    Read,
    /// Copies bytes to there, whole words if the hardware does.
    Write,
    /// Copies words from there, each atomically.
    ReadWords,
    /// Copies words to there, each atomically; behind them comes what was there.
    WriteWords,
    /// Operands: the new word, the expected one; behind them comes what was there.
    CompareSwap,
    /// Operands: what is added, and a word that means nothing; behind them comes what was there.
    FetchAdd,
}

const _: () = assert!(
    Kind::Read as u32 == 0 && Kind::ReadWords as u32 == 2 && Kind::FetchAdd as u32 == 5,
    "kinds have the numbers that shim.c has for them"
);
