//! Random schemas and transactions against a naive oracle that finds owners from all rows.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use manxdb_fixtures::sql::{Client, connect, instance};
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};
use proptest::prelude::*;

/// A link: its table, the number of its column, whether it is OWNS, the table it leads to.
type Link = (usize, usize, bool, usize);
type Place = (usize, i64);
type Rows = BTreeMap<Place, [Option<i64>; 3]>;

#[derive(Debug, Clone)]
enum Step {
    Insert(usize, i64, [Option<i64>; 3]),
    Update(usize, i64, usize, Option<i64>),
    Delete(usize, i64),
    Begin,
    Mark,
    Back,
    Commit,
    Rollback,
}

#[derive(Debug, Clone)]
struct Random {
    /// 0: people; 1: a row may be without owner; else each must have one.
    kinds: Vec<u8>,
    links: Vec<(usize, bool, usize)>,
    steps: Vec<Step>,
}

fn random() -> impl Strategy<Value = Random> {
    (3_usize..7).prop_flat_map(|tables| {
        let kinds = prop::collection::vec(0..4_u8, tables);
        let links = prop::collection::vec((0..tables, prop::bool::weighted(0.4), 0..tables), 3..14);
        let value = || prop::option::weighted(0.8, 1..4_i64);
        let table = || 0..tables;
        let step = prop_oneof![
            8 => (table(), 1..4_i64, value(), value(), value())
                .prop_map(|(table, id, a, b, c)| Step::Insert(table, id, [a, b, c])),
            4 => (table(), 1..4_i64, 0..3_usize, value())
                .prop_map(|(table, id, at, value)| Step::Update(table, id, at, value)),
            3 => (table(), 1..4_i64).prop_map(|(table, id)| Step::Delete(table, id)),
            3 => Just(Step::Begin),
            1 => Just(Step::Mark),
            1 => Just(Step::Back),
            5 => Just(Step::Commit),
            1 => Just(Step::Rollback),
        ];
        let steps = prop::collection::vec(step, 20..80);
        (kinds, links, steps).prop_map(|(kinds, links, steps)| Random {
            kinds,
            links,
            steps,
        })
    })
}

/// Makes the tables; those that were let in, with their links.
fn make(client: &mut Client, random: &Random) -> (BTreeSet<usize>, Vec<Link>) {
    let (mut tables, mut made) = (BTreeSet::new(), Vec::new());
    for (at, kind) in random.kinds.iter().enumerate() {
        let of_table = random.links.iter().filter(|(from, ..)| *from == at);
        let links: Vec<Link> = of_table
            .take(3)
            .enumerate()
            .filter(|_| at > 0)
            .map(|(column, (_, owns, target))| (at, column, *owns, *target % at.max(1)))
            .collect();
        let mut items = vec!["id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT".to_string()];
        items.extend(links.iter().map(|(_, column, owns, target)| {
            let word = if *owns { "OWNS" } else { "OWNED_BY" };
            format!("FOREIGN KEY (c{column}) {word} t{target} (id)")
        }));
        let subject = if *kind == 0 { "DATA_SUBJECT " } else { "" };
        let unowned = if *kind == 1 { "UNOWNED ALLOWED" } else { "" };
        let text = format!(
            "CREATE {subject}TABLE t{at} ({}) {unowned}",
            items.join(", ")
        );
        if client.try_run(&text).is_ok() {
            tables.insert(at);
            made.extend(links);
        }
    }
    (tables, made)
}

fn all(client: &mut Client, tables: &BTreeSet<usize>) -> Rows {
    let mut rows = BTreeMap::new();
    for table in tables {
        for row in client.rows(&format!("SELECT id, c0, c1, c2 FROM t{table}")) {
            let value = |at: usize| row[at].parse().ok();
            let id: i64 = row[0].parse().expect("a number");
            rows.insert((*table, id), [value(1), value(2), value(3)]);
        }
    }
    rows
}

