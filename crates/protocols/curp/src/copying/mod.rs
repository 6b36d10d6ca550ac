//! A copy of everything for a new backup, in pieces of bounded size.
//!
//! A copy is of one place in one master's log, its [`Cut`]. The master makes the image of a cut once, reads
//! it for each backup from its beginning to its end, and sends what it has read piece by piece, the next
//! one when the backup has confirmed the one before it. A backup takes pieces of one cut in their order into
//! a new state beside its own; with the last one that state becomes its own. Until then its own log stays as
//! it is, and it says nothing of the new one. Pieces of an older cut are dropped, and one of a newer cut
//! begins again. Neither side has more than a piece and what the machine reads or takes at once in memory,
//! unless its machine does.
//!
//! | bytes of an image | what |
//! |---|---|
//! | 1 | [`FORMAT`] |
//! | 8 | length of the completion records, little-endian |
//! | … | the completion records: postcard |
//! | … | the machine's image |
//!
//! | file | |
//! |---|---|
//! | `image` | the master's side |
//! | `collector` | the backup's side |

mod collector;
mod image;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(crate) use self::collector::{Collector, Copied, Took};
pub(crate) use self::image::Image;
use crate::ids::{Epoch, LogId, Position, View};

/// The layout of an image.
pub const FORMAT: u8 = 2;
/// Bytes of an image before its completion records.
const HEADER: usize = 1 + size_of::<u64>();

/// What a copy is of. The log of one epoch's master has one content up to a place, so that images of
/// equal cuts are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cut {
    /// The master's life.
    pub epoch: Epoch,
    /// The end of its log.
    pub last: Position,
    /// The life of the master that made the entry there.
    pub made_by: Epoch,
}

impl Cut {
    /// The entry at its end.
    #[must_use]
    pub fn end(&self) -> LogId {
        LogId {
            at: self.last,
            epoch: self.made_by,
        }
    }
}

/// A part of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Of which image.
    pub cut: Cut,
    /// The view to come, which the copy is for; for a spare that follows the log, the name that comes
    /// after that of the view in use.
    pub view: View,
    /// Its place among the pieces, from 0.
    pub number: u32,
    /// Whether no piece follows it.
    pub is_last: bool,
    /// Whether nobody is served between its cut and the view to come, so that it has all that was
    /// acknowledged before that view.
    pub is_complete: bool,
    /// At most [`PIECE_BYTES_MAX`].
    #[serde(with = "crate::bytes")]
    pub bytes: Vec<u8>,
}
