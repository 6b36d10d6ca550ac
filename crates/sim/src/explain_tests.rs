use super::*;
use proptest::prelude::*;

const fn micros(micros: u64) -> SimTime {
    SimTime::from_micros(micros)
}

fn step(number: u64, node: u32, trigger: Trigger, times: [u64; 3]) -> Step {
    Step {
        number,
        node: NodeId(node),
        trigger,
        arrived: micros(times[0]),
        turn: micros(times[1]),
        done: micros(times[2]),
        said: None,
        answers: false,
    }
}

fn lan(sent_in: u64) -> Trigger {
    Trigger::Message {
        sent_in,
        label: "note",
        class: LinkClass::Lan,
    }
}

fn says(mut step: Step, reason: &'static str) -> Step {
    step.said = Some(Some(Wait {
        reason,
        on: Some(7),
    }));
    step
}

fn reasons(parts: &[Part]) -> Vec<(&'static str, u64)> {
    let parts = parts.iter();
    parts
        .map(|part| (part.reason, part.span().as_micros()))
        .collect()
}

/// A request, a message to node 1, a wait there that changes its reason, an answer.
fn waiting() -> Vec<Step> {
    let mut steps = vec![
        step(3, 0, Trigger::Request, [10, 10, 12]),
        says(step(5, 1, lan(3), [20, 20, 21]), "gate"),
        // A note from elsewhere that changes nothing.
        step(6, 1, lan(3), [25, 25, 25]),
        says(step(8, 1, Trigger::Other, [30, 30, 30]), "line"),
        step(9, 1, Trigger::Other, [44, 50, 51]),
        step(12, 0, lan(9), [61, 61, 61]),
    ];
    steps[4].said = Some(None);
    steps[5].answers = true;
    steps
}

#[test]
fn a_wait_is_followed_to_where_it_began() {
    let parts = explain(micros(10), micros(64), &waiting());
    let expected = [
        (WORK, 2),
        (LAN, 8),
        (WORK, 1),
        ("gate", 9),
        ("line", 14),
        (QUEUE, 6),
        (WORK, 1),
        (LAN, 10),
        (CLIENT, 3),
    ];
    assert_eq!(reasons(&parts), expected);
    assert_eq!(parts[4].on, Some(7));
}

#[test]
fn what_nobody_explains_is_said_to_be_so() {
    let mut steps = waiting();
    for step in &mut steps {
        step.said = None;
    }
    let parts = explain(micros(10), micros(64), &steps);
    // Back from one step at the node to the one before, until a message came.
    let expected = [
        (WORK, 2),
        (LAN, 13),
        (OTHER, 5),
        (OTHER, 14),
        (QUEUE, 6),
        (WORK, 1),
        (LAN, 10),
        (CLIENT, 3),
    ];
    assert_eq!(reasons(&parts), expected);
    let nothing = explain(micros(10), micros(64), &[]);
    assert_eq!(reasons(&nothing), [(OTHER, 54)]);
}

#[test]
fn waits_end_where_the_core_says_so() {
    let waits = waits(&waiting());
    let spans: Vec<_> = waits
        .iter()
        .map(|waited| (waited.wait.reason, waited.from, waited.until))
        .collect();
    let expected = [
        ("gate", micros(21), Some(micros(30))),
        ("line", micros(30), Some(micros(51))),
    ];
    assert_eq!(spans, expected);
    assert_eq!(super::waits(&waiting()[..4])[1].until, None);
}

proptest! {
    /// Whatever the steps say, the parts are the whole time without gaps.
    #[test]
    fn parts_always_add_up(
        drawn in prop::collection::vec(
            (0..4_u32, 0..4_u8, 0..9_u64, prop::array::uniform3(0..100_u64), any::<bool>()),
            0..12,
        ),
        asked in 0..60_u64,
        lasts in 0..80_u64,
    ) {
        let steps: Vec<Step> = (0..)
            .zip(drawn)
            .map(|(number, (node, kind, sent_in, times, answers))| {
                let trigger = match kind {
                    0 => Trigger::Request,
                    1 => lan(sent_in),
                    _ => Trigger::Other,
                };
                let mut made = step(number, node, trigger, times);
                if kind == 3 {
                    made = says(made, "gate");
                }
                made.answers = answers;
                made
            })
            .collect();
        let (asked, answered) = (micros(asked), micros(asked + lasts));
        let parts = explain(asked, answered, &steps);
        let mut at = asked;
        for part in &parts {
            prop_assert_eq!(part.from, at);
            prop_assert!(part.until > part.from);
            at = part.until;
        }
        prop_assert_eq!(at, answered);
    }
}