/// Rows that are someone's: people, and what they own, by repetition over all rows.
fn owned(rows: &Rows, links: &[Link], kinds: &[u8]) -> BTreeSet<Place> {
    let people = rows.keys().filter(|(table, _)| kinds[*table] == 0);
    let mut found: BTreeSet<Place> = people.copied().collect();
    loop {
        let before = found.len();
        for ((table, id), values) in rows {
            for (_, column, owns, target) in links.iter().filter(|(from, ..)| from == table) {
                let Some(value) = values[*column] else {
                    continue;
                };
                let (row, other) = ((*table, *id), (*target, value));
                if *owns && found.contains(&row) {
                    found.insert(other);
                } else if !*owns && found.contains(&other) {
                    found.insert(row);
                }
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Rows that must have an owner and have none.
fn orphans(rows: &Rows, links: &[Link], kinds: &[u8]) -> Vec<Place> {
    let owned = owned(rows, links, kinds);
    let ownable = |table: usize| {
        let mut links = links.iter();
        kinds[table] > 1
            && links.any(|(from, _, owns, to)| if *owns { *to == table } else { *from == table })
    };
    let rows = rows
        .keys()
        .filter(|place| ownable(place.0) && !owned.contains(place));
    rows.copied().collect()
}

/// Rows of all tables that lead to each other, but those that nobody would own.
fn seed(client: &mut Client, tables: &BTreeSet<usize>, links: &[Link], kinds: &[u8]) {
    client.run("BEGIN");
    for table in tables {
        for id in 1..4 {
            let _ = client.try_run(&format!(
                "INSERT INTO t{table} VALUES ({id}, {id}, {id}, {id})"
            ));
        }
    }
    loop {
        let orphans = orphans(&all(client, tables), links, kinds);
        if orphans.is_empty() {
            break;
        }
        for (table, id) in orphans.iter().rev() {
            let _ = client.try_run(&format!("DELETE FROM t{table} WHERE id = {id}"));
        }
    }
    client.run("COMMIT");
}

/// Runs the steps in one session. At each commit, explicit or not, the outcome is what the oracle says
/// of the rows the session sees just before. What went wrong.
fn run(random: &Random) -> Result<(), String> {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    let (tables, links) = make(&mut client, random);
    seed(&mut client, &tables, &links, &random.kinds);
    let mut is_open = false;
    for step in &random.steps {
        let text = match step {
            Step::Begin if is_open => continue,
            Step::Begin => "BEGIN".to_string(),
            Step::Mark if is_open => "SAVEPOINT a".to_string(),
            Step::Back if is_open => "ROLLBACK TO a".to_string(),
            Step::Mark | Step::Back => continue,
            Step::Commit => "COMMIT".to_string(),
            Step::Rollback => "ROLLBACK".to_string(),
            Step::Insert(table, id, values) => {
                let shown = values.map(|value| value.map_or("NULL".to_string(), |v| v.to_string()));
                format!("INSERT INTO t{table} VALUES ({id}, {})", shown.join(", "))
            }
            Step::Update(table, id, column, value) => {
                let value = value.map_or("NULL".to_string(), |value| value.to_string());
                format!("UPDATE t{table} SET c{column} = {value} WHERE id = {id}")
            }
            Step::Delete(table, id) => format!("DELETE FROM t{table} WHERE id = {id}"),
        };
        let is_write = matches!(step, Step::Insert(..) | Step::Update(..) | Step::Delete(..));
        let commits = matches!(step, Step::Commit) || is_write && !is_open;
        if !commits {
            let _ = client.try_run(&text);
            is_open = match step {
                Step::Begin => true,
                Step::Rollback => false,
                _ => is_open,
            };
            continue;
        }
        // The statement alone, without its commit: the state that is to be judged.
        if is_write {
            client.run("BEGIN");
            let failed = client.try_run(&text).is_err();
            if failed {
                client.run("ROLLBACK");
                continue;
            }
        }
        let orphans = orphans(&all(&mut client, &tables), &links, &random.kinds);
        let outcome = if is_write {
            client.run("ROLLBACK");
            client.try_run(&text)
        } else {
            client.try_run(&text)
        };
        is_open = false;
        let code = outcome.err().map(|error| error.code);
        let expected = (!orphans.is_empty()).then_some(51001);
        if code != expected {
            return Err(format!(
                "{text}: {code:?}, and without owner are {orphans:?}"
            ));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_commit_fails_exactly_when_the_oracle_finds_a_row_without_owner(random in random()) {
        prop_assert_eq!(run(&random), Ok(()));
    }
}

/// Whether some of many random runs finds what is planted.
fn finds(mutant: OwnershipMutant) -> bool {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    plant(Some(mutant));
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let found = (0..300).any(|_| {
        let mut random = random().new_tree(&mut runner).expect("a value").current();
        // Guests' rows, rows below them, and rows that own those too.
        random.kinds = vec![0, 1, 2, 1];
        random.links = vec![(1, false, 0), (2, false, 1), (3, false, 0), (3, true, 2)];
        run(&random).is_err()
    });
    plant(None);
    found
}

#[test]
fn the_oracle_finds_an_owner_that_is_kept() {
    assert!(finds(OwnershipMutant::KeptOwner));
}

#[test]
fn the_oracle_finds_dependents_that_are_not_looked_at() {
    assert!(finds(OwnershipMutant::SkippedDependents));
}

/// Sessions side by side: whatever each commits, no row is left without owner.
#[test]
fn sessions_side_by_side_leave_no_row_without_owner() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run(
        "CREATE DATABASE d; USE d;
         CREATE DATA_SUBJECT TABLE t0 (id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT);
         CREATE TABLE t1 (id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT, FOREIGN KEY (c0) OWNED_BY t0 (id)) UNOWNED ALLOWED;
         CREATE TABLE t2 (id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT, FOREIGN KEY (c0) OWNED_BY t1 (id));
         CREATE TABLE t3 (id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT, FOREIGN KEY (c0) OWNED_BY t1 (id),
            FOREIGN KEY (c1) OWNS t2 (id)) UNOWNED ALLOWED;
         INSERT INTO t0 (id) VALUES (1), (2), (3)",
    );
    let links = [
        (1, 0, false, 0),
        (2, 0, false, 1),
        (3, 0, false, 1),
        (3, 1, true, 2),
    ];
    let kinds = [0, 1, 2, 1];
    let tables = BTreeSet::from([0, 1, 2, 3]);
    std::thread::scope(|scope| {
        for seed in 0..3_u64 {
            let instance = &instance;
            scope.spawn(move || {
                let mut client = connect(instance, "root");
                client.run("USE d; SET innodb_lock_wait_timeout = 1");
                let mut state = seed + 1;
                let mut next = |below: u64| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 33) % below
                };
                for _ in 0..60 {
                    let _ = client.try_run("BEGIN");
                    for _ in 0..=next(3) {
                        let (table, id) = (1 + next(3), 1 + next(4));
                        let value = |n: u64| {
                            if n == 0 {
                                "NULL".to_string()
                            } else {
                                n.to_string()
                            }
                        };
                        let (a, b) = (value(next(4)), value(next(4)));
                        let text = match next(4) {
                            0 => format!("DELETE FROM t{table} WHERE id = {id}"),
                            1 => format!("UPDATE t{table} SET c0 = {a}, c1 = {b} WHERE id = {id}"),
                            _ => format!("INSERT INTO t{table} VALUES ({id}, {a}, {b}, NULL)"),
                        };
                        let _ = client.try_run(&text);
                    }
                    let _ = client.try_run("COMMIT");
                    let _ = client.try_run("ROLLBACK");
                }
            });
        }
    });
    let rows = all(&mut client, &tables);
    assert!(rows.len() > 3, "something was written");
    assert_eq!(orphans(&rows, &links, &kinds), Vec::<Place>::new());
    // Below each row of t1 a row may be put exactly when it has an owner.
    let owned = owned(&rows, &links, &kinds);
    for (_, id) in rows.keys().filter(|(table, _)| *table == 1) {
        let done = client.try_run(&format!(
            "INSERT INTO t2 VALUES (100 + {id}, {id}, NULL, NULL)"
        ));
        assert_eq!(done.is_ok(), owned.contains(&(1, *id)), "t1 {id}");
    }
}
