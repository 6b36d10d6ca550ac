use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_redis::keyspace::{Load, Value};
use manxdb_redis::server::{ClientId, Server, Settings};
use manxdb_redis::{Command, Effects, Stamp};
use manxdb_storage::{MemoryEngine, Options, RocksEngine};
use manxdb_txn::{LocalOptions, LocalPath};
use proptest::prelude::*;

use super::super::check::check_rows;
use super::super::store::{open, value};
use super::*;

/// A server without sockets over a store.
struct Subject {
    store: RedisStore,
    server: Server,
    client: ClientId,
    garbage: Garbage,
    durable: Durable,
    /// What was appended last, not on disk.
    unsynced: Option<(manxdb_txn::AppendedRows, Option<u64>)>,
    now: u64,
}

impl Subject {
    fn over(engine: Arc<dyn Engine>, now: u64) -> Self {
        let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
        let mut server = loaded(engine.as_ref(), now);
        let client = server.connect("test".to_owned(), now);
        let garbage = Garbage::new(engine.as_ref());
        let path = Arc::new(path);
        let mut subject = Self {
            store: RedisStore { engine, path },
            server,
            client,
            garbage,
            durable: Durable::default(),
            unsynced: None,
            now,
        };
        subject.pass(0);
        subject
    }

    fn run(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let stamp = Stamp::new(self.now, 1);
        let handled = self.server.handle(self.client, &Command::of(&words), stamp);
        self.append(handled.effects);
    }

    fn append(&mut self, effects: Effects) {
        let rows = effects.rows.into_iter().map(|row| (row.key, row.value));
        let mut rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return;
        }
        let appended = self.store.path.append_rows(&mut rows).unwrap();
        self.unsynced = Some((appended, self.server.keyspace.expired_until()));
    }

    fn pass(&mut self, millis: u64) {
        self.now += millis;
        let effects = self.server.tick(Stamp::new(self.now, 1));
        self.append(effects);
    }

    fn sync(&mut self) {
        if let Some((rows, expired_until)) = self.unsynced.take() {
            self.store.path.sync_rows(&rows).unwrap();
            let version = rows.version();
            self.durable = Durable {
                version,
                expired_until,
            };
        }
    }

    fn look(&mut self) {
        self.garbage
            .look(&self.store, self.durable, &|| false)
            .unwrap();
    }

    fn rows_below(&self, prefix: &[u8]) -> usize {
        keys(self.store.engine.as_ref(), prefix, usize::MAX)
            .unwrap()
            .len()
    }

    /// The store makes what the server has, and nothing else is in it.
    fn check(&mut self) {
        self.pass(0);
        self.sync();
        let report = check_rows(self.store.engine.as_ref()).unwrap();
        assert_eq!(report.findings, Vec::<String>::new());
        let mut again = loaded(self.store.engine.as_ref(), self.now);
        again.tick(Stamp::new(self.now, 1));
        assert_eq!(content(&again), content(&self.server));
    }
}

/// A server with everything that is in a store.
fn loaded(engine: &dyn Engine, now: u64) -> Server {
    let mut server = Server::new(open(engine).unwrap(), Settings::default(), now);
    let mut names = Vec::new();
    each_page(engine, &rows::meta_prefix(), |page| {
        server.keyspace.take_page(&page).unwrap();
        names.extend(page.into_iter().map(|(row, _)| row));
        true
    })
    .unwrap();
    server.keyspace.complete();
    for row in names {
        let loaded = value(engine, Load { row }).unwrap();
        server.install(loaded, Stamp::new(now, 1)).unwrap();
    }
    server
}

/// All keys of the first database, when they expire, and their values in one order.
fn content(server: &Server) -> BTreeMap<Vec<u8>, (u64, Vec<String>)> {
    let keyspace = &server.keyspace;
    let entries = (0..keyspace.len(0)).filter_map(|place| keyspace.at(0, place));
    let shown = entries.map(|(key, entry)| {
        let mut elements: Vec<String> = match &entry.value {
            Value::Set(set) => set.iter().map(|member| format!("{member:?}")).collect(),
            other => vec![format!("{other:?}")],
        };
        elements.sort();
        (key.to_vec(), (entry.expires, elements))
    });
    shown.collect()
}

