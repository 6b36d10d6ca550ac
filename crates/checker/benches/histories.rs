//! What judging a history costs: processor time. `cargo bench -p manxdb-checker`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use manxdb_checker::append::{History, Level, Operation, Outcome, Transaction, check};

/// Processor time of this thread in nanoseconds, as Linux counts it: others may use the machine
/// as well.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Transactions one after another, each of which reads a list and appends to another; every
/// `stale`th reads a list as it was ten appends before.
fn history(transactions: u64, lists: u64, stale: u64) -> History {
    let mut state = vec![Vec::new(); usize::try_from(lists).unwrap()];
    let run = |name: u64| {
        let (from, to) = (name * 7 % lists, name * 11 % lists);
        let mut list: Vec<u64> = state[usize::try_from(from).unwrap()].clone();
        if name % stale == stale - 1 {
            list.truncate(list.len().saturating_sub(10));
        }
        state[usize::try_from(to).unwrap()].push(name);
        let read = Operation::Read { key: from, list };
        let append = Operation::Append {
            key: Some(to),
            element: name,
        };
        Transaction {
            name,
            session: name % 50,
            invoked: name * 10,
            completed: name * 10 + 300,
            outcome: Outcome::Ok,
            operations: vec![read, append],
        }
    };
    History {
        transactions: (0..transactions).map(run).collect(),
        end_state: None,
    }
}

fn main() {
    for (transactions, lists, stale, what) in [
        (2_500, 20, u64::MAX, "5,000 operations"),
        (2_500, 20, 3, "5,000 operations, a third stale"),
        (50_000, 1_000, u64::MAX, "100,000 operations"),
        (50_000, 1_000, 3, "100,000 operations, a third stale"),
    ] {
        let history = history(transactions, lists, stale);
        for level in [Level::Serializable, Level::Session, Level::Strict] {
            // The clock has steps of some milliseconds.
            let rounds = 250_000 / transactions;
            let started = cpu();
            let mut found = 0;
            for _ in 0..rounds {
                found = check(&history, level).violations().len();
            }
            let spent = (cpu() - started) / 1_000 / rounds;
            println!("{what:34} {level:?}: {spent:>8} µs, {found} violations");
        }
    }
}
