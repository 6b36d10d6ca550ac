//! Operators, shown as a client sees them.

use super::testing::{d, dt, f, i, null, shown, t, typed};
use crate::plan::{BinaryOp, CompareOp, Expr};
use crate::types::{Collation, DataType, Value};

use BinaryOp::{Add, BitAnd, Div, IntDiv, Mod, Mul, ShiftLeft, Sub};
use CompareOp::{Eq, Ge, Lt, Ne, NullSafeEq};

fn u(value: u64) -> Expr {
    Expr::literal(Value::UInt(value), DataType::BIGINT_UNSIGNED)
}

#[test]
fn arithmetic_gives_what_mysql_gives() {
    let table = [
        (Add, i(1), i(2), "3"),
        (Add, i(1), d("2.50"), "3.50"),
        (Add, i(1), t("2x"), "3 !1292"),
        (Add, i(1), null(), "NULL"),
        (Add, i(i64::MAX), i(1), "error 1690"),
        (Add, u(u64::MAX), i(1), "error 1690"),
        (Sub, u(1), i(2), "error 1690"),
        (Sub, u(5), i(2), "3"),
        (Mul, d("1.10"), d("2.0"), "2.200"),
        (Mul, f(0.1), i(3), "0.30000000000000004"),
        (Div, i(1), i(3), "0.3333"),
        (Div, i(2), i(3), "0.6667"),
        (Div, i(-2), i(3), "-0.6667"),
        (Div, d("10.00"), i(3), "3.333333"),
        (Div, i(1), i(0), "NULL !1365"),
        (Div, f(1.0), i(4), "0.25"),
        (IntDiv, i(7), i(2), "3"),
        (IntDiv, i(-7), i(2), "-3"),
        (IntDiv, d("7.9"), i(2), "3"),
        (IntDiv, i(1), i(0), "NULL !1365"),
        (Mod, i(-7), i(3), "-1"),
        (Mod, d("7.5"), i(2), "1.5"),
        (Mod, i(1), i(0), "NULL !1365"),
        (BitAnd, i(-1), i(255), "255"),
        (ShiftLeft, i(1), i(64), "0"),
        (Add, dt("2024-01-01 00:00:01"), i(1), "20240101000002"),
    ];
    for (op, a, b, expected) in table {
        let text = format!("{} {} {}", a.describe(), op.symbol(), b.describe());
        assert_eq!(shown(Expr::binary(op, a, b)), expected, "{text}");
    }
}

#[test]
fn quotients_keep_hidden_digits_for_further_arithmetic() {
    let thirds = || Expr::binary(Div, i(2), i(3)).unwrap();
    assert_eq!(shown(Ok(thirds())), "0.6667");
    assert_eq!(shown(Expr::binary(Mul, thirds(), i(3))), "2.0000");
    assert_eq!(shown(Expr::binary(Add, thirds(), thirds())), "1.3333");
    assert_eq!(shown(Expr::binary(Div, thirds(), i(2))), "0.33333333");
}

#[test]
fn comparisons_follow_the_kinds_of_their_sides() {
    let date = || typed("2024-01-05", DataType::Date);
    let table = [
        (Eq, t("abc"), t("ABC"), "1"),
        (Eq, i(1), t("1"), "1"),
        (Eq, i(1), t("1x"), "1 !1292"),
        (Eq, null(), null(), "NULL"),
        (NullSafeEq, null(), null(), "1"),
        (NullSafeEq, null(), i(1), "0"),
        (Ne, i(1), null(), "NULL"),
        (Lt, d("1.5"), i(2), "1"),
        (Ge, u(u64::MAX), i(-1), "1"),
        (Eq, date(), t("2024-1-5"), "1"),
        (Eq, date(), t("nonsense"), "error 1525"),
        (Lt, date(), t("2024-01-05 00:00:01"), "1"),
    ];
    for (op, a, b, expected) in table {
        let text = format!("{} {} {}", a.describe(), op.symbol(), b.describe());
        assert_eq!(shown(Expr::compare(op, a, b)), expected, "{text}");
    }
}

