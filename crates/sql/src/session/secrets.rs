//! Statements with passwords in them, as others may read them: the process list and the list of
//! slow statements never hold one.

use std::borrow::Cow;

use crate::parser::{Parsed, Special};

/// Words behind which a password stands.
const BEFORE_SECRETS: [&str; 2] = ["IDENTIFIED", "PASSWORD"];

/// `text` up to the first password it may have. Only statements in our own tree are looked at:
/// accounts, SET, and PREPARE of what may be either; so queries pay nothing for it.
pub(super) fn hidden<'a>(text: &'a str, parsed: &Parsed) -> Cow<'a, str> {
    let may_have = matches!(
        parsed.special,
        Some(
            Special::Users { .. }
                | Special::SetPassword { .. }
                | Special::Grant(_)
                | Special::Set(_)
                | Special::Prepare { .. }
        )
    );
    match first_word(text).filter(|_| may_have) {
        Some(end) => Cow::Owned(format!("{} <secret>", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The byte behind the first of [`BEFORE_SECRETS`] in `text`.
fn first_word(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let end_of = |word: &str| {
        bytes
            .windows(word.len())
            .position(|window| window.eq_ignore_ascii_case(word.as_bytes()))
            .map(|at| at + word.len())
    };
    BEFORE_SECRETS.into_iter().filter_map(end_of).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SqlMode;

    fn shown(text: &str) -> String {
        let parsed = crate::parser::parse(text, SqlMode::default()).unwrap();
        hidden(text, &parsed[0]).into_owned()
    }

    #[test]
    fn a_password_is_cut_off_and_nothing_else() {
        for (text, expected) in [
            (
                "create user a identified by 'x', b identified by 'y'",
                "create user a identified <secret>",
            ),
            (
                "ALTER USER č IDENTIFIED WITH mysql_native_password AS '*12'",
                "ALTER USER č IDENTIFIED <secret>",
            ),
            ("SET PASSWORD FOR a = 'x'", "SET PASSWORD <secret>"),
            (
                "PREPARE s FROM 'CREATE USER a IDENTIFIED BY \"x\"'",
                "PREPARE s FROM 'CREATE USER a IDENTIFIED <secret>",
            ),
            (
                "SET @s = 'alter user a identified by \"x\"'",
                "SET @s = 'alter user a identified <secret>",
            ),
            ("CREATE USER a", "CREATE USER a"),
            ("SET @s = 1", "SET @s = 1"),
            ("SELECT password FROM t", "SELECT password FROM t"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
