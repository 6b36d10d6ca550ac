//! The search for an order of one key's operations.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write};

use super::{LinearOutcome, Model, OperationOf};

/// Operations shown of the longest order that was found.
const SHOWN_MAX: usize = 12;

/// What the search came to.
pub(super) enum Found {
    /// There is an order.
    Order,
    /// There is none.
    None {
        /// Why, in words.
        proof: String,
    },
    /// Nobody knows.
    TooMany {
        /// Configurations looked at.
        steps: u64,
    },
}

/// A set of operations that have been placed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Placed(Vec<u64>);

impl Placed {
    fn has(&self, index: usize) -> bool {
        self.0[index / 64] & (1 << (index % 64)) != 0
    }

    fn flip(&mut self, index: usize) {
        self.0[index / 64] ^= 1 << (index % 64);
    }
}

/// One choice of the search: the operation placed, the state before it.
struct Choice<S> {
    index: usize,
    before: S,
}

/// When an operation ended; one of unknown outcome never does.
fn ended<K, M: Model>(operation: &OperationOf<K, M>) -> u64 {
    match &operation.outcome {
        LinearOutcome::Answered { at, .. } => *at,
        LinearOutcome::Refused | LinearOutcome::Unknown => u64::MAX,
    }
}

/// Looks for an order of operations, none of which is refused.
pub(super) fn search<K, M: Model>(
    model: &M,
    operations: &[&OperationOf<K, M>],
    steps_max: u64,
) -> Found {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| (operation.invoked, ended::<K, M>(operation)));
    let answered = operations
        .iter()
        .filter(|operation| ended::<K, M>(operation) < u64::MAX)
        .count();
    let mut placed = Placed(vec![0; operations.len().div_ceil(64)]);
    let mut seen = BTreeSet::new();
    let mut stack: Vec<Choice<M::State>> = Vec::new();
    let mut state = model.initial();
    let (mut done, mut next, mut steps) = (0, 0, 0);
    let mut longest: Vec<usize> = Vec::new();
    loop {
        if done == answered {
            return Found::Order;
        }
        steps += 1;
        if steps > steps_max {
            return Found::TooMany { steps };
        }
        // Of what may come next: nothing that is not placed ended before it was invoked.
        let frontier = first_end::<K, M>(&operations, &placed);
        let mut chosen = None;
        while next < operations.len() && operations[next].invoked <= frontier {
            if !placed.has(next)
                && let Some(after) = step(model, &state, operations[next])
            {
                placed.flip(next);
                if seen.insert((placed.clone(), after.clone())) {
                    chosen = Some(after);
                    break;
                }
                placed.flip(next);
            }
            next += 1;
        }
        if let Some(after) = chosen {
            let before = std::mem::replace(&mut state, after);
            done += usize::from(ended::<K, M>(operations[next]) < u64::MAX);
            stack.push(Choice {
                index: next,
                before,
            });
            if stack.len() > longest.len() {
                longest = stack.iter().map(|choice| choice.index).collect();
            }
            next = 0;
            continue;
        }
        let Some(Choice { index, before }) = stack.pop() else {
            let proof = explain(model, &operations, &longest);
            return Found::None { proof };
        };
        assert!(placed.has(index), "what is taken back was placed");
        placed.flip(index);
        done -= usize::from(ended::<K, M>(operations[index]) < u64::MAX);
        state = before;
        next = index + 1;
    }
}

/// The earliest end of what is not placed.
fn first_end<K, M: Model>(operations: &[&OperationOf<K, M>], placed: &Placed) -> u64 {
    let mut first = u64::MAX;
    for (index, operation) in operations.iter().enumerate() {
        if operation.invoked > first {
            break; // sorted: nothing later ends earlier
        }
        if !placed.has(index) {
            first = first.min(ended::<K, M>(operation));
        }
    }
    first
}

/// The state after an operation, if it answers what its client saw.
fn step<K, M: Model>(
    model: &M,
    state: &M::State,
    operation: &OperationOf<K, M>,
) -> Option<M::State> {
    let (after, output) = model.apply(state, &operation.input);
    match &operation.outcome {
        LinearOutcome::Answered { output: saw, .. } if *saw != output => None,
        _ => Some(after),
    }
}

fn explain<K, M: Model>(model: &M, operations: &[&OperationOf<K, M>], longest: &[usize]) -> String {
    let mut text = String::new();
    let mut state = model.initial();
    let hidden = longest.len().saturating_sub(SHOWN_MAX);
    if hidden > 0 {
        let _ = writeln!(text, "… {hidden} operations before");
    }
    for (place, index) in longest.iter().enumerate() {
        state = model.apply(&state, &operations[*index].input).0;
        if place >= hidden {
            let _ = writeln!(text, "{}", line::<K, M>(operations[*index]));
        }
    }
    let _ = writeln!(
        text,
        "then the object is {state:?}, and none of these can be next:"
    );
    let left = |index: &usize| !longest.contains(index);
    for index in (0..operations.len()).filter(left).take(SHOWN_MAX) {
        let _ = writeln!(text, "{}", line::<K, M>(operations[index]));
    }
    text
}

fn line<K, M: Model>(operation: &OperationOf<K, M>) -> String {
    let (name, invoked, input) = (operation.name, operation.invoked, &operation.input);
    let end: &dyn Debug = match &operation.outcome {
        LinearOutcome::Answered { at, output } => {
            return format!("  #{name} [{invoked}, {at}] {input:?} -> {output:?}");
        }
        other => other,
    };
    format!("  #{name} [{invoked}, …] {input:?} {end:?}")
}
