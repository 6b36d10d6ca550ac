//! `sql_mode`: a list of names, and the bits execution reads.

use crate::error::{SqlError, SqlResult};
use crate::types::SqlMode;

/// Modes by MySQL's bit position; empty names are unused bits.
const MODES: [&str; 32] = [
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "NOT_USED",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
];

/// Modes of MySQL 5 that 8 dropped; clients still append them. Accepted and ignored.
const OLD_MODES: [&str; 9] = [
    "NO_AUTO_CREATE_USER",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "DB2",
    "MAXDB",
    "MSSQL",
];

const ANSI: &str = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI";
const TRADITIONAL: &str = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
ERROR_FOR_DIVISION_BY_ZERO,TRADITIONAL,NO_ENGINE_SUBSTITUTION";

/// Bit mask of a mode list.
fn mask(text: &str) -> SqlResult<u32> {
    let mut mask = 0;
    for name in text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let upper = name.to_ascii_uppercase();
        if OLD_MODES.contains(&upper.as_str()) {
            continue;
        }
        let bit = MODES
            .iter()
            .position(|mode| *mode == upper)
            .ok_or_else(|| wrong(name))?;
        mask |= match upper.as_str() {
            "ANSI" => own_mask(ANSI),
            "TRADITIONAL" => own_mask(TRADITIONAL),
            _ => 1 << bit,
        };
    }
    Ok(mask)
}

fn own_mask(list: &str) -> u32 {
    list.split(',')
        .filter_map(|name| MODES.iter().position(|mode| *mode == name))
        .fold(0, |mask, bit| mask | 1 << bit)
}

fn wrong(name: &str) -> SqlError {
    SqlError::new(
        1231,
        "42000",
        format!("Variable 'sql_mode' can't be set to the value of '{name}'"),
    )
}

/// The list in MySQL's own order and spelling.
///
/// # Errors
/// 1231 for an unknown mode; 1235 for one that would change results and does not exist here.
pub(crate) fn normalise(text: &str) -> SqlResult<String> {
    let mask = mask(text)?;
    write(mask)
}

/// As [`normalise`], from the number form of the variable.
///
/// # Errors
/// As [`normalise`].
pub(crate) fn from_number(number: i64) -> SqlResult<String> {
    let mask = u32::try_from(number).map_err(|_| wrong(&number.to_string()))?;
    write(mask)
}

fn write(mask: u32) -> SqlResult<String> {
    let names: Vec<&str> = (0..32)
        .filter(|bit| mask >> bit & 1 == 1)
        .map(|bit| MODES[bit])
        .filter(|name| !name.is_empty() && *name != "NOT_USED")
        .collect();
    let list = names.join(",");
    if names.contains(&"ALLOW_INVALID_DATES") {
        return Err(SqlError::not_supported("sql_mode ALLOW_INVALID_DATES"));
    }
    Ok(list)
}

/// The bits execution reads.
pub(crate) fn bits(list: &str) -> SqlMode {
    let has = |name: &str| list.split(',').any(|mode| mode == name);
    SqlMode {
        strict: has("STRICT_TRANS_TABLES") || has("STRICT_ALL_TABLES"),
        no_zero_date: has("NO_ZERO_DATE"),
        no_zero_in_date: has("NO_ZERO_IN_DATE"),
        error_for_division_by_zero: has("ERROR_FOR_DIVISION_BY_ZERO"),
        only_full_group_by: has("ONLY_FULL_GROUP_BY"),
        pipes_as_concat: has("PIPES_AS_CONCAT"),
        ansi_quotes: has("ANSI_QUOTES"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        like_without_escape: has("NO_BACKSLASH_ESCAPES"),
        no_auto_value_on_zero: has("NO_AUTO_VALUE_ON_ZERO"),
        no_unsigned_subtraction: has("NO_UNSIGNED_SUBTRACTION"),
        high_not_precedence: has("HIGH_NOT_PRECEDENCE"),
        real_as_float: has("REAL_AS_FLOAT"),
        pad_char_to_full_length: has("PAD_CHAR_TO_FULL_LENGTH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_in_mysqls_order_without_doubles() {
        assert_eq!(
            normalise("strict_trans_tables, ansi_quotes,,STRICT_TRANS_TABLES").unwrap(),
            "ANSI_QUOTES,STRICT_TRANS_TABLES"
        );
    }

    #[test]
    fn combinations_expand() {
        let list = normalise("TRADITIONAL").unwrap();
        assert!(list.contains("STRICT_ALL_TABLES") && list.contains("TRADITIONAL"));
        assert!(bits(&list).strict);
    }

    #[test]
    fn an_unknown_mode_is_refused_by_name() {
        let error = normalise("STRICT_TRANS_TABLES,BOGUS").unwrap_err();
        assert_eq!(error.code, 1231);
        assert!(error.message.contains("BOGUS"));
        assert_eq!(normalise("NO_AUTO_CREATE_USER").unwrap(), "");
    }

    #[test]
    fn the_default_mode_is_its_own_normal_form() {
        let default = super::super::table::DEFAULT_SQL_MODE;
        assert_eq!(normalise(default).unwrap(), default);
    }
}
