//! SQL on the commit path `rsi`: the same files that describe it on a store of one node, on rows in
//! memory that others could reach as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // threads stand for servers

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use manxdb_core::Random;
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_fixtures::sql::files::{failures_of_all, files};
use manxdb_fixtures::sql::{Client, START_MICROS, connect, instance_of, instance_over};
use manxdb_rack::path::RsiPath;
use manxdb_rack::rows::RowsPlan;
use manxdb_sql::session::{Host, Instance};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

/// Transactions that a process does at a time.
const CLIENTS: u16 = 4;

const PLAN: RowsPlan = RowsPlan {
    servers: 2,
    clients: 2 * CLIENTS,
    log_copies: 2,
    versions: 16,
    value: 256,
    node: 8 << 10,
    loaded: 0,
    added: 40_000,
};

/// Sessions on threads, that wait for each other.
#[derive(Default)]
struct Threads {
    woken: Mutex<BTreeSet<u64>>,
    changed: Condvar,
    drawn: AtomicU64,
}

impl Host for Threads {
    fn wall_micros(&self) -> i64 {
        START_MICROS
    }

    fn monotonic_micros(&self) -> i64 {
        0 // nothing times out
    }

    fn random(&self) -> u64 {
        let drawn = self.drawn.fetch_add(1, Ordering::SeqCst);
        drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn park(&self, session: u64, _micros: u64) {
        let mut woken = self.woken.lock();
        while !woken.remove(&session) {
            self.changed.wait(&mut woken);
        }
    }

    fn wake(&self, session: u64) {
        self.woken.lock().insert(session);
        self.changed.notify_all();
    }

    fn system_time_zone(&self) -> String {
        "UTC".to_string()
    }
}

/// Memory of two servers.
struct Rack {
    directory: TempDir,
    _servers: Vec<MemoryServer>,
}

impl Rack {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bytes = PLAN.check().unwrap().bytes();
        let start = |number| {
            let socket = directory.path().join(format!("memory-{number}"));
            MemoryServer::start(&socket, ServerId(number), bytes).unwrap()
        };
        let servers = (0..PLAN.servers).map(start).collect();
        Self {
            directory,
            _servers: servers,
        }
    }

    /// A way to it for a database server.
    fn path(&self, number: u16) -> Arc<RsiPath<SharedMemory>> {
        let clients = number * CLIENTS..(number + 1) * CLIENTS;
        let clients = clients.map(|client| (client, memory(self.directory.path(), client)));
        Arc::new(RsiPath::new(PLAN, clients).unwrap())
    }

    /// A database server with sessions on threads; the first makes root's account.
    fn instance(&self, number: u16) -> Arc<Instance> {
        instance_of(self.path(number), Arc::new(Threads::default()))
    }
}

fn memory(directory: &Path, client: u16) -> SharedMemory {
    let mut memory = SharedMemory::default();
    for number in 0..PLAN.servers {
        let socket = directory.join(format!("memory-{number}"));
        memory.connect(&socket, u64::from(client)).unwrap();
    }
    memory
}

#[test]
fn the_files_describe_what_happens_here_too() {
    for file in files() {
        let rack = Rack::new();
        failures_of_all(&[file], || instance_over(rack.path(0)));
    }
}

/// Runs a statement until nobody is in its way.
fn insist(client: &mut Client, sql: &str) {
    loop {
        match client.try_run(sql) {
            Ok(_) => return,
            Err(error) => assert_eq!(error.code, 1213, "{sql}: {error:?}"),
        }
    }
}

/// Moves one from one account to another, in a transaction.
fn transfer(client: &mut Client, from: u64, to: u64) -> bool {
    let statements = [
        "BEGIN".to_owned(),
        format!("UPDATE account SET balance = balance - 1 WHERE id = {from}"),
        format!("UPDATE account SET balance = balance + 1 WHERE id = {to}"),
        "COMMIT".to_owned(),
    ];
    for sql in statements {
        if let Err(error) = client.try_run(&sql) {
            assert_eq!(error.code, 1213, "{sql}: {error:?}");
            client.run("ROLLBACK");
            return false;
        }
    }
    true
}

#[test]
fn two_servers_on_the_same_memory_are_one_database() {
    const ACCOUNTS: u64 = 6;
    const TIMES: u64 = 40;
    let rack = Rack::new();
    let one = rack.instance(0);
    let mut first = connect(&one, "root");
    first.run("CREATE DATABASE bank");
    first.run("USE bank");
    first.run("CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)");
    first.run("CREATE TABLE moved (worker INT, time INT, PRIMARY KEY (time, worker))");
    for id in 0..ACCOUNTS {
        first.run(&format!("INSERT INTO account VALUES ({id}, 100)"));
    }
    // What servers keep to themselves is not shared: names of tables made later, and numbers for
    // AUTO_INCREMENT.
    let instances = [Arc::clone(&one), rack.instance(1)];
    thread::scope(|scope| {
        for worker in 0..4_u64 {
            let server = worker % 2;
            let instance = &instances[usize::try_from(server).unwrap()];
            scope.spawn(move || {
                let mut client = connect(instance, "root");
                client.run("USE bank");
                let mut random = Random::stream(7, &[worker]);
                for time in 0..TIMES {
                    let from = random.below(ACCOUNTS);
                    let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
                    while !transfer(&mut client, from, to) {}
                    let insert = format!("INSERT INTO moved VALUES ({worker}, {time})");
                    insist(&mut client, &insert);
                }
            });
        }
    });
    let mut second = connect(&instances[1], "root");
    second.run("USE bank");
    for client in [&mut first, &mut second] {
        assert_eq!(client.value("SELECT SUM(balance) FROM account"), "600");
        let counts = client.rows("SELECT COUNT(*), MAX(time), SUM(worker) FROM moved");
        assert_eq!(counts[0], ["160", "39", "240"]);
    }
    assert_eq!(second.error("CREATE TABLE moved (id INT)").code, 1050);
}

#[test]
fn values_are_of_any_length_that_a_transaction_has_room_for() {
    let rack = Rack::new();
    let instance = rack.instance(0);
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE texts");
    client.run("USE texts");
    client.run("CREATE TABLE text (id INT PRIMARY KEY, body LONGTEXT NOT NULL)");
    client.run("INSERT INTO text VALUES (1, '')");
    for length in [0, 240, 260, 100_000, 3_000, 254, 255, 256, 50_000] {
        client.run(&format!("UPDATE text SET body = REPEAT('ab', {length})"));
        let found =
            client.rows("SELECT LENGTH(body), body = REPEAT('ab', LENGTH(body) / 2) FROM text");
        assert_eq!(found[0], [(2 * length).to_string(), "1".into()]);
    }
    let error = client.error("UPDATE text SET body = REPEAT('ab', 500000)");
    assert!(error.message.contains("exceeds the limit"), "{error:?}");
    assert_eq!(client.value("SELECT LENGTH(body) FROM text"), "100000");
}
