//! Files in which what is published is kept ([decision 23]): batches in the order in which they were
//! taken, and copies of all memory that make older ones needless.
//!
//! ```text
//! identity                   a number by chance, which all memory servers of a database say
//! lock                       whose turn it is to write
//! batches-00000000000000000007      a segment: header | batch 812 | batch 813 | …
//! checkpoint-00000000000000000007   header | pieces of memory | end
//! ```
//!
//! A checkpoint has the number of the first segment that is needed beside it; whatever has a lower
//! number is needed no more. A name is there only when the header behind it is on disk, and a
//! checkpoint's only when all of it is.
//!
//! | question | answered in |
//! |---|---|
//! | how a batch lies in a file, and which bytes are none | [`frame`] |
//! | what a file says of itself, and which database it is of | [`header`] |
//! | names, the lock, what goes when | [`directory`] |
//! | writing batches, on a disk that fails | [`journal`] |
//! | writing and reading copies of memory | [`checkpoint`] |
//! | reading batches, and what is refused | [`history`] |
//!
//! **Refused or cut off.** Each batch says how far everything was on disk for good when it was
//! written. A batch that is damaged or torn is the end of what was written if no whole one behind it
//! says that it had been on disk; then it is cut off, and so is what comes behind it. Otherwise disks
//! have lost something, and nothing is read past it. When there is nothing to write for a while, that
//! the last batch is on disk is written behind it.
//!
//! **Gaps.** A batch that was written once may be in no file: a sync has failed, and whoever was to write
//! it again has died. What is written behind such a gap says so, and is left out until there is a
//! checkpoint behind it; so what was on disk before the gap comes back meanwhile.
//!
//! [decision 23]: ../../../../docs/decisions/023-one-log-archiver-writes-what-is-published.md

mod checkpoint;
mod directory;
mod frame;
mod header;
mod history;
mod journal;

use std::io;
use std::path::{Path, PathBuf};

pub use self::checkpoint::{CheckpointPiece, Draft};
pub use self::directory::{Directory, Sizes, Turn};
pub use self::header::{FileKind, Header};
pub use self::history::History;
pub use self::journal::{Disk, Journal, Output, Sync};

/// What is wrong with a directory of batches.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The system says so.
    #[error("{file}: {1}", file = .0.display())]
    Io(PathBuf, io::Error),
    /// What is there is none of ours.
    #[error("{file} does not begin as files of rows do", file = .0.display())]
    Unrecognized(PathBuf),
    /// Of another release.
    #[error("{file} is of version {1}, and this release knows version {2}", file = .0.display())]
    Version(PathBuf, u64, u64),
    /// Something that was on disk is another thing now.
    #[error(
        "{file} is damaged at offset {1}: restore the file, or begin with an empty directory",
        file = .0.display()
    )]
    Damaged(PathBuf, u64),
    /// A file is missing.
    #[error(
        "batches {1} to {2} are missing before {file}: restore the file that had them, or begin with an \
         empty directory",
        file = .0.display()
    )]
    Missing(PathBuf, u64, u64),
    /// Of another database, or of other sizes.
    #[error(
        "{what} is {own} here and {other} in {path}: start memory servers with the settings that the \
         files were written with, or with another directory",
        path = .file.display()
    )]
    Differs {
        /// Which file says it.
        file: PathBuf,
        /// What differs,
        what: &'static str,
        /// as it is here,
        own: String,
        /// and there.
        other: String,
    },
    /// Of another formation of the database.
    #[error("{file} is of another formation of the database than what is in memory", file = .0.display())]
    Formation(PathBuf),
}

impl DiskError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
