use super::*;
use crate::catalog::OwnershipAnnotation;

fn one(text: &str) -> Parsed {
    let mut all = parse(text, SqlMode::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn error(text: &str) -> SqlError {
    match parse(text, SqlMode::default()) {
        Ok(parsed) => panic!("{text}: {parsed:?}"),
        Err(error) => error,
    }
}

#[test]
fn everything_in_the_accepted_list_parses() {
    let mut failures = Vec::new();
    let lines = include_str!("accepted.sql").lines();
    for line in lines.filter(|l| !l.trim().is_empty() && !l.starts_with("--")) {
        if let Err(error) = parse(line, SqlMode::default()) {
            failures.push(format!("{line}\n    {error}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_empty_query_is_error_1065_but_a_comment_succeeds() {
    assert_eq!(error("").code, 1065);
    assert_eq!(error(" ;\n").code, 1065);
    for text in [
        "-- x\n",
        "/* x */",
        "# x",
        "/*M!100100 SET a = 1 */;",
        " ; /*!99999 a */",
    ] {
        let parsed = one(text);
        assert!(matches!(parsed.special, Some(Special::Nothing)), "{text}");
    }
}

#[test]
fn expressions_that_older_releases_kept_as_written_are_read_as_they_were_meant() {
    for (kept, meant) in [
        ("\"name\" <> 'forbidden'", "(`name` <> _utf8mb4'forbidden')"),
        ("a > 0 OR NOT b", "((`a` > 0) or (not(`b`)))"),
        ("'x\\y' || \"a\"", "concat(_utf8mb4'x\\\\y',`a`)"),
        ("UUID()", "uuid()"),
    ] {
        assert_eq!(displayed_definition(kept), meant, "{kept}");
    }
}

#[test]
fn operators_bind_as_in_mysql() {
    let canonical_of = |text: &str| {
        let parsed = parse_expression(text, SqlMode::default());
        canonical(&parsed.unwrap_or_else(|e| panic!("{text}: {e}")))
    };
    for (written, meant) in [
        ("!a + 1", "((not(`a`)) + 1)"),
        ("1 + 2 ^ 3", "(1 + (2 ^ 3))"),
        ("-a ^ 2", "(-(`a`) ^ 2)"),
        ("a & b << 1", "(`a` & (`b` << 1))"),
        ("a | b & c", "(`a` | (`b` & `c`))"),
        ("a = 1 XOR b = 2", "((`a` = 1) xor (`b` = 2))"),
        ("a OR b XOR c AND d", "(`a` or (`b` xor (`c` and `d`)))"),
        ("a = b LIKE c", "(`a` = (`b` like `c`))"),
        ("a = b IS NULL", "((`a` = `b`) is null)"),
        ("NOT a = b IS TRUE", "(not(((`a` = `b`) is true)))"),
        ("a BETWEEN 1 AND 2 = b", "((`a` between 1 and 2) = `b`)"),
        ("j->'$.k' + 1", "(json_extract(`j`,'$.k') + 1)"),
        ("a && b = c", "(`a` and (`b` = `c`))"),
    ] {
        assert_eq!(canonical_of(written), meant, "{written}");
    }
}

#[test]
fn a_syntax_error_names_the_place_as_mysql_does() {
    let error = error("SELECT 1\nFROM t\nWHERE a = = 1");
    assert_eq!(error.code, 1064);
    assert!(error.message.ends_with("near '= 1' at line 3"), "{error}");
}

#[test]
fn annotations_are_noted_and_leave_plain_references() {
    let parsed = one("CREATE DATA_SUBJECT TABLE m (id INT PRIMARY KEY, \
         a INT NOT NULL OWNED_BY users(id), b INT REFERENCES ONLY users(id), \
         c INT ACCESSED_BY users(id), d INT REFERENCES users(id), \
         FOREIGN KEY (a) OWNS groups(id), \
         ON GET a ANON (b, c), ON DEL b DELETE_ROW) ENGINE=ROCKSDB DEFAULT CHARSET=utf8mb4");
    assert!(parsed.annotations.data_subject);
    let kinds: Vec<_> = parsed
        .annotations
        .references
        .iter()
        .map(|(_, a)| *a)
        .collect();
    assert_eq!(
        kinds,
        [
            OwnershipAnnotation::OwnedBy,
            OwnershipAnnotation::ReferencesOnly,
            OwnershipAnnotation::AccessedBy,
            OwnershipAnnotation::References,
            OwnershipAnnotation::Owns,
        ]
    );
    let rules: Vec<String> = parsed
        .annotations
        .rules
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(rules, ["ON GET a ANON (b, c)", "ON DEL b DELETE_ROW"]);
    assert_eq!(parsed.table_options[0], ("ENGINE".into(), "ROCKSDB".into()));
}

#[test]
fn a_quoted_view_body_is_unwrapped() {
    let parsed = one("CREATE VIEW v AS '\"SELECT a FROM t WHERE b = 1\"'");
    assert_eq!(
        parsed.view_query.as_deref(),
        Some("SELECT a FROM t WHERE b = 1")
    );
}

#[test]
fn two_bars_are_or_unless_the_mode_says_concatenation() {
    assert!(one("SELECT a || b").statement.to_string().contains("OR"));
    let mode = SqlMode {
        pipes_as_concat: true,
        ..SqlMode::default()
    };
    let parsed = parse("SELECT a || b", mode).unwrap();
    assert!(parsed[0].statement.to_string().contains("CONCAT(a, b)"));
}

#[test]
fn double_quotes_follow_ansi_quotes() {
    assert!(one("SELECT \"a\"").statement.to_string().contains("'a'"));
    let mode = SqlMode {
        ansi_quotes: true,
        ..SqlMode::default()
    };
    let parsed = parse("SELECT \"a\"", mode).unwrap();
    assert!(parsed[0].statement.to_string().contains("`a`"));
}

#[test]
fn parameters_are_numbered_in_text_order() {
    let parsed = one("UPDATE t SET a = ? WHERE b = ? LIMIT ?");
    assert_eq!(parsed.param_count, 3);
    let text = parsed.statement.to_string();
    assert!(
        text.contains("a = ?0") && text.contains("b = ?1") && text.contains("?2"),
        "{text}"
    );
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let brackets = format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(error(&brackets).code, 1436);
    let chain = format!("SELECT 1{}", "+1".repeat(100_000));
    assert_eq!(error(&chain).code, 1436);
    let signs = format!("SELECT {}1", "- ".repeat(100_000));
    assert_eq!(error(&signs).code, 1436);
    assert_eq!(
        error(&format!("SELECT 1{}", " UNION SELECT 1".repeat(5_000))).code,
        1436
    );
}

#[test]
fn what_is_not_supported_says_so() {
    for text in [
        "CREATE TABLE t (a TEXT, FULLTEXT KEY f (a))",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
        "LOAD XML INFILE 'x' INTO TABLE t",
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 4",
    ] {
        assert_eq!(error(text).code, 1235, "{text}");
    }
}

#[test]
fn a_file_is_cut_out_of_a_query_wherever_it_stands() {
    for text in [
        "SELECT a INTO OUTFILE 'f' FIELDS TERMINATED BY ',' FROM t WHERE b = 1",
        "SELECT a FROM t WHERE b = 1 INTO OUTFILE 'f' FIELDS TERMINATED BY ','",
    ] {
        let parsed = one(text);
        assert_eq!(parsed.statement.to_string(), "SELECT a FROM t WHERE b = 1");
        let into = parsed.into_file.unwrap();
        assert_eq!(into.file, "f");
        assert_eq!(into.format.unwrap().field_end, b",");
    }
    let dumped = one("SELECT a FROM t INTO DUMPFILE 'f'").into_file.unwrap();
    assert_eq!((dumped.file.as_str(), dumped.format), ("f", None));
}

#[test]
fn accounts_keep_user_and_host_apart() {
    let Some(Special::Grant(grant)) =
        one("GRANT SELECT ON db.* TO 'a'@'10.0.%', b@localhost, c").special
    else {
        panic!("not a grant");
    };
    let names: Vec<_> = grant
        .accounts
        .iter()
        .map(|spec| format!("{}@{}", spec.account.user, spec.account.host))
        .collect();
    assert_eq!(names, ["a@10.0.%", "b@localhost", "c@%"]);
}

#[test]
fn operands_of_a_scalar_union_may_have_brackets() {
    for text in [
        "SELECT ((SELECT 1) UNION (SELECT 2) LIMIT 1)",
        "SELECT 1 + ((((SELECT 1) UNION (SELECT 2)) UNION (SELECT 3)))",
        "SELECT f((WITH c AS (SELECT 1) SELECT 1)), ((SELECT 1)) + ((SELECT 2) - 1)",
        "SELECT ((((SELECT a FROM t) EXCEPT SELECT 2)) = 1) FROM t",
    ] {
        assert_eq!(one(text).statement.to_string(), text);
    }
    assert_eq!(error("SELECT ((SELECT 1) UNION (SELECT 2)").code, 1064);
    assert_eq!(error("SELECT ((SELECT 1) UNION").code, 1064);
}

#[test]
fn explain_reads_every_format_mysql_has() {
    for text in ["EXPLAIN SELECT 1", "EXPLAIN FORMAT=TREE SELECT 1"] {
        assert_eq!(one(text).statement.to_string(), text);
    }
    let spelled = "explain format = traditional (SELECT 1) UNION (SELECT 2)";
    assert_eq!(
        one(spelled).statement.to_string(),
        "EXPLAIN (SELECT 1) UNION (SELECT 2)"
    );
}

#[test]
fn long_chains_become_shallow_trees_of_the_same_meaning() {
    let chain: Vec<String> = (0..20_000).map(|n| format!("a = {n}")).collect();
    for connective in [" OR ", " AND "] {
        let text = format!(
            "SELECT 1 FROM t WHERE b BETWEEN 1 AND 2 AND {}",
            chain.join(connective)
        );
        let printed = one(&text).statement.to_string();
        let flat: String = printed.chars().filter(|c| !"()".contains(*c)).collect();
        assert_eq!(flat, text);
    }
}