fn members(count: usize, from: usize) -> String {
    let members: Vec<String> = (0..count).map(|one| format!("m{}", one + from)).collect();
    members.join(" ")
}

fn rocks(directory: &std::path::Path) -> Arc<RocksEngine> {
    let options = Options {
        file_bytes: 64 << 10,
        ..Options::default()
    };
    Arc::new(RocksEngine::open(directory, &options).unwrap())
}

#[test]
fn the_rows_of_a_huge_deleted_key_go_in_a_compaction_and_nothing_is_written_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut subject = Subject::over(rocks(directory.path()), 1);
    subject.run(&format!("SADD t {}", members(3000, 0)));
    subject.run("DEL t");
    subject.run(&format!("SADD t {}", members(300, 0)));
    subject.run(&format!("SADD u {}", members(MANY_ROWS + 50, 0)));
    subject.sync();
    subject.run("DEL u");
    let before = subject.store.engine.latest().unwrap();
    subject.look();
    // The deletion of `u` is not on disk: what is left of it stays.
    subject.store.engine.compact_dead_rows().unwrap();
    assert_eq!(
        subject.rows_below(&rows::element_space()),
        300 + MANY_ROWS + 50
    );
    assert_eq!(subject.store.engine.latest().unwrap(), before);
    subject.look();
    subject.sync();
    assert_eq!(subject.rows_below(&rows::garbage_prefix()), 1);
    subject.look();
    subject.store.engine.compact_dead_rows().unwrap();
    assert_eq!(subject.rows_below(&rows::element_space()), 300);
    subject.look();
    assert_eq!(subject.rows_below(&rows::garbage_prefix()), 0);
    // Two rows of garbage were deleted, and nothing else.
    assert_eq!(subject.store.engine.latest().unwrap().0, before.0 + 2);
    subject.check();
}

#[test]
fn a_flushed_database_goes_in_a_compaction_and_the_next_one_stays() {
    let directory = tempfile::tempdir().unwrap();
    let mut subject = Subject::over(rocks(directory.path()), 1);
    for key in 0..MANY_ROWS {
        subject.run(&format!("SET key{key} value"));
    }
    subject.run("FLUSHDB");
    subject.run("SET key1 again");
    subject.run("SET gone x PX 5");
    subject.pass(10);
    subject.sync();
    subject.look();
    let dead = subject.garbage.dead(subject.durable);
    assert_eq!(dead.dropped.len(), 1);
    let expired = dead.expired.map(|one| (one.until, one.version));
    assert_eq!(expired, Some((11, subject.durable.version)));
    subject.store.engine.compact_dead_rows().unwrap();
    assert_eq!(subject.rows_below(&rows::meta_prefix()), 1);
    subject.check();
}

#[test]
fn few_rows_are_deleted_and_all_where_the_engine_has_no_compactions() {
    let mut subject = Subject::over(Arc::new(MemoryEngine::new()), 1);
    subject.run(&format!("SADD t {}", members(2 * MANY_ROWS, 0)));
    subject.run(&format!("SADD u {}", members(150, 0)));
    subject.run("DEL t u");
    subject.look();
    assert_eq!(subject.rows_below(&rows::element_space()), 0);
    assert_eq!(subject.rows_below(&rows::garbage_prefix()), 0);
    subject.check();
}

