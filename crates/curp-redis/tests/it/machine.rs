//! What a master executes, backups have; what was not let happen, did not.

use manxdb_curp::ids::Stamp;
use manxdb_curp::{Execute, Executed};
use manxdb_curp_redis::{RedisMachine, ReplicatedCommand};
use manxdb_redis::Command;
use manxdb_redis::resp::Protocol;
use proptest::prelude::*;

fn stamp(number: u64) -> Stamp {
    Stamp {
        micros: 1_700_000_000_000_000 + number * 1_000_000,
        seed: number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}

fn encode(db: u8, commands: &[&[&str]], is_transaction: bool) -> Vec<u8> {
    ReplicatedCommand {
        db,
        protocol: Protocol::Resp2,
        is_transaction,
        commands: commands.iter().map(|words| Command::of(words)).collect(),
    }
    .encode()
}

fn one(words: &[&str]) -> Vec<u8> {
    encode(0, &[words], false)
}

/// Runs a command and lets it happen.
fn run(machine: &mut RedisMachine, command: &[u8], number: u64) -> Executed {
    let executed = machine.execute(command, stamp(number));
    if !executed.effects.is_empty() {
        machine.apply(&executed.effects);
    }
    executed
}

fn answer(machine: &mut RedisMachine, words: &[&str]) -> String {
    String::from_utf8(run(machine, &one(words), 1).answer).unwrap()
}

#[test]
fn a_command_that_was_not_let_happen_did_not() {
    let mut machine = RedisMachine::empty();
    answer(&mut machine, &["SET", "a", "1"]);
    answer(&mut machine, &["RPUSH", "l", "x", "y"]);
    machine.execute(&one(&["INCR", "a"]), stamp(2));
    machine.execute(&one(&["LPOP", "l"]), stamp(2));
    machine.execute(&one(&["FLUSHALL"]), stamp(2));
    assert_eq!(answer(&mut machine, &["GET", "a"]), "$1\r\n1\r\n");
    assert_eq!(answer(&mut machine, &["LLEN", "l"]), ":2\r\n");
    assert_eq!(answer(&mut machine, &["INCR", "a"]), ":2\r\n");
}

#[test]
fn a_transaction_is_one_command_with_the_keys_of_all() {
    let transfer = encode(3, &[&["DECRBY", "a", "5"], &["INCRBY", "b", "5"]], true);
    let declared = RedisMachine::declare(&transfer).unwrap();
    assert_eq!(declared.keys, [b"\x03a".to_vec(), b"\x03b".to_vec()]);
    assert!(!declared.reads_only);
    let mut machine = RedisMachine::empty();
    let executed = run(&mut machine, &transfer, 1);
    assert_eq!(executed.answer, b"*2\r\n:-5\r\n:5\r\n");
    assert_eq!(executed.touched, declared.keys);
    assert_eq!(
        answer(&mut machine, &["GET", "a"]),
        "$-1\r\n",
        "another database"
    );
}

#[test]
fn what_is_drawn_waits_or_looks_at_all_keys_is_recorded_nowhere() {
    for words in [
        &["SPOP", "s"][..],
        &["BLPOP", "l", "1"],
        &["FLUSHDB"],
        &["KEYS", "*"],
        &["RANDOMKEY"],
    ] {
        let declared = RedisMachine::declare(&one(words)).unwrap();
        assert!(declared.keys.is_empty(), "{words:?}");
    }
    let mut machine = RedisMachine::empty();
    assert!(run(&mut machine, &one(&["FLUSHDB"]), 1).touches_all);
    assert!(run(&mut machine, &one(&["DBSIZE"]), 1).touches_all);
    assert!(!run(&mut machine, &one(&["GET", "a"]), 1).touches_all);
    let beside = one(&["SORT", "l", "BY", "weight:*"]);
    assert!(run(&mut machine, &beside, 1).touches_all);
    let within = one(&["SORT", "l", "BY", "nosort"]);
    assert!(!run(&mut machine, &within, 1).touches_all);
    let waits = run(&mut machine, &one(&["BLPOP", "l", "1"]), 1);
    assert!(waits.answer.is_empty() && waits.effects.is_empty());
}

#[test]
fn bytes_and_commands_that_are_none_of_these_change_nothing() {
    let mut machine = RedisMachine::empty();
    for bytes in [
        &b""[..],
        b"\xFF\xFF\xFF\xFF\xFF",
        &one(&["SELECT", "1"]),
        &one(&["SET", "a"]),
    ] {
        assert_eq!(RedisMachine::declare(bytes), None);
        assert!(run(&mut machine, bytes, 1).effects.is_empty());
    }
    machine.apply(b"\xFF\xFF\xFF");
    assert_eq!(machine.inside().rows(), 0);
}

/// Commands on few keys, of all types, with expiries that pass: each step is a second.
fn command() -> impl Strategy<Value = Vec<String>> {
    let key = prop::sample::select(vec!["a", "b", "c"]);
    let forms = prop::sample::select(vec![
        "SET @ 7",
        "SET @ 7 EX 3",
        "INCR @",
        "APPEND @ x",
        "GET @",
        "DEL @",
        "EXPIRE @ 2",
        "TTL @",
        "RPUSH @ p q r",
        "LPOP @",
        "LRANGE @ 0 -1",
        "SADD @ m n o",
        "SPOP @",
        "SMEMBERS @",
        "SREM @ m",
        "HSET @ f 1 g 2",
        "HINCRBY @ f 3",
        "HGETALL @",
        "HEXPIRE @ 3 FIELDS 2 f g",
        "HPERSIST @ FIELDS 1 f",
        "HTTL @ FIELDS 2 f g",
        "HSETEX @ EX 2 FIELDS 1 g 9",
        "HGETDEL @ FIELDS 1 g",
        "ZADD @ 1 u 2 v",
        "ZINCRBY @ 5 u",
        "ZRANGE @ 0 -1 WITHSCORES",
        "RENAME @ a",
        "MSET @ 1 b 2",
        "FLUSHDB",
        "DBSIZE",
    ]);
    (forms, key)
        .prop_map(|(form, key)| form.split(' ').map(|word| word.replace('@', key)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A backup that only applies effects, and a machine restored in the middle, end where the master
    /// does; whoever continues from the rows answers what the master answers.
    #[test]
    fn a_backup_and_a_successor_are_where_the_master_is(
        commands in prop::collection::vec(command(), 1..40),
        cut in 0_usize..40,
    ) {
        let mut master = RedisMachine::empty();
        let mut backup = RedisMachine::empty();
        let mut successor = None;
        for (number, words) in commands.iter().enumerate() {
            if number == cut {
                successor = RedisMachine::restore(&backup.snapshot());
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let command = one(&words);
            let at = number as u64;
            let executed = run(&mut master, &command, at);
            backup.apply(&executed.effects);
            if let Some(successor) = &mut successor {
                let draws = words[0] == "SPOP"; // from an order that rows of large sets do not keep
                let of_successor = run(successor, &command, at);
                prop_assert!(draws || of_successor.answer == executed.answer, "{words:?}");
                if draws {
                    break;
                }
            }
        }
        prop_assert_eq!(&backup, &master);
        let copy = RedisMachine::restore(&master.snapshot()).unwrap();
        let bytes = (master.inside().bytes(), backup.inside().bytes());
        prop_assert_eq!(bytes, (copy.inside().bytes(), copy.inside().bytes()));
    }

    /// A collection that is too large for one row, with elements in rows of their own.
    #[test]
    fn a_large_collection_survives_in_rows(count in 100_usize..400, gone in 0_usize..100) {
        let mut master = RedisMachine::empty();
        let mut backup = RedisMachine::empty();
        let mut both = |words: &[&str]| {
            let executed = run(&mut master, &one(words), 1);
            backup.apply(&executed.effects);
        };
        for number in 0..count {
            both(&["HSET", "h", &format!("f{number}"), "v"]);
        }
        // Half of them go by themselves, as the next command finds them.
        for number in 0..gone {
            let field = format!("f{number}");
            match number % 2 {
                0 => both(&["HDEL", "h", &field]),
                _ => both(&["HPEXPIRE", "h", "1", "FIELDS", "1", &field]),
            }
        }
        let executed = run(&mut master, &one(&["HLEN", "h"]), 2);
        backup.apply(&executed.effects);
        let mut successor = RedisMachine::restore(&backup.snapshot()).unwrap();
        let length = format!(":{}\r\n", count - gone);
        prop_assert_eq!(answer(&mut successor, &["HLEN", "h"]), length);
        let before = successor.inside().rows();
        answer(&mut successor, &["DEL", "h"]);
        prop_assert!(successor.inside().rows() < before.min(4), "{} rows are left", successor.inside().rows());
    }
}
