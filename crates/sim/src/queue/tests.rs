//! A binary heap is the oracle.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::Queue;
use crate::time::SimTime;

/// A push this far ahead of the last pop, or pops up to this far ahead.
#[derive(Debug, Clone)]
enum Step {
    Push { ahead: u64 },
    Pop { ahead: u64, count: usize },
}

fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0_u64),
        3 => 0_u64..100_000,
        3 => 0_u64..50_000_000,
        2 => 260_000_000_u64..280_000_000,
        1 => 0_u64..20_000_000_000,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = ahead().prop_map(|ahead| Step::Push { ahead });
    let pop = (ahead(), 1_usize..20).prop_map(|(ahead, count)| Step::Pop { ahead, count });
    prop::collection::vec(prop_oneof![4 => push, 1 => pop], 1..400)
}

proptest! {
    #[test]
    fn the_calendar_gives_what_a_heap_gives(steps in steps()) {
        let mut queue = Queue::default();
        let mut heap = BinaryHeap::new();
        let mut now = 0;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { ahead } => {
                    queue.push(SimTime(now + ahead), number);
                    heap.push(Reverse((now + ahead, number)));
                }
                Step::Pop { ahead, count } => {
                    let limit = now + ahead;
                    for _ in 0..count {
                        let expected = heap.peek().filter(|next| next.0.0 <= limit).copied();
                        let popped = queue.pop_until(SimTime(limit));
                        prop_assert_eq!(popped, expected.map(|Reverse((at, number))| (SimTime(at), number)));
                        if let Some(Reverse((at, _))) = expected {
                            heap.pop();
                            now = at;
                        }
                    }
                }
            }
            prop_assert_eq!(queue.len(), heap.len());
        }
        while let Some(Reverse((at, number))) = heap.pop() {
            prop_assert_eq!(queue.pop_until(SimTime::MAX), Some((SimTime(at), number)));
        }
        prop_assert!(queue.is_empty());
    }
}

#[test]
fn what_is_asked_for_before_the_next_bucket_still_comes_first() {
    let mut queue = Queue::default();
    queue.push(SimTime::from_secs(5), "late");
    assert_eq!(queue.pop_until(SimTime::from_secs(1)), None);
    queue.push(SimTime::from_secs(2), "early");
    queue.push(SimTime::from_secs(2), "early too");
    assert_eq!(queue.pop_until(SimTime::MAX).unwrap().1, "early");
    assert_eq!(queue.pop_until(SimTime::MAX).unwrap().1, "early too");
    assert_eq!(queue.pop_until(SimTime::MAX).unwrap().1, "late");
    assert_eq!(queue.pop_until(SimTime::MAX), None);
}

#[test]
fn a_pushed_out_payload_is_gone() {
    let mut queue = Queue::default();
    for number in 0..10 {
        queue.push(SimTime(number), number);
    }
    queue.pop_until(SimTime::MAX);
    assert_eq!(queue.values_mut().count(), 9);
    queue.push(SimTime(20), 20);
    assert_eq!(queue.values_mut().map(|value| *value).max(), Some(20));
    assert_eq!(queue.len(), 10);
}
