use super::*;
use crate::testing::PolledWaiter;

const A: TxnId = TxnId(1);
const B: TxnId = TxnId(2);
const C: TxnId = TxnId(3);

fn key(name: &str) -> LockKey {
    name.as_bytes().into()
}

fn ask(table: &LockTable, owner: TxnId, name: &str, strength: Strength) -> Option<Arc<Ticket>> {
    let waiter: Arc<dyn Waiter> = Arc::new(PolledWaiter);
    match table.acquire(owner, &key(name), strength, &waiter) {
        Ok(Request::Granted) => None,
        Ok(Request::Queued(ticket)) => Some(ticket),
        Err(failure) => panic!("{failure}"),
    }
}

fn exclusive(table: &LockTable, owner: TxnId, name: &str) -> Option<Arc<Ticket>> {
    ask(table, owner, name, Strength::Exclusive)
}

fn deadlocks(table: &LockTable, owner: TxnId, name: &str, strength: Strength) -> bool {
    let waiter: Arc<dyn Waiter> = Arc::new(PolledWaiter);
    let answer = table.acquire(owner, &key(name), strength, &waiter);
    matches!(answer, Err(TxnError::Deadlock))
}

#[test]
fn a_lock_is_granted_in_the_order_of_asking() {
    let table = LockTable::default();
    assert!(exclusive(&table, A, "x").is_none());
    let second = exclusive(&table, B, "x").unwrap();
    let third = exclusive(&table, C, "x").unwrap();
    table.release(A, [key("x")]);
    assert!(second.is_granted() && !third.is_granted());
    table.release(B, [key("x")]);
    assert!(third.is_granted());
    table.release(C, [key("x")]);
    assert!(table.is_empty());
}

#[test]
fn readers_share_and_do_not_overtake_a_waiting_writer() {
    let table = LockTable::default();
    assert!(ask(&table, A, "x", Strength::Shared).is_none());
    assert!(ask(&table, B, "x", Strength::Shared).is_none());
    let writer = exclusive(&table, C, "x").unwrap();
    let late_reader = ask(&table, TxnId(4), "x", Strength::Shared).unwrap();
    table.release(A, [key("x")]);
    assert!(!writer.is_granted());
    table.release(B, [key("x")]);
    assert!(writer.is_granted() && !late_reader.is_granted());
    table.release(C, [key("x")]);
    assert!(late_reader.is_granted());
}

#[test]
fn asking_again_for_what_one_holds_is_granted() {
    let table = LockTable::default();
    assert!(exclusive(&table, A, "x").is_none());
    let _queued = exclusive(&table, B, "x").unwrap();
    assert!(exclusive(&table, A, "x").is_none());
    assert!(ask(&table, A, "x", Strength::Shared).is_none());
}

#[test]
fn an_upgrade_goes_before_the_queue_and_waits_for_other_readers() {
    let table = LockTable::default();
    assert!(ask(&table, A, "x", Strength::Shared).is_none());
    assert!(ask(&table, B, "x", Strength::Shared).is_none());
    let writer = exclusive(&table, C, "x").unwrap();
    let upgrade = exclusive(&table, A, "x").unwrap();
    table.release(B, [key("x")]);
    assert!(upgrade.is_granted() && !writer.is_granted());
}

#[test]
fn two_upgrades_of_one_key_are_a_deadlock() {
    let table = LockTable::default();
    assert!(ask(&table, A, "x", Strength::Shared).is_none());
    assert!(ask(&table, B, "x", Strength::Shared).is_none());
    let first = exclusive(&table, A, "x").unwrap();
    assert!(deadlocks(&table, B, "x", Strength::Exclusive));
    table.release(B, [key("x")]);
    assert!(first.is_granted());
}

#[test]
fn the_request_that_closes_a_cycle_of_three_dies_and_leaves_nothing_queued() {
    let table = LockTable::default();
    for (owner, name) in [(A, "x"), (B, "y"), (C, "z")] {
        assert!(exclusive(&table, owner, name).is_none());
    }
    let a = exclusive(&table, A, "y").unwrap();
    let b = exclusive(&table, B, "z").unwrap();
    assert!(deadlocks(&table, C, "x", Strength::Exclusive));
    table.release(C, [key("z")]);
    assert!(b.is_granted());
    table.release(B, [key("y"), key("z")]);
    assert!(a.is_granted());
    table.release(A, [key("x"), key("y")]);
    assert!(table.is_empty());
}

#[test]
fn a_queue_is_part_of_the_cycle() {
    // C waits behind B, B waits for A: A may not wait for C.
    let table = LockTable::default();
    assert!(exclusive(&table, A, "x").is_none());
    assert!(exclusive(&table, C, "y").is_none());
    let _b = exclusive(&table, B, "x").unwrap();
    let _c = ask(&table, C, "x", Strength::Shared).unwrap();
    assert!(deadlocks(&table, A, "y", Strength::Exclusive));
}

