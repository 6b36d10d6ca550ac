//! A text as tokens, told apart as far as the places of constants depend on them.

use crate::types::SqlMode;

/// Digits of a number that surely fits its type.
const DIGITS_MAX: usize = 18;

/// What a token is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word(Word),
    /// `@name` or `@@name`.
    Variable,
    /// An operator that begins with `=`, `<`, `>` or `!`.
    Compare,
    Open,
    Close,
    Comma,
    Minus,
    /// Between single quotes.
    Text,
    /// Plain digits, as [`number`] takes them.
    Number,
    Other,
}

/// The words that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    And,
    Between,
    In,
    Select,
    Set,
    Values,
    Where,
    /// Ends a condition: GROUP, ORDER, LIMIT and their kin.
    Clause,
    /// Joins conditions or turns them round: OR, XOR, NOT.
    Junction,
    Name,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Where it begins in the text, bytes.
    pub(super) from: usize,
    /// Behind its last byte.
    pub(super) to: usize,
}

/// The text as tokens; `None` for comments, `?`, a second statement or an open quote.
pub(super) fn tokens(text: &str, mode: SqlMode) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(bytes.len() / 5 + 8);
    let mut from = 0;
    while let Some(&byte) = bytes.get(from) {
        if byte.is_ascii_whitespace() {
            from += 1;
            continue;
        }
        let next = bytes.get(from + 1).copied().unwrap_or(b' ');
        let (kind, to) = match byte {
            b'\'' => (Kind::Text, quoted_end(bytes, from, mode)?),
            b'"' | b'`' => (Kind::Word(Word::Name), quoted_end(bytes, from, mode)?),
            b'0'..=b'9' => number(bytes, from),
            b'@' => (Kind::Variable, word_end(bytes, from + 1)),
            b'(' => (Kind::Open, from + 1),
            b')' => (Kind::Close, from + 1),
            b',' => (Kind::Comma, from + 1),
            b'=' | b'<' | b'>' | b'!' => (Kind::Compare, operator_end(bytes, from)),
            b'-' if next == b'-' => return None,
            b'-' if next != b'>' => (Kind::Minus, from + 1),
            b'/' if next == b'*' => return None,
            b'#' | b'?' | b'\\' => return None,
            b';' if text.get(from + 1..)?.trim().is_empty() => break,
            b';' => return None,
            _ if is_word_byte(byte) => {
                let to = word_end(bytes, from);
                (Kind::Word(word(text.get(from..to)?)), to)
            }
            _ => (Kind::Other, operator_end(bytes, from + 1)),
        };
        // `"…"` is text or a name, depending on the mode: left alone, but known to be there.
        let kind = if byte == b'"' { Kind::Other } else { kind };
        tokens.push(Token { kind, from, to });
        from = to;
    }
    Some(tokens)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.') || !byte.is_ascii()
}

fn word_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let length = rest.iter().take_while(|byte| is_word_byte(**byte)).count();
    from + length
}

/// Behind a run of operator characters: `<=>` is one token, and so is `->>`.
fn operator_end(bytes: &[u8], from: usize) -> usize {
    let is_operator = |byte: &&u8| matches!(**byte, b'=' | b'<' | b'>' | b'!' | b'|' | b'&' | b':');
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(is_operator).count()
}

/// Behind the quote that closes the one at `from`; `None` when none does.
fn quoted_end(bytes: &[u8], from: usize, mode: SqlMode) -> Option<usize> {
    let quote = *bytes.get(from)?;
    let is_name = quote == b'`' || (quote == b'"' && mode.ansi_quotes);
    let escapes = !is_name && !mode.no_backslash_escapes;
    let mut at = from + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// A number of plain digits with at most one point in it; anything else is not looked into.
fn number(bytes: &[u8], from: usize) -> (Kind, usize) {
    let to = word_end(bytes, from);
    let digits = bytes.get(from..to).unwrap_or_default();
    let parts = digits.split(|byte| *byte == b'.').count();
    let is_plain = digits
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && parts <= 2
        && digits.last() != Some(&b'.')
        && digits.len() <= DIGITS_MAX;
    (if is_plain { Kind::Number } else { Kind::Other }, to)
}

/// What a word means here, in any case.
fn word(text: &str) -> Word {
    const WORDS: [(&str, Word); 20] = [
        ("AND", Word::And),
        ("BETWEEN", Word::Between),
        ("IN", Word::In),
        ("SELECT", Word::Select),
        ("SET", Word::Set),
        ("VALUES", Word::Values),
        ("VALUE", Word::Values),
        ("WHERE", Word::Where),
        ("GROUP", Word::Clause),
        ("HAVING", Word::Clause),
        ("WINDOW", Word::Clause),
        ("ORDER", Word::Clause),
        ("LIMIT", Word::Clause),
        ("FOR", Word::Clause),
        ("LOCK", Word::Clause),
        ("UNION", Word::Clause),
        ("ON", Word::Clause),
        ("OR", Word::Junction),
        ("NOT", Word::Junction),
        ("XOR", Word::Junction),
    ];
    if text.len() > 7 {
        return Word::Name;
    }
    let known = WORDS
        .iter()
        .find(|(spelling, _)| spelling.eq_ignore_ascii_case(text));
    known.map_or(Word::Name, |(_, word)| *word)
}
