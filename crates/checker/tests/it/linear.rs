//! Linearizability: histories known to be good or bad, and a second opinion of brute force.

use manxdb_checker::linear::models::{ListInput, ListOutput, RegisterInput};
use manxdb_checker::linear::{
    Counter, LinearOperation, LinearOutcome, List, Model, OperationOf, Register, Verdict, check,
};
use proptest::prelude::*;

use RegisterInput::{Read, Write};

const STEPS: u64 = 1_000_000;

/// An operation on key 0: invoked, answered (0: unknown), input, output.
fn op<I, O>(invoked: u64, at: u64, input: I, output: O) -> LinearOperation<u64, I, O> {
    let outcome = match at {
        0 => LinearOutcome::Unknown,
        at => LinearOutcome::Answered { at, output },
    };
    LinearOperation {
        name: invoked,
        key: 0,
        invoked,
        input,
        outcome,
    }
}

fn is_linearizable<M: Model>(model: &M, history: &[OperationOf<u64, M>]) -> bool {
    check(model, history, STEPS).is_linearizable()
}

#[test]
fn a_read_sees_the_last_write_or_one_that_overlaps_it() {
    let write = op(1, 2, Write(7), 7);
    assert!(is_linearizable(
        &Register,
        &[write.clone(), op(3, 4, Read, 7)]
    ));
    assert!(!is_linearizable(
        &Register,
        &[write.clone(), op(3, 4, Read, 0)]
    ));
    let overlapping = op(1, 9, Write(7), 7);
    for seen in [0, 7] {
        assert!(is_linearizable(
            &Register,
            &[overlapping.clone(), op(3, 4, Read, seen)]
        ));
    }
    // New, then old: each may overlap the write, but not in this order.
    let reads = [overlapping, op(3, 4, Read, 7), op(5, 6, Read, 0)];
    assert!(!is_linearizable(&Register, &reads));
}

#[test]
fn what_is_unknown_may_take_effect_late_or_never() {
    let open = op(1, 0, Write(7), 7);
    for reads in [[0, 0], [0, 7], [7, 7]] {
        let [first, second] = reads;
        let history = [open.clone(), op(3, 4, Read, first), op(5, 6, Read, second)];
        assert!(is_linearizable(&Register, &history), "{reads:?}");
    }
    let undone = [open.clone(), op(3, 4, Read, 7), op(5, 6, Read, 0)];
    assert!(!is_linearizable(&Register, &undone));
    let before_it_began = [op(1, 2, Read, 7), op(3, 0, Write(7), 7)];
    assert!(!is_linearizable(&Register, &before_it_began));
}

#[test]
fn what_was_refused_took_no_effect() {
    let mut refused = op(1, 2, Write(7), 7);
    refused.outcome = LinearOutcome::Refused;
    assert!(is_linearizable(
        &Register,
        &[refused.clone(), op(3, 4, Read, 0)]
    ));
    assert!(!is_linearizable(&Register, &[refused, op(3, 4, Read, 7)]));
}

#[test]
fn an_increment_is_lost_or_counted_twice_by_nobody() {
    assert!(is_linearizable(&Counter, &[op(1, 4, 1, 2), op(2, 3, 1, 1)]));
    assert!(
        !is_linearizable(&Counter, &[op(1, 4, 1, 1), op(2, 3, 1, 1)]),
        "lost"
    );
    assert!(
        !is_linearizable(&Counter, &[op(1, 2, 1, 1), op(3, 4, 0, 2)]),
        "twice"
    );
    let acknowledged = op(1, 2, 1, 1);
    assert!(
        !is_linearizable(&Counter, &[acknowledged, op(3, 4, 0, 0)]),
        "forgotten"
    );
}

#[test]
fn a_list_shows_the_order_of_its_appends() {
    let appends = [
        op(1, 9, ListInput::Append(1), ListOutput::Length(1)),
        op(2, 8, ListInput::Append(2), ListOutput::Length(2)),
    ];
    for (elements, good) in [(vec![1, 2], true), (vec![2, 1], false), (vec![1], false)] {
        let mut history = appends.to_vec();
        history.push(op(
            10,
            11,
            ListInput::Read,
            ListOutput::Elements(elements.clone()),
        ));
        assert_eq!(is_linearizable(&List, &history), good, "{elements:?}");
    }
}

#[test]
fn the_key_that_is_wrong_is_named_with_what_led_to_it() {
    let mut other = op(1, 2, Read, 3);
    other.key = 5;
    let verdict = check(&Register, &[op(1, 2, Write(7), 7), other], STEPS);
    let Verdict::Broken { key: 5, proof } = &verdict else {
        panic!("{verdict}");
    };
    assert!(proof.contains("#1 [1, 2] Read -> 3"), "{proof}");
    assert!(proof.contains("the object is 0"), "{proof}");
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    // Thirty writes at once, and a read that none of their orders explains.
    let writes = (0..30).map(|value| op(1, 100, Write(value), value));
    let mut history: Vec<_> = writes.collect();
    history.push(op(101, 102, Read, 99));
    let verdict = check(&Register, &history, 1_000);
    assert!(matches!(verdict, Verdict::Undecided { .. }), "{verdict}");
}

#[test]
fn a_long_history_with_little_overlap_takes_few_steps() {
    let adds = (0..20_000_u64).map(|index| op(index * 10 + 1, index * 10 + 15, 1, 0));
    let mut history: Vec<_> = adds.collect();
    let mut sum = 0;
    for operation in &mut history {
        sum += 1;
        if let LinearOutcome::Answered { output, .. } = &mut operation.outcome {
            *output = sum;
        }
    }
    assert!(check(&Counter, &history[..2_000], 10_000).is_linearizable());
}

/// Every order and every choice of open operations that take effect.
fn brute_force(history: &[OperationOf<u64, Register>]) -> bool {
    fn go(history: &[OperationOf<u64, Register>], used: u32, state: u64) -> bool {
        let left = |index: &usize| used & (1 << index) == 0;
        let rest: Vec<usize> = (0..history.len()).filter(left).collect();
        let answered = |operation: &OperationOf<u64, Register>| match operation.outcome {
            LinearOutcome::Answered { at, output } => Some((at, output)),
            _ => None,
        };
        if rest
            .iter()
            .all(|index| answered(&history[*index]).is_none())
        {
            return true;
        }
        rest.iter().any(|index| {
            let operation = &history[*index];
            let is_first = rest.iter().all(|other| {
                answered(&history[*other]).is_none_or(|(at, _)| at >= operation.invoked)
            });
            let (after, output) = Register.apply(&state, &operation.input);
            let fits = answered(operation).is_none_or(|(_, saw)| saw == output);
            is_first && fits && go(history, used | 1 << index, after)
        })
    }
    go(history, 0, 0)
}

fn operation() -> impl Strategy<Value = OperationOf<u64, Register>> {
    (0..12_u64, 0..8_u64, 0..5_u32, 0..3_u64, 0..3_u64).prop_map(
        |(invoked, lasts, kind, value, seen)| {
            let input = if kind < 2 { Read } else { Write(value) };
            let output = if kind < 2 { seen } else { value };
            let at = if kind == 4 { 0 } else { invoked + lasts + 1 };
            op(invoked, at, input, output)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn brute_force_is_of_the_same_opinion(history in prop::collection::vec(operation(), 0..7)) {
        prop_assert_eq!(is_linearizable(&Register, &history), brute_force(&history));
    }
}
