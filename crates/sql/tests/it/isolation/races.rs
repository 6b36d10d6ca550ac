//! What the constraints of SQL promise while sessions race, at every level: many random runs, a
//! look at the end, and defects that this look must see.

use std::collections::BTreeMap;

use manxdb_sql::error::SqlError;
use manxdb_txn::mutants::Mutants;

use crate::isolation::defects::{Defect, index};
use crate::isolation::stage::{Progress, Stage, affected};
use manxdb_fixtures::history::Random;
use manxdb_fixtures::sql::Answer;
use manxdb_test_harness::seeds;

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const ACTORS: usize = 3;
const SEEDS: u64 = 25;
const STUCK_AFTER: u64 = 2_000;

/// One race: statements to choose from, and what must hold after any order of them.
struct Race {
    schema: &'static str,
    /// Empties the tables between two runs.
    reset: &'static [&'static str],
    /// A statement for one session, chosen by chance.
    statement: fn(&mut Random) -> String,
    /// Errors that are an answer, not a defect. 1213 always is.
    errors: &'static [u16],
    /// Queries that answer no row as long as the promise holds.
    broken_if: &'static [&'static str],
}

/// What happened in one run.
#[derive(Default)]
struct Run {
    /// Statements that answered OK, with the rows they changed, in transactions that committed.
    done: Vec<(String, u64)>,
    /// How often each error was answered.
    errors: BTreeMap<u16, u64>,
    /// Errors answered to statements outside transactions.
    autocommit_errors: BTreeMap<u16, u64>,
}

#[derive(Default)]
struct Actor {
    in_transaction: bool,
    left: u64,
    pending: Vec<(String, u64)>,
    order: Option<String>,
}

/// Runs `statements` statements in each session, some in transactions, most by themselves.
fn run(race: &Race, stage: &Stage, seed: u64, statements: u64) -> Run {
    stage.seed(seed, 0, 0);
    for text in race.reset {
        stage.finish(0, text).unwrap();
    }
    stage.seed(seed, 30, 0);
    let mut random = Random::new(seed);
    let mut run = Run::default();
    let mut actors: Vec<Actor> = (0..ACTORS)
        .map(|_| Actor {
            left: statements,
            ..Actor::default()
        })
        .collect();
    let mut stuck = 0;
    while actors
        .iter()
        .any(|actor| actor.left > 0 || actor.order.is_some() || actor.in_transaction)
    {
        stuck += 1;
        assert!(stuck < STUCK_AFTER, "all sessions wait at seed {seed}");
        let chosen = usize::try_from(random.below(ACTORS as u64)).unwrap();
        // Only one session changes the schema at a time: another would block, not wait.
        let changing = actors.iter().any(|actor| is_ddl(actor.order.as_deref()));
        let actor = &mut actors[chosen];
        if actor.order.is_none() {
            let Some(text) = next(race, actor, &mut random) else {
                continue;
            };
            if changing && is_ddl(Some(&text)) {
                continue;
            }
            stage.order(chosen, &text);
            actor.order = Some(text);
        }
        if !stage.can_go_on(chosen) {
            continue;
        }
        if let Progress::Answered(answer) = stage.turn(chosen) {
            stuck = 0;
            let text = actor.order.take().unwrap();
            conclude(actor, &mut run, text, answer.as_deref());
        }
    }
    stage.seed(0, 0, 0);
    assert_eq!(stage.locks_held(), 0, "locks outlive their owners");
    run
}

fn is_ddl(text: Option<&str>) -> bool {
    text.is_some_and(|text| {
        ["ALTER", "CREATE", "DROP"]
            .iter()
            .any(|w| text.starts_with(w))
    })
}

fn next(race: &Race, actor: &mut Actor, random: &mut Random) -> Option<String> {
    if actor.in_transaction && (actor.left == 0 || random.percent(40)) {
        let commits = random.percent(80);
        return Some(if commits { "COMMIT" } else { "ROLLBACK" }.to_string());
    }
    if actor.left == 0 {
        return None;
    }
    if !actor.in_transaction && random.percent(30) {
        return Some("BEGIN".to_string());
    }
    actor.left -= 1;
    Some((race.statement)(random))
}

