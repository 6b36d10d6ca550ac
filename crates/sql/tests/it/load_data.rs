//! LOAD DATA: what becomes of a file's lines, and what is told of those that do not fit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use manxdb_fixtures::sql::{Client, connect, instance};

fn client(table: &str) -> Client {
    let mut client = connect(&instance(), "root");
    for text in [
        "SET GLOBAL local_infile = 1",
        "CREATE DATABASE d",
        "USE d",
        table,
    ] {
        client.run(text);
    }
    client
}

const ITEM: &str = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT NOT NULL DEFAULT 7)";

fn info(client: &mut Client, text: &str, file: &[u8]) -> String {
    client.load(text, file).unwrap().info
}

fn warnings(client: &mut Client) -> Vec<String> {
    let rows = client.rows("SHOW WARNINGS");
    rows.iter()
        .map(|row| format!("{} {}", row[1], row[2]))
        .collect()
}

#[test]
fn tabs_and_newlines_make_rows() {
    let mut client = client(ITEM);
    let told = info(
        &mut client,
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
        b"1\tone\t10\n2\t\\N\t20\n3\ta\\tb\\\\\t30",
    );
    assert_eq!(told, "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0");
    assert_eq!(
        client.rows("SELECT * FROM t ORDER BY a"),
        [
            ["1", "one", "10"],
            ["2", "NULL", "20"],
            ["3", "a\tb\\", "30"]
        ]
    );
    assert_eq!(client.value("SELECT ROW_COUNT()"), "-1");
}

#[test]
fn every_clause_has_its_effect() {
    let mut client = client(ITEM);
    let told = info(
        &mut client,
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE d.t CHARACTER SET utf8mb4 \
         COLUMNS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' \
         LINES STARTING BY '>' TERMINATED BY '\\r\\n' IGNORE 1 ROWS (@x, b, @dropped) \
         SET a = @x * 2, c = LENGTH(b) + a",
        b">head,er,x\r\n>1,\"o,\"\"ne\",z\r\njunk>2,two,NULL\r\n",
    );
    assert_eq!(told, "Records: 2  Deleted: 0  Skipped: 0  Warnings: 0");
    assert_eq!(
        client.rows("SELECT * FROM t ORDER BY a"),
        [["2", "o,\"ne", "7"], ["4", "two", "7"]]
    );
    assert_eq!(client.value("SELECT @dropped"), "NULL");
}

#[test]
fn latin1_files_are_text_all_the_same() {
    let mut client = client(ITEM);
    let text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t CHARACTER SET latin1";
    client.load(text, b"1\tcaf\xE9 \x80\t1\n").unwrap();
    assert_eq!(client.value("SELECT b FROM t"), "caf\u{e9} \u{20ac}");
    let wrong = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t CHARACTER SET klingon";
    assert_eq!(client.load(wrong, b"").unwrap_err().code, 1115);
}

#[test]
fn a_client_that_cannot_be_stopped_is_warned_of_each_row() {
    let mut client = client(ITEM);
    client.run("INSERT INTO t VALUES (1, 'old', 1)");
    let told = info(
        &mut client,
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
        b"1\tnew\t1\n2\tshort\n3\tlong\t3\tmore\n4\tx\tbad\n5\tx\t\\N\n",
    );
    assert_eq!(told, "Records: 5  Deleted: 0  Skipped: 1  Warnings: 5");
    assert_eq!(
        warnings(&mut client),
        [
            "1062 Duplicate entry '1' for key 't.PRIMARY'",
            "1261 Row 2 doesn't contain data for all columns",
            "1262 Row 3 was truncated; it contained more data than there were input columns",
            "1366 Incorrect integer value: 'bad' for column 'c' at row 4",
            "1263 Column set to default value; NULL supplied to NOT NULL column 'c' at row 5",
        ]
    );
    assert_eq!(
        client.rows("SELECT a, b, c FROM t ORDER BY a"),
        [
            ["1", "old", "1"],
            ["2", "short", "7"],
            ["3", "long", "3"],
            ["4", "x", "0"],
            ["5", "x", "0"]
        ]
    );
}

