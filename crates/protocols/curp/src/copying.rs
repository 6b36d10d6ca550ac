//! A copy of everything for a new backup, in pieces of bounded size.
//!
//! A copy is of one place in one master's log, its [`Cut`]. The master makes the image of a cut once and
//! sends it piece by piece, the next one when the backup has confirmed the one before it. A backup
//! collects the pieces of one cut in their order and becomes a copy when it has the last one; until
//! then its own log stays as it is, and it says nothing of the new one. Pieces of an older cut are
//! dropped, and one of a newer cut begins again.
//!
//! | bytes of an image | what |
//! |---|---|
//! | 1 | [`FORMAT`] |
//! | 8 | length of the state, little-endian |
//! | … | the machine's snapshot |
//! | … | the completion records: postcard |

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::execute::Execute;
use crate::ids::{Epoch, LogId, Position, View};
use crate::options::{Options, PIECE_BYTES_MAX};

/// The layout of an image.
pub const FORMAT: u8 = 1;
/// Bytes of an image before its state.
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
    /// How many pieces the image has.
    pub count: u32,
    /// Whether nobody is served between its cut and the view to come, so that it has all that was
    /// acknowledged before that view.
    pub is_complete: bool,
    /// At most [`PIECE_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// Everything that a master has at a cut.
#[derive(Debug)]
pub(crate) struct Image {
    cut: Cut,
    is_complete: bool,
    piece_bytes: usize,
    bytes: Vec<u8>,
}

impl Image {
    /// Of a machine's state and the completion records.
    pub(crate) fn new(
        cut: Cut,
        state: &impl Execute,
        completed: &impl Serialize,
        options: &Options,
    ) -> Self {
        let piece_bytes = options.piece_bytes;
        assert!(
            (1..=PIECE_BYTES_MAX).contains(&piece_bytes),
            "pieces of {piece_bytes} bytes: 1 to {PIECE_BYTES_MAX} are possible"
        );
        let state = state.snapshot();
        let mut bytes = Vec::with_capacity(HEADER + state.len());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&(state.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&state);
        drop(state);
        let bytes = postcard::to_extend(completed, bytes);
        assert!(bytes.is_ok(), "completion records can be written down");
        Self {
            cut,
            is_complete: true,
            piece_bytes,
            bytes: bytes.unwrap_or_default(),
        }
    }

    /// Says whether the master serves a view now, so that the log goes on behind the cut.
    pub(crate) fn made_while_serving(self, serves: bool) -> Self {
        Self {
            is_complete: !serves,
            ..self
        }
    }

    pub(crate) fn cut(&self) -> Cut {
        self.cut
    }

    pub(crate) fn count(&self) -> u32 {
        let count = self.bytes.len().div_ceil(self.piece_bytes);
        assert!(count > 0, "an image is never empty");
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The piece of a number, or the last one.
    pub(crate) fn piece(&self, number: u32, view: View) -> Piece {
        let count = self.count();
        let number = number.min(count - 1);
        let from = number as usize * self.piece_bytes;
        let to = self.bytes.len().min(from + self.piece_bytes);
        assert!(from < to, "no piece is empty");
        assert!(to - from <= PIECE_BYTES_MAX, "a piece is bounded");
        Piece {
            cut: self.cut,
            view,
            number,
            count,
            is_complete: self.is_complete,
            bytes: self.bytes[from..to].to_vec(),
        }
    }
}

/// What came of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// It is of an older cut, or no piece at all.
    Nothing,
    /// The piece of this number is needed next.
    Next(u32),
    /// It was the last one.
    Whole(Collected),
}

/// The pieces that a backup has of one cut.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Collected {
    pub(crate) cut: Cut,
    /// The newest view that a piece was sent for.
    pub(crate) view: View,
    /// As [`Piece::is_complete`].
    pub(crate) is_complete: bool,
    next: u32,
    count: u32,
    bytes: Vec<u8>,
}

