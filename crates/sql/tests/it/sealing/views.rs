//! Materialized views over sealed rows and blinded keys: commits keep them up to date and do not empty them.

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance_sealed};
use manxdb_storage::MemoryEngine;
use manxdb_vault::MemoryDisk;

use super::OLD;

/// People with names for keys, what is theirs, and what is said of it.
const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (name VARCHAR(20) PRIMARY KEY, bio TEXT);
    CREATE TABLE posts (id INT PRIMARY KEY, author VARCHAR(20) NOT NULL OWNED_BY users (name),
        topic VARCHAR(20), KEY by_topic (topic));
    CREATE TABLE votes (id INT PRIMARY KEY, post_id INT NOT NULL OWNED_BY posts (id), vote INT NOT NULL);
    INSERT INTO users VALUES ('ann', 'a'), ('bob', 'b');
    INSERT INTO posts VALUES (1, 'ann', 'tea'), (2, 'bob', 'tea'), (3, 'ann', 'ink');
    INSERT INTO votes VALUES (1, 1, 1), (2, 1, 1), (3, 2, -1)";

/// What views hold, each with a condition behind which no view answers.
const QUERIES: [(&str, &str); 3] = [
    (
        "SELECT COUNT(*), SUM(vote) FROM posts JOIN votes ON votes.post_id = posts.id WHERE topic = ?{}",
        "'tea'",
    ),
    ("SELECT id, topic FROM posts WHERE author = ?{}", "'ann'"),
    ("SELECT name, bio FROM users WHERE name = ?{}", "'ann'"),
];

fn asked(query: &str, key: &str, more: &str) -> String {
    query.replace('?', key).replace("{}", more)
}

fn sorted(client: &mut Client, query: &str) -> Vec<Vec<String>> {
    let mut rows = client.rows(query);
    rows.sort();
    rows
}

#[test]
fn views_over_sealed_rows_follow_commits_and_are_filled_once() {
    let disk: Arc<MemoryDisk> = Arc::default();
    let engine = Arc::new(MemoryEngine::new());
    let instance = instance_sealed(engine, disk, OLD);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    for (number, (query, _)) in QUERIES.iter().enumerate() {
        let query = asked(query, "?", "");
        client.run(&format!("CREATE MATERIALIZED VIEW v{number} AS {query}"));
    }
    let steps = [
        "SELECT 1",
        "INSERT INTO votes VALUES (4, 3, 5), (5, 2, 7)",
        "UPDATE posts SET topic = 'tea' WHERE topic = 'ink'",
        "UPDATE votes SET vote = 0 WHERE post_id = 1",
        "UPDATE users SET bio = 'changed' WHERE name = 'ann'",
        "INSERT INTO posts VALUES (9, 'ann', 'oak')",
        "DELETE FROM votes WHERE id = 5",
    ];
    for step in steps {
        client.run(step);
        for (query, key) in QUERIES {
            let held = sorted(&mut client, &asked(query, key, ""));
            let base = sorted(&mut client, &asked(query, key, " AND 1 < RAND() + 2"));
            assert_eq!(held, base, "{query} after {step}");
        }
    }
    let shown = client.rows("SHOW MATERIALIZED VIEWS");
    assert_eq!(shown.len(), QUERIES.len());
    for view in shown {
        let counts = (view[5].as_str(), view[6].as_str());
        let hits = (steps.len() - 1).to_string();
        assert_eq!(counts, (hits.as_str(), "1"), "{view:?}");
    }
}
