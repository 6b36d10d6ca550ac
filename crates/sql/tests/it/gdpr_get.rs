//! GDPR GET against a naive oracle that looks at all rows, over random schemas and rows; formats; what
//! it sees of others.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use manxdb_fixtures::sql::{Client, connect, instance};
use proptest::prelude::*;

const WORDS: [&str; 4] = ["OWNED_BY", "OWNS", "ACCESSED_BY", "ACCESSES"];

/// A link: its table, the number of its column, the word, the table it leads to.
type Link = (usize, usize, usize, usize);
/// A row: its table and id.
type Place = (usize, i64);

/// Tables with whether their rows are people, their links, and rows of NULLs and ids.
#[derive(Debug, Clone)]
struct Random {
    subjects: Vec<bool>,
    links: Vec<(usize, usize, usize)>,
    rows: Vec<(usize, [Option<i64>; 3])>,
}

fn random() -> impl Strategy<Value = Random> {
    (2_usize..7).prop_flat_map(|tables| {
        let subjects = prop::collection::vec(prop::bool::weighted(0.35), tables);
        let links = prop::collection::vec((0..tables, 0..4_usize, 0..tables), 2..12);
        let value = || prop::option::weighted(0.8, 1..4_i64);
        let values = (value(), value(), value()).prop_map(|(a, b, c)| [a, b, c]);
        let rows = prop::collection::vec((0..tables, values), 5..40);
        (subjects, links, rows).prop_map(|(subjects, links, rows)| Random {
            subjects,
            links,
            rows,
        })
    })
}

/// Makes the tables, in order, and fills them; the links of those that were let in.
fn make(client: &mut Client, random: &Random) -> Vec<Link> {
    let mut made = Vec::new();
    for (at, is_subject) in random.subjects.iter().enumerate() {
        let of_table = random.links.iter().filter(|(from, ..)| *from == at);
        // One link leads to its own table, if any: the others to tables before it.
        let links: Vec<Link> = of_table
            .take(3)
            .enumerate()
            .map(|(column, (from, word, target))| (*from, column, *word, *target % (at + 1)))
            .collect();
        let mut items = vec!["id INT PRIMARY KEY, c0 INT, c1 INT, c2 INT".to_string()];
        items.extend(links.iter().map(|(_, column, word, target)| {
            format!("FOREIGN KEY (c{column}) {} t{target} (id)", WORDS[*word])
        }));
        let subject = if *is_subject { "DATA_SUBJECT " } else { "" };
        let statement = format!("CREATE {subject}TABLE t{at} ({})", items.join(", "));
        if client.try_run(&statement).is_ok() {
            made.extend(links);
        }
    }
    let mut next = BTreeMap::new();
    let mut rows = random.rows.clone();
    rows.sort_by_key(|(table, _)| *table);
    for (table, values) in rows {
        let id: &mut i64 = next.entry(table).or_insert(0);
        *id += 1;
        let shown = values.map(|value| value.map_or("NULL".to_string(), |value| value.to_string()));
        // Without its table, or its parent, it is not there.
        let _ = client.try_run(&format!(
            "INSERT INTO t{table} VALUES ({id}, {})",
            shown.join(", ")
        ));
    }
    made
}

/// All rows of all tables.
fn all(client: &mut Client, tables: usize) -> BTreeMap<Place, [Option<i64>; 3]> {
    let mut rows = BTreeMap::new();
    for table in 0..tables {
        if client.try_run(&format!("SELECT 1 FROM t{table}")).is_err() {
            continue;
        }
        for row in client.rows(&format!("SELECT id, c0, c1, c2 FROM t{table}")) {
            let value = |at: usize| row[at].parse().ok();
            let id: i64 = row[0].parse().expect("a number");
            rows.insert((table, id), [value(1), value(2), value(3)]);
        }
    }
    rows
}

