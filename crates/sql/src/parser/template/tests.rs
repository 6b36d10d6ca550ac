//! Which constants go, and what they are.

use super::*;

fn made(text: &str) -> Option<(String, String)> {
    let template = template(text, SqlMode::default(), Collation::default())?;
    let values: Vec<String> = template
        .values
        .iter()
        .map(|value| match value {
            Value::Text(text) => format!("{text:?}"),
            Value::Int(number) => number.to_string(),
            Value::Decimal(number) => number.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(template.types.len(), values.len());
    Some((template.text, values.join(" ")))
}

#[track_caller]
fn becomes(text: &str, template: &str, values: &str) {
    assert_eq!(made(text), Some((template.into(), values.into())));
}

#[test]
fn rows_of_values_give_up_their_constants() {
    becomes(
        "INSERT INTO t (a, b) VALUES (1, 'x'),(-2.50, NOW()) ;",
        "INSERT INTO t (a, b) VALUES (?, ?),(-?, NOW()) ;",
        r#"1 "x" 2.50"#,
    );
    becomes(
        "insert into t values (0,'it''s\\n\\'\\%') on duplicate key update a = 5",
        "insert into t values (?,?) on duplicate key update a = 5",
        r#"0 "it's\n'\\%""#,
    );
}

#[test]
fn operands_in_conditions_and_assignments_are_taken() {
    becomes(
        "SELECT a, 5 FROM t WHERE `a`=5 AND (t.b >= 'é' OR c BETWEEN 1 AND 2) AND d IN (3, 4) ORDER BY 1 LIMIT 6",
        "SELECT a, 5 FROM t WHERE `a`=? AND (t.b >= ? OR c BETWEEN ? AND ?) AND d IN (?, ?) ORDER BY 1 LIMIT 6",
        r#"5 "é" 1 2 3 4"#,
    );
    becomes(
        "UPDATE t SET a = 1, b = b + 2, c = 'z' WHERE id = 7",
        "UPDATE t SET a = ?, b = b + 2, c = ? WHERE id = ?",
        r#"1 "z" 7"#,
    );
    becomes(
        "DELETE FROM t WHERE LOWER(a) = 'x'",
        "DELETE FROM t WHERE LOWER(a) = ?",
        r#""x""#,
    );
}

#[test]
fn a_constant_that_decides_more_than_a_value_stays() {
    for text in [
        "SELECT a = 5 FROM t",
        "SELECT (SELECT 1 FROM t WHERE a = 5)",
        "SELECT a FROM t WHERE a = 5 + 1",
        "SELECT a FROM t WHERE a = 'x' 'y'",
        "SELECT a FROM t WHERE a = 'x' COLLATE utf8mb4_bin",
        "SELECT a FROM t WHERE a = _latin1'x'",
        "SELECT a FROM t WHERE a = x'41' AND b = 0x41 AND c = 1e3 AND d = 5.",
        "SELECT a FROM t WHERE a = DATE '2020-01-01'",
        "SELECT a FROM t WHERE a LIKE 'x%'",
        "SELECT a FROM t WHERE j->'$.a' = 5",
        "SELECT a FROM t WHERE IF(a = 5, b, c) IS NULL",
        "SELECT a FROM t WHERE @x = 5",
        "SELECT a FROM t WHERE a := 5",
        "SELECT a FROM t WHERE a = \"x\"",
        "SELECT a FROM t WHERE a > 1234567890123456789",
        "SELECT a FROM t GROUP BY a HAVING a = 5",
        "SELECT a FROM t LIMIT 5",
        "SET a = 5",
        "SELECT value, ROUND(price, 2) FROM t",
        "UPDATE t SET value = NOW(3)",
        "INSERT INTO t SET value = ROUND(1.25, 1)",
        "SELECT a FROM t WHERE (a, b, c) IN (SELECT a, b, c FROM u GROUP BY 1, 2, 3)",
        "SELECT a FROM t WHERE a IN (SELECT b, 5, c FROM u)",
        "SELECT a FROM t WHERE a IN (SELECT a = 5, b FROM u GROUP BY a = 5, b)",
    ] {
        assert_eq!(made(text), None, "{text}");
    }
}

#[test]
fn the_values_of_a_duplicate_row_begin_no_rows() {
    becomes(
        "INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a), at = NOW(3)",
        "INSERT INTO t VALUES (?, ?) ON DUPLICATE KEY UPDATE a = VALUES(a), at = NOW(3)",
        "1 2",
    );
}

#[test]
fn a_query_in_a_condition_gives_up_the_constants_of_its_own_conditions() {
    becomes(
        "DELETE FROM t WHERE a IN (SELECT b FROM u WHERE c = 5 AND d IN (6, 7) ORDER BY 1, 2, 3) AND e = 8",
        "DELETE FROM t WHERE a IN (SELECT b FROM u WHERE c = ? AND d IN (?, ?) ORDER BY 1, 2, 3) AND e = ?",
        "5 6 7 8",
    );
}

#[test]
fn a_backslash_in_a_quoted_name_escapes_nothing() {
    let mode = SqlMode {
        ansi_quotes: true,
        ..SqlMode::default()
    };
    let text = "SELECT \"a\\\" FROM t WHERE b = '\"' AND c = 5";
    let made = template(text, mode, Collation::default()).unwrap();
    assert_eq!(made.text, "SELECT \"a\\\" FROM t WHERE b = ? AND c = ?");
}

#[test]
fn what_is_not_understood_is_left_alone() {
    for text in [
        "SELECT a FROM t WHERE a = 5 -- 6",
        "SELECT a FROM t WHERE /* 4 */ a = 5",
        "SELECT a FROM t WHERE a = 5 # 6",
        "SELECT a FROM t WHERE a = 5; DROP TABLE t",
        "SELECT a FROM t WHERE b = ? AND a = 5",
        "SELECT a FROM t WHERE a = 'open",
        "SELECT a FROM t WHERE a = 'open\\'",
        "",
    ] {
        assert_eq!(made(text), None, "{text}");
    }
}

#[test]
fn backslashes_are_text_when_the_mode_says_so() {
    let mode = SqlMode {
        no_backslash_escapes: true,
        ..SqlMode::default()
    };
    let made = template(r"SELECT a FROM t WHERE a = '\'", mode, Collation::default());
    assert_eq!(made.unwrap().values, [Value::Text("\\".into())]);
}

/// The parser is the judge of what a constant's text means.
#[test]
fn constants_have_the_values_that_parsing_finds() {
    for inner in [
        "",
        "a",
        "''",
        "\\\\",
        "\\q",
        "\\Z\\0\\b\\t",
        "\\%\\_",
        "日本",
        "a\\\nb",
    ] {
        let text = format!("SELECT a FROM t WHERE a = '{inner}'");
        let template = template(&text, SqlMode::default(), Collation::default()).unwrap();
        let parsed = super::super::parse(&text, SqlMode::default()).unwrap();
        let shown = format!("{:?}", parsed[0].statement);
        let Value::Text(value) = &template.values[0] else {
            panic!("not text")
        };
        let wanted = format!("SingleQuotedString({value:?})");
        assert!(shown.contains(&wanted), "{wanted} is not in {shown}");
    }
}