#[test]
fn replace_counts_what_it_deletes() {
    let mut client = client(ITEM);
    client.run("INSERT INTO t VALUES (1, 'old', 1)");
    let text = "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t (a, b)";
    let outcome = client.load(text, b"1\tnew\n2\tnew\n").unwrap();
    assert_eq!(
        outcome.info,
        "Records: 2  Deleted: 1  Skipped: 0  Warnings: 0"
    );
    assert_eq!(outcome.affected_rows, 3);
    // In strict mode an error ends the statement, and nothing of it stays.
    assert_eq!(client.load(text, b"3\tx\n4\n").unwrap_err().code, 1261);
    assert_eq!(
        client.load(text, b"3\tx\n4\ty\tz\n").unwrap_err().code,
        1262
    );
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "2");
    client.run("SET sql_mode = ''");
    let told = info(&mut client, text, b"3\tx\n4\n");
    assert_eq!(told, "Records: 2  Deleted: 0  Skipped: 0  Warnings: 1");
}

#[test]
fn numbers_are_generated_and_generated_columns_refuse() {
    let mut client = client(
        "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b BLOB, g INT AS (LENGTH(b)) STORED)",
    );
    let text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, b)";
    client.load(text, b"\\N\t\xff\xfe\n0\tx\n7\tyyy\n").unwrap();
    assert_eq!(
        client.rows("SELECT a, HEX(b), g FROM t ORDER BY a"),
        [["1", "FFFE", "2"], ["2", "78", "1"], ["7", "797979", "3"]]
    );
    let text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, g)";
    assert_eq!(client.load(text, b"").unwrap_err().code, 3105);
}

#[test]
fn what_may_not_be_read_is_refused() {
    let mut client = client(ITEM);
    client.run("SET GLOBAL local_infile = 0");
    let local = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t";
    assert_eq!(client.load(local, b"1\n").unwrap_err().code, 3948);
    assert_eq!(client.error("LOAD DATA INFILE 'x' INTO TABLE t").code, 1290);
    assert_eq!(client.error("SELECT 1 INTO OUTFILE 'x'").code, 1290);
    let missing = "LOAD DATA INFILE 'x' INTO TABLE nowhere";
    assert_eq!(client.error(missing).code, 1146);
    let column = "LOAD DATA INFILE 'x' INTO TABLE t (a, nothing)";
    assert_eq!(client.error(column).code, 1054);
}

#[test]
fn fields_that_nothing_ends_have_the_widths_of_their_columns() {
    let mut client = client(ITEM);
    // INT has 11 bytes, VARCHAR(10) has 40: ten characters of up to four bytes.
    let line = |a: &str, b: &str, c: &str| format!("{a:11}{b:40}{c:11}\n");
    let file = [
        line("1", "one", "10"),
        // An escape is one byte of a field.
        format!("{:11}{:41}{:11}\n", "-2", "\\ttab", "20"),
        "3          short\n".to_string(),
        line("4", "long", "4").replace('\n', "behind\n"),
    ]
    .concat();
    let text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY '' ENCLOSED BY ''";
    let told = info(&mut client, text, file.as_bytes());
    assert!(
        told.starts_with("Records: 4  Deleted: 0  Skipped: 0"),
        "{told}"
    );
    // Spaces behind ten characters are worth a note.
    let mut told = warnings(&mut client);
    told.retain(|warning| !warning.starts_with("1265"));
    assert_eq!(
        told,
        [
            "1261 Row 3 doesn't contain data for all columns",
            "1262 Row 4 was truncated; it contained more data than there were input columns",
        ]
    );
    assert_eq!(
        client.rows("SELECT a, TRIM(b), c FROM t ORDER BY a"),
        [
            ["-2", "\ttab", "20"],
            ["1", "one", "10"],
            ["3", "short", "7"],
            ["4", "long", "4"]
        ]
    );
    client.run("DELETE FROM t");
    let text = format!("{text} LINES TERMINATED BY '' (a, c)");
    client
        .load(&text, b"1          2          3          4          ")
        .unwrap();
    assert_eq!(
        client.rows("SELECT a, c FROM t ORDER BY a"),
        [["1", "2"], ["3", "4"]]
    );
    let variable = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY '' (@x)";
    assert_eq!(client.load(variable, b"").unwrap_err().code, 1409);
    client.run("ALTER TABLE t ADD d TEXT");
    let endless = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t \
                   FIELDS TERMINATED BY '' LINES TERMINATED BY ''";
    assert_eq!(client.load(endless, b"").unwrap_err().code, 1084);
}

#[test]
fn many_bad_lines_take_bounded_memory_and_are_counted() {
    let mut client = client(ITEM);
    let lines: String = (0..70_000).map(|_| "1\tx\t1\n").collect();
    let told = info(
        &mut client,
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
        lines.as_bytes(),
    );
    assert_eq!(
        told,
        "Records: 70000  Deleted: 0  Skipped: 69999  Warnings: 69999"
    );
}
