//! An instance in memory under a clock of its own, and clients that collect what they get.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(dead_code)] // each test binary uses its part

pub mod files;
pub mod hooked;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use manxdb_sql::error::{SqlError, SqlResult};
use manxdb_sql::executor::{SpillFile, SpillSpace};
use manxdb_sql::session::{
    ClientInfo, Host, Instance, InstanceOptions, ResultSink, Session, Status,
};
use manxdb_sql::statement::StatementOutcome;
use manxdb_sql::types::{ColumnMeta, Value, write_text};
use manxdb_storage::{Durability, Engine, MemoryEngine};
use manxdb_txn::{CommitPath, IsolationLevel, LocalOptions, LocalPath};
use parking_lot::Mutex;

/// Saturday 2024-02-03 04:05:06 UTC.
pub const START_MICROS: i64 = 1_706_933_106_000_000;

/// Time passes only while a session waits, so a time-out takes no time and is exact.
#[derive(Default)]
pub struct TestHost {
    elapsed: AtomicI64,
    seed: AtomicU64,
    woken: Mutex<BTreeSet<u64>>,
    spills: bool,
    /// Temporary files made.
    pub files: AtomicU64,
    /// Every byte read from a temporary file is another than was written.
    pub damages_files: AtomicBool,
}

impl SpillSpace for TestHost {
    fn create(&self) -> std::io::Result<Box<dyn SpillFile>> {
        self.files.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(MemoryFile {
            bytes: Vec::new(),
            damaged: self.damages_files.load(Ordering::SeqCst),
        }))
    }
}

struct MemoryFile {
    bytes: Vec<u8>,
    damaged: bool,
}

impl SpillFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).expect("files of tests fit into memory");
        bytes.copy_from_slice(&self.bytes[start..start + bytes.len()]);
        if self.damaged && bytes.len() > 8 {
            bytes[bytes.len() / 2] ^= 1;
        }
        Ok(())
    }
}

impl Host for TestHost {
    fn spill_space(&self) -> Option<&dyn SpillSpace> {
        self.spills.then_some(self as &dyn SpillSpace)
    }

    fn wall_micros(&self) -> i64 {
        START_MICROS + self.monotonic_micros()
    }

    fn monotonic_micros(&self) -> i64 {
        self.elapsed.load(Ordering::SeqCst)
    }

    fn random(&self) -> u64 {
        self.seed.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst)
    }

    fn park(&self, session: u64, micros: u64) {
        if !self.woken.lock().remove(&session) {
            let micros = i64::try_from(micros).unwrap_or(i64::MAX);
            self.elapsed.fetch_add(micros, Ordering::SeqCst);
        }
    }

    fn wake(&self, session: u64) {
        self.woken.lock().insert(session);
    }

    fn system_time_zone(&self) -> String {
        "UTC".to_string()
    }
}

/// A fresh instance with root without a password.
pub fn instance() -> Arc<Instance> {
    instance_on(Arc::new(MemoryEngine::new()))
}

/// An instance over `engine`, made anew or found there.
pub fn instance_on(engine: Arc<dyn Engine>) -> Arc<Instance> {
    let path = LocalPath::open(engine, LocalOptions::default()).expect("the path opens");
    instance_over(Arc::new(path))
}

/// As [`instance_on`], over a path of the caller's.
pub fn instance_over(path: Arc<dyn CommitPath>) -> Arc<Instance> {
    instance_of(path, Arc::new(TestHost::default()))
}

/// A fresh instance whose statements may hold so many bytes.
pub fn instance_with_memory(statement_memory_bytes: usize) -> Arc<Instance> {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine, LocalOptions::default()).expect("the path opens");
    let host = Arc::new(TestHost::default());
    instance_limited(Arc::new(path), host, statement_memory_bytes)
}

/// An instance over `engine` whose statements may hold so many bytes, and have temporary files for
/// more.
pub fn instance_that_spills(
    engine: Arc<dyn Engine>,
    statement_memory_bytes: usize,
) -> (Arc<Instance>, Arc<TestHost>) {
    let path = LocalPath::open(engine, LocalOptions::default()).expect("the path opens");
    let host = Arc::new(TestHost {
        spills: true,
        ..TestHost::default()
    });
    let instance = instance_limited(Arc::new(path), host.clone(), statement_memory_bytes);
    (instance, host)
}

/// As [`instance_over`], with a host of the caller's too.
pub fn instance_of(path: Arc<dyn CommitPath>, host: Arc<dyn Host>) -> Arc<Instance> {
    instance_limited(path, host, 256 << 20)
}

fn instance_limited(
    path: Arc<dyn CommitPath>,
    host: Arc<dyn Host>,
    statement_memory_bytes: usize,
) -> Arc<Instance> {
    let options = InstanceOptions {
        secure_file_priv: None,
        durability: Durability::Sync,
        isolation: IsolationLevel::RepeatableRead,
        max_connections: 151,
        max_allowed_packet: 64 << 20,
        long_query_micros: 10_000_000,
        statement_memory_bytes,
        port: 3306,
        hostname: "test".to_string(),
        data_directory: "/data".to_string(),
    };
    let instance = Instance::open(path, host, options).expect("the instance opens");
    if !instance.is_initialised() {
        instance.initialise(None).expect("root can be made");
    }
    instance
}

/// A session of `user`, who must have an account.
pub fn connect(instance: &Arc<Instance>, user: &str) -> Client {
    connect_with_collation(instance, user, 255).expect("a connection")
}