impl Collected {
    fn new(piece: &Piece) -> Self {
        Self {
            cut: piece.cut,
            view: piece.view,
            is_complete: piece.is_complete,
            next: 0,
            count: piece.count,
            bytes: Vec::new(),
        }
    }

    /// The state and the completion records, once all pieces are there; nothing when they cannot be read.
    pub(crate) fn open<E: Execute, C: DeserializeOwned>(self) -> Option<(E, C)> {
        let (header, rest) = self.bytes.split_at_checked(HEADER)?;
        let (format, length) = header.split_first()?;
        if *format != FORMAT {
            return None;
        }
        let length = u64::from_le_bytes(length.try_into().ok()?);
        let (state, completed) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        Some((E::restore(state)?, postcard::from_bytes(completed).ok()?))
    }
}

/// Where a server collects the pieces that make it a backup.
#[derive(Debug, Default)]
pub(crate) struct Collector(Option<Collected>);

impl Collector {
    /// Takes a piece if it is the next one of the newest cut.
    pub(crate) fn take(&mut self, piece: Piece, options: &Options) -> Took {
        let Cut { epoch, made_by, .. } = piece.cut;
        if piece.number >= piece.count || piece.bytes.len() > PIECE_BYTES_MAX || made_by > epoch {
            return Took::Nothing;
        }
        if let Some(known) = &mut self.0 {
            if mixes_cuts(options) {
                (known.cut, known.count) = (piece.cut, piece.count);
            }
            if known.cut > piece.cut {
                return Took::Nothing;
            }
            if known.cut < piece.cut {
                self.0 = None;
            }
        }
        if self.0.is_none() && piece.number > 0 {
            return Took::Next(0); // from the beginning
        }
        let known = self.0.get_or_insert_with(|| Collected::new(&piece));
        assert_eq!(known.cut, piece.cut, "pieces of one cut make a copy");
        known.view = known.view.max(piece.view);
        if piece.number == known.next && piece.count == known.count {
            let skips = piece.number > 0 && skips_piece(options);
            if !skips {
                known.bytes.extend_from_slice(&piece.bytes);
            }
            known.next += 1;
        }
        assert!(known.next <= known.count, "no piece follows the last one");
        if known.next < known.count {
            return Took::Next(known.next);
        }
        let whole = self.0.take();
        whole.map_or(Took::Nothing, Took::Whole)
    }

    /// A view is decided: what was collected for it or for one before it is of no use any more.
    pub(crate) fn decided(&mut self, view: View) {
        if self.0.as_ref().is_some_and(|known| known.view <= view) {
            self.0 = None;
        }
    }

