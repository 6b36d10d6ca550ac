//! How often a statement asks the store: a join must not ask once for every row, and a LIMIT
//! must not ask for what it does not give. Counted, not timed.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_fixtures::sql::{Client, connect, instance_on};
use manxdb_sql::session::Instance;
use manxdb_storage::{
    Appended, Cursor, Direction, Engine, KeyRange, MemoryEngine, Rows, StorageError, Version,
    Versioned, WriteBatch,
};

/// An engine that counts questions.
#[derive(Default)]
struct Counting {
    engine: MemoryEngine,
    /// Calls, of whatever size.
    questions: AtomicU64,
    /// Keys asked for one by one or together.
    keys: AtomicU64,
}

impl Counting {
    fn ask(&self, keys: usize) {
        self.questions.fetch_add(1, Ordering::SeqCst);
        self.keys.fetch_add(keys as u64, Ordering::SeqCst);
    }
}

impl Engine for Counting {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        self.ask(1);
        self.engine.get(key, at)
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        at: Version,
    ) -> Result<Vec<Option<Versioned>>, StorageError> {
        self.ask(keys.len());
        self.engine.get_many(keys, at)
    }

    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError> {
        self.ask(0);
        self.engine.scan(range, at, direction)
    }

    fn scan_many(
        &self,
        ranges: &[KeyRange],
        at: Version,
        limit: usize,
    ) -> Result<Vec<Rows>, StorageError> {
        self.ask(0);
        self.engine.scan_many(ranges, at, limit)
    }

    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError> {
        self.engine.append(batch)
    }

    fn sync(&self, appended: &Appended) -> Result<(), StorageError> {
        self.engine.sync(appended)
    }

    fn latest(&self) -> Result<Version, StorageError> {
        self.engine.latest()
    }

    fn set_watermark(&self, watermark: Version) {
        self.engine.set_watermark(watermark);
    }

    fn checkpoint(&self, directory: &Path) -> Result<(), StorageError> {
        self.engine.checkpoint(directory)
    }
}

/// 100 stories of 40 users, 3 comments a story.
struct Forum {
    engine: Arc<Counting>,
    instance: Arc<Instance>,
    client: Client,
}

impl Forum {
    fn new() -> Self {
        let engine = Arc::new(Counting::default());
        let instance = instance_on(engine.clone());
        let mut client = connect(&instance, "root");
        client.run("CREATE DATABASE d");
        client.run("USE d");
        client.run("CREATE TABLE user (id INT PRIMARY KEY, name VARCHAR(20))");
        client.run(
            "CREATE TABLE story (id INT PRIMARY KEY, user_id INT, score INT, KEY (score), \
             KEY (user_id))",
        );
        client.run(
            "CREATE TABLE comment (id INT PRIMARY KEY, story_id INT, text VARCHAR(20), \
             KEY (story_id))",
        );
        let (mut users, mut stories, mut comments) = (String::new(), String::new(), String::new());
        for number in 0..40 {
            write!(users, ",({number},'user {number}')").expect("text");
        }
        for number in 0..100 {
            let (user, score) = (number * 7 % 40, number * 13 % 50);
            write!(stories, ",({number},{user},{score})").expect("text");
            for place in 0..3 {
                let id = place * 100 + number;
                write!(comments, ",({id},{number},'comment {id}')").expect("text");
            }
        }
        for (table, rows) in [("user", users), ("story", stories), ("comment", comments)] {
            client.run(&format!("INSERT INTO {table} VALUES {}", &rows[1..]));
        }
        Self {
            engine,
            instance,
            client,
        }
    }

    /// Rows of a query, and the questions and keys it took.
    fn asked(&mut self, query: &str) -> (usize, u64, u64) {
        self.client.rows(query);
        let read = |counter: &AtomicU64| counter.swap(0, Ordering::SeqCst);
        read(&self.engine.questions);
        read(&self.engine.keys);
        let rows = self.client.rows(query).len();
        (rows, read(&self.engine.questions), read(&self.engine.keys))
    }
}

/// Questions that any of these statements may take: pages of ranges, and keys behind them.
const QUESTIONS_MAX: u64 = 6;

