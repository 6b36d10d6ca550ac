//! Random schemas, rows and ON DEL rules against a naive oracle that looks at all rows.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use manxdb_fixtures::sql::{Client, connect, instance};
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};
use proptest::prelude::*;

const WORDS: [&str; 4] = ["OWNED_BY", "OWNS", "ACCESSED_BY", "ACCESSES"];

/// A link: its table, the number of its column, the word, the table it leads to.
type Link = (usize, usize, usize, usize);
type Place = (usize, i64);
type Rows = BTreeMap<Place, [Option<i64>; 4]>;
/// A rule of a table: the column of its subject, and the column it clears, or none: the row goes.
type Rule = (usize, usize, Option<usize>);

#[derive(Debug, Clone)]
struct Random {
    subjects: Vec<bool>,
    links: Vec<(usize, usize, usize)>,
    rules: Vec<Rule>,
    rows: Vec<(usize, [Option<i64>; 3])>,
    batch: u32,
}

fn random() -> impl Strategy<Value = Random> {
    (2_usize..7).prop_flat_map(|tables| {
        let mut subjects = vec![Just(true).boxed()];
        subjects.extend((1..tables).map(|_| prop::bool::weighted(0.2).boxed()));
        let links = prop::collection::vec((0..tables, 0..4_usize, 0..tables), 4..14);
        let rule = (
            0..tables,
            0..3_usize,
            prop::option::weighted(0.6, 0..4_usize),
        );
        let rules = prop::collection::vec(rule, 0..8);
        let value = || prop::option::weighted(0.8, 1..4_i64);
        let values = (value(), value(), value()).prop_map(|(a, b, c)| [a, b, c]);
        let rows = prop::collection::vec((0..tables, values), 8..40);
        let batch = prop_oneof![Just(100_000_u32), 1..5_u32];
        (subjects, links, rules, rows, batch).prop_map(|(subjects, links, rules, rows, batch)| {
            Random {
                subjects,
                links,
                rules,
                rows,
                batch,
            }
        })
    })
}

struct Made {
    tables: BTreeSet<usize>,
    links: Vec<Link>,
    rules: Vec<Rule>,
}

/// Makes the tables and fills them; what was let in.
fn make(client: &mut Client, random: &Random) -> Made {
    let (mut tables, mut made, mut rules) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (at, is_subject) in random.subjects.iter().enumerate() {
        let of_table = random.links.iter().filter(|(from, ..)| *from == at);
        let links: Vec<Link> = of_table
            .take(3)
            .enumerate()
            .map(|(column, (from, word, target))| (*from, column, *word, *target % (at + 1)))
            .collect();
        let mut items =
            vec!["id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT, d INT DEFAULT 5".to_string()];
        items.extend(links.iter().map(|(_, column, word, target)| {
            format!("FOREIGN KEY (c{column}) {} t{target} (id)", WORDS[*word])
        }));
        let subject = if *is_subject { "DATA_SUBJECT " } else { "" };
        let text = |items: &[String]| {
            format!(
                "CREATE {subject}TABLE t{at} ({}) UNOWNED ALLOWED",
                items.join(", ")
            )
        };
        if client.try_run(&text(&items)).is_err() {
            continue;
        }
        tables.insert(at);
        made.extend(links);
        for (table, subject, clears) in random.rules.iter().filter(|(table, ..)| *table == at) {
            let action = match clears {
                None => "DELETE_ROW".to_string(),
                Some(3) => "ANON (d)".to_string(),
                Some(column) => format!("ANON (c{column})"),
            };
            let text = format!("ALTER TABLE t{at} ADD ON DEL c{subject} {action}");
            if client.try_run(&text).is_ok() {
                rules.push((*table, *subject, *clears));
            }
        }
    }
    let mut next = BTreeMap::new();
    let mut rows = random.rows.clone();
    rows.sort_by_key(|(table, _)| *table);
    for (table, values) in rows {
        let id: &mut i64 = next.entry(table).or_insert(0);
        *id += 1;
        let shown = values.map(|value| value.map_or("NULL".to_string(), |value| value.to_string()));
        let _ = client.try_run(&format!(
            "INSERT INTO t{table} (id, c0, c1, c2) VALUES ({id}, {})",
            shown.join(", ")
        ));
    }
    Made {
        tables,
        links: made,
        rules,
    }
}

fn all(client: &mut Client, tables: &BTreeSet<usize>) -> Rows {
    let mut rows = BTreeMap::new();
    for table in tables {
        for row in client.rows(&format!("SELECT id, c0, c1, c2, d FROM t{table}")) {
            let value = |at: usize| row[at].parse().ok();
            let id: i64 = row[0].parse().expect("a number");
            rows.insert((*table, id), [value(1), value(2), value(3), value(4)]);
        }
    }
    rows
}

