//! Cuts text into statements at `;` and `\G`, outside of quotes and comments.

/// How a statement's rows are to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Ended by `;`.
    Rows,
    /// Ended by `\G`: one column a line.
    Vertical,
}

/// One piece of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A statement without its end.
    Statement(String, Layout),
    /// `\c`: what was typed so far is dropped.
    Cleared,
}

/// Collects lines until statements are complete.
#[derive(Debug, Default)]
pub struct Splitter {
    pending: String,
    /// Bytes of `pending` looked at already.
    scanned: usize,
    inside: Inside,
}

/// What the scan is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    #[default]
    Nothing,
    Quotes(u8),
    LineComment,
    BlockComment,
}

impl Splitter {
    /// Whether no statement has begun.
    pub fn is_empty(&self) -> bool {
        self.pending.trim().is_empty()
    }

    /// The quote or comment that is open, for the prompt.
    pub fn open_quote(&self) -> Option<char> {
        match self.inside {
            Inside::Quotes(quote) => Some(char::from(quote)),
            Inside::BlockComment => Some('*'),
            _ => None,
        }
    }

    /// Adds text and takes out the statements it completes.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        self.pending.push_str(text);
        let mut pieces = Vec::new();
        while let Some(piece) = self.next_piece() {
            match &piece {
                Piece::Statement(statement, _) if statement.is_empty() => {}
                _ => pieces.push(piece),
            }
        }
        pieces
    }

    /// The end of input completes the last statement.
    pub fn finish(&mut self) -> Option<Piece> {
        let rest = std::mem::take(self).pending;
        let rest = rest.trim();
        let only_comments = {
            let mut splitter = Splitter {
                pending: format!("{rest}\n;"),
                ..Splitter::default()
            };
            !splitter.has_code()
        };
        (!only_comments).then(|| Piece::Statement(rest.to_owned(), Layout::Rows))
    }

    /// Whether anything but comments and blanks stands before the end.
    fn has_code(&mut self) -> bool {
        while let Some(&byte) = self.pending.as_bytes().get(self.scanned) {
            let was = self.inside;
            self.step(byte);
            let blank = byte.is_ascii_whitespace() || byte == b';';
            if was == Inside::Nothing && self.inside == Inside::Nothing && !blank {
                return true;
            }
            if matches!(self.inside, Inside::Quotes(_)) {
                return true;
            }
        }
        false
    }

    fn next_piece(&mut self) -> Option<Piece> {
        while let Some(&byte) = self.pending.as_bytes().get(self.scanned) {
            if self.inside == Inside::Nothing {
                let end = match (byte, self.byte_after()) {
                    (b';', _) => Some((1, Some(Layout::Rows))),
                    (b'\\', Some(b'G')) => Some((2, Some(Layout::Vertical))),
                    (b'\\', Some(b'g')) => Some((2, Some(Layout::Rows))),
                    (b'\\', Some(b'c')) => Some((2, None)),
                    _ => None,
                };
                if let Some((length, layout)) = end {
                    return Some(self.cut(length, layout));
                }
            }
            if byte == b'\\' && self.byte_after().is_none() && self.inside == Inside::Nothing {
                return None; // what it escapes has not been typed yet
            }
            self.step(byte);
        }
        None
    }

    fn byte_after(&self) -> Option<u8> {
        self.pending.as_bytes().get(self.scanned + 1).copied()
    }

    /// Takes the statement that ends here, with `length` bytes of terminator.
    fn cut(&mut self, length: usize, layout: Option<Layout>) -> Piece {
        let rest = self.pending.split_off(self.scanned + length);
        let mut statement = std::mem::replace(&mut self.pending, rest);
        statement.truncate(self.scanned);
        self.scanned = 0;
        match layout {
            Some(layout) => Piece::Statement(statement.trim().to_owned(), layout),
            None => Piece::Cleared,
        }
    }

    /// Walks over one byte, or two where they belong together.
    fn step(&mut self, byte: u8) {
        let next = self.byte_after();
        let mut length = 1;
        self.inside = match (self.inside, byte, next) {
            (Inside::Nothing, b'\'' | b'"' | b'`', _) => Inside::Quotes(byte),
            (Inside::Nothing, b'#', _) => Inside::LineComment,
            (Inside::Nothing, b'-', Some(b'-')) if self.dashes_comment() => Inside::LineComment,
            (Inside::Nothing, b'/', Some(b'*')) => {
                length = 2;
                Inside::BlockComment
            }
            (Inside::Quotes(quote), b'\\', Some(_)) if quote != b'`' => {
                length = 2;
                self.inside
            }
            (Inside::Quotes(quote), _, _) if byte == quote => Inside::Nothing,
            (Inside::LineComment, b'\n', _) => Inside::Nothing,
            (Inside::BlockComment, b'*', Some(b'/')) => {
                length = 2;
                Inside::Nothing
            }
            (inside, _, _) => inside,
        };
        self.scanned += length;
    }

    /// Two dashes begin a comment only before a blank or the end.
    fn dashes_comment(&self) -> bool {
        self.pending
            .as_bytes()
            .get(self.scanned + 2)
            .is_none_or(u8::is_ascii_whitespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut pieces = splitter.push(text);
        pieces.extend(splitter.finish());
        pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Statement(text, Layout::Rows) => text,
                Piece::Statement(text, Layout::Vertical) => format!("{text} [vertical]"),
                Piece::Cleared => "[cleared]".to_owned(),
            })
            .collect()
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        assert_eq!(
            statements("SELECT ';' ; SELECT \"a\\\";\"; -- no; end\nSELECT `;` /* ; */; SELECT 1"),
            [
                "SELECT ';'",
                "SELECT \"a\\\";\"",
                "-- no; end\nSELECT `;` /* ; */",
                "SELECT 1"
            ]
        );
    }

    #[test]
    fn a_backslash_g_asks_for_vertical_output() {
        assert_eq!(
            statements("SELECT 1\\G SELECT '\\\\G';"),
            ["SELECT 1 [vertical]", "SELECT '\\\\G'"]
        );
    }

    #[test]
    fn a_statement_may_arrive_in_lines() {
        let mut splitter = Splitter::default();
        assert!(splitter.push("SELECT 'a\n").is_empty());
        assert_eq!(splitter.open_quote(), Some('\''));
        let pieces = splitter.push("b';\n");
        assert_eq!(
            pieces,
            [Piece::Statement("SELECT 'a\nb'".to_owned(), Layout::Rows)]
        );
        assert!(splitter.is_empty());
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert!(statements("-- only\n# comments\n/* here */\n;;").len() <= 1);
        assert!(Splitter::default().finish().is_none());
        let mut splitter = Splitter::default();
        splitter.push("-- trailing remark");
        assert_eq!(splitter.finish(), None);
    }

    #[test]
    fn what_was_typed_can_be_dropped() {
        assert_eq!(
            statements("SELECT oops\\c SELECT 1;"),
            ["[cleared]", "SELECT 1"]
        );
    }

    #[test]
    fn text_in_other_alphabets_is_cut_between_characters() {
        assert_eq!(
            statements("SELECT 'žluťoučký;'; SELECT 'кот'"),
            ["SELECT 'žluťoučký;'", "SELECT 'кот'"]
        );
    }
}