#[test]
fn a_join_asks_once_for_many_rows() {
    let mut forum = Forum::new();
    let queries = [
        (
            "SELECT s.id, u.name FROM story s JOIN user u ON u.id = s.user_id",
            100,
        ),
        (
            "SELECT s.id, c.text FROM story s LEFT JOIN comment c ON c.story_id = s.id",
            300,
        ),
        (
            "SELECT s.id FROM story s WHERE s.score < 10 \
             AND EXISTS (SELECT 1 FROM comment c WHERE c.story_id = s.id AND c.text <> '')",
            20,
        ),
        (
            "SELECT c.id, u.name FROM story s JOIN comment c ON c.story_id = s.id \
             JOIN user u ON u.id = s.user_id WHERE s.score >= 25",
            150,
        ),
        (
            "SELECT id, user_id FROM story WHERE score BETWEEN 5 AND 40",
            72,
        ),
        (
            "SELECT name FROM user WHERE id IN (1, 5, 9, 13, 17, 21, 25, 29)",
            8,
        ),
    ];
    for (query, expected) in queries {
        let (rows, questions, _) = forum.asked(query);
        assert_eq!(rows, expected, "{query}");
        assert!(questions <= QUESTIONS_MAX, "{questions} questions: {query}");
    }
}

#[test]
fn a_limit_takes_few_rows_of_a_join() {
    let mut forum = Forum::new();
    let query = "SELECT s.id, u.name FROM story s JOIN user u ON u.id = s.user_id";
    let (_, _, all) = forum.asked(query);
    let (rows, _, one) = forum.asked(&format!("{query} LIMIT 1"));
    assert_eq!(rows, 1);
    assert!(
        one < 3 && all >= 40,
        "{one} keys for one row, {all} for all"
    );
    let (rows, _, few) = forum.asked("SELECT user_id FROM story WHERE score > 3 LIMIT 3");
    assert_eq!(rows, 3);
    assert!(few < 8, "{few} keys for three rows");
}

#[test]
fn a_subquery_of_in_is_read_a_bounded_number_of_times() {
    let mut forum = Forum::new();
    // Each user finds itself a little further on in the subquery than the one before.
    let query = "SELECT id IN (SELECT user_id FROM story) FROM user";
    let (rows, questions, _) = forum.asked(query);
    assert_eq!(rows, 40);
    assert!(questions <= QUESTIONS_MAX, "{questions} questions");
    let query = "SELECT id FROM user WHERE id NOT IN (SELECT user_id FROM story WHERE id > 50)";
    let (_, questions, _) = forum.asked(query);
    assert!(questions <= QUESTIONS_MAX, "{questions} questions");
}

