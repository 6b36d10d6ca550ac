//! What a system variable is.

use super::table::DEFINITIONS;
use crate::error::{SqlError, SqlResult};
use crate::types::{Collation, DataType};

/// Who has a copy of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Only the server: SET without GLOBAL is 1229.
    Global,
    /// Only sessions: SET GLOBAL is 1228.
    Session,
    /// Both: a session starts with the server's value.
    Both,
}

/// What a variable may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// ON or OFF; held as 1 or 0.
    Bool,
    /// A number between the bounds; outside is clipped with warning 1292, as MySQL does.
    Int(i64, i64),
    /// Seconds with a fraction.
    Double,
    /// Any text.
    Text,
    /// Text or NULL.
    NullableText,
    /// One of the names; numbers select by position.
    Enum(&'static [&'static str]),
    /// A list of some of the names, at least one, separated by commas.
    Members(&'static [&'static str]),
    /// A list of `sql_mode` names.
    SqlMode,
    /// `SYSTEM`, an offset or a zone name.
    TimeZone,
    /// A character set; NULL allowed when true.
    Charset(bool),
    /// A collation.
    Collation,
    /// An isolation level.
    Isolation,
    /// Accepted, kept, without effect: MySQL's list of `name=value` flags.
    Switches,
}

/// A system variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Definition {
    /// Lower-case name.
    pub name: &'static str,
    /// Who has a copy.
    pub scope: Scope,
    /// What it may hold.
    pub kind: Kind,
    /// Value at start, as SHOW VARIABLES writes it; `None` is NULL.
    pub default: Option<&'static str>,
    /// SET answers 1238.
    pub read_only: bool,
}

/// The variable called `name`, in any case, with its position in the table.
///
/// # Errors
/// 1193 when there is none.
pub(crate) fn find(name: &str) -> SqlResult<(usize, &'static Definition)> {
    let lower = name.to_lowercase();
    let name = alias(&lower);
    let position = DEFINITIONS
        .binary_search_by(|definition| definition.name.cmp(name))
        .map_err(|_| SqlError::new(1193, "HY000", format!("Unknown system variable '{lower}'")))?;
    Ok((position, &DEFINITIONS[position]))
}

/// The type `@@name` has in results.
pub(crate) fn type_of(name: &str, collation: Collation) -> DataType {
    match find(name).map(|(_, definition)| definition.kind) {
        Ok(Kind::Bool | Kind::Int(..)) => DataType::BIGINT,
        Ok(Kind::Double) => DataType::DOUBLE,
        _ => DataType::varchar(1024).with_collation(collation),
    }
}

/// Old names of variables that MySQL 8 renamed and clients still ask for.
fn alias(name: &str) -> &str {
    match name {
        "tx_isolation" => "transaction_isolation",
        "tx_read_only" => "transaction_read_only",
        "storage_engine" => "default_storage_engine",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_every_variable_is_found() {
        for pair in DEFINITIONS.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
        }
    }

    #[test]
    fn names_are_found_in_any_case_and_by_their_old_name() {
        assert_eq!(find("AutoCommit").unwrap().1.name, "autocommit");
        assert_eq!(
            find("tx_isolation").unwrap().1.name,
            "transaction_isolation"
        );
        assert_eq!(find("nonsense").unwrap_err().code, 1193);
    }
}
