//! Functions, shown as a client sees them: text, `error N`, and `!N` for each warning.

use crate::expr::Expr;
use crate::expr::testing::{d, dt, f, i, j, null, shown, t, typed};
use crate::types::{DataType, Value};

fn check(table: Vec<(&str, Vec<Expr>, &str)>) {
    let mut wrong = Vec::new();
    for (name, args, expected) in table {
        let shape: Vec<String> = args.iter().map(Expr::describe).collect();
        let found = shown(Expr::call(name, args));
        if found != expected {
            wrong.push(format!(
                "{name}({}) gave {found}, not {expected}",
                shape.join(", ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn text_is_cut_joined_and_padded() {
    check(vec![
        ("CONCAT", vec![t("a"), i(1), d("2.50")], "a12.50"),
        ("CONCAT", vec![t("a"), null()], "NULL"),
        (
            "CONCAT",
            vec![dt("2024-01-01 10:00:00.120"), t("x")],
            "2024-01-01 10:00:00.120x",
        ),
        ("CONCAT_WS", vec![t(","), t("a"), null(), t("b")], "a,b"),
        ("CONCAT_WS", vec![null(), t("a")], "NULL"),
        ("SUBSTRING", vec![t("Quadratically"), i(5)], "ratically"),
        ("SUBSTRING", vec![t("Quadratically"), i(5), i(6)], "ratica"),
        ("SUBSTR", vec![t("Sakila"), i(-3)], "ila"),
        ("SUBSTRING", vec![t("abc"), i(0)], ""),
        ("SUBSTRING", vec![t("abc"), i(-5), i(2)], ""),
        ("LEFT", vec![t("foobar"), i(3)], "foo"),
        ("RIGHT", vec![t("foobar"), i(3)], "bar"),
        ("LENGTH", vec![t("é")], "2"),
        ("CHAR_LENGTH", vec![t("é")], "1"),
        ("UPPER", vec![t("aéß")], "AÉß"),
        ("LEFT", vec![t("foobar"), t("1.9")], "f"),
        (
            "CHAR",
            vec![Expr::literal(
                Value::Bytes(vec![0x41]),
                DataType::Varbinary { length: 1 },
            )],
            "A",
        ),
        ("TRIM", vec![t("  a ")], "a"),
        ("TRIM", vec![t("xxaxx"), t("x")], "a"),
        ("LTRIM", vec![t("  a ")], "a "),
        ("LPAD", vec![t("hi"), i(4), t("??")], "??hi"),
        ("LPAD", vec![t("hi"), i(1), t("??")], "h"),
        ("RPAD", vec![t("hi"), i(5), t("ab")], "hiaba"),
        ("LPAD", vec![t("hi"), i(-1), t("ab")], "NULL"),
        ("REPLACE", vec![t("www.w"), t("w"), t("Ww")], "WwWwWw.Ww"),
        ("REVERSE", vec![t("aéc")], "céa"),
        ("REPEAT", vec![t("ab"), i(3)], "ababab"),
        ("REPEAT", vec![t("ab"), i(1_000_000_000)], "NULL !1301"),
        (
            "INSERT",
            vec![t("Quadratic"), i(3), i(4), t("What")],
            "QuWhattic",
        ),
        (
            "INSERT",
            vec![t("Quadratic"), i(-1), i(4), t("What")],
            "Quadratic",
        ),
        ("ELT", vec![i(2), t("a"), t("b")], "b"),
        ("ELT", vec![i(3), t("a"), t("b")], "NULL"),
        (
            "SUBSTRING_INDEX",
            vec![t("www.mysql.com"), t("."), i(2)],
            "www.mysql",
        ),
        (
            "SUBSTRING_INDEX",
            vec![t("www.mysql.com"), t("."), i(-2)],
            "mysql.com",
        ),
        ("ASCII", vec![t("2")], "50"),
        ("ORD", vec![t("é")], "50089"),
        ("CHAR", vec![i(77), i(121)], "My"),
        ("FORMAT", vec![d("12332.123456"), i(4)], "12,332.1235"),
        ("FORMAT", vec![i(-1_234_567), i(0)], "-1,234,567"),
        ("QUOTE", vec![t("Don't!")], "'Don\\'t!'"),
        ("QUOTE", vec![null()], "NULL"),
        ("SOUNDEX", vec![t("Quadratically")], "Q36324"),
        ("SPACE", vec![i(2)], "  "),
        ("MAKE_SET", vec![i(5), t("a"), t("b"), t("c")], "a,c"),
    ]);
}

#[test]
fn digits_of_bytes_are_text() {
    for name in ["HEX", "TO_BASE64"] {
        let bytes = Expr::literal(Value::Bytes(vec![255]), DataType::Varbinary { length: 1 });
        assert!(
            Expr::call(name, vec![bytes]).unwrap().ty.is_text(),
            "{name}"
        );
    }
}

#[test]
fn text_is_found_under_its_collation() {
    check(vec![
        ("LOCATE", vec![t("BAR"), t("foobarbar")], "4"),
        ("LOCATE", vec![t("bar"), t("foobarbar"), i(5)], "7"),
        ("LOCATE", vec![t("x"), t("foo")], "0"),
        ("INSTR", vec![t("foobar"), t("É")], "0"),
        ("INSTR", vec![t("été"), t("e")], "1"),
        ("FIELD", vec![t("bb"), t("aa"), t("BB")], "2"),
        ("FIELD", vec![null(), t("aa")], "0"),
        ("FIND_IN_SET", vec![t("b"), t("a,b,c")], "2"),
        ("FIND_IN_SET", vec![t("b"), t("")], "0"),
        ("STRCMP", vec![t("a"), t("B")], "-1"),
        ("STRCMP", vec![t("a"), t("A")], "0"),
        ("REGEXP_LIKE", vec![t("Michael!"), t(".*")], "1"),
        ("REGEXP_LIKE", vec![t("abc"), t("ABC")], "1"),
        ("REGEXP_LIKE", vec![t("abc"), t("ABC"), t("c")], "0"),
        ("REGEXP_REPLACE", vec![t("a b c"), t("b"), t("X")], "a X c"),
        (
            "REGEXP_REPLACE",
            vec![t("abc def ghi"), t("[a-z]+"), t("X"), i(1), i(3)],
            "abc def X",
        ),
        (
            "REGEXP_REPLACE",
            vec![t("ab"), t("(a)(b)"), t("$2$1")],
            "ba",
        ),
        (
            "REGEXP_SUBSTR",
            vec![t("abc def ghi"), t("[a-z]+"), i(1), i(3)],
            "ghi",
        ),
        ("REGEXP_INSTR", vec![t("dog cat dog"), t("dog"), i(2)], "9"),
        ("REGEXP_LIKE", vec![t("a"), t("(")], "error 3691"),
    ]);
}

#[test]
fn numbers_round_and_overflow() {
    check(vec![
        ("ABS", vec![i(-32)], "32"),
        ("ABS", vec![i(i64::MIN)], "error 1690"),
        ("SIGN", vec![d("-0.5")], "-1"),
        ("MOD", vec![i(234), i(10)], "4"),
        ("MOD", vec![i(1), i(0)], "NULL !1365"),
        ("CEIL", vec![d("1.23")], "2"),
        ("CEILING", vec![d("-1.23")], "-1"),
        ("FLOOR", vec![f(-1.23)], "-2"),
        ("ROUND", vec![d("-1.58")], "-2"),
        ("ROUND", vec![d("1.298"), i(1)], "1.3"),
        ("ROUND", vec![d("23.298"), i(-1)], "20"),
        ("ROUND", vec![f(2.5)], "2"),
        ("ROUND", vec![d("2.5")], "3"),
        ("ROUND", vec![i(15), i(-1)], "20"),
        ("TRUNCATE", vec![d("1.999"), i(1)], "1.9"),
        ("TRUNCATE", vec![i(122), i(-2)], "100"),
        ("SQRT", vec![i(-16)], "NULL"),
        ("SQRT", vec![i(20)], "4.47213595499958"),
        ("POW", vec![i(2), i(-2)], "0.25"),
        ("POW", vec![i(10), i(400)], "error 1690"),
        ("LOG", vec![i(2), i(65536)], "16"),
        ("LN", vec![i(-2)], "NULL !3020"),
        ("LOG10", vec![i(100)], "2"),
        ("PI", vec![], "3.141592653589793"),
        ("GREATEST", vec![i(2), i(0)], "2"),
        ("GREATEST", vec![t("B"), t("a"), t("C")], "C"),
        ("LEAST", vec![d("34.0"), i(3), i(5)], "3.0"),
        ("LEAST", vec![i(1), null()], "NULL"),
        ("BIN", vec![i(12)], "1100"),
        ("CONV", vec![t(""), i(10), i(2)], "NULL"),
        ("CONV", vec![t("a"), i(16), i(2)], "1010"),
        ("CONV", vec![t("6E"), i(18), i(8)], "172"),
        ("CONV", vec![i(-17), i(10), i(-18)], "-H"),
        ("HEX", vec![i(255)], "FF"),
        ("HEX", vec![t("abc")], "616263"),
        ("UNHEX", vec![t("4D7953514C")], "MySQL"),
        ("UNHEX", vec![t("GG")], "NULL"),
        ("CRC32", vec![t("MySQL")], "3259397556"),
        ("BIT_COUNT", vec![i(-1)], "64"),
        ("RAND", vec![i(3)], "0.9057697559760601"),
    ]);
}

#[test]
fn choices_take_the_common_type() {
    check(vec![
        ("IF", vec![i(0), i(1), d("2.5")], "2.5"),
        ("IF", vec![i(1), i(1), d("2.5")], "1.0"),
        ("IFNULL", vec![null(), t("x")], "x"),
        ("COALESCE", vec![null(), null(), i(3)], "3"),
        ("NULLIF", vec![i(1), i(1)], "NULL"),
        ("NULLIF", vec![t("a"), t("b")], "a"),
        ("ISNULL", vec![null()], "1"),
        ("INTERVAL", vec![i(23), i(1), i(15), i(17), i(30)], "3"),
    ]);
}

#[test]
fn the_moment_comes_from_the_context() {
    check(vec![
        ("NOW", vec![], "2024-02-29 12:34:56"),
        ("NOW", vec![i(3)], "2024-02-29 12:34:56.789"),
        ("CURDATE", vec![], "2024-02-29"),
        ("CURTIME", vec![], "12:34:56"),
        ("UNIX_TIMESTAMP", vec![], "1709210096"),
        ("NOW", vec![i(7)], "error 1426"),
    ]);
}

#[test]
fn parts_of_dates_and_times() {
    let day = || t("2008-02-03 10:05:03.5");
    check(vec![
        ("YEAR", vec![day()], "2008"),
        ("MONTH", vec![day()], "2"),
        ("DAY", vec![day()], "3"),
        ("HOUR", vec![day()], "10"),
        ("HOUR", vec![t("272:59:59")], "272"),
        ("MICROSECOND", vec![day()], "500000"),
        ("QUARTER", vec![t("2008-04-01")], "2"),
        ("DAYOFWEEK", vec![t("2007-02-03")], "7"),
        ("WEEKDAY", vec![t("2008-02-03")], "6"),
        ("DAYOFYEAR", vec![t("2007-02-03")], "34"),
        ("WEEK", vec![t("2008-02-20")], "7"),
        ("WEEK", vec![t("2008-02-20"), i(1)], "8"),
        ("WEEK", vec![t("2008-12-31"), i(1)], "53"),
        ("WEEKOFYEAR", vec![t("2008-02-20")], "8"),
        ("YEARWEEK", vec![t("1987-01-01")], "198652"),
        ("DAYNAME", vec![t("2007-02-03")], "Saturday"),
        ("MONTHNAME", vec![t("2008-02-03")], "February"),
        ("LAST_DAY", vec![t("2004-02-05")], "2004-02-29"),
        ("TO_DAYS", vec![t("2007-10-07")], "733321"),
        ("FROM_DAYS", vec![i(730_669)], "2000-07-03"),
        ("TO_SECONDS", vec![t("2009-11-29 13:43:32")], "63426721412"),
        (
            "EXTRACT",
            vec![t("YEAR_MONTH"), t("2019-07-02 01:02:03")],
            "201907",
        ),
        (
            "EXTRACT",
            vec![t("DAY_MINUTE"), t("2019-07-02 01:02:03")],
            "20102",
        ),
        ("DATE", vec![t("2003-12-31 01:02:03")], "2003-12-31"),
        (
            "TIME",
            vec![t("2003-12-31 01:02:03.000123")],
            "01:02:03.000123",
        ),
        ("YEAR", vec![t("nonsense")], "NULL !1292"),
    ]);
}

#[test]
#[allow(clippy::too_many_lines)] // a table of cases
fn dates_add_and_subtract() {
    let date = || typed("2018-05-01", DataType::Date);
    check(vec![
        ("DATE_ADD", vec![date(), i(1), t("DAY")], "2018-05-02"),
        (
            "DATE_ADD",
            vec![date(), i(1), t("HOUR")],
            "2018-05-01 01:00:00",
        ),
        (
            "DATE_SUB",
            vec![t("2018-05-01"), i(1), t("YEAR")],
            "2017-05-01",
        ),
        (
            "DATE_ADD",
            vec![t("2020-12-31 23:59:59"), i(1), t("SECOND")],
            "2021-01-01 00:00:00",
        ),
        (
            "DATE_ADD",
            vec![t("2100-12-31 23:59:59"), t("1:1"), t("MINUTE_SECOND")],
            "2101-01-01 00:01:00",
        ),
        (
            "DATE_SUB",
            vec![t("2025-01-01 00:00:00"), t("1 1:1:1"), t("DAY_SECOND")],
            "2024-12-30 22:58:59",
        ),
        (
            "DATE_ADD",
            vec![t("1900-01-01 00:00:00"), t("-1 10"), t("DAY_HOUR")],
            "1899-12-30 14:00:00",
        ),
        (
            "DATE_ADD",
            vec![t("2019-01-30"), i(1), t("MONTH")],
            "2019-02-28",
        ),
        (
            "DATE_ADD",
            vec![t("9999-12-31"), i(1), t("DAY")],
            "NULL !1441",
        ),
        ("ADDDATE", vec![t("2008-01-02"), i(31)], "2008-02-02"),
        (
            "DATE_ADD",
            vec![t("2024-01-31"), t("1.5"), t("DAY")],
            "2024-02-01",
        ),
        (
            "TIMESTAMPADD",
            vec![t("WEEK"), i(1), t("2003-01-02")],
            "2003-01-09",
        ),
        (
            "TIMESTAMPDIFF",
            vec![t("MONTH"), t("2003-02-01"), t("2003-05-01")],
            "3",
        ),
        (
            "TIMESTAMPDIFF",
            vec![t("YEAR"), t("2002-05-01"), t("2001-01-01")],
            "-1",
        ),
        (
            "TIMESTAMPDIFF",
            vec![t("MINUTE"), t("2003-02-01"), t("2003-05-01 12:05:55")],
            "128885",
        ),
        (
            "DATEDIFF",
            vec![t("2007-12-31 23:59:59"), t("2007-12-30")],
            "1",
        ),
        (
            "TIMEDIFF",
            vec![
                t("2008-12-31 23:59:59.000001"),
                t("2008-12-30 01:01:01.000002"),
            ],
            "46:58:57.999999",
        ),
        (
            "TIMEDIFF",
            vec![t("10:00:00"), t("2008-01-01 00:00:00")],
            "NULL",
        ),
        (
            "ADDTIME",
            vec![t("2007-12-31 23:59:59.999999"), t("1 1:1:1.000002")],
            "2008-01-02 01:01:01.000001",
        ),
        ("SUBTIME", vec![t("10:00:00"), t("01:00:00")], "09:00:00"),
        ("MAKEDATE", vec![i(2011), i(32)], "2011-02-01"),
        ("MAKETIME", vec![i(12), i(15), i(30)], "12:15:30"),
        ("SEC_TO_TIME", vec![i(2378)], "00:39:38"),
        ("TIME_TO_SEC", vec![t("22:23:00")], "80580"),
        ("PERIOD_ADD", vec![i(200_801), i(2)], "200803"),
        ("PERIOD_DIFF", vec![i(200_802), i(200_703)], "11"),
        (
            "CONVERT_TZ",
            vec![t("2004-01-01 12:00:00"), t("+00:00"), t("+10:00")],
            "2004-01-01 22:00:00",
        ),
        (
            "CONVERT_TZ",
            vec![t("2004-07-01 12:00:00"), t("GMT"), t("Europe/Berlin")],
            "2004-07-01 14:00:00",
        ),
        (
            "UNIX_TIMESTAMP",
            vec![t("2015-11-13 10:20:19.012")],
            "1447410019.012",
        ),
        (
            "FROM_UNIXTIME",
            vec![i(1_447_430_881)],
            "2015-11-13 16:08:01",
        ),
        (
            "FROM_UNIXTIME",
            vec![i(1_447_430_881), t("%Y %D %M")],
            "2015 13th November",
        ),
        (
            "TIMESTAMP",
            vec![t("2003-12-31 12:00:00"), t("12:00:00")],
            "2004-01-01 00:00:00",
        ),
    ]);
}

#[test]
fn dates_are_formatted_and_read() {
    check(vec![
        (
            "DATE_FORMAT",
            vec![t("2009-10-04 22:23:00"), t("%W %M %Y")],
            "Sunday October 2009",
        ),
        (
            "DATE_FORMAT",
            vec![t("1900-10-04 22:23:00"), t("%D %y %a %d %m %b %j")],
            "4th 00 Thu 04 10 Oct 277",
        ),
        (
            "DATE_FORMAT",
            vec![t("1997-10-04 22:23:00"), t("%H %k %I %r %T %S %w")],
            "22 22 10 10:23:00 PM 22:23:00 00 6",
        ),
        ("DATE_FORMAT", vec![t("1999-01-01"), t("%X %V")], "1998 52"),
        ("DATE_FORMAT", vec![t("2006-06-00"), t("%d")], "00"),
        ("DATE_FORMAT", vec![t("2006-06-01"), t("")], "NULL"),
        (
            "TIME_FORMAT",
            vec![t("100:00:00"), t("%H %k %h %I %l")],
            "100 100 04 04 4",
        ),
        (
            "STR_TO_DATE",
            vec![t("01,5,2013"), t("%d,%m,%Y")],
            "2013-05-01",
        ),
        (
            "STR_TO_DATE",
            vec![t("May 1, 2013"), t("%M %d,%Y")],
            "2013-05-01",
        ),
        (
            "STR_TO_DATE",
            vec![t("a09:30:17"), t("a%h:%i:%s")],
            "09:30:17",
        ),
        (
            "STR_TO_DATE",
            vec![t("2013-05-01 10:11:12"), t("%Y-%m-%d %H:%i:%s")],
            "2013-05-01 10:11:12",
        ),
        ("STR_TO_DATE", vec![t("abc"), t("%Y")], "NULL !1411"),
    ]);
}

#[test]
fn json_is_made_and_looked_into() {
    let doc = || j(r#"{"a": {"b": [1, 2, {"c": "x"}]}, "d": null}"#);
    check(vec![
        ("JSON_EXTRACT", vec![doc(), t("$.a.b[1]")], "2"),
        ("JSON_EXTRACT", vec![doc(), t("$.a.b[last].c")], "\"x\""),
        ("JSON_EXTRACT", vec![doc(), t("$.nope")], "NULL"),
        ("JSON_EXTRACT", vec![doc(), t("$.d")], "null"),
        ("JSON_EXTRACT", vec![doc(), t("$**.c")], "[\"x\"]"),
        ("JSON_EXTRACT", vec![doc(), t("$.a.b[0 to 1]")], "[1, 2]"),
        (
            "JSON_EXTRACT",
            vec![doc(), t("$.a.b[0]"), t("$.d")],
            "[1, null]",
        ),
        ("JSON_EXTRACT", vec![doc(), t("a")], "error 3143"),
        ("JSON_EXTRACT", vec![t("{"), t("$")], "error 3141"),
        ("JSON_UNQUOTE", vec![j("\"a\\nb\"")], "a\nb"),
        ("JSON_UNQUOTE", vec![t("plain")], "plain"),
        ("JSON_QUOTE", vec![t("a\"b")], "\"a\\\"b\""),
        (
            "JSON_OBJECT",
            vec![t("id"), i(87), t("name"), t("carrot")],
            r#"{"id": 87, "name": "carrot"}"#,
        ),
        ("JSON_OBJECT", vec![null(), i(1)], "error 3158"),
        (
            "JSON_ARRAY",
            vec![i(1), t("abc"), null(), d("1.5")],
            r#"[1, "abc", null, 1.5]"#,
        ),
        ("JSON_ARRAY", vec![Expr::is_null(null())], "[true]"),
        ("JSON_CONTAINS", vec![doc(), j("[1]"), t("$.a.b")], "1"),
        ("JSON_CONTAINS", vec![j("{\"a\": 1}"), j("{\"a\": 2}")], "0"),
        (
            "JSON_CONTAINS_PATH",
            vec![doc(), t("one"), t("$.x"), t("$.a")],
            "1",
        ),
        (
            "JSON_CONTAINS_PATH",
            vec![doc(), t("all"), t("$.x"), t("$.a")],
            "0",
        ),
        ("JSON_KEYS", vec![doc()], r#"["a", "d"]"#),
        ("JSON_LENGTH", vec![doc(), t("$.a.b")], "3"),
        ("JSON_TYPE", vec![j("1.5")], "DOUBLE"),
        ("JSON_VALID", vec![t("{")], "0"),
        ("JSON_DEPTH", vec![doc()], "5"),
        ("JSON_OVERLAPS", vec![j("[1, 2]"), j("[2, 3]")], "1"),
        (
            "JSON_SEARCH",
            vec![doc(), t("one"), t("x")],
            "\"$.a.b[2].c\"",
        ),
        ("JSON_VALUE", vec![doc(), t("$.a.b[0]")], "1"),
        ("MEMBER_OF", vec![i(2), j("[1, 2]")], "1"),
        ("MEMBER_OF", vec![t("2"), j("[1, 2]")], "0"),
    ]);
}

#[test]
fn json_is_changed_and_merged() {
    let doc = || j(r#"{"a": 1, "b": [2, 3]}"#);
    check(vec![
        (
            "JSON_SET",
            vec![doc(), t("$.a"), i(10), t("$.c"), t("x")],
            r#"{"a": 10, "b": [2, 3], "c": "x"}"#,
        ),
        (
            "JSON_INSERT",
            vec![doc(), t("$.a"), i(10), t("$.c"), j("[true]")],
            r#"{"a": 1, "b": [2, 3], "c": [true]}"#,
        ),
        (
            "JSON_REPLACE",
            vec![doc(), t("$.a"), i(10), t("$.c"), i(1)],
            r#"{"a": 10, "b": [2, 3]}"#,
        ),
        (
            "JSON_SET",
            vec![doc(), t("$.b[5]"), i(4)],
            r#"{"a": 1, "b": [2, 3, 4]}"#,
        ),
        (
            "JSON_SET",
            vec![doc(), t("$.a[1]"), i(4)],
            r#"{"a": [1, 4], "b": [2, 3]}"#,
        ),
        (
            "JSON_REMOVE",
            vec![doc(), t("$.b[0]"), t("$.a")],
            r#"{"b": [3]}"#,
        ),
        (
            "JSON_ARRAY_APPEND",
            vec![doc(), t("$.b"), i(4)],
            r#"{"a": 1, "b": [2, 3, 4]}"#,
        ),
        (
            "JSON_ARRAY_INSERT",
            vec![doc(), t("$.b[0]"), i(4)],
            r#"{"a": 1, "b": [4, 2, 3]}"#,
        ),
        (
            "JSON_MERGE_PATCH",
            vec![doc(), j(r#"{"a": null, "c": 3}"#)],
            r#"{"b": [2, 3], "c": 3}"#,
        ),
        (
            "JSON_MERGE_PRESERVE",
            vec![doc(), j(r#"{"a": 5}"#)],
            r#"{"a": [1, 5], "b": [2, 3]}"#,
        ),
        ("JSON_SET", vec![doc(), t("$.*"), i(1)], "error 3149"),
    ]);
}

#[test]
fn digests_addresses_and_facts() {
    check(vec![
        (
            "MD5",
            vec![t("testing")],
            "ae2b1fca515949e5d54fb22b8ed95575",
        ),
        ("MD5", vec![t("")], "d41d8cd98f00b204e9800998ecf8427e"),
        (
            "SHA1",
            vec![t("abc")],
            "a9993e364706816aba3e25717850c26c9cd0d89d",
        ),
        (
            "SHA2",
            vec![t("abc"), i(256)],
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        ("TO_BASE64", vec![t("abc")], "YWJj"),
        ("TO_BASE64", vec![t("ab")], "YWI="),
        ("FROM_BASE64", vec![t("YWI=")], "ab"),
        ("FROM_BASE64", vec![t("*")], "NULL"),
        ("INET_ATON", vec![t("10.0.5.9")], "167773449"),
        ("INET_ATON", vec![t("127.1")], "2130706433"),
        ("INET_NTOA", vec![i(167_773_449)], "10.0.5.9"),
        (
            "INET6_NTOA",
            vec![Expr::call("INET6_ATON", vec![t("fdfe::5a55:caff:fefa:9089")]).unwrap()],
            "fdfe::5a55:caff:fefa:9089",
        ),
        ("IS_IPV4", vec![t("10.0.5.256")], "0"),
        (
            "IS_UUID",
            vec![t("6ccd780c-baba-1026-9564-5b8c656024db")],
            "1",
        ),
        (
            "HEX",
            vec![
                Expr::call(
                    "UUID_TO_BIN",
                    vec![t("6ccd780c-baba-1026-9564-5b8c656024db"), i(1)],
                )
                .unwrap(),
            ],
            "1026BABA6CCD780C95645B8C656024DB",
        ),
        ("DATABASE", vec![], "shop"),
        ("USER", vec![], "root@localhost"),
        ("VERSION", vec![], super::SERVER_VERSION),
        ("CONNECTION_ID", vec![], "7"),
        ("LAST_INSERT_ID", vec![], "42"),
        ("NO_SUCH", vec![], "error 1305"),
        ("PI", vec![i(1)], "error 1582"),
    ]);
}

#[test]
fn a_uuid_is_version_one_and_new_every_time() {
    let expr = || Expr::call("UUID", vec![]).unwrap();
    let text = shown(Ok(expr()));
    assert_eq!(text.len(), 36);
    assert_eq!(text.as_bytes()[14], b'1');
    let pair = Expr::call("NULLIF", vec![expr(), expr()]).unwrap();
    assert_ne!(shown(Ok(pair)), "NULL");
}
