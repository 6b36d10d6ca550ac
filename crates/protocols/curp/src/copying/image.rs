//! What a master sends: an image of its state at one place in its log, read for each backup.

use std::collections::BTreeMap;

use super::{Cut, FORMAT, HEADER, Piece};
use crate::execute::Execute;
use crate::ids::{Member, View};
use crate::image::{ReadImage, StateError};
use crate::options::{Options, PIECE_BYTES_MAX};
use crate::rifl::Rifl;

/// Everything that a master has at a cut.
pub(crate) struct Image {
    cut: Cut,
    is_complete: bool,
    piece_bytes: usize,
    /// What comes before the machine's image.
    head: Vec<u8>,
    /// At its beginning.
    state: Box<dyn ReadImage>,
    /// How far each backup got.
    readers: BTreeMap<Member, Reader>,
}

/// Reads an image for one backup.
struct Reader {
    state: Box<dyn ReadImage>,
    /// Bytes that were read and not sent.
    ahead: Vec<u8>,
    /// The piece that was read last: it may have to be sent again.
    number: u32,
    bytes: Vec<u8>,
    is_last: bool,
}

impl Reader {
    /// Reads the next piece.
    fn go_on(&mut self, piece_bytes: usize) -> Result<(), StateError> {
        let mut is_over = false;
        while !is_over && self.ahead.len() <= piece_bytes {
            match self.state.read()? {
                Some(bytes) => self.ahead.extend_from_slice(&bytes),
                None => is_over = true,
            }
        }
        // One byte more is there than a piece takes, or the end is: so it is known which one is the last.
        let rest = self.ahead.split_off(self.ahead.len().min(piece_bytes));
        self.bytes = std::mem::replace(&mut self.ahead, rest);
        self.is_last = self.ahead.is_empty();
        assert!(is_over || !self.is_last, "the last piece ends the image");
        assert!(self.bytes.len() <= PIECE_BYTES_MAX, "a piece is bounded");
        Ok(())
    }
}

impl Image {
    /// Of a machine's state and the completion records.
    pub(crate) fn new(cut: Cut, state: &impl Execute, completed: &Rifl, options: &Options) -> Self {
        let piece_bytes = options.piece_bytes;
        assert!(
            (1..=PIECE_BYTES_MAX).contains(&piece_bytes),
            "pieces of {piece_bytes} bytes: 1 to {PIECE_BYTES_MAX} are possible"
        );
        let completed = postcard::to_stdvec(completed);
        assert!(completed.is_ok(), "completion records can be written down");
        let completed = completed.unwrap_or_default();
        let mut head = Vec::with_capacity(HEADER + completed.len());
        head.push(FORMAT);
        head.extend_from_slice(&(completed.len() as u64).to_le_bytes());
        head.extend_from_slice(&completed);
        Self {
            cut,
            is_complete: true,
            piece_bytes,
            head,
            state: state.image(),
            readers: BTreeMap::new(),
        }
    }

    /// Says whether the log goes on behind the cut: the master serves a view now, or has more already.
    pub(crate) fn made_while_serving(self, serves: bool) -> Self {
        Self {
            is_complete: !serves,
            ..self
        }
    }

    pub(crate) fn cut(&self) -> Cut {
        self.cut
    }

    /// Whether a piece follows what a backup was sent last.
    pub(crate) fn goes_on(&self, to: Member) -> bool {
        let reader = self.readers.get(&to);
        reader.is_some_and(|reader| !reader.is_last)
    }

    /// The piece of a number for a backup: the first one, the one that it was sent last, or the next.
    ///
    /// # Errors
    /// As [`ReadImage::read`].
    pub(crate) fn piece(
        &mut self,
        to: Member,
        number: u32,
        view: View,
    ) -> Result<Piece, StateError> {
        let begins = number == 0 && self.readers.get(&to).is_none_or(|known| known.number > 0);
        if begins {
            let mut reader = Reader {
                state: self.state.again(),
                ahead: self.head.clone(),
                number: 0,
                bytes: Vec::new(),
                is_last: false,
            };
            reader.go_on(self.piece_bytes)?;
            self.readers.insert(to, reader);
        }
        let reader = self.readers.get_mut(&to);
        assert!(reader.is_some(), "a copy begins with its first piece");
        let Some(reader) = reader else {
            return Err(StateError::Unreadable);
        };
        if number > reader.number {
            assert_eq!(number, reader.number + 1, "pieces are sent in their order");
            assert!(!reader.is_last, "no piece follows the last one");
            reader.go_on(self.piece_bytes)?;
            reader.number = number;
        }
        assert_eq!(number, reader.number, "one piece at a time is under way");
        assert!(!reader.bytes.is_empty(), "no piece is empty");
        Ok(Piece {
            cut: self.cut,
            view,
            number,
            is_last: reader.is_last,
            is_complete: self.is_complete,
            bytes: reader.bytes.clone(),
        })
    }
}
