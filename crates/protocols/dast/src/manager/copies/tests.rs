//! What is kept, what counts, and what a manager that has lost its memory says.

use std::sync::Arc;

use manxdb_txn::procedure::{OneShard, ProcedurePiece, Registry, ShardId};

use super::*;
use crate::call::{Call, CallId, Level, Planned};
use crate::options::{Crossing, Options, Survive};
use crate::topology::Topology;

const TOPOLOGY: Topology = Topology {
    regions: 2,
    shards_per_region: 1,
};
const HERE: RegionId = RegionId(0);
const THERE: RegionId = RegionId(1);

/// The copies of manager `place` of the first region.
fn copies(place: usize, life: u64) -> Copies {
    let shared = Shared {
        topology: TOPOLOGY,
        options: Options {
            crossing: Crossing::Ahead,
            survive: Survive::Region,
            ..Options::default()
        },
        procedures: Arc::new(Registry::default()),
        placement: Arc::new(OneShard),
    };
    let copies = Copies::of_life(manager(place), life, HERE, &shared);
    copies.expect("streams are whole")
}

fn manager(place: usize) -> NodeId {
    let mut managers = TOPOLOGY.managers(HERE).skip(place);
    managers.next().expect("a region has three managers")
}

fn at(micros: u64) -> Timestamp {
    Timestamp::at(micros, 0)
}

fn held(place: u64) -> Held {
    let call = Call {
        id: CallId {
            client: NodeId(99),
            number: place,
        },
        procedure: "p".into(),
        args: Vec::new(),
        level: Level::Serializable,
        ended_below: 0,
    };
    let piece = ProcedurePiece {
        part: 0,
        shard: ShardId(0),
        needs: Vec::new(),
        gives: Vec::new(),
        steps: 1,
    };
    let planned = Planned::new(call, NodeId(0), vec![piece], TOPOLOGY);
    Held {
        at: at(place),
        planned: planned.expect("it has one piece"),
    }
}

/// A part with entries at these places, the first of them of this number.
fn part(since: Option<u64>, first: u64, places: &[u64], mark: u64) -> StreamPart {
    StreamPart {
        region: THERE,
        since: since.map(at),
        first,
        entries: places.iter().copied().map(held).collect(),
        mark: at(mark),
        epoch: 0,
        sent: 0,
        delay: None,
        closed: Timestamp::ZERO,
        position: Timestamp::ZERO,
    }
}

fn take(copies: &mut Copies, part: StreamPart) -> bool {
    let copy = copies.streams.get_mut(&THERE).expect("it is followed");
    let is_known = copy.take(part);
    copies.look_for_what_was_lost();
    assert_eq!(copies.check(), Ok(()));
    is_known
}

fn places(copies: &Copies, since: u64) -> Option<(u64, Vec<u64>, u64)> {
    let part = copies.part_since(THERE, at(since))?;
    let places = part.entries.iter().map(|entry| entry.at.micros);
    Some((part.first, places.collect(), part.mark.micros))
}

#[test]
fn what_one_manager_has_alone_does_not_count() {
    let mut copies = copies(0, 1);
    assert!(take(&mut copies, part(None, 1, &[10], 20)));
    assert_eq!(copies.held_by_two(THERE), Timestamp::ZERO);
    let tell = |copies: &mut Copies, place, mark| {
        let copy = copies.streams.get_mut(&THERE).expect("it is followed");
        copy.told.insert(manager(place), at(mark));
        copy.held_by_two()
    };
    assert_eq!(tell(&mut copies, 1, 15), at(15));
    assert_eq!(tell(&mut copies, 2, 18), at(18));
    assert_eq!(tell(&mut copies, 1, 90), at(20), "this one and another");
    assert_eq!(tell(&mut copies, 2, 80), at(80), "two others");
}

#[test]
fn a_new_leader_has_what_another_manager_keeps_without_the_sender() {
    let (mut leader, mut backup) = (copies(0, 1), copies(1, 1));
    for copies in [&mut leader, &mut backup] {
        assert!(take(copies, part(None, 1, &[10, 20], 25)));
    }
    assert!(take(&mut backup, part(None, 3, &[30, 28], 40)));
    assert!(!leader.are_complete(), "it has not heard of anybody");
    assert_eq!(places(&leader, 30), None, "it is not here up to there");
    let kept = backup.kept().expect("it has lost nothing");
    leader.merge(manager(1), kept);
    assert!(leader.are_complete());
    assert_eq!(places(&leader, 20), Some((2, vec![20, 30, 28], 40)));
    assert_eq!(places(&leader, 31), Some((5, vec![], 40)));
    assert_eq!(leader.held_by_two(THERE), at(40));
    assert!(take(&mut leader, part(None, 5, &[50], 55)), "it goes on");
    // What the other keeps is less by now.
    leader.merge(manager(2), backup.kept().expect("it has lost nothing"));
    assert_eq!(places(&leader, 50), Some((5, vec![50], 55)));
}

#[test]
fn a_manager_that_has_lost_its_memory_is_not_believed_before_it_is_told_again() {
    let mut lost = copies(0, 2);
    assert_eq!(lost.kept(), None);
    let others = [1, 2].map(|place| (manager(place), copies(place, 1)));
    let [(one, first), (other, mut second)] = others;
    assert!(take(&mut second, part(None, 1, &[10], 20)));
    lost.merge(one, first.kept().expect("it has lost nothing"));
    assert_eq!(lost.kept(), None, "the other two may have had more");
    lost.merge(other, second.kept().expect("it has lost nothing"));
    assert_eq!(lost.kept(), second.kept());
    // Or the sender says it.
    let mut lost = copies(0, 2);
    assert!(take(&mut lost, part(None, 2, &[30], 40)), "it waits");
    assert_eq!(lost.kept(), None);
    assert!(take(&mut lost, part(Some(0), 1, &[10, 30], 40)));
    assert_eq!(places(&lost, 0), Some((1, vec![10, 30], 40)));
    assert!(lost.kept().is_some());
}

#[test]
fn a_gap_is_asked_for_and_what_all_have_run_is_not_kept() {
    let mut copies = copies(0, 1);
    assert!(take(&mut copies, part(None, 1, &[10, 30, 20], 35)));
    assert!(!take(&mut copies, part(None, 5, &[50], 60)));
    assert_eq!(places(&copies, 0), Some((1, vec![10, 30, 20], 35)));
    copies.note_position(HERE, at(90), None);
    assert_eq!(copies.len(), 3, "the other region has not run them");
    copies.note_position(THERE, at(25), None);
    assert_eq!(places(&copies, 0), Some((2, vec![30, 20], 35)));
    copies.note_position(THERE, at(31), None);
    assert_eq!((copies.len(), copies.check()), (0, Ok(())));
    assert!(take(&mut copies, part(Some(35), 5, &[50], 60)));
    assert_eq!(places(&copies, 0), Some((5, vec![50], 60)));
}

#[test]
fn each_broken_invariant_of_copies_is_found() {
    let mut copies = copies(0, 1);
    assert!(take(&mut copies, part(None, 1, &[10, 20, 30], 35)));
    copies.heard.insert(NodeId(77));
    assert!(copies.check().is_err_and(|broken| broken.contains("B2")));
    let copy = copies.streams.get_mut(&THERE).expect("it is followed");
    copy.entries.remove(&2);
    assert!(copies.check().is_err_and(|broken| broken.contains("B1")));
    let copy = copies.streams.get_mut(&THERE).expect("it is followed");
    copy.entries.remove(&3);
    assert!(copies.check().is_err_and(|broken| broken.contains("last")));
}
