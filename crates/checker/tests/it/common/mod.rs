//! Short ways to write a history.
#![allow(dead_code)] // Each test binary uses a part of it.

use manxdb_checker::append::{History, Operation, Outcome, Transaction};

pub fn read(key: u64, list: &[u64]) -> Operation {
    let list = list.to_vec();
    Operation::Read { key, list }
}

pub fn append(key: u64, element: u64) -> Operation {
    let key = Some(key);
    Operation::Append { key, element }
}

/// A committed transaction of its own session, that ran from 10 times its name for 5.
pub fn txn(name: u64, operations: &[Operation]) -> Transaction {
    Transaction {
        name,
        session: name,
        invoked: name * 10,
        completed: name * 10 + 5,
        outcome: Outcome::Ok,
        operations: operations.to_vec(),
    }
}

pub fn history(transactions: Vec<Transaction>) -> History {
    History {
        transactions,
        end_state: None,
    }
}