/// The mutant: what is given up takes in the generation that lives.
#[test]
fn the_check_finds_a_generation_that_a_compaction_dropped_by_mistake() {
    let directory = tempfile::tempdir().unwrap();
    let mut subject = Subject::over(rocks(directory.path()), 1);
    subject.run(&format!("SADD t {}", members(MANY_ROWS, 0)));
    subject.run("DEL t");
    subject.run(&format!("SADD t {}", members(300, 0)));
    subject.sync();
    subject.look();
    let mut dead = subject.garbage.dead(subject.durable);
    for one in &mut dead.dropped {
        one.prefix.truncate(one.prefix.len() - size_of::<u64>());
        one.version = subject.durable.version;
    }
    subject.store.engine.set_dead_rows(dead);
    subject.store.engine.compact_dead_rows().unwrap();
    let report = check_rows(subject.store.engine.as_ref()).unwrap();
    assert_eq!(
        report.findings,
        [
            "key \"t\" of database 0: its 0 rows of elements do not make the object that its row \
          tells of"
        ]
    );
}

#[derive(Debug, Clone)]
enum Step {
    Run(String),
    Pass(u64),
    Sync,
    Look,
    Flush,
    CompactPart(bool),
    CompactDead,
    Restart,
}

fn steps() -> impl Strategy<Value = Step> {
    let key = || "[ab]";
    let run = prop_oneof![
        (key(), 0..200_usize).prop_map(|(k, n)| format!("SADD t{k} {}", members(250, n))),
        (key(), 0..200_usize).prop_map(|(k, n)| format!("SADD t{k} {}", members(140, n))),
        (key(), 0..200_usize).prop_map(|(k, n)| format!("SREM t{k} {}", members(60, n))),
        key().prop_map(|k| format!("RPUSH l{k} {}", members(220, 0))),
        ("[tls]", key()).prop_map(|(t, k)| format!("DEL {t}{k}")),
        ("[tls]", key(), key()).prop_map(|(t, k, l)| format!("RENAME {t}{k} {t}{l}")),
        (key(), 1..9_u32).prop_map(|(k, millis)| format!("SET s{k} x PX {millis}")),
        key().prop_map(|k| format!("SET s{k} y")),
        ("[tls]", key(), 1..9_u32).prop_map(|(t, k, millis)| format!("PEXPIRE {t}{k} {millis}")),
        ("[tls]", key()).prop_map(|(t, k)| format!("PERSIST {t}{k}")),
        Just("FLUSHDB".to_owned()),
    ];
    prop_oneof![
        6 => run.prop_map(Step::Run),
        1 => (1..9_u64).prop_map(Step::Pass),
        1 => Just(Step::Sync),
        2 => Just(Step::Look),
        1 => Just(Step::Flush),
        1 => any::<bool>().prop_map(Step::CompactPart),
        1 => Just(Step::CompactDead),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(8)
    })]

    /// Whatever compactions drop, and when: the store makes what the server has.
    #[test]
    fn no_compaction_drops_a_row_of_a_living_key(
        steps in prop::collection::vec(steps(), 1..30),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut engine = rocks(directory.path());
        let mut subject = Subject::over(engine.clone(), 1);
        for step in steps {
            match step {
                Step::Run(line) => subject.run(&line),
                Step::Pass(millis) => subject.pass(millis),
                Step::Sync => subject.sync(),
                Step::Look => subject.look(),
                Step::Flush => engine.flush().unwrap(),
                Step::CompactPart(metas) => {
                    let part = if metas { rows::meta_prefix() } else { rows::element_space() };
                    engine.compact_range(&KeyRange::prefix(&part)).unwrap();
                }
                Step::CompactDead => engine.compact_dead_rows().unwrap(),
                Step::Restart => {
                    let now = subject.now;
                    drop(subject);
                    drop(engine);
                    engine = rocks(directory.path());
                    subject = Subject::over(engine.clone(), now);
                }
            }
        }
        subject.check();
        // With everything on disk, two looks and a compaction leave no garbage.
        subject.run("SET end x");
        subject.sync();
        subject.look();
        engine.compact_dead_rows().unwrap();
        subject.look();
        prop_assert_eq!(subject.rows_below(&rows::garbage_prefix()), 0);
        subject.check();
    }
}
