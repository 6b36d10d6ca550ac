//! What a commit waits for before it locks.

use manxdb_fabric::{Address, ServerId, WORD_LENGTH};

use super::*;
use crate::block::Layout;
use crate::durable_positions::{DurablePositions, Ring};
use crate::version::ThreadId;

/// A commit that waits for a log archiver, which is to say how far it is.
fn waiting() -> Commit {
    let at = |offset| Address {
        server: ServerId(0),
        offset,
    };
    let thread = ThreadId::FIRST;
    let stamp = |sequence| Stamp { thread, sequence };
    let vector = Vector::new(at(0), 1).unwrap();
    let mut seen = Snapshot::empty(1);
    seen.add(stamp(9));
    let log = Log::new(vec![at(4096)], 1024, Log::RING_MIN).unwrap();
    let layout = Layout::new(2, WORD_LENGTH).unwrap();
    let change = Change {
        seen: Seen::fresh(at(64 * 1024), layout),
        value: Some(vec![1; WORD_LENGTH]),
    };
    let commit = Commit::new(
        stamp(9),
        (vector, &seen),
        (Some(&log), None),
        &[],
        vec![change],
    );
    let ring = Ring::new(DurablePositions::new(at(2048), 1), &log, thread).unwrap();
    let need = ring.needs(stamp(9));
    assert!(need.is_some());
    let mut commit = commit.unwrap().behind(need);
    assert!(matches!(commit.step(Vec::new()), Step::Post(_)));
    commit
}

#[test]
fn a_slot_that_is_not_written_is_waited_for() {
    let unwritten = OperationOutcome::Read(0_u64.to_le_bytes().to_vec());
    assert!(matches!(
        waiting().step(vec![unwritten]),
        Step::Backoff(_, 1)
    ));
}

#[test]
#[should_panic(expected = "a read is answered by a copy")]
fn an_answer_that_is_no_read_does_not_pass_for_a_slot_that_is_written() {
    let _ = waiting().step(vec![OperationOutcome::Written]);
}

#[test]
#[should_panic(expected = "every operation that was posted has an outcome")]
fn no_answer_does_not_pass_for_a_slot_that_is_written() {
    let _ = waiting().step(Vec::new());
}