/// A session of `user` whose client named the collation with this id.
pub fn connect_with_collation(
    instance: &Arc<Instance>,
    user: &str,
    collation: u16,
) -> SqlResult<Client> {
    let account = instance.account(user, "localhost").expect("an account");
    let client = ClientInfo {
        peer: "127.0.0.1:50000".to_string(),
        host: "localhost".to_string(),
        found_rows: false,
        multi_statements: true,
        local_files: true,
        collation,
        compression: None,
        tls: None,
    };
    let id = instance.next_connection_id();
    let session = instance.connect(id, &account.identity, user, client, None)?;
    Ok(Client { session })
}

/// A session with its results kept.
pub struct Client {
    pub session: Session,
}

/// One result of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Column names and rows as text; `None` is NULL.
    Rows(Vec<String>, Vec<Vec<Option<String>>>),
    /// An OK packet.
    Done(StatementOutcome, Status),
}

#[derive(Default)]
struct Collector {
    answers: Vec<Answer>,
    columns: Vec<ColumnMeta>,
    rows: Vec<Vec<Option<String>>>,
    /// What the client sends when it is asked for a file.
    file: std::io::Cursor<Vec<u8>>,
}

impl ResultSink for Collector {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()> {
        self.columns = columns.to_vec();
        self.rows.clear();
        Ok(())
    }

    fn row(&mut self, row: &[Value]) -> SqlResult<()> {
        assert_eq!(row.len(), self.columns.len(), "a value a column");
        let shown = row
            .iter()
            .zip(&self.columns)
            .map(|(value, column)| shown(value, column))
            .collect();
        self.rows.push(shown);
        Ok(())
    }

    fn end(&mut self, _status: Status, _more: bool) -> SqlResult<()> {
        let names = self.columns.iter().map(|c| c.name.clone()).collect();
        self.answers
            .push(Answer::Rows(names, std::mem::take(&mut self.rows)));
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> SqlResult<&mut dyn std::io::Read> {
        Ok(&mut self.file)
    }

    fn done(&mut self, outcome: &StatementOutcome, status: Status, _more: bool) -> SqlResult<()> {
        self.answers.push(Answer::Done(outcome.clone(), status));
        Ok(())
    }
}

fn shown(value: &Value, column: &ColumnMeta) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    write_text(value, &column.ty, &mut bytes);
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let digits = error.as_bytes().iter().map(|byte| format!("{byte:02X}"));
            format!("0x{}", digits.collect::<String>())
        }
    })
}

impl Client {
    /// Runs text; all results, or the error.
    pub fn try_run(&mut self, text: &str) -> SqlResult<Vec<Answer>> {
        let mut collector = Collector::default();
        self.session.query(text, &mut collector)?;
        Ok(collector.answers)
    }

    /// Runs LOAD DATA LOCAL with what the client's file holds; what it did.
    pub fn load(&mut self, text: &str, file: &[u8]) -> SqlResult<StatementOutcome> {
        let mut collector = Collector {
            file: std::io::Cursor::new(file.to_vec()),
            ..Collector::default()
        };
        self.session.query(text, &mut collector)?;
        match collector.answers.pop() {
            Some(Answer::Done(outcome, _)) => Ok(outcome),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Runs text that must succeed; its last result.
    pub fn run(&mut self, text: &str) -> Answer {
        match self.try_run(text) {
            Ok(mut answers) => answers.pop().expect("an answer"),
            Err(error) => panic!("{text}: {} {error}", error.code),
        }
    }

    /// Runs a query that must succeed; its rows, NULL as `NULL`.
    pub fn rows(&mut self, text: &str) -> Vec<Vec<String>> {
        match self.run(text) {
            Answer::Rows(_, rows) => rows
                .into_iter()
                .map(|row| {
                    row.into_iter()
                        .map(|v| v.unwrap_or("NULL".into()))
                        .collect()
                })
                .collect(),
            Answer::Done(..) => panic!("{text} has no rows"),
        }
    }

    /// The only value of a query.
    pub fn value(&mut self, text: &str) -> String {
        let rows = self.rows(text);
        assert_eq!((rows.len(), rows[0].len()), (1, 1), "{text}");
        rows[0][0].clone()
    }

    /// Runs text that must fail.
    pub fn error(&mut self, text: &str) -> SqlError {
        match self.try_run(text) {
            Ok(answers) => panic!("{text} succeeded: {answers:?}"),
            Err(error) => error,
        }
    }

    /// Prepares, runs and closes a statement over the binary protocol.
    pub fn execute(&mut self, text: &str, params: &[Value]) -> SqlResult<Vec<Answer>> {
        let prepared = self.session.prepare(text)?;
        let mut collector = Collector::default();
        let result = self.session.execute(prepared.id, params, &mut collector);
        self.session.close_statement(prepared.id);
        result.map(|()| collector.answers)
    }

    /// Prepares a statement.
    pub fn try_prepare(&mut self, text: &str) -> SqlResult<()> {
        self.session.prepare(text).map(|_| ())
    }

    /// Runs a query over the binary protocol; the types of its columns as SQL writes them.
    pub fn column_types(&mut self, text: &str, params: &[Value]) -> Vec<String> {
        let prepared = self.session.prepare(text).expect("it can be prepared");
        let mut collector = Collector::default();
        let result = self.session.execute(prepared.id, params, &mut collector);
        self.session.close_statement(prepared.id);
        result.expect("it runs");
        let types = collector.columns.iter().map(|column| column.ty.sql_name());
        types.collect()
    }
}
