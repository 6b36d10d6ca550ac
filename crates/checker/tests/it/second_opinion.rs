//! Random histories of a database with and without defects, judged by this crate and by `adya`, a
//! checker written by others from the same definitions.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fmt::Write;

use adya::{Opts, Valid, Workload};
use manxdb_checker::append::{History, Level, Operation, Outcome, Transaction, check};
use proptest::prelude::*;

/// What is wrong with the database.
#[derive(Debug, Clone, Copy, Default)]
struct Defects {
    /// Some transactions read a state this much older than the one they write to.
    stale_by: u64,
    /// Some transactions that only read take their whole state from before they were sent.
    late_by: u64,
    /// Some refused transactions take effect all the same.
    failed_take_effect: bool,
}

/// One transaction to be.
#[derive(Debug, Clone)]
struct Plan {
    session: u8,
    /// Time between the session's last transaction and this one.
    pause: u64,
    duration: u64,
    /// Where in its duration it takes effect, in 256ths.
    point: u8,
    /// Keys, and whether each is appended to.
    operations: Vec<(u8, bool)>,
    end: u8,
    defective: bool,
}

prop_compose! {
    fn plan()(
        session in 0_u8..4,
        pause in 1_u64..9,
        duration in 1_u64..30,
        point in any::<u8>(),
        operations in prop::collection::vec((0_u8..3, any::<bool>()), 1..4),
        end in any::<u8>(),
        defective in prop::bool::weighted(0.3),
    ) -> Plan {
        Plan { session, pause, duration, point, operations, end, defective }
    }
}

fn outcome(plan: &Plan) -> Outcome {
    match plan.end {
        0..16 => Outcome::Failed,
        16..32 => Outcome::Unknown,
        _ => Outcome::Ok,
    }
}

/// The appends to each list, with the moment at which each took effect.
type State = BTreeMap<u64, Vec<(u64, u64)>>;

fn list_at(state: &State, key: u64, moment: u64) -> Vec<u64> {
    let appended = state.get(&key).into_iter().flatten();
    let before = appended.filter(|(effect, _)| *effect < moment);
    before.map(|(_, element)| *element).collect()
}

/// Runs the plans in the order of their effects, and last a reader of everything.
fn run(plans: &[Plan], defects: Defects) -> History {
    let mut free: BTreeMap<u8, u64> = BTreeMap::new();
    // A client whose transaction has no known end goes on as another session, as it does in the
    // other checker's notation.
    let mut names: BTreeMap<u8, u64> = BTreeMap::new();
    let mut queue = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        let clock = free.entry(plan.session).or_insert(100);
        let invoked = *clock + plan.pause;
        let completed = invoked + plan.duration;
        *clock = completed;
        // Unique, so that there is one order; multiplied to have room between them.
        let within = plan.duration * u64::from(plan.point) / 256;
        let effect = (invoked + within) * 1_000 + index as u64;
        let name = names.entry(plan.session).or_insert(plan.session.into());
        queue.push((effect, index, invoked, completed, *name));
        if outcome(plan) == Outcome::Unknown {
            *name += 100;
        }
    }
    queue.sort_unstable();
    let mut state = State::new();
    let mut transactions = Vec::new();
    for (effect, index, invoked, completed, session) in queue {
        let plan = &plans[index];
        let outcome = outcome(plan);
        let effective = match outcome {
            Outcome::Ok => true,
            Outcome::Failed => plan.defective && defects.failed_take_effect,
            Outcome::Unknown => plan.end.is_multiple_of(2),
        };
        let operations = execute(&mut state, plan, index, effect, effective, defects);
        transactions.push(Transaction {
            name: index as u64,
            session,
            invoked,
            completed,
            outcome,
            operations,
        });
    }
    let end = free.values().max().map_or(100, |last| last + 10);
    let read_all = (0..3).map(|key| Operation::Read {
        key,
        list: list_at(&state, key, u64::MAX),
    });
    transactions.push(Transaction {
        name: plans.len() as u64,
        session: 99,
        invoked: end,
        completed: end + 1,
        outcome: Outcome::Ok,
        operations: read_all.collect(),
    });
    crate::common::history(transactions)
}