/// Everything that edges of these words lead to from `start`, without rows `gone`.
fn closure(
    rows: &Rows,
    links: &[Link],
    words: &[usize],
    start: &BTreeSet<Place>,
    gone: &BTreeSet<Place>,
) -> BTreeSet<Place> {
    let mut found = start.clone();
    loop {
        let before = found.len();
        for ((table, id), values) in rows {
            for (_, column, word, target) in links
                .iter()
                .filter(|(from, _, word, _)| from == table && words.contains(word))
            {
                let Some(value) = values[*column] else {
                    continue;
                };
                let (row, other) = ((*table, *id), (*target, value));
                if gone.contains(&row) || gone.contains(&other) || !rows.contains_key(&other) {
                    continue;
                }
                if *word % 2 == 0 && found.contains(&other) {
                    found.insert(row);
                }
                if *word % 2 == 1 && found.contains(&row) {
                    found.insert(other);
                }
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The rows that are left when `person` is forgotten.
fn forgotten(rows: &Rows, made: &Made, subjects: &[bool], person: Place) -> Rows {
    let links = &made.links;
    let none = BTreeSet::new();
    let owned = closure(rows, links, &[0, 1], &BTreeSet::from([person]), &none);
    let reached = closure(rows, links, &[0, 1, 2, 3], &owned, &none);
    // Whether nobody has the row when these are gone, and it was theirs.
    let goes = |removed: &BTreeSet<Place>| -> BTreeSet<Place> {
        let people = rows
            .keys()
            .filter(|place| subjects[place.0] && !removed.contains(place));
        let kept = closure(rows, links, &[0, 1], &people.copied().collect(), removed);
        let theirs = closure(rows, links, &[0, 1], removed, &none);
        theirs
            .union(&owned)
            .filter(|place| !kept.contains(place))
            .copied()
            .collect()
    };
    let mut removed = BTreeSet::from([person]);
    let first = goes(&removed);
    let mut left = rows.clone();
    for place in reached.difference(&first) {
        for (table, subject, clears) in &made.rules {
            let is_linked = links.iter().any(|(from, column, word, target)| {
                let other = rows[place][*column].map(|id| (*target, id));
                *from == place.0
                    && column == subject
                    && word % 2 == 0
                    && other.is_some_and(|other| reached.contains(&other))
            });
            if *table != place.0 || !is_linked {
                continue;
            }
            match clears {
                None => {
                    removed.insert(*place);
                }
                Some(column) => left.get_mut(place).expect("a row")[*column] = None,
            }
        }
    }
    let gone = goes(&removed);
    left.retain(|place, _| !gone.contains(place));
    for (place, values) in &mut left {
        for (_, column, _, target) in links.iter().filter(|(from, ..)| *from == place.0) {
            if values[*column].is_some_and(|id| gone.contains(&(*target, id))) {
                values[*column] = None;
            }
        }
    }
    left
}

/// Forgets each person that is left, one after the other. What went wrong.
fn run(random: &Random) -> Result<(), String> {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    let made = make(&mut client, random);
    client.run(&format!("SET gdpr_batch_rows = {}", random.batch));
    for id in 1..4 {
        let rows = all(&mut client, &made.tables);
        let person = (0, id);
        if !rows.contains_key(&person) {
            continue;
        }
        let expected = forgotten(&rows, &made, &random.subjects, person);
        let explained: u64 = client
            .rows(&format!("EXPLAIN GDPR FORGET t0 {id}"))
            .iter()
            .filter(|row| row[1] != "keep")
            .map(|row| row[2].parse::<u64>().expect("a number"))
            .sum();
        let answer = client.try_run(&format!("GDPR FORGET t0 {id}"));
        let answer = answer.map_err(|error| format!("t0 {id}: {error}"))?;
        let left = all(&mut client, &made.tables);
        if left != expected {
            return Err(format!(
                "t0 {id} of {rows:?}: left {left:?}, not {expected:?}"
            ));
        }
        let changed = rows
            .iter()
            .filter(|(place, values)| left.get(place) != Some(values))
            .count() as u64;
        let told = format!("{answer:?}");
        if random.batch == 100_000
            && (changed != explained || !told.contains(&format!("affected_rows: {changed},")))
        {
            return Err(format!(
                "t0 {id}: {changed} changed, {explained} explained: {told}"
            ));
        }
        let again = client.error(&format!("GDPR FORGET t0 {id}"));
        if again.code != 51004 || !again.message.contains("forgotten by request") {
            return Err(format!("t0 {id}: again: {again}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_left_is_what_a_naive_oracle_leaves(random in random()) {
        prop_assert_eq!(run(&random), Ok(()));
    }
}

#[test]
fn the_oracle_finds_a_rule_that_is_skipped() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    plant(Some(OwnershipMutant::SkippedRule));
    let found =
        (0..100).any(|_| run(&random().new_tree(&mut runner).expect("a value").current()).is_err());
    plant(None);
    assert!(found);
}
