//! All interleavings of a few transactions, whatever dies: the crate's own state machines, driven
//! by a checker that decides which piece of whose operation lands next.
//!
//! | what is explored | who may die | states |
//! |---|---|---|
//! | a reader meets a writer, word by word | nobody | 1,538,370 |
//! | two that move money between the same two records | nobody | 19,669 |
//! | the same, recovered by a third that then looks | one of them | 222,933 |
//! | one that moves money, with two logs; those who go on for it | it, and the first of those | 7,931 |
//! | one that moves money twice, another that looks | the first | 883,233 |
//! | a writer, one who copies what it reads, one who looks | nobody | 12,549 |
//! | two that read what the other one writes: snapshots, serializable | one of them | 5,846 and 5,993 |
//!
//! `cargo test -p manxdb-rsi --test model -- --nocapture` prints these numbers. In each state the
//! invariants of [`properties`] hold; what a test needs to have seen is named beside it. Seven of the
//! crate's mutants and a fabric without order are found here; the one about keys is in `keys.rs`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod case;
mod client;
mod memory;
mod properties;
mod state;

use case::{Case, Grain, MembershipDeed};
use manxdb_rsi::Isolation::{Serializable, Snapshot};
use manxdb_rsi::mutants::Mutant;
use properties::{AGAIN, ALL_COMMIT, CONFLICT, REDONE, SKEW, UNDONE};
use stateright::{Checker, HasDiscoveries, Model};

/// Explores everything; whether nothing is wrong, and everything that must be reachable is.
fn holds(case: Case, reachable: &[&'static str]) {
    let checker = case.checker().spawn_dfs().join();
    println!("{} states", checker.unique_state_count());
    for (name, _) in properties::ALWAYS {
        checker.assert_no_discovery(name);
    }
    for name in reachable {
        checker.assert_any_discovery(name);
    }
}

/// What is found wrong with a defect, the expected first: which of several is met before depends on
/// the order of the search.
fn found(case: Case, expected: &'static str) -> Vec<&'static str> {
    let of_name = properties::ALWAYS.iter().map(|(name, _)| *name);
    let sought = of_name.filter(|name| name.contains(expected)).collect();
    let checker = case.checker().finish_when(HasDiscoveries::AllOf(sought));
    let checker = checker.spawn_dfs().join();
    let found = checker.discoveries();
    println!("{} states", checker.unique_state_count());
    let names = properties::ALWAYS.iter().map(|(name, _)| *name);
    names.filter(|name| found.contains_key(name)).collect()
}

fn one_writer_one_reader() -> Case {
    Case::new(
        &[&[MembershipDeed::RaiseMax(0)], &[MembershipDeed::Look]],
        Snapshot,
        Grain::Words,
    )
}

fn two_movers() -> Case {
    Case::new(
        &[&[MembershipDeed::Move(1)], &[MembershipDeed::Move(2)]],
        Snapshot,
        Grain::Fine,
    )
}

fn two_movers_of_whom_one_dies() -> Case {
    let movers: &[&[MembershipDeed]] = &[&[MembershipDeed::Move(1)], &[MembershipDeed::Move(2)]];
    Case::new(movers, Snapshot, Grain::Coarse).mortal(&[0, 1], 1)
}

fn a_mover_and_those_who_go_on_for_it_die() -> Case {
    let mover: &[&[MembershipDeed]] = &[&[MembershipDeed::Move(1)]];
    Case::new(mover, Snapshot, Grain::Fine)
        .mortal(&[0], 2)
        .with_logs(2)
}

fn a_mover_dies_and_another_looks() -> Case {
    let movers: &[&[MembershipDeed]] = &[
        &[MembershipDeed::Move(1), MembershipDeed::Move(2)],
        &[MembershipDeed::Look],
    ];
    Case::new(movers, Snapshot, Grain::Coarse).mortal(&[0], 1)
}

fn a_chain() -> Case {
    let chain: &[&[MembershipDeed]] = &[
        &[MembershipDeed::RaiseMax(0)],
        &[MembershipDeed::Copy],
        &[MembershipDeed::Look],
    ];
    Case::new(chain, Snapshot, Grain::Coarse)
}

fn doctors(isolation: manxdb_rsi::Isolation) -> Case {
    let doctors: &[&[MembershipDeed]] = &[&[MembershipDeed::Leave(0)], &[MembershipDeed::Leave(1)]];
    Case::new(doctors, isolation, Grain::Coarse).mortal(&[0], 1)
}

#[test]
fn a_reader_meets_a_writer_word_by_word() {
    holds(one_writer_one_reader(), &[AGAIN, ALL_COMMIT]);
}

#[test]
fn two_transactions_on_the_same_two_records() {
    holds(two_movers(), &[AGAIN, ALL_COMMIT, CONFLICT]);
}

#[test]
fn one_of_two_dies() {
    holds(two_movers_of_whom_one_dies(), &[REDONE, UNDONE, CONFLICT]);
}

#[test]
fn those_who_go_on_die_too() {
    holds(a_mover_and_those_who_go_on_for_it_die(), &[REDONE, UNDONE]);
}

#[test]
fn one_dies_over_its_second_transaction() {
    holds(a_mover_dies_and_another_looks(), &[REDONE, UNDONE]);
}

#[test]
fn who_sees_the_last_of_a_chain_sees_the_first() {
    holds(a_chain(), &[ALL_COMMIT]);
}

#[test]
fn write_skew_is_reachable_under_snapshot_isolation_alone() {
    holds(doctors(Snapshot), &[SKEW, REDONE]);
    let checker = doctors(Serializable).checker().spawn_dfs().join();
    assert!(checker.discovery(SKEW).is_none());
    holds(doctors(Serializable), &[CONFLICT, REDONE]);
}

#[test]
fn every_planted_defect_is_found() {
    let cases = [
        (a_chain().with(Mutant::ForgetsWhatWasSeen), "I6"),
        (two_movers().with(Mutant::TakesEveryLock), "I2"),
        (two_movers().with(Mutant::TakesLocksOver), "I2"),
        (
            doctors(Serializable).with(Mutant::NeverValidates),
            "serial order",
        ),
        (two_movers().with(Mutant::PublishesFirst), "I5"),
        (
            two_movers_of_whom_one_dies().with(Mutant::InstallsBeforeItLogs),
            "half there",
        ),
        (
            a_mover_dies_and_another_looks().with(Mutant::ReadsTheNewest),
            "I9",
        ),
        (two_movers().without_order(), "I1"),
    ];
    for (case, expected) in cases {
        let defect = (case.mutant, case.keeps_order);
        let found = found(case, expected);
        assert!(
            found.iter().any(|name| name.contains(expected)),
            "{defect:?}: {found:?}"
        );
    }
}
