//! ALTER TABLE with writers in between, by seed: before its reads and commits other sessions
//! change rows. What they were told happened, and what the change made of the table, must agree
//! whatever way it is read.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{Client, connect, instance_over};
use manxdb_storage::{MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};
use parking_lot::Mutex;

/// Told whether a single key is about to be read, of which there may be thousands.
type Writer = Box<dyn FnMut(bool) + Send>;

/// Lets a writer in before each read and commit of others.
struct Interleaved {
    writer: Mutex<Option<Writer>>,
    /// The writer runs: its own calls pass.
    inside: AtomicBool,
}

impl Interleaved {
    fn interrupt(&self, one_key: bool) {
        if self.inside.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(writer) = self.writer.lock().as_mut() {
            writer(one_key);
        }
        self.inside.store(false, Ordering::SeqCst);
    }
}

impl Hooks for Interleaved {
    fn before_read(&self, one_key: bool) {
        self.interrupt(one_key);
    }

    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        self.interrupt(false);
        path.submit(intent)
    }
}

/// xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Columns a, b and s by id.
type Rows = BTreeMap<u64, [String; 3]>;

/// Rows at first; a chunk of a change is 1000 of them.
const ROWS: u64 = 1_100;

/// What may be done to the table. All but the last two leave the columns a, b and s.
const CHANGES: [&str; 10] = [
    "ADD INDEX kb (b)",
    "ADD UNIQUE ub (b)",
    "DROP INDEX ka, ADD UNIQUE uab (a, b)",
    "ADD COLUMN c INT NOT NULL DEFAULT 5, ADD INDEX kc (c, b)",
    "MODIFY b BIGINT NOT NULL",
    "ADD CONSTRAINT positive CHECK (a >= 0), ADD INDEX kb (b)",
    "RENAME INDEX ka TO renamed, ADD INDEX ks (s)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)",
    "DROP COLUMN s, ADD UNIQUE ub (b)",
    "DROP COLUMN s",
];

/// One statement of a writer; the rows follow when it succeeds, which is said.
fn write(client: &mut Client, rows: &Mutex<Rows>, random: &mut Random) -> bool {
    let id = random.below(2 * ROWS);
    let (a, b) = (random.below(50), ROWS * 10 + random.below(100_000));
    let mut rows = rows.lock();
    let text = match random.below(4) {
        0 => format!("INSERT INTO t (id, a, b) VALUES ({id}, {a}, {b})"),
        1 => format!("UPDATE t SET a = {a} WHERE id = {id}"),
        2 => format!("UPDATE t SET b = {b}, a = a + 1 WHERE id = {id}"),
        _ => format!("DELETE FROM t WHERE id = {id}"),
    };
    let Ok(_) = client.try_run(&text) else {
        return false;
    };
    let known = rows.get_mut(&id);
    match (text.split(' ').next(), known) {
        (Some("INSERT"), _) => {
            rows.insert(id, [a.to_string(), b.to_string(), "new".to_string()]);
        }
        (Some("DELETE"), _) => {
            rows.remove(&id);
        }
        (_, Some(row)) if text.contains("SET b") => {
            row[1] = b.to_string();
            row[0] = (row[0].parse::<u64>().expect("a number") + 1).to_string();
        }
        (_, Some(row)) => row[0] = a.to_string(),
        (_, None) => {}
    }
    true
}

/// The table through `access`, which is an index hint or nothing.
fn read(client: &mut Client, columns: &str, access: &str) -> Vec<Vec<String>> {
    client.rows(&format!("SELECT {columns} FROM t {access} ORDER BY id"))
}

/// Statements that writers got through.
fn run_seed(seed: u64) -> u64 {
    let engine = Arc::new(MemoryEngine::new());
    let inner = LocalPath::open(engine, LocalOptions::default()).expect("an empty path opens");
    let path = Arc::new(Hooked {
        path: Arc::new(inner),
        hooks: Interleaved {
            writer: Mutex::new(None),
            inside: AtomicBool::new(false),
        },
    });
    let instance = instance_over(path.clone());
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, \
         s VARCHAR(9) DEFAULT 'new', KEY ka (a))",
    );
    let listed: Vec<String> = (0..ROWS)
        .map(|id| format!("({id}, {id}, {id}, 'old')"))
        .collect();
    client.run(&format!("INSERT INTO t VALUES {}", listed.join(",")));
    let row = |id: u64| [id.to_string(), id.to_string(), "old".to_string()];
    let rows: Arc<Mutex<Rows>> = Arc::new(Mutex::new((0..ROWS).map(|id| (id, row(id))).collect()));

    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let change = CHANGES[usize::try_from(seed).expect("small") % CHANGES.len()];
    let mut other = connect(&instance, "root");
    other.run("USE d");
    let eager = if seed < CHANGES.len() as u64 { 2 } else { 8 };
    let shared = Arc::clone(&rows);
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    *path.hooks.writer.lock() = Some(Box::new(move |one_key| {
        if random.below(if one_key { 200 } else { eager }) != 0 {
            return;
        }
        for _ in 0..10 {
            let done = write(&mut other, &shared, &mut random);
            count.fetch_add(u64::from(done), Ordering::SeqCst);
        }
    }));
    let changed = client.try_run(&format!("ALTER TABLE t {change}"));
    *path.hooks.writer.lock() = None;

    let context = format!("seed {seed}, {change}: {:?}", changed.as_ref().err());
    if let Err(error) = &changed {
        // A copy ends under any writer; what is made in place may lose.
        let is_copy = change.starts_with("MODIFY") || change.starts_with("DROP PRIMARY");
        assert!(!is_copy, "{context}");
        assert!([1062, 1205, 1213].contains(&error.code), "{context}");
    }
    let whole = !(changed.is_ok() && change.starts_with("DROP COLUMN"));
    let (columns, width) = if whole {
        ("id, a, b, s", 3)
    } else {
        ("id, a, b", 2)
    };
    let expected: Vec<Vec<String>> = rows
        .lock()
        .iter()
        .map(|(id, row)| {
            std::iter::once(id.to_string())
                .chain(row[..width].to_vec())
                .collect()
        })
        .collect();
    assert_eq!(read(&mut client, columns, ""), expected, "{context}");
    let leading = "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
                   WHERE TABLE_NAME = 't' AND INDEX_NAME <> 'PRIMARY' AND SEQ_IN_INDEX = 1";
    for index in client.rows(leading) {
        // Every index has a row's entry, and no other.
        let least = if index[1] == "s" { "''" } else { "0" };
        let access = format!("FORCE INDEX ({}) WHERE {} >= {least}", index[0], index[1]);
        let plan = client.rows(&format!("EXPLAIN SELECT {columns} FROM t {access}"));
        assert!(plan[0].contains(&index[0]), "{plan:?}");
        let found = read(&mut client, columns, &access);
        assert_eq!(found, expected, "{context}, {access}");
    }
    // The table is as good as ever.
    client.run("ALTER TABLE t ADD INDEX last (b, a)");
    assert_eq!(
        read(&mut client, columns, "FORCE INDEX (last) WHERE b >= 0"),
        expected,
        "{context}"
    );
    written.load(Ordering::SeqCst)
}

#[test]
fn a_change_and_writers_in_between_lose_nothing() {
    let written: u64 = (0..2 * CHANGES.len() as u64).map(run_seed).sum();
    assert!(written > 100, "{written} writes are no test");
}
