//! The check of one of several control planes finds each planted fault.

use super::*;

fn sole() -> Contender {
    Contender::sole(Options::default(), NodeId(1), 1, Durable::default())
}

#[test]
fn a_leader_without_a_term_or_with_records_that_nobody_counted_is_found_out() {
    let faults: [(fn(&mut Contender), &str); 5] = [
        (
            |it| it.state = State::Follows(String::new()),
            "leads for ever",
        ),
        (|it| leader(it).term = Term(3), "was not won"),
        (|it| leader(it).first = 4, "is the last for the store"),
        (|it| it.ends = true, "and it ends"),
        (
            |it| _ = it.sent.insert(1, LocalTime(1)),
            "was not asked yet",
        ),
    ];
    assert_eq!(sole().check(), Ok(()));
    for (fault, name) in faults {
        let mut contender = sole();
        fault(&mut contender);
        let found = contender.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

fn leader(contender: &mut Contender) -> &mut Leader {
    match &mut contender.state {
        State::Leads(leader) => leader,
        State::Follows(_) => panic!("the only control plane leads"),
    }
}
