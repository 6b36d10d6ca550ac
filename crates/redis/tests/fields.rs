//! Fields of hashes that expire: in the background, where the value is in the store only, and over rows of
//! before there were such fields.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use manxdb_redis::keyspace::{LoadedRow, Value, rows};
use manxdb_redis::resp::Protocol;
use manxdb_redis::server::{ClientId, Server, Settings};
use manxdb_redis::{Command, Effects, Keyspace, Reply, Stamp, execute};

fn words(line: &str) -> Command {
    Command::of(&line.split(' ').collect::<Vec<_>>())
}

/// HSET of so many fields.
fn many(key: &str, fields: u32) -> Command {
    let mut words = vec!["HSET".to_owned(), key.to_owned()];
    words.extend((0..fields).flat_map(|field| [format!("f{field}"), "v".to_owned()]));
    Command::of(&words)
}

struct Served {
    server: Server,
    client: ClientId,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Served {
    fn new(keyspace: Keyspace) -> Self {
        let mut server = Server::new(keyspace, Settings::default(), 0);
        let client = server.connect("here".to_owned(), 0);
        let rows = BTreeMap::new();
        Self {
            server,
            client,
            rows,
        }
    }

    fn write(&mut self, effects: Effects) {
        for row in effects.rows {
            match row.value {
                Some(value) => self.rows.insert(row.key, value),
                None => self.rows.remove(&row.key),
            };
        }
    }

    fn ask(&mut self, command: &Command, now: u64) -> Reply {
        let handled = self.server.handle(self.client, command, Stamp::new(now, 1));
        self.write(handled.effects);
        handled.reply
    }

    fn tick(&mut self, now: u64) {
        let effects = self.server.tick(Stamp::new(now, 1));
        assert!(!effects.has_changes(), "replies need not wait for it");
        self.write(effects);
    }

    /// What was told, without the words around it.
    fn told(&mut self) -> Vec<String> {
        let told = self.server.take_outbox().into_iter().map(|(_, message)| {
            let mut out = Vec::new();
            message.encode(Protocol::Resp2, &mut out);
            let text = String::from_utf8_lossy(&out).into_owned();
            let mut lines = text.lines().rev();
            let key = lines.next().unwrap_or_default().to_owned();
            let channel = lines.nth(1).unwrap_or_default();
            format!("{} {key}", channel.rsplit(':').next().unwrap_or_default())
        });
        told.collect()
    }

    fn fields(&self, key: &[u8]) -> Option<usize> {
        match &self.server.keyspace.peek(0, key)?.value {
            Value::Hash(hash) => Some(hash.len()),
            _ => None,
        }
    }
}

#[test]
fn fields_go_in_the_background_and_are_told() {
    let mut served = Served::new(Keyspace::new());
    for line in [
        "HSET h a 1 b 2 c 3",
        "HSET only a 1",
        "HPEXPIRE h 10 FIELDS 1 a",
        "HPEXPIRE h 20 FIELDS 1 b",
        "HPEXPIRE only 30 FIELDS 1 a",
        "HPERSIST h FIELDS 1 b",
        "CONFIG SET notify-keyspace-events EA",
        "HELLO 3",
        "PSUBSCRIBE *",
    ] {
        served.ask(&words(line), 1000);
    }
    served.told();
    served.tick(1009);
    assert_eq!(served.fields(b"h"), Some(3));
    served.tick(1010);
    assert_eq!(served.fields(b"h"), Some(2));
    assert_eq!(served.told(), ["hexpired h"]);
    served.tick(1100);
    assert_eq!(
        (served.fields(b"h"), served.fields(b"only")),
        (Some(2), None)
    );
    assert_eq!(served.told(), ["hexpired only", "del only"]);
    assert_eq!(served.server.keyspace.statistics.expired_fields, 2);
    // Who finds it first tells it, before what it does itself.
    served.ask(&words("HPEXPIRE h 10 FIELDS 1 b"), 1100);
    served.told();
    served.ask(&words("HSET h b 5"), 1200);
    assert_eq!(served.told(), ["hexpired h", "hset h"]);
}

#[test]
fn a_hash_that_is_in_the_store_only_comes_back_for_its_fields_to_expire() {
    let mut served = Served::new(Keyspace::new());
    served.ask(&many("h", 300), 1000);
    served.ask(&words("HPEXPIRE h 10 FIELDS 2 f1 f2"), 1000);
    served.ask(&words("HPEXPIRE h 50 FIELDS 1 f3"), 1000);
    // Another process over the same rows, which has names of keys alone.
    let row = |key: Vec<u8>| served.rows.get(&key).cloned();
    let mut keyspace = Keyspace::over_store(
        |db| row(rows::epoch_key(db)),
        row(rows::reserved_key()).as_deref(),
    );
    let of = |prefix: &[u8]| -> Vec<(Vec<u8>, Vec<u8>)> {
        let from = served.rows.range(prefix.to_vec()..);
        let found = from.take_while(|(key, _)| key.starts_with(prefix));
        found
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    keyspace.take_page(&of(&rows::meta_prefix())).unwrap();
    keyspace.complete();
    let mut again = Served::new(keyspace);
    again.tick(1005);
    assert_eq!(again.server.take_loads(), []);
    again.tick(1020);
    let loads = again.server.take_loads();
    assert_eq!(loads.len(), 1, "{loads:?}");
    let meta = served.rows.get(&loads[0].row).cloned();
    let prefix = Keyspace::elements_of(&loads[0].row, meta.as_ref().unwrap()).unwrap();
    let elements = of(&prefix).into_iter();
    let elements = elements.map(|(key, value)| (key[prefix.len()..].to_vec(), value));
    let loaded = LoadedRow {
        row: loads[0].row.clone(),
        meta,
        elements: elements.collect(),
    };
    again.server.install(loaded, Stamp::new(1021, 1)).unwrap();
    again.tick(1022);
    assert_eq!(again.fields(b"h"), Some(298));
    let ttl = again.ask(&words("HPTTL h FIELDS 2 f1 f3"), 1022);
    assert_eq!(
        ttl,
        Reply::Array(vec![Reply::Integer(-2), Reply::Integer(28)])
    );
}

#[test]
fn the_first_field_that_expires_writes_a_large_hash_under_another_generation() {
    let mut keyspace = Keyspace::new();
    let stamp = Stamp::new(1, 1);
    let (_, written) = execute(&mut keyspace, 0, &many("h", 300), stamp);
    let elements = |effects: &Effects| {
        let rows = effects.rows.iter();
        let rows = rows.filter(|row| rows::split_element(&row.key).is_some());
        rows.map(|row| row.value.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    assert!(
        elements(&written).iter().all(|value| value == b"v"),
        "as before"
    );
    let (_, written) = execute(&mut keyspace, 0, &words("HPEXPIRE h 9 FIELDS 1 f1"), stamp);
    let values = elements(&written);
    assert_eq!(values.len(), 300);
    let expiring = [&10_u64.to_be_bytes()[..], b"v"].concat();
    assert_eq!(values.iter().filter(|value| **value == expiring).count(), 1);
    let garbage = written
        .rows
        .iter()
        .filter_map(|row| rows::garbage_of(&row.key));
    assert_eq!(garbage.count(), 1, "the rows of before are given up");
    let (_, written) = execute(&mut keyspace, 0, &words("HPEXPIRE h 9 FIELDS 1 f2"), stamp);
    assert_eq!(elements(&written).len(), 1, "once");
}

#[test]
fn what_is_dumped_with_expiries_is_restored_with_them() {
    let mut keyspace = Keyspace::new();
    let stamp = Stamp::new(1000, 1);
    let mut run = |command: &Command| execute(&mut keyspace, 0, command, stamp).0;
    run(&words("HSET h a 1 b 2 c 3"));
    run(&words("HPEXPIRE h 50 FIELDS 1 b"));
    let Reply::Bulk(payload) = run(&words("DUMP h")) else {
        panic!("a payload is bytes")
    };
    let restore = Command::of(&[b"RESTORE", &b"k"[..], b"0", &payload]);
    assert_eq!(run(&restore), Reply::OK);
    let told = run(&words("HPEXPIRETIME k FIELDS 3 a b c"));
    let wanted = [-1, 1050, -1].map(Reply::Integer);
    assert_eq!(told, Reply::Array(wanted.into()));
}
