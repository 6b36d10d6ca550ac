//! The select list as written: MySQL calls an unnamed result column by its text.

/// Texts of the select items of the first SELECT in `source`, when it begins with one.
pub(crate) fn item_texts(source: &str) -> Option<Vec<String>> {
    let start = source.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let rest = strip_word(start, "SELECT")?;
    let rest = strip_modifiers(rest);
    let mut items = Vec::new();
    let mut scan = Scan {
        text: rest,
        at: 0,
        depth: 0,
    };
    let mut begin = 0;
    loop {
        match scan.next() {
            Event::Comma => {
                items.push(rest[begin..scan.at - 1].trim().to_string());
                begin = scan.at;
            }
            Event::End(at) => {
                items.push(rest[begin..at].trim().to_string());
                return Some(items);
            }
            Event::Other => {}
        }
    }
}

const MODIFIERS: [&str; 10] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
];
const ENDS: [&str; 13] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "FOR",
    "INTO",
    "WINDOW",
    "LOCK",
];

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    let rest = &text[word.len()..];
    let ends = !rest.starts_with(is_word_char);
    (head.eq_ignore_ascii_case(word) && ends).then_some(rest)
}

fn strip_modifiers(mut text: &str) -> &str {
    loop {
        let trimmed = text.trim_start();
        match MODIFIERS.iter().find_map(|word| strip_word(trimmed, word)) {
            Some(rest) => text = rest,
            None => return text,
        }
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '@'
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

enum Event {
    Comma,
    End(usize),
    Other,
}

impl Scan<'_> {
    fn next(&mut self) -> Event {
        let start = self.at;
        let Some(c) = self.text[start..].chars().next() else {
            return Event::End(start);
        };
        self.at += c.len_utf8();
        match c {
            '\'' | '"' | '`' => self.skip_quoted(c),
            '(' => self.depth += 1,
            ')' | ';' if self.depth == 0 => return Event::End(start),
            ')' => self.depth -= 1,
            ',' if self.depth == 0 => return Event::Comma,
            c if is_word_char(c) => {
                let rest = &self.text[start..];
                let length = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
                self.at = start + length;
                let qualified = self.text[..start].ends_with('.');
                let word = &rest[..length];
                if self.depth == 0
                    && !qualified
                    && ENDS.iter().any(|end| end.eq_ignore_ascii_case(word))
                {
                    return Event::End(start);
                }
            }
            _ => {}
        }
        Event::Other
    }

    fn skip_quoted(&mut self, quote: char) {
        let mut escaped = false;
        for (offset, c) in self.text[self.at..].char_indices() {
            if escaped {
                escaped = false;
            } else if c == '\\' && quote != '`' {
                escaped = true;
            } else if c == quote {
                self.at += offset + c.len_utf8();
                return;
            }
        }
        self.at = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::item_texts;

    #[test]
    fn select_items_are_cut_at_top_level_commas() {
        let items = item_texts("select  DISTINCT a+1, f(b, c) , 'x, from' from t");
        assert_eq!(
            items.as_deref(),
            Some(&["a+1".to_string(), "f(b, c)".into(), "'x, from'".into()][..])
        );
        assert_eq!(item_texts("SELECT count( * )").unwrap(), ["count( * )"]);
        assert!(item_texts("WITH x AS (SELECT 1) SELECT 2").is_none());
    }
}
