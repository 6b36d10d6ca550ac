//! Whichever index a query is read by, it answers the same.

use manxdb_fixtures::sql::{Answer, Client, connect, instance};
use manxdb_sql::types::Value;

/// A column type, values of it, and constants to compare with.
struct Kind {
    ty: &'static str,
    values: &'static [&'static str],
    constants: &'static [&'static str],
}

const KINDS: [Kind; 14] = [
    Kind {
        ty: "TINYINT",
        values: &["-128", "-1", "0", "1", "2", "127"],
        constants: &[
            "-129", "-1.5", "0", "0.5", "'1'", "'1x'", "''", "127.4", "128", "1e0", "TRUE",
        ],
    },
    Kind {
        ty: "BIGINT UNSIGNED",
        values: &[
            "0",
            "1",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
        ],
        constants: &[
            "-1",
            "0.1",
            "9007199254740992.5",
            "'9007199254740993'",
            "18446744073709551615",
            "2e19",
        ],
    },
    Kind {
        ty: "DECIMAL(6, 2)",
        values: &["-9999.99", "-0.01", "0", "0.01", "1.5", "1.50", "9999.99"],
        constants: &[
            "0", "0.005", "0.015", "1.5", "'1.5'", "1.5e0", "-10000", "1e9", "9999.994", "'x'",
        ],
    },
    Kind {
        ty: "DOUBLE",
        values: &["-1e300", "-0e0", "0", "0.1", "0.5", "3", "1e300"],
        constants: &["0", "-0e0", "0.1", "0.10", "'0.1'", "1e308", "'3'", "3"],
    },
    Kind {
        ty: "FLOAT",
        values: &["-1.5", "0", "0.1", "2.25"],
        constants: &["0.1", "0.1e0", "2.25", "'2.25'", "-2"],
    },
    Kind {
        ty: "VARCHAR(20) COLLATE utf8mb4_general_ci",
        values: &[
            "''", "'a'", "'A '", "'b'", "'ab'", "'B'", "'\u{e9}'", "'e'", "'10'", "'9'",
        ],
        constants: &[
            "''",
            "' '",
            "'A'",
            "'a  '",
            "'E'",
            "'ab'",
            "'b' COLLATE utf8mb4_bin",
            "9",
            "0",
            "x'61'",
        ],
    },
    Kind {
        ty: "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci",
        values: &[
            "''", "'a'", "'A '", "'b'", "'ab'", "'B'", "'\u{e9}'", "'e'", "'a\\0'", "'a\\tb'",
        ],
        constants: &[
            "''",
            "'A'",
            "'a '",
            "'E'",
            "'ab'",
            "'a\\0'",
            "'zzzzzzzzzzzzzzzzzzzzzzzzz'",
        ],
    },
    Kind {
        ty: "VARBINARY(6)",
        values: &["''", "x'00'", "x'0000'", "'a'", "'ab'", "x'ff'", "x'ffff'"],
        constants: &["''", "x'00'", "'a'", "'A'", "x'ff'", "x'ffffffffffffff'"],
    },
    Kind {
        ty: "BINARY(3)",
        values: &["''", "'a'", "'ab'", "'abc'", "x'ffffff'"],
        constants: &["''", "'a'", "x'610000'", "'abcd'", "'abc'"],
    },
    Kind {
        ty: "DATE",
        values: &[
            "'1000-01-01'",
            "'2020-01-01'",
            "'2020-01-02'",
            "'9999-12-31'",
        ],
        constants: &[
            "'2020-01-01'",
            "'2020-01-01 12:00:00'",
            "20200102",
            "'2020-1-2'",
            "TIMESTAMP'2020-01-01 00:00:01'",
            "'9999-12-31 23:59:59.9'",
            "NULL",
        ],
    },
    Kind {
        ty: "DATETIME",
        values: &[
            "'2020-01-01'",
            "'2020-01-01 00:00:01'",
            "'2020-01-01 23:59:59'",
            "'2020-01-02'",
        ],
        constants: &[
            "'2020-01-01'",
            "'2020-01-01 00:00:00.4'",
            "'2020-01-01 00:00:00.6'",
            "'2020-01-01 23:59:59.9'",
            "DATE'2020-01-02'",
            "20200101000001",
        ],
    },
    Kind {
        ty: "TIME(2)",
        values: &[
            "'-838:59:59'",
            "'-00:00:01'",
            "'00:00:00'",
            "'00:00:00.25'",
            "'838:59:59'",
        ],
        constants: &[
            "'0:0:0'",
            "'00:00:00.254'",
            "'00:00:00.246'",
            "'-0:0:1'",
            "TIME'00:00:00'",
            "'900:00:00'",
        ],
    },
    Kind {
        ty: "YEAR",
        values: &["0", "1901", "1999", "2020", "2155"],
        constants: &[
            "0", "1900", "1999", "'1999'", "'99'", "2020.5", "3000", "-1",
        ],
    },
    Kind {
        ty: "ENUM('small', 'big', 'huge')",
        values: &["'small'", "'big'", "'huge'"],
        constants: &["'big'", "'BIG'", "2", "'2'", "'none'", "0"],
    },
];

