//! Text.

use super::check;
use crate::expr::testing::{d, dt, i, null, t};
use crate::plan::Expr;
use crate::types::{DataType, Value};

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
