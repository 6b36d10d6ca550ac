//! Texts that nest or repeat without end: each gets an answer or an error, on a thread with the
//! stack of a connection, and never ends the process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

/// Stack of a connection's thread, bytes.
const STACK_BYTES: usize = 2 * 1024 * 1024 - 64 * 1024;

fn on_a_connections_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let running = thread.spawn(test).expect("a thread");
    assert!(running.join().is_ok());
}

fn joined(count: usize, separator: &str, on: &str) -> String {
    let more = (1..count).map(|at| format!("{separator}(SELECT 1 AS a) AS t{at}{on}"));
    format!("(SELECT 1 AS a) AS t{}", more.collect::<String>())
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn a_join_takes_61_tables() {
    on_a_connections_stack(|| {
        let mut client = manxdb_fixtures::sql::connect(&manxdb_fixtures::sql::instance(), "root");
        for (separator, on) in [(" JOIN ", ""), (", ", ""), (" LEFT JOIN ", " ON 1")] {
            let from = |count| joined(count, separator, on);
            let count = format!("SELECT COUNT(*) FROM {}", from(61));
            assert_eq!(client.value(&count), "1", "{separator}");
            for many in [62, 1000, 20_000] {
                let error = client.error(&format!("SELECT * FROM {}", from(many)));
                assert_eq!(error.code, 1116, "{separator} {many}");
            }
        }
    });
}

#[test]
fn whatever_nests_is_refused_or_answered() {
    on_a_connections_stack(|| {
        let mut client = manxdb_fixtures::sql::connect(&manxdb_fixtures::sql::instance(), "root");
        let shapes = [
            ("(", ")"),
            ("- ", ""),
            ("NOT ", ""),
            ("BINARY ", ""),
            ("CONCAT(", ")"),
            ("CASE WHEN 1 THEN ", " END"),
            ("(", " BETWEEN 0 AND 1)"),
            ("(SELECT ", ")"),
            ("1 IN (SELECT ", ")"),
            ("CHAR(", " USING utf8mb4)"),
            ("TRIM(LEADING FROM ", ")"),
            ("", " + 1"),
            ("", " OR 0"),
            ("", " SOUNDS LIKE 1"),
            ("", " DIV 1"),
            ("", " REGEXP NULL"),
            ("", " RLIKE 1"),
            ("", " MOD 1"),
            ("", " IS NULL"),
            ("", " MEMBER OF (1)"),
            ("", "::int"),
            ("", "[1]"),
            ("", " UNION SELECT 1"),
            ("", " UNION (SELECT 1)"),
        ];
        for (open, close) in shapes {
            for depth in [10, 29, 90, 240, 1000, 20_000] {
                if let Err(error) = client.try_run(&nested(open, close, depth)) {
                    let own = [1064, 1235, 3141, 3146].contains(&error.code);
                    assert!(
                        own || [1436, 1473].contains(&error.code) && depth > 10,
                        "{open}…{close} {depth}: {error:?}"
                    );
                }
            }
        }
        for depth in [29, 90, 240, 1000] {
            let text = format!("SELECT ?{}", " + 1".repeat(depth));
            if let Err(error) = client.try_prepare(&text) {
                assert_eq!(error.code, 1436, "{depth}: {error:?}");
            }
        }
        let path = format!("SELECT JSON_EXTRACT('[1]', '${}')", "[0]".repeat(20_000));
        assert_eq!(client.error(&path).code, 3143);
        let row = vec!["1"; 4000].join(",");
        assert_eq!(client.value(&format!("SELECT ({row}) = ({row})")), "1");
        let rows = vec!["(1,3)"; 20_000].join(",");
        assert_eq!(client.value(&format!("SELECT (1,2) IN ({rows})")), "0");
    });
}

#[test]
fn views_and_ctes_that_double_or_nest_stay_bounded() {
    on_a_connections_stack(|| {
        let mut client = manxdb_fixtures::sql::connect(&manxdb_fixtures::sql::instance(), "root");
        for text in [
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT)",
            "INSERT INTO t VALUES (1, 1)",
        ] {
            client.run(text);
        }
        let doubled = (1..30)
            .map(|at| format!("c{at} AS (SELECT p.x FROM c{0} p JOIN c{0} q)", at - 1))
            .collect::<Vec<_>>()
            .join(", ");
        let text = format!("WITH c0 AS (SELECT 1 AS x), {doubled} SELECT COUNT(*) FROM c29");
        assert_eq!(client.error(&text).code, 1473);
        client.run("CREATE VIEW v0 AS SELECT id, a FROM t");
        for at in 1..16 {
            let below = at - 1;
            client.run(&format!(
                "CREATE VIEW v{at} AS SELECT id, a + a + a + a AS a FROM v{below}"
            ));
        }
        assert_eq!(client.value("SELECT a FROM v15"), (1u64 << 30).to_string());
        client.run("CREATE VIEW w0 AS SELECT id, a FROM t");
        for at in 1..40 {
            let text = format!(
                "CREATE VIEW w{at} AS SELECT id, a{} AS a FROM w{}",
                " + 1".repeat(240),
                at - 1
            );
            if let Err(error) = client.try_run(&text) {
                assert!([1436, 1473].contains(&error.code), "{error:?}");
                return;
            }
        }
        panic!("40 views on each other were let through");
    });
}

/// TypeORM asks for the columns of all tables with one SELECT a table.
#[test]
fn a_thousand_unions_are_one_query() {
    on_a_connections_stack(|| {
        let mut client = manxdb_fixtures::sql::connect(&manxdb_fixtures::sql::instance(), "root");
        let select =
            |at: usize| format!("SELECT {} AS a, 'x' AS b WHERE 1 = 1 AND 2 > 1", at % 900);
        let union = |word: &str| {
            let all: Vec<String> = (0..1000).map(select).collect();
            all.join(word)
        };
        let counted = |body: &str| format!("SELECT COUNT(*) FROM ({body}) AS t");
        assert_eq!(client.value(&counted(&union(" UNION "))), "900");
        assert_eq!(client.value(&counted(&union(" UNION ALL "))), "1000");
        // What stands before a UNION without ALL is made distinct, what follows is not.
        let again = " UNION ALL SELECT 7 AS a, 'x' AS b".repeat(20);
        let mixed = format!("{} UNION SELECT 7, 'x'{again}", union(" UNION ALL "));
        assert_eq!(client.value(&counted(&mixed)), "920");
        let rows = client.rows(&union(" UNION ALL "));
        assert!(
            rows.iter()
                .enumerate()
                .all(|(at, row)| row[0] == (at % 900).to_string())
        );
        let inside = format!("SELECT 899 IN (SELECT a FROM ({}) AS t)", union(" UNION "));
        assert_eq!(client.value(&inside), "1");
        let text = format!("{} UNION SELECT ?, 'x'", union(" UNION "));
        client.try_prepare(&text).unwrap();
        // What copies a tree takes no deep one.
        for text in [
            format!("WITH c AS ({}) SELECT 1 FROM c", union(" UNION ")),
            format!("CREATE TABLE d.t AS {}", union(" UNION ")),
            format!("EXPLAIN {}", union(" UNION ")),
        ] {
            assert_eq!(client.error(&text).code, 1436, "{}", &text[..20]);
        }
    });
}
