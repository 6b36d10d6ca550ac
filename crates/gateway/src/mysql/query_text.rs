//! Query text as UTF-8.
//!
//! Drivers put raw bytes into string literals (`_binary '…'`, or plain quotes in dumps), so a
//! query need not be UTF-8. Such a literal is rewritten as a hexadecimal one of the same bytes.

use std::borrow::Cow;

use manxdb_sql::error::{SqlError, SqlResult};

/// The text of a query; borrowed in the usual case that it is UTF-8 already.
///
/// # Errors
/// 1300 when bytes outside of literals are no UTF-8.
pub fn query_text(bytes: &[u8], no_backslash_escapes: bool) -> SqlResult<Cow<'_, str>> {
    // mariadb-slap counts the end of its C strings to the text.
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let mut rewriter = Rewriter {
        rest: bytes,
        out: Vec::with_capacity(bytes.len() * 2),
        no_backslash_escapes,
    };
    rewriter.run();
    String::from_utf8(rewriter.out)
        .map(Cow::Owned)
        .map_err(|error| {
            let start = error.utf8_error().valid_up_to();
            let shown = error
                .as_bytes()
                .iter()
                .skip(start)
                .take(6)
                .fold(String::new(), |text, b| text + &format!("\\x{b:02X}"));
            SqlError::new(
                1300,
                "HY000",
                format!("Invalid utf8mb4 character string: '{shown}'"),
            )
        })
}

const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

struct Rewriter<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
    no_backslash_escapes: bool,
}

impl Rewriter<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.rest.first() {
            match byte {
                b'\'' | b'"' => self.literal(byte),
                b'`' => self.copy_until(1, b"`"),
                b'/' if self.rest.starts_with(b"/*") => self.copy_until(2, b"*/"),
                b'#' => self.copy_until(1, b"\n"),
                b'-' if self.dashes_comment() => self.copy_until(2, b"\n"),
                _ => self.copy(1),
            }
        }
    }

    /// Two dashes begin a comment only before a blank, a control character or the end.
    fn dashes_comment(&self) -> bool {
        self.rest
            .strip_prefix(b"--")
            .is_some_and(|rest| rest.first().is_none_or(|byte| *byte <= b' '))
    }

    fn copy(&mut self, count: usize) {
        let (head, tail) = self.rest.split_at(count.min(self.rest.len()));
        self.out.extend_from_slice(head);
        self.rest = tail;
    }

    /// Copies an opening of `open` bytes and all up to and including `close`.
    fn copy_until(&mut self, open: usize, close: &[u8]) {
        let body = self.rest.get(open..).unwrap_or_default();
        let end = body
            .windows(close.len())
            .position(|w| w == close)
            .map_or(body.len(), |at| at + close.len());
        self.copy(open + end);
    }

    /// Copies a quoted literal, or writes it in hexadecimal when it is no UTF-8.
    fn literal(&mut self, quote: u8) {
        let Some((value, length)) = self.unquoted(quote) else {
            self.copy(self.rest.len()); // never closed: the parser will say so
            return;
        };
        if std::str::from_utf8(self.rest.get(..length).unwrap_or_default()).is_ok() {
            self.copy(length);
            return;
        }
        self.drop_introducer();
        self.out.extend_from_slice(b"X'");
        for byte in value {
            let digits = [
                HEX_DIGITS[usize::from(byte >> 4)],
                HEX_DIGITS[usize::from(byte & 15)],
            ];
            self.out.extend_from_slice(&digits);
        }
        self.out.push(b'\'');
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// The bytes a literal at the front stands for, and its length with quotes.
    fn unquoted(&self, quote: u8) -> Option<(Vec<u8>, usize)> {
        let mut value = Vec::new();
        let mut at = 1;
        loop {
            let byte = *self.rest.get(at)?;
            at += 1;
            if byte == quote {
                if self.rest.get(at) != Some(&quote) {
                    return Some((value, at));
                }
                value.push(quote);
                at += 1;
            } else if byte == b'\\' && !self.no_backslash_escapes {
                let escaped = *self.rest.get(at)?;
                at += 1;
                match escaped {
                    b'0' => value.push(0),
                    b'n' => value.push(b'\n'),
                    b'r' => value.push(b'\r'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'Z' => value.push(26),
                    b'%' | b'_' => value.extend_from_slice(&[b'\\', escaped]),
                    other => value.push(other),
                }
            } else {
                value.push(byte);
            }
        }
    }

    /// Removes a `_binary` just written: a hexadecimal literal is binary by itself.
    fn drop_introducer(&mut self) {
        let trimmed = self.out.trim_ascii_end().len();
        let introducer = b"_binary";
        let Some(start) = trimmed.checked_sub(introducer.len()) else {
            return;
        };
        if self.out[start..trimmed].eq_ignore_ascii_case(introducer) {
            self.out.truncate(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rewritten(bytes: &[u8]) -> String {
        query_text(bytes, false).unwrap().into_owned()
    }

    #[test]
    fn utf8_is_not_touched() {
        let text = "SELECT 'é', _binary 'a'";
        assert!(matches!(
            query_text(text.as_bytes(), false),
            Ok(Cow::Borrowed(t)) if t == text
        ));
    }

    #[test]
    fn the_end_of_a_c_string_is_not_part_of_the_text() {
        assert_eq!(rewritten(b"SELECT 1\0"), "SELECT 1");
        assert_eq!(rewritten(b"SELECT '\0'"), "SELECT '\0'");
    }

    #[test]
    fn raw_bytes_in_a_literal_become_hexadecimal() {
        assert_eq!(
            rewritten(b"INSERT INTO t VALUES (_binary'\xFF\\0\\'''', 'ok')"),
            "INSERT INTO t VALUES (X'FF002727', 'ok')"
        );
        assert_eq!(rewritten(b"SELECT \"\xFE\", 'a'"), "SELECT X'FE', 'a'");
    }

    #[test]
    fn a_quote_in_a_comment_begins_no_literal() {
        assert_eq!(
            rewritten(b"SELECT 1 --\tdon't\n, '\xFF' -- isn't\n"),
            "SELECT 1 --\tdon't\n, X'FF' -- isn't\n"
        );
        assert_eq!(rewritten(b"SELECT 5--'\xFF'"), "SELECT 5--X'FF'");
    }

    #[test]
    fn backslashes_are_plain_where_the_mode_says_so() {
        assert_eq!(
            query_text(b"SELECT '\xFF\\n'", true).unwrap(),
            "SELECT X'FF5C6E'"
        );
    }

    #[test]
    fn raw_bytes_outside_of_literals_are_refused() {
        for bytes in [
            &b"SELECT \xFF"[..],
            b"SELECT `\xFF`",
            b"/* \xFF */ SELECT 1",
            b"SELECT '\xFF",
        ] {
            assert_eq!(query_text(bytes, false).unwrap_err().code, 1300);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_in_a_literal_survive(value in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut query = b"SELECT '".to_vec();
            for byte in &value {
                match byte {
                    b'\'' => query.extend_from_slice(b"''"),
                    b'\\' => query.extend_from_slice(b"\\\\"),
                    other => query.push(*other),
                }
            }
            query.extend_from_slice(b"\xFF'");
            let hex = value.iter().fold(String::new(), |hex, b| hex + &format!("{b:02X}"));
            prop_assert_eq!(rewritten(&query), format!("SELECT X'{hex}FF'"));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = query_text(&bytes, false);
        }
    }
}