#[test]
fn a_cancelled_request_lets_those_behind_it_pass() {
    let table = LockTable::default();
    assert!(ask(&table, A, "x", Strength::Shared).is_none());
    let writer = exclusive(&table, B, "x").unwrap();
    let reader = ask(&table, C, "x", Strength::Shared).unwrap();
    assert!(!table.cancel(&writer));
    assert!(reader.is_granted());
    // And no longer counts as waiting.
    assert!(exclusive(&table, B, "y").is_none());
    assert!(exclusive(&table, A, "y").is_some());
}

#[test]
fn try_acquire_never_queues() {
    let table = LockTable::default();
    assert!(table.try_acquire(A, &key("x"), Strength::Exclusive));
    assert!(!table.try_acquire(B, &key("x"), Strength::Shared));
    table.release(A, [key("x")]);
    assert!(table.try_acquire(B, &key("x"), Strength::Shared));
    assert_eq!(table.len(), 1);
}

fn pack(table: &LockTable, owner: TxnId, names: &[&str]) -> usize {
    let keys = names.iter().map(|name| key(name)).collect();
    table.pack(owner, keys).len()
}

#[test]
fn a_packed_lock_is_waited_for_and_granted_when_it_is_given_back() {
    let table = LockTable::default();
    for name in ["w", "x", "y"] {
        assert!(exclusive(&table, A, name).is_none());
    }
    assert_eq!(pack(&table, A, &["w", "x", "y"]), 0);
    assert!(table.packed_bytes() > 0);
    assert!(table.holds(A, b"x", Strength::Exclusive));
    assert!(!table.holds(B, b"x", Strength::Shared));
    assert!(!table.try_acquire(C, &key("y"), Strength::Shared));
    let second = exclusive(&table, B, "x").unwrap();
    assert!(
        exclusive(&table, A, "x").is_none(),
        "its owner has it still"
    );
    assert!(!second.is_granted());
    table.release_packed(A);
    assert!(second.is_granted());
    assert!(!table.holds(A, b"w", Strength::Shared));
    assert!(exclusive(&table, C, "y").is_none());
    table.release(B, [key("x")]);
    table.release(C, [key("y")]);
    assert!(table.is_empty());
}

#[test]
fn packed_readers_share_and_one_of_them_may_want_more() {
    let table = LockTable::default();
    for owner in [A, B] {
        assert!(ask(&table, owner, "x", Strength::Shared).is_none());
        assert!(ask(&table, owner, "y", Strength::Shared).is_none());
        // What others share stays as it is.
        assert_eq!(
            pack(&table, owner, &["x", "y"]),
            if owner == A { 0 } else { 2 }
        );
    }
    assert!(ask(&table, C, "y", Strength::Shared).is_none());
    let upgrade = exclusive(&table, A, "x").unwrap();
    assert!(deadlocks(&table, B, "x", Strength::Exclusive));
    table.release(B, [key("x"), key("y")]);
    assert!(upgrade.is_granted() && table.holds(A, b"x", Strength::Exclusive));
    assert_eq!(pack(&table, A, &["x"]), 0);
    assert!(!table.try_acquire(B, &key("x"), Strength::Shared));
    table.release_packed(A);
    assert!(table.try_acquire(B, &key("x"), Strength::Exclusive));
}

#[test]
fn a_cycle_over_packed_locks_is_found() {
    let table = LockTable::default();
    for (owner, name) in [(A, "x"), (B, "y")] {
        assert!(exclusive(&table, owner, name).is_none());
        assert_eq!(pack(&table, owner, &[name]), 0);
    }
    let waits = exclusive(&table, A, "y").unwrap();
    assert!(deadlocks(&table, B, "x", Strength::Exclusive));
    table.release_packed(B);
    assert!(waits.is_granted());
}

#[test]
fn a_lock_that_is_waited_for_is_not_packed() {
    let table = LockTable::default();
    assert!(exclusive(&table, A, "x").is_none());
    let second = exclusive(&table, B, "x").unwrap();
    assert_eq!(pack(&table, A, &["x"]), 1);
    table.release(A, [key("x")]);
    assert!(second.is_granted());
}

#[test]
fn many_locks_take_few_bytes() {
    let table = LockTable::default();
    let row = |row: u64| -> LockKey {
        let table = [1, 0, 0, 0, 7, 0, 0, 0, 0];
        [&table[..], &row.to_be_bytes()].concat().into()
    };
    for part in 0..20 {
        let keys: Vec<LockKey> = (0..10_000).map(|at| row(at * 20 + part)).collect();
        for key in &keys {
            assert!(table.try_acquire(A, key, Strength::Exclusive));
        }
        assert!(table.pack(A, keys).is_empty());
    }
    assert_eq!(table.len(), 200_000);
    assert!(
        table.packed_bytes() < 8 * 200_000,
        "{} bytes",
        table.packed_bytes()
    );
    assert!(!table.try_acquire(B, &row(177_777), Strength::Shared));
    table.release_packed(A);
    assert!(table.is_empty());
}
