//! Keys with many rows, and commits that touch many keys.

use manxdb_fixtures::sql::Client;

use super::{counts, fresh};

/// Makes as many rows as a power of two says, one statement each time: owner is `id` divided by
/// `rows_each`.
fn fill(client: &mut Client, doublings: u32, rows_each: u32) {
    client.run("INSERT INTO item VALUES (0, 0, 0, 1, 'n', NULL)");
    for round in 0..doublings {
        let more = 1 << round;
        client.run(&format!(
            "INSERT INTO item SELECT id + {more}, (id + {more}) DIV {rows_each}, id % 7, 1, 'n', NULL FROM item"
        ));
    }
}

#[test]
fn a_key_holds_many_rows_and_follows_them_unless_it_is_too_large() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW all_of AS SELECT id, kind FROM item WHERE owner = ?");
    client.run("CREATE MATERIALIZED VIEW counted AS SELECT kind, COUNT(*), MAX(price) FROM item WHERE owner = ? GROUP BY kind");
    // 16,384 rows of one key: 100,000 of them take a test program that is not optimized too long.
    fill(&mut client, 14, 1 << 30);
    let rows = |client: &mut Client| {
        client
            .rows("SELECT id, kind FROM item WHERE owner = 0")
            .len()
    };
    let groups =
        "SELECT kind, COUNT(*), MAX(price) FROM item WHERE owner = 0 GROUP BY kind ORDER BY kind";
    assert_eq!((rows(&mut client), rows(&mut client)), (16_384, 16_384));
    client.rows(groups);
    client.run("DELETE FROM item WHERE id = 16383; UPDATE item SET kind = 9 WHERE id < 10");
    assert_eq!(rows(&mut client), 16_383);
    let base = groups.replace("= 0", "= 0 AND id = id");
    assert_eq!(client.rows(groups), client.rows(&base));
    assert_eq!(counts(&mut client, "all_of"), (2, 1));
    assert_eq!(counts(&mut client, "counted"), (1, 1));
    // A key that would take half of the bound is not held, and costs no more than a read.
    client.run("SET GLOBAL views_memory = 300000");
    assert_eq!(rows(&mut client), 16_383);
    assert_eq!(client.rows(groups), client.rows(&base));
    let shown = client.rows("SHOW MATERIALIZED VIEWS");
    let bytes: Vec<u64> = shown.iter().map(|row| row[4].parse().unwrap()).collect();
    assert!(bytes.iter().sum::<u64>() <= 300_000, "{shown:?}");
    assert_eq!(
        shown[0][3], "0",
        "the key of all rows is not held: {shown:?}"
    );
}

#[test]
fn a_commit_that_touches_thousands_of_keys_reaches_each() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(kind) FROM item WHERE owner = ? GROUP BY owner");
    // 4,096 keys of 2 rows: 10,000 take a test program that is not optimized too long.
    fill(&mut client, 13, 2);
    let keys = |from: u32| {
        let all: Vec<String> = (from..from + 1_000).map(|key| key.to_string()).collect();
        format!(
            "SELECT owner, SUM(kind) FROM item WHERE owner IN ({})EXTRA GROUP BY owner ORDER BY owner",
            all.join(", ")
        )
    };
    let look = |client: &mut Client| {
        let mut seen = 0;
        for from in [0, 1_000, 2_000, 3_000] {
            let query = keys(from);
            let viewed = client.rows(&query.replace("EXTRA", ""));
            let base = client.rows(&query.replace("EXTRA", " AND id = id"));
            assert_eq!(viewed, base);
            seen += viewed.len();
        }
        seen
    };
    assert_eq!(look(&mut client), 4_000);
    client.run("UPDATE item SET kind = kind + 3");
    assert_eq!(look(&mut client), 4_000);
    client.run("BEGIN; DELETE FROM item WHERE kind = 3; UPDATE item SET owner = owner + 1; COMMIT");
    assert!(look(&mut client) > 3_000);
    assert_eq!(
        counts(&mut client, "v"),
        (8_000, 4_000),
        "each key was filled once"
    );
}
