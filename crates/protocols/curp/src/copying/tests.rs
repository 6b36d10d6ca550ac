//! Images in pieces, and what is made of them.

use super::*;
use crate::ids::ClientId;
use crate::log::Change;
use crate::machine_tests::{Nothing, member};
use crate::options::Options;
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
    let mut image = Image::new(cut, &Nothing, &rifl, &options());
    let mut piece = |number| image.piece(member(3), number, View::default()).unwrap();
    let mut pieces = vec![piece(0)];
    while pieces.last().is_some_and(|piece| !piece.is_last) {
        let number = u32::try_from(pieces.len()).unwrap();
        pieces.push(piece(number));
        assert_eq!(piece(number), pieces[pieces.len() - 1], "sent again");
    }
    assert_eq!(piece(0), pieces[0], "from the beginning");
    (rifl, pieces)
}

fn take(collector: &mut Collector<Nothing>, piece: &Piece) -> Took {
    collector.take(piece, &Nothing, &options()).unwrap()
}

fn completed(collector: &mut Collector<Nothing>) -> Option<Rifl> {
    let copied = collector.finish().unwrap();
    copied.map(|copied| copied.completed)
}

#[test]
fn pieces_in_their_order_make_the_copy_and_each_is_bounded() {
    let (rifl, pieces) = pieces(1, 9);
    assert!(pieces.len() > 3 && pieces.iter().all(|piece| piece.bytes.len() <= 4));
    let mut collector = Collector::default();
    let (last, firsts) = pieces.split_last().unwrap();
    for (piece, next) in firsts.iter().zip(1..) {
        assert_eq!(take(&mut collector, piece), Took::Next(next));
        let again = take(&mut collector, piece);
        assert_eq!(again, Took::Next(next), "a duplicate changes nothing");
        assert_eq!(collector.check(), Ok(()));
    }
    assert_eq!(take(&mut collector, last), Took::Whole);
    assert_eq!(completed(&mut collector), Some(rifl));
    assert_eq!(collector.bytes(), 0);
}

#[test]
fn a_piece_out_of_order_is_asked_for_again() {
    let (_, pieces) = pieces(1, 9);
    let mut collector = Collector::default();
    let mut take = |number: usize| take(&mut collector, &pieces[number]);
    assert_eq!(take(2), Took::Next(0), "the beginning is missing");
    assert_eq!(take(0), Took::Next(1));
    assert_eq!(take(2), Took::Next(1));
}

#[test]
fn a_newer_cut_begins_again_and_an_older_one_is_dropped() {
    let ((_, old), (_, new)) = (pieces(1, 9), pieces(2, 10));
    let mut collector = Collector::default();
    let mut take = |piece: &Piece| take(&mut collector, piece);
    assert_eq!(take(&old[0]), Took::Next(1));
    assert_eq!(take(&new[1]), Took::Next(0));
    assert_eq!(take(&new[0]), Took::Next(1));
    assert_eq!(take(&old[1]), Took::Nothing);
    assert_eq!(take(&new[1]), Took::Next(2));
}

#[test]
fn each_backup_gets_the_image_from_its_beginning() {
    let (_, alone) = pieces(1, 9);
    let (rifl, _) = pieces(1, 9);
    let cut = alone[0].cut;
    let mut image = Image::new(cut, &Nothing, &rifl, &options());
    let mut piece = |to: u32, number| {
        let piece = image.piece(member(to), number, View::default());
        piece.unwrap().bytes
    };
    assert_eq!(piece(3, 0), alone[0].bytes);
    assert_eq!(piece(3, 1), alone[1].bytes);
    assert_eq!(piece(4, 0), alone[0].bytes);
    assert_eq!(piece(3, 2), alone[2].bytes);
    assert_eq!(piece(4, 1), alone[1].bytes);
    assert!(image.goes_on(member(3)) && !image.goes_on(member(5)));
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
    let mut take = |piece: &Piece| collector.take(piece, &Nothing, &options).unwrap();
    let mut other = old[0].clone();
    other.bytes[1] ^= 1; // the state of another cut is not the same
    assert_eq!(take(&other), Took::Next(1));
    assert_eq!(take(&new[1]), Took::Next(2), "pieces of the other copy");
    for piece in &new[2..] {
        take(piece);
    }
    assert_ne!(completed(&mut collector), Some(rifl), "neither cut");
}

#[test]
fn pieces_of_a_view_that_is_over_are_not_kept() {
    let (_, pieces) = pieces(1, 9);
    let mut collector = Collector::default();
    assert_eq!(take(&mut collector, &pieces[0]), Took::Next(1));
    assert_eq!(collector.bytes(), 4);
    collector.decided(View::default());
    assert_eq!(collector.bytes(), 0);
}

#[test]
fn bytes_that_are_no_piece_or_no_image_are_refused() {
    let (_, pieces) = pieces(1, 9);
    let mut collector = Collector::default();
    let cut = Cut {
        made_by: Epoch(2),
        ..pieces[0].cut
    };
    let of_a_master_to_come = Piece {
        cut,
        ..pieces[0].clone()
    };
    assert_eq!(take(&mut collector, &of_a_master_to_come), Took::Nothing);
    let only = |bytes| Piece {
        is_last: true,
        bytes,
        ..pieces[0].clone()
    };
    for cut_off in [Vec::new(), vec![FORMAT], vec![FORMAT; 20]] {
        assert_eq!(take(&mut collector, &only(cut_off)), Took::Whole);
        assert_eq!(completed(&mut collector), None);
    }
    for strange in [vec![9; 20], [&[FORMAT, 1][..], &[0; 7], &[7]].concat()] {
        assert_eq!(take(&mut collector, &only(strange)), Took::Nothing);
        assert_eq!(collector.bytes(), 0);
    }
}