fn made(client: &mut Client, kind: &Kind) {
    client.run("DROP TABLE IF EXISTS t");
    let prefixed = kind.ty.starts_with("VAR");
    let prefix = if prefixed { ", KEY p (c(1), d)" } else { "" };
    client.run(&format!(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, c {}, d INT, \
         KEY one (c), KEY two (c, d DESC), UNIQUE three (c, id){prefix})",
        kind.ty
    ));
    for (at, value) in kind.values.iter().chain(&["NULL"]).enumerate() {
        for copy in 0..2 {
            let d = (at * 7 + copy * 5) % 9;
            client.run(&format!("INSERT INTO t (c, d) VALUES ({value}, {d})"));
        }
    }
}

fn conditions(kind: &Kind) -> Vec<String> {
    let mut conditions = vec![
        "c IS NULL".into(),
        "c IS NOT NULL".into(),
        "c <=> NULL".into(),
    ];
    for constant in kind.constants {
        for operator in ["=", "<=>", "<", "<=", ">", ">=", "<>"] {
            conditions.push(format!("c {operator} {constant}"));
        }
        conditions.push(format!("{constant} > c"));
        conditions.push(format!("c IN ({constant}, {})", kind.values[1]));
        conditions.push(format!("c = {constant} OR c IS NULL"));
        conditions.push(format!(
            "(c, d) IN (({constant}, 5), ({}, 7))",
            kind.values[1]
        ));
        conditions.push(format!("c = {constant} AND d > 3"));
        for other in [kind.constants[0], kind.constants[kind.constants.len() / 2]] {
            conditions.push(format!("c BETWEEN {constant} AND {other}"));
            conditions.push(format!("c > {constant} AND c < {other} AND c <> 5"));
        }
    }
    conditions
}

/// The answer, or the error's number.
fn outcome(client: &mut Client, text: &str) -> Result<Vec<Answer>, u16> {
    client.try_run(text).map_err(|error| error.code)
}

#[test]
fn every_index_answers_like_none() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d");
    client.run("USE d");
    for kind in &KINDS {
        made(&mut client, kind);
        let mut indexes = vec!["one", "two", "three"];
        if kind.ty.starts_with("VAR") {
            indexes.push("p");
        }
        for condition in conditions(kind) {
            for order in ["c, id", "id LIMIT 3", "d DESC, id LIMIT 2, 3"] {
                let by = |hint: String| {
                    format!("SELECT id, c, d FROM t {hint} WHERE {condition} ORDER BY {order}")
                };
                let all = by("IGNORE INDEX (one, two, three)".into());
                let all = all.replace(
                    "three)",
                    if indexes.len() > 3 {
                        "three, p)"
                    } else {
                        "three)"
                    },
                );
                let wanted = outcome(&mut client, &all);
                for index in &indexes {
                    let query = by(format!("FORCE INDEX ({index})"));
                    assert_eq!(outcome(&mut client, &query), wanted, "{}: {query}", kind.ty);
                }
                let free = by(String::new());
                assert_eq!(outcome(&mut client, &free), wanted, "{}: {free}", kind.ty);
            }
            // Of equal texts any may be the least, and so of two zeros.
            if !kind.ty.starts_with("VARCHAR") && kind.ty != "DOUBLE" {
                for function in ["MIN", "MAX"] {
                    let by = |hint: &str| {
                        format!("SELECT {function}(c) FROM t {hint} WHERE {condition}")
                    };
                    let wanted = outcome(&mut client, &by("IGNORE INDEX (one, two, three)"));
                    let query = by("FORCE INDEX (one)");
                    assert_eq!(outcome(&mut client, &query), wanted, "{}: {query}", kind.ty);
                }
            }
        }
    }
}

