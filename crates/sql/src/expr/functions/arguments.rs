//! Which arguments of a function are numbers: there a hexadecimal literal is one, too.

use crate::plan::Expr;

/// Functions all of whose arguments are numbers.
const ALL: [&str; 36] = [
    "ABS",
    "ACOS",
    "ASIN",
    "ATAN",
    "ATAN2",
    "BIT_COUNT",
    "CEILING",
    "CHAR",
    "COS",
    "COT",
    "DEGREES",
    "EXP",
    "FLOOR",
    "FORMAT",
    "FROM_DAYS",
    "INET_NTOA",
    "INTERVAL",
    "LAST_INSERT_ID",
    "LN",
    "LOG",
    "LOG10",
    "LOG2",
    "MAKEDATE",
    "MAKETIME",
    "MOD",
    "PERIOD_ADD",
    "PERIOD_DIFF",
    "POW",
    "RADIANS",
    "RAND",
    "ROUND",
    "SEC_TO_TIME",
    "SIGN",
    "SIN",
    "SQRT",
    "TRUNCATE",
];

/// Whether argument `at` (from 0) of a function is a number among others that are not.
fn is_number(function: &str, at: usize) -> bool {
    match function {
        "ELT" | "FROM_UNIXTIME" | "MAKE_SET" | "RANDOM_BYTES" | "SLEEP" | "SPACE" | "TAN" => {
            at == 0
        }
        "DATE_ADD" | "DATE_SUB" | "GET_LOCK" | "LEFT" | "LPAD" | "REPEAT" | "RIGHT" | "RPAD"
        | "SHA2" | "TIMESTAMPADD" | "UUID_TO_BIN" | "BIN_TO_UUID" | "WEEK" | "YEARWEEK" => at == 1,
        "LOCATE" | "SUBSTRING_INDEX" => at == 2,
        "CONV" | "INSERT" | "SUBSTRING" => at == 1 || at == 2,
        "EXPORT_SET" => at == 0 || at == 4,
        _ => ALL.contains(&function),
    }
}

/// The arguments with those that are calculated with as numbers ([`Expr::calculated`]).
pub(super) fn numbers_calculated(function: &str, args: Vec<Expr>) -> Vec<Expr> {
    // Texts alone are compared as texts, anything else as numbers.
    let is_string = |arg: &Expr| arg.ty.is_text() || arg.ty.is_bytes();
    let finds_number = function == "FIELD" && !args.iter().all(is_string);
    args.into_iter()
        .enumerate()
        .map(|(at, arg)| {
            if finds_number || is_number(function, at) {
                arg.calculated()
            } else {
                arg
            }
        })
        .collect()
}
