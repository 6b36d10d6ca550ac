//! Scripts do the same at every master, and whoever executes one again knows what it may touch.

use std::collections::BTreeSet;

use manxdb_curp::ids::Stamp;
use manxdb_curp::{Execute, Executed};
use manxdb_curp_redis::{RedisMachine, ReplicatedCommand};
use manxdb_redis::Command;
use manxdb_redis::resp::Protocol;

fn stamp(number: u64) -> Stamp {
    Stamp {
        micros: 1_700_000_000_000_000 + number * 1_500,
        seed: number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}

fn one(words: &[&str]) -> Vec<u8> {
    ReplicatedCommand {
        db: 0,
        protocol: Protocol::Resp2,
        is_transaction: false,
        commands: vec![Command::of(words)],
    }
    .encode()
}

fn run(machine: &mut RedisMachine, words: &[&str], number: u64) -> Executed {
    let executed = machine.execute(&one(words), stamp(number));
    machine.apply(&executed.effects);
    executed
}

fn answer(machine: &mut RedisMachine, words: &[&str]) -> String {
    String::from_utf8(run(machine, words, 1).answer).unwrap()
}

/// Whether a master may answer it before its sync, were nothing else under way.
fn is_fast(words: &[&str], executed: &Executed) -> bool {
    let declared = RedisMachine::declare(&one(words)).unwrap().keys;
    !executed.touches_all && executed.touched.iter().all(|key| declared.contains(key))
}

const COUNT: &str = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
/// Of [`COUNT`], as SCRIPT LOAD says.
fn name_of(machine: &mut RedisMachine, text: &str) -> String {
    let loaded = answer(machine, &["SCRIPT", "LOAD", text]);
    loaded.split("\r\n").nth(1).unwrap().to_owned()
}

#[test]
fn a_script_that_is_known_touches_what_it_declares_and_a_new_one_everything() {
    let mut machine = RedisMachine::empty();
    let eval = ["EVAL", COUNT, "1", "a", "2"];
    let first = run(&mut machine, &eval, 1);
    assert_eq!(first.answer, b":2\r\n");
    assert!(!is_fast(&eval, &first), "its text is new");
    let second = run(&mut machine, &eval, 2);
    assert_eq!(second.answer, b":4\r\n");
    assert!(is_fast(&eval, &second));
    let undeclared = ["EVAL", "return redis.call('GET', ARGV[1])", "1", "b", "a"];
    run(&mut machine, &undeclared, 3);
    let again = run(&mut machine, &undeclared, 4);
    assert_eq!(again.answer, b"$1\r\n4\r\n");
    assert!(
        !is_fast(&undeclared, &again),
        "it reads what it does not declare"
    );
    let select = [
        "EVAL",
        "redis.call('SELECT', 3) return redis.call('GET', KEYS[1])",
        "1",
        "a",
    ];
    run(&mut machine, &select, 5);
    let of_another = run(&mut machine, &select, 6);
    assert_eq!(of_another.answer, b"$-1\r\n");
    assert!(
        !is_fast(&select, &of_another),
        "the key of another database"
    );
}

#[test]
fn scripts_are_found_by_their_names_also_at_the_next_master_until_they_are_flushed() {
    let mut machine = RedisMachine::empty();
    let unknown = answer(&mut machine, &["EVALSHA", &"0".repeat(40), "0"]);
    assert!(unknown.starts_with("-NOSCRIPT "), "{unknown}");
    let name = name_of(&mut machine, COUNT);
    let mut next = RedisMachine::restore(&machine.snapshot()).unwrap();
    let by_name = ["EVALSHA", &name.to_uppercase(), "1", "a", "5"];
    let executed = run(&mut next, &by_name, 2);
    assert_eq!(executed.answer, b":5\r\n");
    assert!(is_fast(&by_name, &executed));
    let exists = ["SCRIPT", "EXISTS", &name, "nothing"];
    assert_eq!(answer(&mut next, &exists), "*2\r\n:1\r\n:0\r\n");
    assert!(RedisMachine::declare(&one(&exists)).unwrap().reads_only);
    answer(&mut next, &["FLUSHALL"]);
    assert_eq!(answer(&mut next, &exists), "*2\r\n:1\r\n:0\r\n", "no key");
    let flush = run(&mut next, &["SCRIPT", "FLUSH"], 3);
    assert!(flush.touches_all, "what follows it waits for its sync");
    assert_eq!(answer(&mut next, &exists), "*2\r\n:0\r\n:0\r\n");
    assert!(answer(&mut next, &by_name).starts_with("-NOSCRIPT "));
}

#[test]
fn the_oldest_scripts_of_eval_go_and_those_of_load_stay() {
    let mut machine = RedisMachine::empty();
    let kept = name_of(&mut machine, "return 'kept'");
    let rows = |machine: &RedisMachine| machine.inside().rows();
    for number in 0..510 {
        answer(&mut machine, &["EVAL", &format!("return {number}"), "0"]);
    }
    assert_eq!(rows(&machine), 501);
    assert_eq!(
        answer(&mut machine, &["EVALSHA", &kept, "0"]),
        "$4\r\nkept\r\n"
    );
    let names = [0, 9, 10, 509].map(|number| {
        let text = format!("return {number}");
        manxdb_redis::scripts::sha1_hex(text.as_bytes())
    });
    let [first, ninth, tenth, last] = names.each_ref().map(String::as_str);
    let exists = ["SCRIPT", "EXISTS", first, ninth, tenth, last];
    assert_eq!(
        answer(&mut machine, &exists),
        "*4\r\n:0\r\n:0\r\n:1\r\n:1\r\n"
    );
}

#[test]
fn time_and_luck_are_of_the_stamp_and_what_has_no_order_is_executed_once() {
    let text = "return {redis.call('TIME')[1], tostring(math.random())}";
    let eval = ["EVAL", text, "1", "a"];
    let (mut one, mut other) = (RedisMachine::empty(), RedisMachine::empty());
    run(&mut other, &["EVAL", "return math.random()", "0"], 9);
    let (here, there) = (run(&mut one, &eval, 7), run(&mut other, &eval, 7));
    assert_eq!(here.answer, there.answer);
    assert_ne!(here.answer, run(&mut one, &eval, 8).answer, "another stamp");
    run(&mut one, &["SADD", "s", "x", "y", "z"], 1);
    for text in [
        "return redis.call('SMEMBERS', KEYS[1])",
        "return redis.call('SPOP', KEYS[1])",
    ] {
        let eval = ["EVAL", text, "1", "s"];
        run(&mut one, &eval, 2);
        let executed = run(&mut one, &eval, 3);
        assert!(!is_fast(&eval, &executed), "{text}");
    }
}

#[test]
fn an_endless_script_ends_after_the_same_step_and_has_done_nothing() {
    let mut machine = RedisMachine::empty();
    answer(&mut machine, &["SET", "a", "1"]);
    for text in [
        "redis.call('SET', KEYS[1], 2) while true do end",
        "redis.call('SET', KEYS[1], 2) while true do pcall(function() while true do end end) end",
        "for n = 1, 60000 do redis.pcall('INCR', KEYS[1]) end",
    ] {
        let executed = run(&mut machine, &["EVAL", text, "1", "a"], 2);
        let told = String::from_utf8(executed.answer).unwrap();
        assert!(told.contains("nothing of it was done"), "{text}: {told}");
        assert!(executed.effects.is_empty());
        assert_eq!(answer(&mut machine, &["GET", "a"]), "$1\r\n1\r\n", "{text}");
    }
}

#[test]
fn what_a_script_may_not_call_is_refused_by_name() {
    let mut machine = RedisMachine::empty();
    for (call, name) in [
        ("'PUBLISH', 'c', 'm'", "PUBLISH"),
        ("'CONFIG', 'GET', 'save'", "CONFIG GET"),
        ("'SORT', KEYS[1], 'BY', 'w_*'", "SORT"),
    ] {
        let text = format!("return redis.call({call})");
        let told = answer(&mut machine, &["EVAL", &text, "1", "a"]);
        let is_named = told.contains(&format!(
            "{name} is not supported in a script of a replicated"
        ));
        assert!(
            is_named || told.contains("not allowed from script"),
            "{told}"
        );
    }
    let told = answer(
        &mut machine,
        &["EVAL_RO", "return redis.call('SET', KEYS[1], 1)", "1", "a"],
    );
    assert!(told.contains("Write commands are not allowed"), "{told}");
    let told = answer(&mut machine, &["EVAL", "return (", "0"]);
    assert!(told.contains("Error compiling script"), "{told}");
    assert_eq!(machine.inside().rows(), 4, "what is no Lua is not kept");
}

/// What a client was told before it was synced.
struct Told {
    words: Vec<String>,
    stamp: u64,
    answer: Vec<u8>,
}

/// A master that answers at once what touched only what it declares, and nothing that is not synced; then it dies,
/// and the next one has what was synced, and replays the records in another order. The first answer that
/// would be another one.
fn recovered(trusts_undeclared: bool, seed: u64) -> Option<String> {
    let texts = [
        COUNT,
        "redis.call('SET', KEYS[1], redis.call('TIME')[2] .. math.random(9)) return redis.call('GET', KEYS[1])",
        // It touches what it does not declare.
        "local n = redis.call('INCR', 'b') redis.call('SET', KEYS[1], n) return n",
        "if redis.call('EXISTS', KEYS[1]) == 0 then return redis.call('LPUSH', 'l', ARGV[1]) end return 0",
    ];
    let mut random = seed;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let mut machine = RedisMachine::empty();
    let names = texts.map(|text| name_of(&mut machine, text));
    let mut synced = machine.snapshot();
    let (mut told, mut unsynced) = (Vec::<Told>::new(), BTreeSet::<Vec<u8>>::new());
    for number in 0..60 {
        let key = ["a", "b", "c", "d", "e", "f"][usize::try_from(draw(6)).unwrap()];
        let name = &names[usize::try_from(draw(4)).unwrap()];
        let words = ["EVALSHA", name, "1", key, "3"];
        let executed = run(&mut machine, &words, number);
        let keys = if trusts_undeclared {
            RedisMachine::declare(&one(&words)).unwrap().keys
        } else {
            executed.touched.clone()
        };
        let conflicts = keys.iter().any(|key| unsynced.contains(key));
        if conflicts || !trusts_undeclared && !is_fast(&words, &executed) {
            (synced, unsynced) = (machine.snapshot(), BTreeSet::new());
            told.clear();
        } else {
            unsynced.extend(keys);
            told.push(Told {
                words: words.map(str::to_owned).to_vec(),
                stamp: number,
                answer: executed.answer,
            });
        }
    }
    let mut next = RedisMachine::restore(&synced).unwrap();
    while !told.is_empty() {
        let record = told.swap_remove(usize::try_from(draw(told.len() as u64)).unwrap());
        let words: Vec<&str> = record.words.iter().map(String::as_str).collect();
        let executed = next.execute(&one(&words), stamp(record.stamp));
        if !is_fast(&words, &executed) {
            return Some(format!("{words:?} is not replayed"));
        }
        next.apply(&executed.effects);
        if executed.answer != record.answer {
            return Some(format!("{words:?} is answered otherwise"));
        }
    }
    let same = next.snapshot() == machine.snapshot();
    (!same).then(|| "another state".to_owned())
}

#[test]
fn scripts_that_were_answered_at_once_are_answered_alike_when_they_are_replayed() {
    for seed in 0..40 {
        assert_eq!(recovered(false, seed), None, "seed {seed}");
    }
}

#[test]
fn a_master_that_trusts_what_scripts_declare_is_found() {
    let found = (0..40).filter(|seed| recovered(true, *seed).is_some());
    assert!(found.count() > 10);
}
