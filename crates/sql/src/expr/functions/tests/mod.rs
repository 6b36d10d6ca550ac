//! Functions, shown as a client sees them: text, `error N`, and `!N` for each warning.

mod json;
mod temporal;
mod text;

use crate::expr::testing::{d, f, i, null, shown, t};
use crate::plan::Expr;

/// Each case is a function, its arguments and what it shows.
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