fn conclude(actor: &mut Actor, run: &mut Run, text: String, answer: Result<&[Answer], &SqlError>) {
    match answer {
        Err(error) => {
            *run.errors.entry(error.code).or_default() += 1;
            if !actor.in_transaction {
                *run.autocommit_errors.entry(error.code).or_default() += 1;
            }
            if error.code == 1213 || text == "COMMIT" {
                actor.in_transaction = false;
                actor.pending.clear();
            }
        }
        Ok(answers) => {
            match text.as_str() {
                "BEGIN" => actor.in_transaction = true,
                "COMMIT" => {
                    actor.in_transaction = false;
                    run.done.append(&mut actor.pending);
                }
                "ROLLBACK" => {
                    actor.in_transaction = false;
                    actor.pending.clear();
                }
                _ => actor.pending.push((text.clone(), affected(answers))),
            }
            // A change of the schema commits what was open.
            if is_ddl(Some(&text)) {
                actor.in_transaction = false;
            }
            if !actor.in_transaction {
                run.done.append(&mut actor.pending);
            }
        }
    }
}

/// The first broken promise of a run, in words.
fn broken(race: &Race, stage: &Stage) -> Option<String> {
    race.broken_if.iter().find_map(|query| {
        let rows = stage.rows(0, query);
        (!rows.is_empty()).then(|| format!("{query}: {rows:?}"))
    })
}

fn set_level(stage: &Stage, level: &str) {
    for actor in 0..ACTORS {
        let text = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        stage.finish(actor, &text).unwrap();
    }
}

/// Runs a race at every level; `each` looks at every run.
fn holds(race: &Race, each: impl Fn(&Stage, &Run)) {
    for level in LEVELS {
        let stage = Stage::new(ACTORS, race.schema);
        set_level(&stage, level);
        let (mut done, mut errors) = (0, BTreeMap::new());
        for seed in 0..seeds(SEEDS) {
            let run = run(race, &stage, seed, 8);
            if let Some(what) = broken(race, &stage) {
                panic!("{level}, seed {seed}: {what}\n{:#?}", run.done);
            }
            for (code, count) in &run.errors {
                let expected = *code == 1213 || race.errors.contains(code);
                assert!(expected, "{level}, seed {seed}: error {code}");
                *errors.entry(*code).or_insert(0) += count;
            }
            done += run.done.len();
            each(&stage, &run);
        }
        println!("{level}: {done} statements, errors {errors:?}");
        assert!(done as u64 > SEEDS * 8, "they got somewhere");
    }
}

/// The defect breaks a promise at some seed.
fn is_caught(race: &Race, level: &str, defect: Defect) {
    let shown = format!("{defect:?}");
    let stage = Stage::with_defects(ACTORS, race.schema, Mutants::default(), defect);
    set_level(&stage, level);
    let caught = (0..SEEDS * 20).find(|seed| {
        run(race, &stage, *seed, 8);
        broken(race, &stage).is_some()
    });
    println!("{level}: {shown} at seed {caught:?}");
    assert!(caught.is_some(), "not caught at {level}: {shown}");
}

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[usize::try_from(random.below(of.len() as u64)).unwrap()]
}

const UNIQUE: Race = Race {
    schema: "CREATE TABLE person (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL, UNIQUE KEY by_name (name)); \
             INSERT INTO person (name) VALUES ('first')",
    reset: &["DELETE FROM person"],
    statement: |random| {
        let name = pick(random, &["ann", "Ann", "bob", "cid"]);
        let other = pick(random, &["ann", "bob", "cid", "dan"]);
        match random.below(6) {
            0..3 => format!("INSERT INTO person (name) VALUES ('{name}')"),
            3 => format!("UPDATE person SET name = '{other}' WHERE name = '{name}'"),
            4 => format!("REPLACE INTO person (name) VALUES ('{name}')"),
            _ => format!("DELETE FROM person WHERE name = '{name}'"),
        }
    },
    errors: &[1062],
    broken_if: &[
        "SELECT LOWER(name), COUNT(*) FROM person GROUP BY LOWER(name) HAVING COUNT(*) > 1",
        "SELECT p.id FROM person p LEFT JOIN person q FORCE INDEX (by_name) ON q.name = p.name AND q.id = p.id WHERE q.id IS NULL",
        "SELECT 1 FROM (SELECT COUNT(*) AS n FROM person FORCE INDEX (by_name) WHERE name >= '') i, \
         (SELECT COUNT(*) AS n FROM person) t WHERE i.n <> t.n",
    ],
};

#[test]
fn a_unique_key_stays_unique_and_its_index_whole() {
    holds(&UNIQUE, |_, _| {});
}

