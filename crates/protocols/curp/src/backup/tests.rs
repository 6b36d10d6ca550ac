//! Logs of backups: tails, fences, copies.

use super::*;
use crate::machine_tests::{Nothing, entry, log_id};

/// A backup to which the first master sent three entries, of which all have one.
fn with_a_tail(options: &Options) -> Store<Nothing> {
    let mut store = Store::empty();
    assert!(store.fence(Epoch(1)));
    let entries = vec![entry(1, 1), entry(1, 2), entry(1, 3)];
    assert_eq!(store.append(options, 0, entries, 3, 1), Some(3));
    assert_eq!((store.applied, store.last()), (1, 3));
    store
}

/// The end of the log after another master, which has one entry more than all had, has spoken.
fn after_a_shorter_log(options: &Options) -> Position {
    let mut store = with_a_tail(options);
    assert!(store.fence(Epoch(2)));
    assert_eq!(store.append(options, 1, vec![entry(1, 2)], 2, 1), Some(2));
    assert!(store.check().is_ok());
    store.last()
}

#[test]
fn a_tail_that_the_next_master_does_not_have_is_cut_off() {
    assert_eq!(after_a_shorter_log(&Options::default()), 2);
}

#[cfg(feature = "mutants")]
#[test]
fn a_tail_that_is_not_cut_is_found() {
    let options = Options {
        mutant: Some(crate::mutants::Mutant::TailNotCut),
        ..Options::default()
    };
    assert_eq!(after_a_shorter_log(&options), 3, "as if it were executed");
}

#[test]
fn an_entry_of_another_master_takes_the_place_of_what_not_all_had() {
    let mut store = with_a_tail(&Options::default());
    assert!(store.fence(Epoch(2)));
    let options = Options::default();
    let entries = vec![entry(2, 9)];
    assert_eq!(store.append(&options, 1, entries, 2, 2), Some(2));
    assert_eq!((store.applied, store.last()), (2, 2));
    assert!(!store.fence(Epoch(1)), "the first master is refused");
}

/// A server that meets such entries refuses them, and does not stop.
#[test]
fn entries_of_masters_in_no_order_are_refused() {
    let mut store = with_a_tail(&Options::default());
    assert!(store.fence(Epoch(2)));
    let options = Options::default();
    assert_eq!(store.append(&options, 1, vec![entry(2, 8)], 2, 1), Some(2));
    for (after, entries) in [
        (1, vec![entry(0, 9)]),
        (2, vec![entry(1, 9)]),
        (2, vec![entry(2, 9), entry(1, 9)]),
        (2, vec![entry(3, 9)]),
    ] {
        let said = format!("{entries:?} behind {after}");
        assert_eq!(store.append(&options, after, entries, 4, 2), None, "{said}");
    }
    assert_eq!((store.applied, store.last()), (1, 2));
    assert!(store.check().is_ok());
    let whole = store.to_whole(7).unwrap();
    assert!(Store::from_whole(whole.clone(), &Nothing).is_ok());
    let mut older = whole.clone();
    older.tail.push(entry(1, 9));
    assert!(Store::from_whole(older, &Nothing).is_err());
    let mut later = whole;
    later.applied.epoch = Epoch(3);
    assert!(Store::from_whole(later, &Nothing).is_err());
}

#[test]
fn a_copy_that_ends_within_a_masters_own_log_is_not_needed() {
    let mut store = with_a_tail(&Options::default());
    assert!(!store.needs(3), "although one entry is applied");
    assert!(store.needs(4));
    assert!(store.fence(Epoch(2)));
    assert!(store.needs(1), "until it has heard what the master has");
    let options = Options::default();
    assert_eq!(store.append(&options, 1, Vec::new(), 1, 1), Some(1));
    assert!(!store.needs(1));
}

/// A server that is told of no more than it said to have applies nothing that its master has otherwise.
#[test]
fn a_tail_that_is_not_the_masters_is_not_applied_by_what_others_have() {
    let mut store = with_a_tail(&Options::default());
    assert!(store.fence(Epoch(2)));
    let options = Options::default();
    // All backups have five entries; this server has said that it has one of them.
    assert_eq!(store.append(&options, 1, Vec::new(), 5, 1), Some(1));
    assert_eq!(store.applied, 1);
    let entries = vec![entry(2, 8), entry(2, 9)];
    assert_eq!(store.append(&options, 1, entries, 5, 1), Some(3));
    assert_eq!(store.append(&options, 3, Vec::new(), 5, 3), Some(3));
    assert_eq!((store.applied, store.kept.end()), (3, log_id(3, 2)));
}

#[test]
fn what_a_master_that_never_opened_has_installed_is_replaced_by_the_next_ones() {
    let mut store: Store<Nothing> = Store::empty();
    assert!(store.fence(Epoch(1)));
    assert!(store.needs(5));
    store.install(log_id(5, 1), Nothing, Rifl::default());
    assert!(!store.needs(5), "sent again");
    assert!(store.fence(Epoch(2)));
    assert!(store.needs(5), "another log that ends at the same place");
    store.install(log_id(5, 1), Nothing, Rifl::default());
    assert!(!store.needs(5));
    let options = Options::default();
    assert_eq!(store.append(&options, 5, vec![entry(2, 1)], 6, 5), Some(6));
    assert!(!store.needs(5), "what is there is newer");
}