/// Everything that edges of these words lead to from `start`, by repetition over all rows.
fn closure(
    rows: &BTreeMap<Place, [Option<i64>; 3]>,
    links: &[Link],
    words: &[usize],
    start: BTreeSet<Place>,
) -> BTreeSet<Place> {
    let mut found = start;
    loop {
        let before = found.len();
        for ((table, id), values) in rows {
            for (from, column, word, target) in links {
                let Some(value) = values[*column].filter(|_| from == table) else {
                    continue;
                };
                if !words.contains(word) {
                    continue;
                }
                let (row, other) = ((*table, *id), (*target, value));
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

/// What GDPR GET answers: rows that are owned, and rows that are shown.
fn got(client: &mut Client, (table, id): Place) -> (BTreeSet<Place>, BTreeSet<Place>) {
    let text = client.value(&format!("GDPR GET t{table} {id} FORMAT JSON"));
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let (mut owned, mut shown) = (BTreeSet::new(), BTreeSet::new());
    for (name, rows) in json.as_object().expect("an object") {
        let table: usize = name.trim_start_matches("d.t").parse().expect("a table");
        for row in rows.as_array().expect("rows") {
            let place = (table, row["id"].as_i64().expect("an id"));
            let is_owner = row["_why"]
                .as_str()
                .is_some_and(|why| why.starts_with("owner: "));
            let new = if is_owner { &mut owned } else { &mut shown }.insert(place);
            assert!(new, "no row comes twice: {text}");
        }
    }
    (owned, shown)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn get_answers_what_a_naive_oracle_finds(random in random()) {
        let instance = instance();
        let mut client = connect(&instance, "root");
        client.run("CREATE DATABASE d; USE d");
        let links = make(&mut client, &random);
        let rows = all(&mut client, random.subjects.len());
        for place in rows.keys().filter(|(table, _)| random.subjects[*table]) {
            let owned = closure(&rows, &links, &[0, 1], BTreeSet::from([*place]));
            let reached = closure(&rows, &links, &[0, 1, 2, 3], owned.clone());
            let shown: BTreeSet<Place> = reached.difference(&owned).copied().collect();
            prop_assert_eq!(got(&mut client, *place), (owned, shown));
        }
    }
}

#[test]
fn keys_may_be_text_and_of_several_columns() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    client.run(
        "CREATE DATA_SUBJECT TABLE p (country CHAR(2), n VARCHAR(9), PRIMARY KEY (country, n))",
    );
    client.run("CREATE TABLE o (id INT PRIMARY KEY, a CHAR(2), b VARCHAR(9), FOREIGN KEY (a, b) OWNED_BY p (country, n)) UNOWNED ALLOWED");
    client.run("INSERT INTO p VALUES ('de', 'x'), ('de', 'y'), ('fr', 'x')");
    client
        .run("INSERT INTO o VALUES (1, 'DE', 'x'), (2, 'de', 'y'), (3, 'fr', 'x'), (4, NULL, 'x')");
    let csv = client.rows("GDPR GET p ('de', 'X') FORMAT CSV");
    let found: Vec<(&str, usize)> = csv
        .iter()
        .map(|row| (row[0].as_str(), row[1].matches("\r\n").count()))
        .collect();
    assert_eq!(found, [("d.p", 2), ("d.o", 2)]);
    assert_eq!(
        csv[1][1],
        "id,a,b,_why\r\n1,DE,x,\"owner: o.(a, b) OWNED_BY p\"\r\n"
    );
}

#[test]
fn what_get_writes_as_sql_makes_the_same_rows() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    let tables = "CREATE DATA_SUBJECT TABLE u (id INT PRIMARY KEY, name VARCHAR(40));
        CREATE TABLE v (id INT PRIMARY KEY, u INT OWNED_BY u (id), b BLOB, d DECIMAL(9,2), t DATETIME(3),
            j JSON, f DOUBLE, g INT AS (id + 1) STORED, e ENUM('a', 'b'));";
    client.run(tables);
    client.run("INSERT INTO u VALUES (1, 'O''Neil \\\\ \"x\"\n')");
    client.run("INSERT INTO v (id, u, b, d, t, j, f, e) VALUES (1, 1, X'00FF27', 1.50, '2024-02-03 04:05:06.789', '{\"a\": [1, \"x\"]}', 0.1, 'b'), (2, 1, NULL, NULL, NULL, NULL, NULL, NULL)");
    let statements = client.rows("GDPR GET u 1 FORMAT SQL");
    let before = (
        client.rows("SELECT * FROM u"),
        client.rows("SELECT * FROM v"),
    );
    client.run("CREATE DATABASE e; USE e");
    client.run(tables);
    for statement in statements {
        client.run(&statement[0]);
    }
    assert_eq!(
        (
            client.rows("SELECT * FROM u"),
            client.rows("SELECT * FROM v")
        ),
        before
    );
}

#[test]
fn get_needs_select_on_every_table_and_sees_its_own_transaction() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    root.run("CREATE DATABASE d; USE d");
    root.run("CREATE DATA_SUBJECT TABLE u (id INT PRIMARY KEY)");
    root.run("CREATE TABLE v (id INT PRIMARY KEY, u INT OWNED_BY u (id))");
    root.run("INSERT INTO u VALUES (1)");
    root.run("CREATE USER eve; GRANT SELECT ON d.u TO eve");
    let mut eve = connect(&instance, "eve");
    assert_eq!(eve.error("GDPR GET d.u 1").code, 1142);
    root.run("GRANT SELECT ON d.v TO eve");
    root.run("BEGIN; INSERT INTO v VALUES (1, 1)");
    let count = |client: &mut Client| client.rows("GDPR GET d.u 1 FORMAT SQL").len();
    assert_eq!((count(&mut root), count(&mut eve)), (2, 1));
    root.run("ROLLBACK");
    assert_eq!(count(&mut root), 1);
    // It leaves no transaction behind.
    eve.run("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
}