#[test]
fn a_unique_check_that_is_not_validated_is_caught() {
    let unrecorded = vec![index(1, 1)];
    let defect = Defect {
        unrecorded,
        ..Defect::default()
    };
    is_caught(&UNIQUE, "SERIALIZABLE", defect.clone());
    let unlocked = true;
    is_caught(&UNIQUE, "READ COMMITTED", Defect { unlocked, ..defect });
}

const FAMILY: Race = Race {
    schema: "CREATE TABLE parent (id INT PRIMARY KEY); \
             CREATE TABLE child (id INT PRIMARY KEY AUTO_INCREMENT, parent INT NOT NULL, \
             CONSTRAINT known FOREIGN KEY (parent) REFERENCES parent (id)); \
             CREATE TABLE ward (id INT PRIMARY KEY AUTO_INCREMENT, parent INT, \
             FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE); \
             INSERT INTO parent VALUES (0); INSERT INTO child (parent) VALUES (0); INSERT INTO ward (parent) VALUES (0)",
    reset: &[
        "DELETE FROM child",
        "DELETE FROM ward",
        "DELETE FROM parent",
        "INSERT INTO parent VALUES (1), (2), (3)",
    ],
    statement: |random| {
        let (one, other) = (1 + random.below(4), 1 + random.below(4));
        match random.below(12) {
            0..3 => format!("INSERT INTO child (parent) VALUES ({one})"),
            3..6 => format!("INSERT INTO ward (parent) VALUES ({one})"),
            6..9 => format!("DELETE FROM parent WHERE id = {one}"),
            9 => format!("UPDATE child SET parent = {other} WHERE parent = {one}"),
            10 => format!("UPDATE parent SET id = {other} WHERE id = {one}"),
            _ => format!("INSERT INTO parent VALUES ({one})"),
        }
    },
    errors: &[1451, 1452, 1062],
    broken_if: &[
        "SELECT child.id, child.parent FROM child LEFT JOIN parent ON parent.id = child.parent WHERE parent.id IS NULL",
        "SELECT ward.id, ward.parent FROM ward LEFT JOIN parent ON parent.id = ward.parent WHERE parent.id IS NULL",
    ],
};

#[test]
fn no_child_is_left_without_its_parent() {
    holds(&FAMILY, |_, _| {});
}

#[test]
fn a_parent_that_is_not_validated_is_caught() {
    let defect = Defect {
        unrecorded: vec![index(1, 0)],
        ..Defect::default()
    };
    is_caught(&FAMILY, "SERIALIZABLE", defect.clone());
    let unlocked = true;
    is_caught(&FAMILY, "READ COMMITTED", Defect { unlocked, ..defect });
}

#[test]
fn children_that_are_not_validated_are_caught() {
    // The index that each foreign key made.
    let unrecorded = vec![index(2, 1), index(3, 1)];
    let defect = Defect {
        unrecorded,
        unlocked: true,
        ..Defect::default()
    };
    is_caught(&FAMILY, "SERIALIZABLE", defect);
}

const NUMBERS: Race = Race {
    schema: "CREATE TABLE ticket (id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL); \
             INSERT INTO ticket (a) VALUES (0)",
    reset: &["DELETE FROM ticket"],
    statement: |random| match random.below(5) {
        0 => "INSERT INTO ticket (a) VALUES (1), (2), (3)".to_string(),
        1 => "INSERT INTO ticket (a) SELECT a FROM ticket WHERE a = 1 LIMIT 2".to_string(),
        _ => "INSERT INTO ticket (a) VALUES (1)".to_string(),
    },
    errors: &[],
    broken_if: &["SELECT id, COUNT(*) FROM ticket GROUP BY id HAVING COUNT(*) > 1"],
};

#[test]
fn auto_increment_gives_every_row_its_own_number() {
    // A number given twice would be error 1062, which is none of the expected ones.
    holds(&NUMBERS, |stage, run| {
        let told: u64 = run.done.iter().map(|(_, rows)| rows).sum();
        let found = stage.rows(0, "SELECT COUNT(*) FROM ticket");
        assert_eq!(found, [[told.to_string()]]);
    });
}

const COUNTERS: Race = Race {
    schema: "CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL); \
             CREATE TABLE line (n INT NOT NULL, KEY (n)); INSERT INTO line VALUES (0)",
    reset: &[
        "DELETE FROM counter",
        "INSERT INTO counter VALUES (1, 0), (2, 0)",
        "DELETE FROM line",
    ],
    statement: |random| match random.below(3) {
        0 => "UPDATE counter SET n = n + 1".to_string(),
        1 => "UPDATE counter SET n = n + 1 WHERE id = 1".to_string(),
        _ => "INSERT INTO line SELECT COALESCE(MAX(n), 0) + 1 FROM line".to_string(),
    },
    errors: &[],
    broken_if: &[],
};

