//! Every order of the steps of a few users: no read of the view differs from the base.

use manxdb_views::mutants::Mutants;

use crate::model::{Actor, World};

/// What all orders of the steps of `actors` came to.
#[derive(Default)]
struct Outcome {
    orders: usize,
    hits: usize,
    fills: usize,
    wrong: Option<String>,
}

fn explore(actors: &[Actor], mutants: Mutants) -> Outcome {
    let mut outcome = Outcome::default();
    let mut order = Vec::new();
    let mut left: Vec<usize> = actors.iter().map(|actor| actor.steps()).collect();
    descend(actors, mutants, &mut left, &mut order, &mut outcome);
    outcome
}

fn descend(
    actors: &[Actor],
    mutants: Mutants,
    left: &mut Vec<usize>,
    order: &mut Vec<usize>,
    outcome: &mut Outcome,
) {
    if outcome.wrong.is_some() {
        return;
    }
    if left.iter().all(|steps| *steps == 0) {
        run(actors, mutants, order, outcome);
        return;
    }
    for actor in 0..actors.len() {
        if left[actor] == 0 {
            continue;
        }
        left[actor] -= 1;
        order.push(actor);
        descend(actors, mutants, left, order, outcome);
        order.pop();
        left[actor] += 1;
    }
}

fn run(actors: &[Actor], mutants: Mutants, order: &[usize], outcome: &mut Outcome) {
    let mut world = World::new(actors, mutants);
    for actor in order {
        assert!(world.may_step(*actor));
        world.step(*actor);
    }
    world.end();
    outcome.orders += 1;
    outcome.hits += world.hits;
    outcome.fills += world.fills;
    if let Some(wrong) = world.wrong {
        outcome.wrong = Some(format!("{wrong} in the order {order:?}"));
    }
}

use Actor::{Committer, Emptier, Evictor, LateReader, Reader};

const SETS: [&[Actor]; 5] = [
    &[Committer, Committer, Reader, Reader],
    &[Committer, Committer, Reader, LateReader],
    &[Committer, Committer, Reader, Evictor],
    &[Committer, Reader, Reader, Evictor],
    &[Committer, Emptier, Reader, Reader],
];

#[test]
fn in_every_order_of_fills_commits_and_evictions_a_hit_is_the_base() {
    for actors in SETS {
        let outcome = explore(actors, Mutants::default());
        assert_eq!(outcome.wrong, None, "{actors:?}");
        assert!(
            outcome.hits > 0 && outcome.fills > 0,
            "{actors:?}: something was served in {} orders",
            outcome.orders
        );
    }
}

fn is_caught(mutants: Mutants) -> bool {
    SETS.iter()
        .any(|actors| explore(actors, mutants).wrong.is_some())
}

#[test]
fn a_lost_delta_is_caught() {
    assert!(is_caught(Mutants {
        lose_deltas: true,
        ..Mutants::default()
    }));
}

#[test]
fn a_swapped_order_is_caught() {
    assert!(is_caught(Mutants {
        swap_order: true,
        ..Mutants::default()
    }));
}

#[test]
fn a_fill_without_later_deltas_is_caught() {
    assert!(is_caught(Mutants {
        skip_later_deltas: true,
        ..Mutants::default()
    }));
}

#[test]
fn a_fill_of_an_old_snapshot_is_caught() {
    assert!(is_caught(Mutants {
        accept_old_fills: true,
        ..Mutants::default()
    }));
}

#[test]
fn a_read_of_another_version_is_caught() {
    assert!(is_caught(Mutants {
        read_newest: true,
        ..Mutants::default()
    }));
}