#[test]
fn rows_read_together_are_validated_one_by_one() {
    let mut forum = Forum::new();
    let mut other = connect(&forum.instance, "root");
    other.run("USE d");
    let query = "SELECT s.id, u.name FROM story s JOIN user u ON u.id = s.user_id \
                 WHERE s.id IN (0, 1, 2, 3, 4)";
    let client = &mut forum.client;
    client.run("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    // Stories 0 to 4 are of users 0, 7, 14, 21 and 28: user 8 lies between them.
    for (user, conflicts) in [(14, true), (8, false)] {
        client.run("BEGIN");
        client.rows(query);
        client.run("UPDATE story SET score = score + 1 WHERE id = 90");
        other.run(&format!(
            "UPDATE user SET name = 'changed' WHERE id = {user}"
        ));
        let committed = client.try_run("COMMIT");
        assert_eq!(committed.is_err(), conflicts, "user {user}");
    }
}

#[test]
fn what_an_index_holds_is_read_from_it_alone() {
    let mut forum = Forum::new();
    let queries = [
        ("SELECT id, user_id FROM story WHERE user_id = 7", 3),
        (
            "SELECT user_id, COUNT(*) FROM story WHERE user_id > 20 GROUP BY user_id",
            19,
        ),
        (
            "SELECT COUNT(*) FROM story s JOIN comment c ON c.story_id = s.id WHERE s.user_id = 7",
            1,
        ),
        ("SELECT MAX(id) FROM comment WHERE story_id = 5", 1),
    ];
    for (query, expected) in queries {
        let (rows, _, keys) = forum.asked(query);
        assert_eq!(rows, expected, "{query}");
        // The catalog's records are keys too: one a table.
        assert!(keys <= 2, "{keys} keys: {query}");
    }
    let (_, _, keys) = forum.asked("SELECT id, score FROM story WHERE user_id = 7");
    assert!(keys > 2, "another column needs the rows, {keys} keys");
}

/// A table of marks that users left on stories: user 1 left most, and story 2 has most.
fn marks(forum: &mut Forum) {
    let client = &mut forum.client;
    client.run(
        "CREATE TABLE mark (id INT PRIMARY KEY, user_id INT, story_id INT, seen INT, \
         KEY (user_id), KEY (story_id))",
    );
    let mut rows = String::from("(0,1,2,0)");
    for number in 1..400 {
        write!(rows, ",({number},1,{},0)", number + 10).expect("text");
        write!(rows, ",({},{},2,0)", number + 1000, number + 10).expect("text");
    }
    client.run(&format!("INSERT INTO mark VALUES {rows}"));
}

#[test]
fn of_two_indexes_the_one_with_fewer_entries_for_these_values_is_read() {
    let mut forum = Forum::new();
    marks(&mut forum);
    for (user, story, expected) in [(1, 20, 1), (20, 2, 1), (20, 20, 0), (999, 2, 0)] {
        let query = format!("SELECT seen FROM mark WHERE user_id = {user} AND story_id = {story}");
        let (rows, _, keys) = forum.asked(&query);
        assert_eq!(rows, expected, "{query}");
        assert!(keys <= 2 + 1, "{keys} keys: {query}");
    }
    let (rows, _, keys) = forum.asked("SELECT seen FROM mark WHERE user_id = 1 AND story_id = 2");
    assert_eq!(rows, 1);
    assert!(keys >= 400, "both are long, {keys} keys");
    let query = "SELECT seen FROM mark WHERE user_id = 1 AND story_id = 2 LIMIT 1";
    let (rows, questions, keys) = forum.asked(query);
    assert_eq!(rows, 1);
    assert!(
        questions <= QUESTIONS_MAX && keys <= 3,
        "{questions} questions, {keys} keys: {query}"
    );
}

#[test]
fn choosing_an_index_promises_nothing_about_the_others() {
    let mut forum = Forum::new();
    marks(&mut forum);
    let mut other = connect(&forum.instance, "root");
    other.run("USE d");
    let client = &mut forum.client;
    client.run("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    // The transaction reads by story 20; that user 1 leaves another mark does not touch it.
    for (id, story, conflicts) in [(5000, 21, false), (5001, 20, true)] {
        client.run("BEGIN");
        client.rows("SELECT seen FROM mark WHERE user_id = 1 AND story_id = 20");
        client.run("UPDATE story SET score = score + 1 WHERE id = 90");
        other.run(&format!("INSERT INTO mark VALUES ({id}, 1, {story}, 0)"));
        let committed = client.try_run("COMMIT");
        assert_eq!(committed.is_err(), conflicts, "story {story}");
    }
}

#[test]
fn an_update_locks_the_rows_of_the_shorter_index() {
    let mut forum = Forum::new();
    marks(&mut forum);
    let mut other = connect(&forum.instance, "root");
    other.run("USE d");
    let client = &mut forum.client;
    client.run("BEGIN");
    client.run("UPDATE mark SET seen = 1 WHERE user_id = 1 AND story_id = 20");
    // Another mark of the same user is free.
    other.run("SET SESSION innodb_lock_wait_timeout = 1");
    other.run("UPDATE mark SET seen = 2 WHERE id = 100");
    client.run("COMMIT");
    assert_eq!(client.rows("SELECT id FROM mark WHERE seen > 0").len(), 2);
}

#[test]
fn an_index_answers_like_the_rows_beside_own_writes() {
    let mut forum = Forum::new();
    let mut other = connect(&forum.instance, "root");
    other.run("USE d");
    let client = &mut forum.client;
    client.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    client.run("BEGIN");
    client.rows("SELECT id FROM story WHERE user_id = 7");
    // Story 1 moves from user 7 to 8 behind this snapshot; then its score is written here.
    other.run("UPDATE story SET user_id = 8 WHERE id = 1");
    client.run("UPDATE story SET score = 77 WHERE id = 1");
    client.run("UPDATE story SET user_id = 7 WHERE id = 2");
    client.run("DELETE FROM story WHERE id = 41");
    for condition in ["user_id = 7", "user_id = 8", "user_id IN (6, 7, 8, 14)"] {
        let by = |hint: &str| {
            format!("SELECT user_id, id FROM story {hint} WHERE {condition} ORDER BY id")
        };
        let wanted = client.rows(&by("IGNORE INDEX (user_id)"));
        assert_eq!(
            client.rows(&by("FORCE INDEX (user_id)")),
            wanted,
            "{condition}"
        );
    }
}