#[test]
fn a_column_decides_the_collation_and_bin_beats_ci() {
    let column = |collation| Expr::column(0, DataType::text_of(10, collation), false);
    let literal = t("x");
    let with_literal = super::result_collation([&column(Collation::GeneralCi), &literal]);
    assert_eq!(with_literal, Collation::GeneralCi);
    let mixed = super::result_collation([&column(Collation::GeneralCi), &column(Collation::Bin)]);
    assert_eq!(mixed, Collation::Bin);
    let forced = Expr::collate(literal, Collation::Bin).unwrap();
    let explicit = super::result_collation([&column(Collation::GeneralCi), &forced]);
    assert_eq!(explicit, Collation::Bin);
}

#[test]
fn logic_is_three_valued() {
    let (yes, no) = (i(1), i(0));
    let table = [
        (Expr::and(null(), no.clone()), "0"),
        (Expr::and(null(), yes.clone()), "NULL"),
        (Expr::or(null(), yes.clone()), "1"),
        (Expr::or(null(), no.clone()), "NULL"),
        (Expr::xor(yes.clone(), no.clone()), "1"),
        (Expr::not(null()), "NULL"),
        (Expr::is_bool(null(), true), "0"),
        (Expr::is_null(null()), "1"),
    ];
    for (expr, expected) in table {
        let text = expr.describe();
        assert_eq!(shown(Ok(expr)), expected, "{text}");
    }
    let in_list = |value, list| shown(Expr::in_list(value, list));
    assert_eq!(in_list(i(1), vec![i(2), null()]), "NULL");
    assert_eq!(in_list(i(1), vec![i(1), null()]), "1");
    assert_eq!(in_list(null(), vec![i(1)]), "NULL");
    assert_eq!(in_list(t("b"), vec![t("a"), t("B")]), "1");
}

#[test]
fn case_takes_the_common_type_of_its_results() {
    let expr = Expr::case(vec![(i(0), i(1)), (i(1), d("2.50"))], Some(i(3))).unwrap();
    assert_eq!(
        expr.ty,
        DataType::Decimal {
            precision: 21,
            scale: 2,
            sign: DataType::SIGNED
        }
    );
    assert_eq!(shown(Ok(expr)), "2.50");
    let second = Expr::case(vec![(i(0), d("2.50"))], Some(i(3)));
    assert_eq!(shown(second), "3.00");
    assert_eq!(shown(Expr::case(vec![(i(0), i(1))], None)), "NULL");
}

#[test]
fn casts_give_what_mysql_gives() {
    let decimal = |precision, scale| DataType::Decimal {
        precision,
        scale,
        sign: DataType::SIGNED,
    };
    let table = [
        (t("12abc"), DataType::BIGINT, "12 !1292"),
        (d("1.5"), DataType::BIGINT, "2"),
        (i(-1), DataType::BIGINT_UNSIGNED, "18446744073709551615"),
        (t("1.005"), decimal(10, 2), "1.01"),
        (i(12345), decimal(4, 1), "999.9 !1264"),
        (t("2024-02-30"), DataType::Date, "NULL !1292"),
        (t("2024-02-29 10:00"), DataType::Date, "2024-02-29"),
        (t("10:11:12.6"), DataType::Time { fsp: 0 }, "10:11:13"),
        (
            dt("2024-01-01 10:00:00.123"),
            DataType::varchar(30),
            "2024-01-01 10:00:00.123",
        ),
        (t("abcdef"), DataType::varchar(3), "abc !1292"),
        (
            t("{\"b\": 1, \"a\": 2}"),
            DataType::Json,
            "{\"a\": 2, \"b\": 1}",
        ),
        (t("{"), DataType::Json, "error 3141"),
        (i(5), DataType::varchar(10), "5"),
    ];
    for (value, ty, expected) in table {
        let text = format!("{} as {}", value.describe(), ty.sql_name());
        assert_eq!(shown(Expr::cast(value, ty)), expected, "{text}");
    }
}
