//! What is written comes back: after any commands, the rows of all effects make the same keyspace.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use manxdb_redis::keyspace::{DATABASES, Kind, LoadedRow, rows};
use manxdb_redis::objects::StreamId;
use manxdb_redis::server::{Needs, Server, Settings};
use manxdb_redis::{Command, Effects, Keyspace, Reply, Stamp, execute};
use proptest::prelude::*;

/// A store of rows.
#[derive(Default)]
struct Store(BTreeMap<Vec<u8>, Vec<u8>>);

impl Store {
    fn apply(&mut self, effects: &Effects) {
        for row in &effects.rows {
            match &row.value {
                Some(value) => self.0.insert(row.key.clone(), value.clone()),
                None => self.0.remove(&row.key),
            };
        }
    }

    fn with_prefix(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let from = self.0.range(prefix.to_vec()..);
        let found = from.take_while(|(key, _)| key.starts_with(prefix));
        found
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn opened(&self) -> Keyspace {
        let epoch = |db| self.0.get(&rows::epoch_key(db)).cloned();
        let reserved = self.0.get(&rows::reserved_key()).map(Vec::as_slice);
        let mut keyspace = Keyspace::over_store(epoch, reserved);
        keyspace
            .take_page(&self.with_prefix(&rows::meta_prefix()))
            .unwrap();
        keyspace.complete();
        keyspace
    }

    fn load_all(&self, keyspace: &mut Keyspace) {
        for db in 0..DATABASES {
            let keys: Vec<Vec<u8>> = (0..keyspace.len(db))
                .filter_map(|place| keyspace.at(db, place).map(|(key, _)| key.to_vec()))
                .collect();
            for load in keyspace.missing(db, keys.iter().map(Vec::as_slice), false) {
                let meta = self.0.get(&load.row).cloned();
                let prefix = meta
                    .as_ref()
                    .and_then(|meta| Keyspace::elements_of(&load.row, meta));
                let elements = prefix.map_or_else(Vec::new, |prefix| {
                    let rows = self.with_prefix(&prefix).into_iter();
                    rows.map(|(key, value)| (key[prefix.len()..].to_vec(), value))
                        .collect()
                });
                let row = load.row;
                keyspace
                    .install(LoadedRow {
                        row,
                        meta,
                        elements,
                    })
                    .unwrap();
            }
        }
    }
}

/// All keys with their values, by name.
fn contents(keyspace: &Keyspace) -> BTreeMap<(usize, Vec<u8>), (u64, String)> {
    let mut all = BTreeMap::new();
    for db in 0..DATABASES {
        for place in 0..keyspace.len(db) {
            let (key, entry) = keyspace.at(db, place).unwrap();
            let mut elements = Vec::new();
            let shown = match &entry.value {
                manxdb_redis::keyspace::Value::Hash(hash) => {
                    elements.extend(hash.iter().map(|pair| {
                        let expiry = hash.expiry(pair.0);
                        format!("{pair:?} {expiry:?}")
                    }));
                    elements.sort();
                    format!("{elements:?}")
                }
                manxdb_redis::keyspace::Value::Set(set) => {
                    elements.extend(set.iter().map(|member| format!("{member:?}")));
                    elements.sort();
                    format!("{elements:?}")
                }
                manxdb_redis::keyspace::Value::List(list) => {
                    elements.extend(list.iter().map(|element| format!("{element:?}")));
                    format!("{elements:?}")
                }
                manxdb_redis::keyspace::Value::ZSet(zset) => {
                    elements.extend((0..zset.len()).map(|place| format!("{:?}", zset.at(place))));
                    elements.sort();
                    format!("{elements:?}")
                }
                manxdb_redis::keyspace::Value::Stream(stream) => {
                    // What is pending of rows is no part of what a stream is.
                    format!(
                        "{:?} {:?} {:?}",
                        stream.head(),
                        stream
                            .range(StreamId::MIN, StreamId::MAX)
                            .collect::<Vec<_>>(),
                        stream.groups().collect::<Vec<_>>()
                    )
                }
                other => format!("{other:?}"),
            };
            all.insert((db, key.to_vec()), (entry.expires, shown));
        }
    }
    all
}

fn words() -> impl Strategy<Value = Vec<String>> {
    let key = || "[ab]";
    let item = || "[a-e]{1,2}";
    let line = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    prop_oneof![
        (key(), item()).prop_map(|(k, v)| format!("SET s{k} {v}")),
        (key(), 1..9_u32).prop_map(|(k, t)| format!("SET s{k} x PX {t}")),
        (key(), item()).prop_map(|(k, v)| format!("APPEND s{k} {v}")),
        (key(), item(), item()).prop_map(|(k, f, v)| format!("HSET h{k} {f} {v}")),
        (key(), item()).prop_map(|(k, f)| format!("HDEL h{k} {f}")),
        (key(), item()).prop_map(|(k, v)| format!("LPUSH l{k} {v} {v}")),
        (key(), item()).prop_map(|(k, v)| format!("RPUSH l{k} {v}")),
        (key(), 0..3_u32).prop_map(|(k, n)| format!("LPOP l{k} {n}")),
        key().prop_map(|k| format!("RPOP l{k}")),
        (key(), item()).prop_map(|(k, v)| format!("LREM l{k} 1 {v}")),
        (key(), 0..3_i32, item()).prop_map(|(k, n, v)| format!("LREM l{k} {} {v}", n - 1)),
        (key(), 0..200_u32).prop_map(|(k, n)| format!("LREM l{k} 1 e{n}")),
        (key(), 0..200_u32, item()).prop_map(|(k, n, v)| format!("LINSERT l{k} AFTER e{n} {v}")),
        (key(), 0..200_i32, item()).prop_map(|(k, n, v)| format!("LSET l{k} {n} {v}")),
        (key(), item(), item()).prop_map(|(k, p, v)| format!("LINSERT l{k} BEFORE {p} {v}")),
        (key(), 0..4_u32).prop_map(|(k, n)| format!("LTRIM l{k} {n} -2")),
        (key(), item()).prop_map(|(k, v)| format!("SADD t{k} {v}")),
        (key(), item()).prop_map(|(k, v)| format!("SREM t{k} {v}")),
        key().prop_map(|k| format!("SPOP t{k}")),
        (key(), 0..9_i32, item()).prop_map(|(k, s, v)| format!("ZADD z{k} {s} {v}")),
        key().prop_map(|k| format!("ZPOPMIN z{k}")),
        ("[hltzx]", key(), key()).prop_map(|(t, a, b)| format!("RENAME {t}{a} {t}{b}")),
        ("[hltzx]", key(), key()).prop_map(|(t, a, b)| format!("COPY {t}{a} {t}{b} REPLACE")),
        ("[shltzx]", key()).prop_map(|(t, k)| format!("DEL {t}{k}")),
        ("[hltz]", key(), 5..20_u32).prop_map(|(t, k, n)| format!("PEXPIRE {t}{k} {n}")),
        // Beyond what one row holds.
        (key(), 0..3_u32).prop_map(|(k, n)| {
            let many: Vec<String> = (0..150).map(|i| format!("m{}", i + n * 20)).collect();
            format!("SADD t{k} {}", many.join(" "))
        }),
        (key(), 0..3_u32).prop_map(|(k, n)| {
            let many: Vec<String> = (0..150).map(|i| format!("e{}", i + n * 20)).collect();
            format!("RPUSH l{k} {}", many.join(" "))
        }),
        key().prop_map(|k| {
            let many: Vec<String> = (0..150).map(|i| format!("{i} e{i}")).collect();
            format!("ZADD z{k} {}", many.join(" "))
        }),
        key().prop_map(|k| {
            let many: Vec<String> = (0..150).map(|i| format!("f{i} v")).collect();
            format!("HSET h{k} {}", many.join(" "))
        }),
        (key(), 1..40_u32, item(), item())
            .prop_map(|(k, t, f, g)| format!("HPEXPIRE h{k} {t} FIELDS 2 {f} {g}")),
        (key(), 1..40_u32, 0..150_u32, 0..150_u32)
            .prop_map(|(k, t, f, g)| format!("HPEXPIRE h{k} {t} FIELDS 2 f{f} f{g}")),
        (key(), item()).prop_map(|(k, f)| format!("HPERSIST h{k} FIELDS 1 {f}")),
        (key(), 1..20_u32, item())
            .prop_map(|(k, t, f)| format!("HSETEX h{k} PX {t} FIELDS 2 {f} v f7 w")),
        (key(), item()).prop_map(|(k, f)| format!("HSETEX h{k} KEEPTTL FIELDS 1 {f} kept")),
        (key(), item()).prop_map(|(k, f)| format!("HGETDEL h{k} FIELDS 1 {f}")),
        (key(), item(), item()).prop_map(|(k, f, v)| format!("XADD x{k} * {f} {v}")),
        (key(), 0..5_u32).prop_map(|(k, n)| format!("XADD x{k} MAXLEN {n} * f v")),
        (key(), 1..80_u32).prop_map(|(k, n)| format!("XDEL x{k} {}-0", 1000 + n)),
        (key(), "[gh]", 0..2_u32)
            .prop_map(|(k, g, n)| format!("XGROUP CREATE x{k} {g} {n} MKSTREAM")),
        (key(), "[gh]").prop_map(|(k, g)| format!("XGROUP DESTROY x{k} {g}")),
        (key(), "[gh]", "[cd]").prop_map(|(k, g, c)| format!("XGROUP DELCONSUMER x{k} {g} {c}")),
        (key(), "[gh]", "[cd]", 1..4_u32)
            .prop_map(|(k, g, c, n)| format!("XREADGROUP GROUP {g} {c} COUNT {n} STREAMS x{k} >")),
        (key(), "[gh]", "[cd]")
            .prop_map(|(k, g, c)| format!("XREADGROUP GROUP {g} {c} STREAMS x{k} 0")),
        (key(), "[gh]", 1..80_u32).prop_map(|(k, g, n)| format!("XACK x{k} {g} {}-0", 1000 + n)),
        (key(), "[gh]", "[cd]")
            .prop_map(|(k, g, c)| format!("XAUTOCLAIM x{k} {g} {c} 0 0 COUNT 3")),
        (key(), "[gh]", "[cd]", 1..80_u32)
            .prop_map(|(k, g, c, n)| format!("XCLAIM x{k} {g} {c} 0 {}-0 FORCE", 1000 + n)),
        key().prop_map(|k| format!("XSETID x{k} 5000 MAXDELETEDID 7")),
        // Entries that do not fit into one row.
        key().prop_map(|k| format!("XADD x{k} * field {}", "v".repeat(3000))),
        Just("FLUSHDB".to_owned()),
    ]
    .prop_map(line)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_make_the_same_keyspace(
        commands in prop::collection::vec(words(), 1..60),
        evicts in any::<bool>(),
    ) {
        let mut store = Store::default();
        let mut keyspace = Keyspace::new();
        let mut twin = Keyspace::new();
        for (number, words) in (1_u64..).zip(&commands) {
            let stamp = Stamp::new(1_000 + number, number);
            let command = Command::of(words);
            let (reply, effects) = execute(&mut keyspace, 0, &command, stamp);
            store.apply(&effects);
            let (again, _) = execute(&mut twin, 0, &command, stamp);
            if evicts {
                // What left memory and came back answers as what stayed.
                keyspace.evict(0, |_| false);
                store.load_all(&mut keyspace);
            } else {
                prop_assert_eq!(&reply, &again);
            }
            prop_assert_eq!(keyspace.memory(), keyspace.recounted_memory(), "{:?}", words);
            let kinds = Kind::ALL.map(|kind| keyspace.keys_of(kind));
            prop_assert_eq!(kinds, keyspace.recounted_kinds());
            prop_assert!(!matches!(&reply, Reply::Error(e) if e.0.starts_with("LOADING")));
        }
        let mut opened = store.opened();
        store.load_all(&mut opened);
        prop_assert_eq!(contents(&opened), contents(&keyspace));
        if !commands.iter().any(|words| words[0] == "SPOP") {
            prop_assert_eq!(contents(&opened), contents(&twin));
        }
    }
}

#[test]
fn values_leave_memory_in_turn_down_to_a_sixteenth_below_the_limit() {
    let mut keyspace = Keyspace::new();
    for number in 0..64_u64 {
        let (db, key) = (if number % 2 == 0 { 0 } else { 9 }, format!("key{number}"));
        let command = Command::of(&["SET", &key, &"v".repeat(1000)]);
        execute(&mut keyspace, db, &command, Stamp::new(1, number));
    }
    let limit = keyspace.memory() / 4;
    let is_kept = |row: &[u8]| row.ends_with(b"key7");
    keyspace.evict(limit, is_kept);
    let low = limit - limit / 16;
    assert!(keyspace.memory() <= low, "{} of {low}", keyspace.memory());
    assert!(keyspace.memory() + 2000 > low, "no more leave than must");
    assert_eq!(keyspace.memory(), keyspace.recounted_memory());
    let evicted = keyspace.statistics.evicted;
    // The first key of all has left, and what must stay has not, whoever's turn it is.
    let is_missing = |keyspace: &Keyspace, db, key: &str| {
        let keys = std::iter::once(key.as_bytes());
        !keyspace.missing(db, keys, false).is_empty()
    };
    assert!(is_missing(&keyspace, 0, "key0"));
    keyspace.evict(0, is_kept);
    assert!(!is_missing(&keyspace, 9, "key7") && is_missing(&keyspace, 9, "key63"));
    assert_eq!(keyspace.statistics.evicted, 63);
    assert!(evicted < 63);
    keyspace.evict(0, |_| false);
    assert!(is_missing(&keyspace, 9, "key7"));
    // Names take memory always: there is nothing left that could leave.
    let names = keyspace.memory();
    keyspace.evict(0, |_| false);
    assert_eq!(
        (keyspace.memory(), keyspace.statistics.evicted),
        (names, 64)
    );
}

#[test]
fn what_replaces_a_value_does_not_read_it() {
    let mut server = Server::new(Keyspace::new(), Settings::default(), 1);
    let client = server.connect("test".to_owned(), 1);
    let members: Vec<String> = (0..200).map(|one| one.to_string()).collect();
    for line in [
        "SET a 1",
        "SET b 1 PX 100",
        &format!("SADD t {}", members.join(" ")),
    ] {
        let command = Command::of(&line.split(' ').collect::<Vec<_>>());
        server.handle(client, &command, Stamp::new(1, 1));
    }
    server.keyspace.evict(0, |_| false);
    assert_eq!(server.keyspace.cold(), 3);
    let reads = |line: &str| {
        let command = Command::of(&line.split(' ').collect::<Vec<_>>());
        match server.needs(client, &command) {
            Needs::Nothing => 0,
            Needs::Values(loads) => loads.len(),
            Needs::AllNames | Needs::Paused => panic!("all names are known"),
        }
    };
    for (line, values) in [
        ("SET a x", 0),
        ("SET t x XX KEEPTTL", 0),
        ("SET a x NX EX 5", 0),
        ("SETEX a 5 x", 0),
        ("PSETEX a 5 x", 0),
        ("SETNX a x", 0),
        ("MSET a x t y", 0),
        ("MSETNX a x b y", 0),
        ("RESTORE a 0 x REPLACE", 0),
        ("DEL a t", 0),
        ("SET a x GET", 1),
        ("SET GET GET", 0),
        ("GETSET a x", 1),
        ("APPEND a x", 1),
        ("MGET a b", 2),
        ("SADD t x", 1),
    ] {
        assert_eq!(reads(line), values, "{line}");
    }
    let mut run = |line: &str| {
        let command = Command::of(&line.split(' ').collect::<Vec<_>>());
        server.handle(client, &command, Stamp::new(2, 1))
    };
    assert_eq!(run("SET b x KEEPTTL").reply, Reply::OK);
    assert_eq!(run("PTTL b").reply, Reply::Integer(99));
    assert_eq!(run("SETNX a x").reply, Reply::Integer(0));
    // The elements of a set that is replaced are garbage, read or not.
    let rows = run("SET t x").effects.rows;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().any(|row| rows::garbage_of(&row.key).is_some()));
}

