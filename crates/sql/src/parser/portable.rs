//! Trees written as text that means the same in the default `sql_mode`.

use sqlparser::ast::Query;

/// The query's text for the default mode. The tree is the same whatever mode it was read in, but
/// it is shown with the backslashes of text as they are, and by default they escape.
pub(crate) fn in_default_mode(query: &Query) -> String {
    let shown = query.to_string();
    let mut text = String::with_capacity(shown.len());
    let mut quote = None;
    for character in shown.chars() {
        match (quote, character) {
            (None, '\'' | '`') => quote = Some(character),
            // Of two quotes that stand for one, the second opens again what the first closed.
            (Some(open), character) if open == character => quote = None,
            (Some('\''), '\\') => text.push('\\'),
            _ => {}
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;
    use crate::types::SqlMode;

    #[test]
    fn every_mode_has_a_text_in_the_default_one() {
        let mode = SqlMode {
            ansi_quotes: true,
            pipes_as_concat: true,
            no_backslash_escapes: true,
            like_without_escape: true,
            high_not_precedence: true,
            ..SqlMode::default()
        };
        for written in [
            r#"SELECT "a`b" || 'c\d' AS "x" FROM "t" WHERE NOT "a" BETWEEN 1 AND 2"#,
            r"SELECT a FROM t WHERE a LIKE 'x\_y' OR a NOT LIKE '`''\' ESCAPE '!'",
            r"SELECT '\' || `it's` FROM t",
        ] {
            let read = |text: &str, mode| parse(text, mode).expect(text).remove(0).statement;
            let sqlparser::ast::Statement::Query(query) = read(written, mode) else {
                panic!("{written}");
            };
            let text = in_default_mode(&query);
            let again = read(&text, SqlMode::default());
            assert_eq!(again, sqlparser::ast::Statement::Query(query), "{text}");
        }
    }
}
