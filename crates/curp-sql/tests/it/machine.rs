//! The machine: owners, versions, tombstones, snapshots.

use manxdb_curp::Execute as _;
use manxdb_curp::ids::Stamp;
use manxdb_curp_sql::effects::Outcome;
use manxdb_curp_sql::{Effects, Owner, SqlCommand, SqlMachine};
use manxdb_storage::Version;

fn commit(owner: u64, (version, shown): (u64, u64), key: &str, value: Option<&str>) -> Vec<u8> {
    let write = (
        key.as_bytes().to_vec(),
        value.map(|value| value.as_bytes().to_vec()),
    );
    let effects = Effects {
        owner: Owner(owner),
        version,
        shown,
        writes: vec![write],
    };
    SqlCommand::Commit(effects).encode()
}

/// Executes a command as a master does.
fn run(machine: &mut SqlMachine, command: &[u8]) -> Option<Outcome> {
    let executed = machine.execute(command, Stamp::default());
    machine.apply(&executed.effects);
    machine.rows().check().unwrap();
    Outcome::of(&executed.answer)
}

fn rows(machine: &SqlMachine) -> Vec<(String, u64, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let live = machine.rows().live();
    live.map(|(key, version, value)| (text(key), version.0, text(value)))
        .collect()
}

#[test]
fn the_owner_alone_writes_and_a_claim_ends_all_before_it() {
    let mut machine = SqlMachine::empty();
    assert_eq!(
        run(&mut machine, &commit(1, (1, 0), "a", Some("x"))),
        Some(Outcome::NotOwner)
    );
    assert_eq!(
        run(&mut machine, &SqlCommand::Claim(Owner(1)).encode()),
        Some(Outcome::Done)
    );
    assert_eq!(
        run(&mut machine, &commit(1, (1, 0), "a", Some("x"))),
        Some(Outcome::Done)
    );
    assert_eq!(
        run(&mut machine, &SqlCommand::Claim(Owner(3)).encode()),
        Some(Outcome::Done)
    );
    // What an earlier owner has ordered does nothing, wherever it was in between.
    assert_eq!(
        run(&mut machine, &commit(1, (2, 1), "a", Some("y"))),
        Some(Outcome::NotOwner)
    );
    assert_eq!(
        run(&mut machine, &SqlCommand::Claim(Owner(2)).encode()),
        Some(Outcome::NotOwner)
    );
    assert_eq!(
        run(&mut machine, &SqlCommand::Claim(Owner(3)).encode()),
        Some(Outcome::NotOwner)
    );
    assert_eq!(rows(&machine), [("a".to_owned(), 1, "x".to_owned())]);
    assert_eq!(machine.owner(), Owner(3));
}

#[test]
fn the_highest_version_of_a_key_wins_in_whatever_order_they_come() {
    let mut machine = SqlMachine::empty();
    run(&mut machine, &SqlCommand::Claim(Owner(1)).encode());
    run(&mut machine, &commit(1, (5, 2), "a", Some("new")));
    run(&mut machine, &commit(1, (4, 2), "a", Some("old")));
    run(&mut machine, &commit(1, (6, 2), "b", None));
    run(&mut machine, &commit(1, (3, 2), "b", Some("deleted later")));
    assert_eq!(rows(&machine), [("a".to_owned(), 5, "new".to_owned())]);
    assert_eq!(
        (machine.rows().len(), machine.rows().latest()),
        (2, Version(6))
    );
    // Nothing up to 6 comes any more: the deleted key need not be remembered.
    run(&mut machine, &commit(1, (7, 6), "c", Some("x")));
    assert_eq!(machine.rows().len(), 2);
    run(&mut machine, &commit(1, (8, 6), "c", None));
    assert_eq!(machine.rows().len(), 2);
    run(&mut machine, &SqlCommand::Claim(Owner(2)).encode());
    assert_eq!(
        (machine.rows().len(), machine.rows().latest()),
        (1, Version(8))
    );
}

#[test]
fn keys_that_are_written_are_declared_and_touched_and_no_others() {
    let mut machine = SqlMachine::empty();
    run(&mut machine, &SqlCommand::Claim(Owner(1)).encode());
    let command = commit(1, (1, 0), "key", Some("value"));
    let declared = SqlMachine::declare(&command).unwrap();
    let executed = machine.execute(&command, Stamp::default());
    assert_eq!(declared.keys, [b"key".to_vec()]);
    assert_eq!(executed.touched, declared.keys);
    assert!(!declared.reads_only && !executed.touches_all);
    let claim = SqlCommand::Claim(Owner(2)).encode();
    assert!(
        SqlMachine::declare(&claim).unwrap().keys.is_empty(),
        "never recorded"
    );
    assert!(machine.execute(&claim, Stamp::default()).touches_all);
    let show = SqlCommand::Show.encode();
    assert!(SqlMachine::declare(&show).unwrap().reads_only);
    assert!(machine.execute(&show, Stamp::default()).effects.is_empty());
    assert!(SqlMachine::declare(b"nonsense").is_none());
}

#[test]
fn a_snapshot_is_the_whole_state_and_a_clone_is_a_state_of_its_own() {
    let mut machine = SqlMachine::empty();
    run(&mut machine, &SqlCommand::Claim(Owner(1)).encode());
    run(&mut machine, &commit(1, (1, 0), "a", Some("x")));
    run(&mut machine, &commit(1, (2, 0), "b", None));
    let copy = SqlMachine::restore(&machine.snapshot()).unwrap();
    assert_eq!(copy, machine);
    run(&mut machine, &commit(1, (3, 0), "a", Some("y")));
    assert_ne!(copy, machine, "a copy does not follow");
    assert!(SqlMachine::restore(&[1, 2, 3]).is_none());
    let mut cut = machine.snapshot();
    cut.pop();
    assert!(SqlMachine::restore(&cut).is_none());
}