/// What commands of these words, one after the other, write each: rows and their bytes.
fn written(lines: impl Iterator<Item = String>) -> Vec<(usize, usize)> {
    let mut keyspace = Keyspace::new();
    let run = lines.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let stamp = Stamp::new(1, 1);
        let (_, effects) = execute(&mut keyspace, 0, &Command::of(&words), stamp);
        let values = effects.rows.iter().filter_map(|row| row.value.as_ref());
        (effects.rows.len(), values.map(Vec::len).sum())
    });
    run.collect()
}

#[test]
fn a_push_writes_no_more_when_the_list_is_longer() {
    let end = ["LPUSH", "RPUSH"];
    let pushes = (0..2000).map(|number| format!("{} l element-{number:06}", end[number % 2]));
    let written = written(pushes);
    // Once the list goes from one row to a row an element.
    let moved = written.iter().filter(|(rows, _)| *rows > 2).count();
    assert_eq!(moved, 1);
    let bytes = written
        .iter()
        .filter(|(rows, _)| *rows <= 2)
        .map(|(_, bytes)| *bytes)
        .max();
    assert!(bytes < Some(700), "{bytes:?} bytes for a push");
}

#[test]
fn a_change_in_the_middle_writes_the_nearer_end() {
    let fill: Vec<String> = (0..1000).map(|number| format!("e{number}")).collect();
    let lines = [
        format!("RPUSH l {}", fill.join(" ")),
        "LREM l 1 e3".to_owned(),
        "LREM l -1 e990".to_owned(),
        "LINSERT l BEFORE e5 x".to_owned(),
        "LINSERT l AFTER e997 y".to_owned(),
    ];
    let rows: Vec<usize> = written(lines.into_iter()).iter().map(|w| w.0).collect();
    assert_eq!(rows[1..], [5, 11, 6, 4]);
}

