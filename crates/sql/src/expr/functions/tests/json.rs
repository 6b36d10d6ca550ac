//! JSON.

use super::check;
use crate::expr::testing::{d, i, j, null, t};
use crate::plan::Expr;

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