fn execute(
    state: &mut State,
    plan: &Plan,
    index: usize,
    effect: u64,
    effective: bool,
    defects: Defects,
) -> Vec<Operation> {
    let only_reads = plan.operations.iter().all(|(_, appends)| !appends);
    let late = match (plan.defective, only_reads) {
        (true, true) => defects.late_by.max(defects.stale_by),
        (true, false) => defects.stale_by,
        (false, _) => 0,
    };
    let reads_at = effect.saturating_sub(late * 1_000);
    let mut own: Vec<(u64, u64)> = Vec::new();
    let mut operations = Vec::new();
    for (place, (key, appends)) in plan.operations.iter().enumerate() {
        let key = u64::from(*key);
        if *appends {
            let element = (index * 10 + place) as u64;
            own.push((key, element));
            operations.push(crate::common::append(key, element));
        } else {
            let mut list = list_at(state, key, reads_at);
            let mine = own.iter().filter(|(to, _)| *to == key);
            list.extend(mine.map(|(_, element)| *element));
            operations.push(Operation::Read { key, list });
        }
    }
    if effective {
        for (key, element) in own {
            state.entry(key).or_default().push((effect, element));
        }
    }
    operations
}

/// The history in the other checker's notation.
fn tell(history: &History) -> String {
    let mut events = Vec::new();
    for transaction in &history.transactions {
        let process = transaction.session;
        let end = match transaction.outcome {
            Outcome::Ok => "ok",
            Outcome::Failed => "fail",
            Outcome::Unknown => "info",
        };
        let (invoked, completed) = (transaction.invoked, transaction.completed);
        for (moment, order, kind) in [(invoked, 0, "invoke"), (completed, 1, end)] {
            let operations: Vec<String> = transaction
                .operations
                .iter()
                .map(|operation| match operation {
                    Operation::Append { key, element } => {
                        format!(r#"["append",{},{element}]"#, key.unwrap())
                    }
                    Operation::Read { key, list } if kind == "ok" => {
                        format!(r#"["r",{key},{list:?}]"#)
                    }
                    Operation::Read { key, .. } => format!(r#"["r",{key},null]"#),
                })
                .collect();
            let value = operations.join(",");
            let line = format!(r#"{{"type":"{kind}","process":{process},"value":[{value}]}}"#);
            events.push((moment, order, line));
        }
    }
    // At one moment, invocations first: as here, they do not follow what completes then.
    events.sort();
    events.iter().fold(String::new(), |mut text, event| {
        writeln!(text, "{}", event.2).unwrap();
        text
    })
}

fn others_find(history: &History, model: &str) -> bool {
    let parsed = adya::History::from_json(&tell(history)).unwrap();
    let options = Opts {
        models: vec![model.into()],
        ..Opts::default()
    };
    let report = adya::check(&parsed, Workload::ListAppend, &options);
    matches!(report.valid, Valid::False)
}

const LEVELS: [(Level, &str); 3] = [
    (Level::Serializable, "serializable"),
    (Level::Session, "strong-session-serializable"),
    (Level::Strict, "strict-serializable"),
];

fn assert_same_opinion(plans: &[Plan], defects: Defects) {
    let history = run(plans, defects);
    for (level, model) in LEVELS {
        let verdict = check(&history, level);
        let theirs = others_find(&history, model);
        assert_eq!(
            !verdict.is_valid(),
            theirs,
            "{level:?}\n{verdict}\n{}",
            tell(&history)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_database_without_defects_is_strict(plans in prop::collection::vec(plan(), 1..40)) {
        let history = run(&plans, Defects::default());
        let verdict = check(&history, Level::Strict);
        prop_assert!(verdict.is_valid(), "{}", verdict);
        assert_same_opinion(&plans, Defects::default());
    }

    #[test]
    fn both_agree_on_stale_reads(
        plans in prop::collection::vec(plan(), 1..40),
        stale_by in 1_u64..60,
    ) {
        assert_same_opinion(&plans, Defects { stale_by, ..Defects::default() });
    }

    #[test]
    fn both_agree_on_late_readers(
        plans in prop::collection::vec(plan(), 1..40),
        late_by in 1_u64..60,
    ) {
        assert_same_opinion(&plans, Defects { late_by, ..Defects::default() });
    }

    #[test]
    fn both_agree_on_failed_transactions_that_take_effect(
        plans in prop::collection::vec(plan(), 1..40),
    ) {
        assert_same_opinion(&plans, Defects { failed_take_effect: true, ..Defects::default() });
    }
}