    /// Bytes that wait for the last piece.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |known| known.bytes.len())
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.0 {
            Some(known) if known.next == 0 || known.next >= known.count => {
                Err(format!("{} of {} pieces are kept", known.next, known.count))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientId;
    use crate::log::Change;
    use crate::machine_tests::Nothing;
    use crate::rifl::Rifl;

    fn options() -> Options {
        Options {
            piece_bytes: 4,
            ..Options::default()
        }
    }

    /// The image after clients have opened, in pieces.
    fn pieces(epoch: u64, clients: u64) -> (Rifl, Vec<Piece>) {
        let mut rifl = Rifl::default();
        for client in 1..=clients {
            rifl.take(client, &Change::Opened(ClientId(client)));
        }
        let cut = Cut {
            epoch: Epoch(epoch),
            last: clients,
            made_by: Epoch(epoch),
        };
        let image = Image::new(cut, &Nothing, &rifl, &options());
        let view = View::default();
        let pieces = (0..image.count()).map(|number| image.piece(number, view));
        (rifl, pieces.collect())
    }

    #[test]
    fn pieces_in_their_order_make_the_copy_and_each_is_bounded() {
        let (rifl, pieces) = pieces(1, 9);
        assert!(pieces.len() > 3 && pieces.iter().all(|piece| piece.bytes.len() <= 4));
        let mut collector = Collector::default();
        let (last, firsts) = pieces.split_last().unwrap();
        for (piece, next) in firsts.iter().zip(1..) {
            assert_eq!(collector.take(piece.clone(), &options()), Took::Next(next));
            assert_eq!(
                collector.take(piece.clone(), &options()),
                Took::Next(next),
                "a duplicate changes nothing"
            );
            assert_eq!(collector.check(), Ok(()));
        }
        let Took::Whole(whole) = collector.take(last.clone(), &options()) else {
            panic!("the last piece is there");
        };
        assert_eq!(whole.open::<Nothing, Rifl>().unwrap().1, rifl);
        assert_eq!(collector.bytes(), 0);
    }

    #[test]
    fn a_piece_out_of_order_is_asked_for_again() {
        let (_, pieces) = pieces(1, 9);
        let mut collector = Collector::default();
        let mut take = |number: usize| collector.take(pieces[number].clone(), &options());
        assert_eq!(take(2), Took::Next(0), "the beginning is missing");
        assert_eq!(take(0), Took::Next(1));
        assert_eq!(take(2), Took::Next(1));
    }

    #[test]
    fn a_newer_cut_begins_again_and_an_older_one_is_dropped() {
        let ((_, old), (_, new)) = (pieces(1, 9), pieces(2, 10));
        let mut collector = Collector::default();
        let mut take = |piece: &Piece| collector.take(piece.clone(), &options());
        assert_eq!(take(&old[0]), Took::Next(1));
        assert_eq!(take(&new[1]), Took::Next(0));
        assert_eq!(take(&new[0]), Took::Next(1));
        assert_eq!(take(&old[1]), Took::Nothing);
        assert_eq!(take(&new[1]), Took::Next(2));
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn pieces_of_two_cuts_in_one_copy_are_found() {
        let ((_, old), (rifl, new)) = (pieces(1, 9), pieces(2, 9));
        let options = Options {
            mutant: Some(crate::mutants::Mutant::CutsMixed),
            ..options()
        };
        let mut collector = Collector::default();
        let mut other = old[0].clone();
        other.bytes[1] ^= 1; // the state of another cut is not the same
        assert_eq!(collector.take(other, &options), Took::Next(1));
        let took = new
            .iter()
            .map(|piece| collector.take(piece.clone(), &options));
        let Some(Took::Whole(whole)) = took.last() else {
            panic!("it goes on with the pieces of the other copy");
        };
        let opened = whole.open::<Nothing, Rifl>();
        assert_ne!(opened.map(|(_, rifl)| rifl), Some(rifl), "neither cut");
    }

    #[test]
    fn pieces_of_a_view_that_is_over_are_not_kept() {
        let (_, pieces) = pieces(1, 9);
        let mut collector = Collector::default();
        assert_eq!(collector.take(pieces[0].clone(), &options()), Took::Next(1));
        assert_eq!(collector.bytes(), 4);
        collector.decided(View::default());
        assert_eq!(collector.bytes(), 0);
    }

    #[test]
    fn bytes_that_are_no_piece_or_no_image_are_refused() {
        let (_, pieces) = pieces(1, 9);
        let mut collector = Collector::default();
        let beyond = Piece {
            number: pieces[0].count,
            ..pieces[0].clone()
        };
        assert_eq!(collector.take(beyond, &options()), Took::Nothing);
        let cut = Cut {
            made_by: Epoch(2),
            ..pieces[0].cut
        };
        let of_a_master_to_come = Piece {
            cut,
            ..pieces[0].clone()
        };
        assert_eq!(
            collector.take(of_a_master_to_come, &options()),
            Took::Nothing
        );
        for bytes in [Vec::new(), vec![FORMAT], vec![9; 20], vec![FORMAT; 20]] {
            let piece = Piece {
                count: 1,
                bytes,
                ..pieces[0].clone()
            };
            let Took::Whole(whole) = collector.take(piece, &options()) else {
                panic!("it is the only piece");
            };
            assert!(whole.open::<Nothing, Rifl>().is_none());
        }
    }
}
