//! Statements that differ only in constants share a plan, and answer as they would without it.

use manxdb_fixtures::sql::{Answer, Client, connect, instance};

/// What a statement came to: its answers, or the number and text of its error.
fn outcome(client: &mut Client, text: &str) -> Result<Vec<Answer>, (u16, String)> {
    client
        .try_run(text)
        .map_err(|error| (error.code, error.to_string()))
}

fn filled(client: &mut Client) {
    client.run("CREATE DATABASE d");
    client.run("USE d");
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20), price DECIMAL(8,2), \
         born DATE, at DATETIME, size DOUBLE, kind ENUM('red','blue'), note JSON, bytes VARBINARY(9), \
         KEY (word), KEY (price), KEY (born), KEY (kind))",
    );
    for id in 1..40 {
        client.run(&format!(
            "INSERT INTO t VALUES ({id}, 'w{}', {}.5, '2020-01-{:02}', '2020-01-01 00:00:{id:02}', \
             {id}.25, '{}', '{{\"a\": {id}}}', 'b{id}')",
            id % 7,
            id % 11,
            id % 28 + 1,
            if id % 2 == 0 { "red" } else { "blue" },
        ));
    }
}

/// Conditions with every kind of column beside every kind of constant.
fn conditions() -> Vec<String> {
    let columns = [
        "id", "word", "price", "born", "at", "size", "kind", "note", "bytes",
    ];
    let constants = [
        "7",
        "-7",
        "'7'",
        "7.5",
        "'7.50'",
        "'w3'",
        "'W3'",
        "'w3 '",
        "''",
        "'abc'",
        "'red'",
        "'2020-01-07'",
        "'2020-01-01 00:00:09'",
        "20200107",
        "'b9'",
        "'1.5e1'",
        "'2020-13-45'",
        "0",
    ];
    let mut conditions = Vec::new();
    for column in columns {
        for constant in constants {
            for operator in ["=", "<", ">=", "<>", "<=>"] {
                conditions.push(format!("{column} {operator} {constant}"));
            }
            conditions.push(format!("{column} IN ({constant}, 3, 'w1')"));
            conditions.push(format!("{column} BETWEEN {constant} AND 9"));
            conditions.push(format!("NOT ({column} = {constant} OR id = 3)"));
        }
    }
    conditions
}

#[test]
fn queries_answer_alike_with_their_constants_in_the_text_and_out_of_it() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    filled(&mut client);
    for condition in conditions() {
        let query = format!("SELECT id, word FROM t WHERE {condition} ORDER BY id");
        // A comment keeps a text from being looked into.
        let whole = outcome(&mut client, &format!("{query} /* whole */"));
        let whole_warnings = client.rows("SHOW WARNINGS");
        for round in 0..2 {
            assert_eq!(
                outcome(&mut client, &query),
                whole,
                "{query}, round {round}"
            );
            assert_eq!(client.rows("SHOW WARNINGS"), whole_warnings, "{query}");
        }
    }
}

#[test]
fn writes_do_alike_with_their_constants_in_the_text_and_out_of_it() {
    let writes = [
        "INSERT INTO t (id, word, price) VALUES (100, 'x', -1.255), (101, 7, '3.1')",
        "INSERT INTO t (id, word) VALUES (102, 'a word that is far too long for it')",
        "INSERT INTO t (id, price) VALUES (103, 'no number')",
        "INSERT INTO t (id) VALUES (7)",
        "INSERT INTO t (id, kind) VALUES (104, 2), (105, 'red')",
        "REPLACE INTO t (id, word) VALUES (5, 'it''s')",
        "INSERT IGNORE INTO t (id, price) VALUES (106, '12abc'), (5, 1)",
        "INSERT INTO t (id, word) VALUES (6, 'new') ON DUPLICATE KEY UPDATE word = 'old'",
        "UPDATE t SET word = 'y', price = 2.5, size = -3 WHERE id = 8 AND word <> 'z'",
        "UPDATE t SET born = '2021-02-29' WHERE id = 9",
        "UPDATE t SET note = '[1, \"x\"]', bytes = 'q' WHERE price BETWEEN 3 AND 4.5",
        "DELETE FROM t WHERE word IN ('w2', 'w4') AND id >= 20",
    ];
    let answers = |comment: &str| {
        let instance = instance();
        let mut client = connect(&instance, "root");
        filled(&mut client);
        let mut answers = Vec::new();
        for write in writes {
            let answer = outcome(&mut client, &format!("{write}{comment}"));
            answers.push(format!("{answer:?}"));
        }
        answers.push(format!("{:?}", client.rows("SELECT * FROM t ORDER BY id")));
        answers
    };
    assert_eq!(answers(""), answers(" /* whole */"));
}

#[test]
fn a_text_that_differs_only_in_constants_finds_the_plan() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    filled(&mut client);
    client.run("UPDATE t SET word = 'first' WHERE id = 1");
    let before = instance.metrics().plan_cache_hits;
    for id in 2..12 {
        client.run(&format!("UPDATE t SET word = 'next' WHERE id = {id}"));
    }
    let hits = instance.metrics().plan_cache_hits - before;
    assert_eq!(hits, 10);
    assert_eq!(
        client.value("SELECT COUNT(*) FROM t WHERE word = 'next'"),
        "10"
    );
}

#[test]
fn a_question_mark_outside_a_prepared_statement_is_an_error() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    filled(&mut client);
    client.run("PREPARE p FROM 'SELECT id FROM t WHERE id = ?'");
    assert_eq!(client.error("SELECT id FROM t WHERE id = ?").code, 1064);
    assert_eq!(
        client.error("DELETE FROM t WHERE id = ? AND id = 5").code,
        1064
    );
}