#[test]
fn deleting_a_huge_key_writes_two_rows() {
    let mut keyspace = Keyspace::new();
    let stamp = Stamp::new(1, 1);
    let mut words = vec!["SADD".to_owned(), "s".to_owned()];
    words.extend((0..10_000).map(|member| member.to_string()));
    execute(&mut keyspace, 0, &Command::of(&words), stamp);
    let (reply, effects) = execute(&mut keyspace, 0, &Command::of(&["DEL", "s"]), stamp);
    assert_eq!(reply, Reply::Integer(1));
    assert_eq!(effects.rows.len(), 2, "{:?}", effects.rows);
    let garbage = rows::garbage_of(&effects.rows[0].key).or(rows::garbage_of(&effects.rows[1].key));
    assert!(
        garbage.is_some(),
        "the elements are named for the pass that removes them"
    );
}

#[test]
fn who_finds_that_the_time_of_a_key_is_over_changes_nothing() {
    for (lines, has_changes) in [
        ("GET k", false),
        ("HGETALL h", false),
        ("DEL k h", false),
        ("MULTI|GET k|HGETALL h|EXEC", false),
        ("SET k v NX", true),
        ("MULTI|GET k|SET a v|EXEC", true),
        ("DEL k there", true),
        ("EXPIRE there 0", true),
        ("FLUSHDB", true),
    ] {
        let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
        let client = server.connect("here".to_owned(), 0);
        let mut run = |line: &str, now| {
            let command = Command::of(&line.split(' ').collect::<Vec<_>>());
            server.handle(client, &command, Stamp::new(now, 1)).effects
        };
        for line in ["SET k v PX 10", "HSET h f v", "PEXPIRE h 10", "SET there v"] {
            assert!(run(line, 1000).has_changes(), "{line}");
        }
        let mut last = Effects::default();
        for line in lines.split('|') {
            last = run(line, 1010);
        }
        assert!(!last.is_empty(), "{lines} writes nothing");
        assert_eq!(last.has_changes(), has_changes, "{lines}");
        let ticked = server.tick(Stamp::new(1020, 1));
        assert!(!ticked.has_changes(), "{lines}");
    }
}

#[test]
fn what_expires_beside_a_change_of_another_command_is_counted_apart() {
    let mut keyspace = Keyspace::new();
    let mut run = |line: &str, now| {
        let command = Command::of(&line.split(' ').collect::<Vec<_>>());
        execute(&mut keyspace, 0, &command, Stamp::new(now, 1)).1
    };
    run("SET k v PX 10", 1000);
    let mut effects = run("GET k", 1010);
    effects.append(run("SET a v", 1010));
    assert!(effects.has_changes());
    assert_eq!(effects.drain().count(), 2);
    assert!(effects.is_empty() && !effects.has_changes());
}