/// Conditions on rows of the columns of a key, of which `?` stand for `PARAMETERS` when prepared.
const ROW_CONDITIONS: [&str; 14] = [
    "(a, b, c) IN ((1, 'x', 1), (1, 'Y', 2), (2, 'zz', 3))",
    "(c, a, b) IN ((1, 1, 'x'), (2, 1, 'Y'))",
    "(a, b) IN ((1, 'x'), (2, 'zz'), (1, NULL))",
    "(a, c) IN ((1, 1), (1, 2), (3, 3))",
    "(b, c) IN (('X', 1), ('zz', 3), ('zzz', 4))",
    "a = 1 AND (b, c) IN (('x', 1), ('y', 2), ('y', 2))",
    "b = 'x' AND (a, c) IN ((1, 1), (2, 2)) AND c > 0",
    "(a, b, c) IN ((1, 'x', 1), ('1', 'x', 1.0), (1.5, 'x', 1), (99999999999, 'x', 1))",
    "(a = 1 AND b = 'x' AND c IN (1, 2)) OR (a = 2 AND b IN ('zz', 'zzz') AND c = 3)",
    "(a = 1 AND b = 'x') OR (a = 2 AND c = 3) OR (c = 4 AND a = 3)",
    "(a <=> NULL AND b = 'x' AND c = 1) OR (a = 1 AND b <=> NULL AND c = 2)",
    "(a, b, c, d) IN ((1, 'x', 1, 1), (2, 'zz', 3, 2), (3, 'zzz', 4, 3))",
    "(a, b, c) IN ((?, ?, ?), (1, 'y', 2))",
    "NOT (a, b, c) IN ((1, 'x', 1), (1, 'y', 2))",
];

#[test]
fn rows_of_values_are_found_by_every_index_and_by_none() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d");
    client.run("USE d");
    client.run(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9), c INT, d INT, \
         KEY abc (a, b, c), KEY cab (c, a, b), KEY prefix (b(1), c, a), UNIQUE u (b, a, id))",
    );
    for a in ["1", "2", "3", "NULL"] {
        for b in ["'x'", "'y'", "'zz'", "'zzz'", "NULL"] {
            for c in ["1", "2", "3", "4", "NULL"] {
                client.run(&format!(
                    "INSERT INTO t (a, b, c, d) VALUES ({a}, {b}, {c}, {a})"
                ));
            }
        }
    }
    let names = ["abc", "cab", "prefix", "u"];
    for condition in ROW_CONDITIONS {
        let parameters = [1, 2, 2].map(Value::Int);
        let parameters = &parameters[..condition.matches('?').count()];
        let mut ask = |hint: &str| {
            let text = format!("SELECT id, a, b, c FROM t {hint} WHERE {condition} ORDER BY id");
            client.execute(&text, parameters).unwrap()
        };
        let wanted = ask(&format!("IGNORE INDEX ({})", names.join(",")));
        for name in names {
            let found = ask(&format!("FORCE INDEX ({name})"));
            assert_eq!(found, wanted, "{name}: {condition}");
        }
        assert_eq!(ask(""), wanted, "{condition}");
    }
}
