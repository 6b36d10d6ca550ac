//! Text files as rows: the lines that `LOAD DATA` reads and `SELECT … INTO OUTFILE` writes.

mod read;
mod write;

pub(crate) use read::{Field, LineReader};
pub(crate) use write::put_line;