/// Counts agree with what clients were told; at SERIALIZABLE the line has no number twice.
fn counts_wrong(stage: &Stage, run: &Run, serializable: bool) -> Option<String> {
    for id in 1..=2 {
        let counts = |(text, _): &&(String, u64)| {
            text == "UPDATE counter SET n = n + 1"
                || id == 1 && text == "UPDATE counter SET n = n + 1 WHERE id = 1"
        };
        let told = run.done.iter().filter(counts).count();
        let found = stage.rows(0, &format!("SELECT n FROM counter WHERE id = {id}"));
        if found != [[told.to_string()]] {
            return Some(format!("counter {id} is {found:?}, not {told}"));
        }
    }
    let twice = stage.rows(0, "SELECT n FROM line GROUP BY n HAVING COUNT(*) > 1");
    (serializable && !twice.is_empty()).then(|| format!("twice in the line: {twice:?}"))
}

#[test]
fn statements_by_themselves_are_retried_until_they_count() {
    for level in LEVELS {
        let stage = Stage::new(ACTORS, COUNTERS.schema);
        set_level(&stage, level);
        for seed in 0..seeds(SEEDS * 2) {
            let run = run(&COUNTERS, &stage, seed, 8);
            let wrong = counts_wrong(&stage, &run, level == "SERIALIZABLE");
            assert_eq!(wrong, None, "{level}, seed {seed}");
            let refused = &run.autocommit_errors;
            assert!(refused.is_empty(), "{level}, seed {seed}: {refused:?}");
        }
    }
}

#[test]
fn a_retry_that_keeps_the_old_snapshot_is_caught() {
    let defect = Defect {
        stale_retry: true,
        ..Defect::default()
    };
    let stage = Stage::with_defects(ACTORS, COUNTERS.schema, Mutants::default(), defect);
    set_level(&stage, "SERIALIZABLE");
    let caught = (0..SEEDS * 20).find(|seed| {
        let run = run(&COUNTERS, &stage, *seed, 8);
        counts_wrong(&stage, &run, true).is_some()
    });
    println!("a stale retry at seed {caught:?}");
    assert!(caught.is_some());
}

const SCHEMA_CHANGES: Race = Race {
    schema: "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL, b INT NOT NULL DEFAULT 0); \
             INSERT INTO t (a) VALUES (0)",
    reset: &[
        "DELETE FROM t",
        "INSERT INTO t (a) VALUES (1), (2), (3), (4)",
    ],
    statement: |random| {
        let a = random.below(5);
        match random.below(10) {
            0 => "CREATE INDEX ka ON t (a)".to_string(),
            1 => "ALTER TABLE t DROP INDEX ka".to_string(),
            2 => "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7".to_string(),
            3 => "ALTER TABLE t DROP COLUMN c".to_string(),
            4 => format!("DELETE FROM t WHERE a = {a} LIMIT 1"),
            5..8 => format!("UPDATE t SET a = a + 1, b = b + 1 WHERE a = {a}"),
            _ => format!("INSERT INTO t (a) VALUES ({a})"),
        }
    },
    // The change finds what another made, or gives way to writers.
    errors: &[1061, 1091, 1060, 1205, 1412],
    broken_if: &["SELECT id FROM t WHERE b < 0"],
};

#[test]
fn an_index_made_under_writers_agrees_with_its_table() {
    holds(&SCHEMA_CHANGES, |stage, _| {
        let made = stage.finish(0, "CREATE INDEX ka ON t (a)");
        assert!(made.is_ok_or_code(1061));
        let rows = stage.rows(0, "SELECT id, a FROM t ORDER BY a, id");
        let by_index = "SELECT id, a FROM t FORCE INDEX (ka) WHERE a >= 0 ORDER BY a, id";
        assert_eq!(stage.rows(0, by_index), rows);
        stage.finish(0, "ALTER TABLE t DROP INDEX ka").unwrap();
    });
}

trait IsOkOrCode {
    fn is_ok_or_code(&self, code: u16) -> bool;
}

impl<T> IsOkOrCode for Result<T, SqlError> {
    fn is_ok_or_code(&self, code: u16) -> bool {
        self.as_ref()
            .map_or_else(|error| error.code == code, |_| true)
    }
}
