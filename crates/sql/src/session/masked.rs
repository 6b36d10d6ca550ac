//! Statements without their values, as the process list and the list of slow statements show them where
//! tables have owners: a value may be somebody's, and would outlive the person there.

/// `text` with `?` in place of each string and number, and without comments. It goes by characters alone:
/// what is a string under any SQL mode is taken for one.
pub(super) fn without_values(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = match first {
            '\'' | '"' => {
                shown.push('?');
                behind_string(rest, first)
            }
            '`' => {
                let behind = behind_string(rest, first);
                shown.push_str(rest.get(..rest.len() - behind.len()).unwrap_or_default());
                behind
            }
            '0'..='9' => {
                shown.push('?');
                rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.')
            }
            '#' => behind_line(rest),
            '-' if rest.starts_with("--") => behind_line(rest),
            '/' if rest.starts_with("/*") => match rest.find("*/") {
                Some(end) => rest.get(end + 2..).unwrap_or_default(),
                None => "",
            },
            _ if first.is_alphabetic() || first == '_' || first == '@' || first == '$' => {
                let behind = rest.trim_start_matches(|c: char| {
                    c.is_alphanumeric() || matches!(c, '_' | '@' | '$')
                });
                shown.push_str(rest.get(..rest.len() - behind.len()).unwrap_or_default());
                behind
            }
            other => {
                shown.push(other);
                rest.get(other.len_utf8()..).unwrap_or_default()
            }
        };
        assert!(behind.len() < rest.len(), "each step leaves less");
        rest = behind;
    }
    shown
}

/// What comes behind the string or name that `text` begins with.
fn behind_string(text: &str, quote: char) -> &str {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote != '`' {
            characters.next();
        } else if character == quote {
            return text.get(at + 1..).unwrap_or_default();
        }
    }
    ""
}

fn behind_line(text: &str) -> &str {
    text.find('\n')
        .and_then(|end| text.get(end..))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn strings_numbers_and_comments_are_not_shown_and_names_are() {
        for (text, shown) in [
            ("SELECT `a 1`, t1.b FROM t1", "SELECT `a 1`, t1.b FROM t1"),
            (
                "INSERT INTO t VALUES (1, 'ann\\'s', \"b\"), (-2.5e3, 'it''s', 0xFF)",
                "INSERT INTO t VALUES (?, ?, ?), (-?, ??, ?)",
            ),
            ("SELECT 1 -- ann\nFROM t # bob", "SELECT ? \nFROM t "),
            ("/* ann */ SELECT 'cut", " SELECT ?"),
            (
                "SELECT _utf8'ä', @v, é FROM t",
                "SELECT _utf8?, @v, é FROM t",
            ),
        ] {
            assert_eq!(without_values(text), shown);
        }
    }
}
