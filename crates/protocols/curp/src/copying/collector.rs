//! What a backup makes of pieces: a new state beside its own, until the last one is there.

use super::{Cut, FORMAT, HEADER, Piece};
use crate::execute::Execute;
use crate::ids::View;
use crate::image::{ReceiveImage, StateError};
use crate::options::{Options, PIECE_BYTES_MAX};
use crate::rifl::Rifl;

/// What came of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// It is of an older cut, or no piece of a state.
    Nothing,
    /// The piece of this number is needed next.
    Next(u32),
    /// It was the last one: [`Collector::finish`] makes the copy.
    Whole,
}

/// The pieces that a backup has of one cut.
struct Collected<E> {
    cut: Cut,
    /// The newest view that a piece was sent for.
    view: View,
    /// As [`Piece::is_complete`].
    is_complete: bool,
    next: u32,
    is_whole: bool,
    /// The beginning, while the completion records are not whole.
    head: Vec<u8>,
    completed: Option<Rifl>,
    state: Box<dyn ReceiveImage<E>>,
    bytes: usize,
}

impl<E: Execute> Collected<E> {
    fn new(piece: &Piece, beside: &E) -> Self {
        Self {
            cut: piece.cut,
            view: piece.view,
            is_complete: piece.is_complete,
            next: 0,
            is_whole: false,
            head: Vec::new(),
            completed: None,
            state: beside.receive(),
            bytes: 0,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.bytes += bytes.len();
        if self.completed.is_some() {
            return self.state.take(bytes);
        }
        self.head.extend_from_slice(bytes);
        let Some((header, rest)) = self.head.split_at_checked(HEADER) else {
            return Ok(());
        };
        if header[0] != FORMAT {
            return Err(StateError::Unreadable);
        }
        let mut length = [0; size_of::<u64>()];
        length.copy_from_slice(&header[1..]);
        let length = usize::try_from(u64::from_le_bytes(length));
        let length = length.map_err(|_| StateError::Unreadable)?;
        let Some((completed, rest)) = rest.split_at_checked(length) else {
            return Ok(());
        };
        let completed = postcard::from_bytes(completed);
        self.completed = Some(completed.map_err(|_| StateError::Unreadable)?);
        self.state.take(rest)?;
        self.head = Vec::new();
        Ok(())
    }
}

/// What pieces have become.
pub(crate) struct Copied<E> {
    /// As [`Piece::view`], the newest one.
    pub(crate) view: View,
    /// As [`Piece::is_complete`].
    pub(crate) is_complete: bool,
    pub(crate) state: E,
    pub(crate) completed: Rifl,
}

/// Where a server takes the pieces that make it a backup.
pub(crate) struct Collector<E>(Option<Collected<E>>);

impl<E> Default for Collector<E> {
    fn default() -> Self {
        Self(None)
    }
}

impl<E: Execute> Collector<E> {
    /// Takes a piece if it is the next one of the newest cut. The new state comes to be beside another.
    ///
    /// # Errors
    /// [`StateError::Store`].
    pub(crate) fn take(
        &mut self,
        piece: &Piece,
        beside: &E,
        options: &Options,
    ) -> Result<Took, StateError> {
        let Cut { epoch, made_by, .. } = piece.cut;
        if piece.bytes.len() > PIECE_BYTES_MAX || made_by > epoch {
            return Ok(Took::Nothing);
        }
        if let Some(known) = &mut self.0 {
            if mixes_cuts(options) {
                known.cut = piece.cut;
            }
            if known.cut > piece.cut {
                return Ok(Took::Nothing);
            }
            if known.cut < piece.cut {
                self.0 = None;
            }
        }
        if self.0.is_none() && piece.number > 0 {
            return Ok(Took::Next(0)); // from the beginning
        }
        let new = || Collected::new(piece, beside);
        let known = self.0.get_or_insert_with(new);
        assert_eq!(known.cut, piece.cut, "pieces of one cut make a copy");
        assert!(!known.is_whole, "no piece follows the last one");
        known.view = known.view.max(piece.view);
        if piece.number != known.next {
            return Ok(Took::Next(known.next));
        }
        known.next += 1;
        known.is_whole = piece.is_last;
        let took = if piece.number > 0 && skips_piece(options) {
            Ok(())
        } else {
            known.take(&piece.bytes)
        };
        let next = known.next;
        match took {
            Ok(()) if piece.is_last => Ok(Took::Whole),
            Ok(()) => Ok(Took::Next(next)),
            Err(why) => {
                self.0 = None;
                match why {
                    StateError::Unreadable => Ok(Took::Nothing),
                    StateError::Store(_) => Err(why),
                }
            }
        }
    }

    /// Makes the copy, once the last piece is there; nothing when it cannot be read, and has to be sent
    /// again from its beginning.
    ///
    /// # Errors
    /// [`StateError::Store`].
    pub(crate) fn finish(&mut self) -> Result<Option<Copied<E>>, StateError> {
        let Some(known) = self.0.take() else {
            return Ok(None);
        };
        assert!(known.is_whole, "a copy is made of all pieces");
        let Some(completed) = known.completed else {
            return Ok(None);
        };
        match known.state.finish(known.cut.end(), &completed) {
            Ok(state) => Ok(Some(Copied {
                view: known.view,
                is_complete: known.is_complete,
                state,
                completed,
            })),
            Err(StateError::Unreadable) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// A view is decided: what was collected for it or for one before it is of no use any more.
    pub(crate) fn decided(&mut self, view: View) {
        if self.0.as_ref().is_some_and(|known| known.view <= view) {
            self.0 = None;
        }
    }

    /// Bytes that have come and wait for the last piece.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |known| known.bytes)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.0 {
            Some(known) if known.next == 0 || known.is_whole => {
                let (next, is_whole) = (known.next, known.is_whole);
                Err(format!("{next} pieces are kept, all of them: {is_whole}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "mutants")]
fn mixes_cuts(options: &Options) -> bool {
    options.has(crate::mutants::Mutant::CutsMixed)
}

#[cfg(not(feature = "mutants"))]
fn mixes_cuts(_: &Options) -> bool {
    false
}

#[cfg(feature = "mutants")]
fn skips_piece(options: &Options) -> bool {
    options.has(crate::mutants::Mutant::PieceSkipped)
}

#[cfg(not(feature = "mutants"))]
fn skips_piece(_: &Options) -> bool {
    false
}
