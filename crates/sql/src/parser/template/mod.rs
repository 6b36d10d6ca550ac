//! A statement without its constants, so that texts which differ only in them share one plan.
//!
//! Applications that write their constants into the text (`… WHERE id = 17`) send a new text with
//! every request. [`template`] takes the constants out of the places where only their value can
//! matter, and leaves `?` there: elements of VALUES, and operands of a comparison, BETWEEN or IN
//! in WHERE and SET. Everywhere else a constant may decide more than a value (a column's name, an
//! order, a type, a limit), so it stays in the text and tells plans apart.
//!
//! This is a cheap look at the bytes, not a parse: whatever it does not know for certain (comments,
//! unusual quoting, an operator behind the constant) makes it leave the constant, or the whole
//! statement, alone.

use std::str::FromStr;

use crate::expr::SqlMode;
use crate::types::{Collation, DataType, Decimal, Value};

/// More constants than this are a bulk load that will not come again in the same shape.
const CONSTANTS_MAX: usize = 64;
/// Longest text looked at, bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Digits of a number that surely fits its type.
const DIGITS_MAX: usize = 18;

/// A text with `?` in place of its constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The text to plan.
    pub text: String,
    /// The constants, in the order of the text.
    pub values: Vec<Value>,
    /// Their types, by which plans are told apart too.
    pub types: Vec<DataType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word(Word),
    Variable,
    Compare,
    Open,
    Close,
    Comma,
    Minus,
    Text,
    Number,
    Other,
}

/// The words that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
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
struct Token {
    kind: Kind,
    from: usize,
    to: usize,
}

/// Takes the constants out of `text`; `None` when it holds none that may be taken, or anything
/// that this look does not understand.
#[must_use]
pub fn template(text: &str, mode: SqlMode, collation: Collation) -> Option<Template> {
    if text.len() > TEXT_BYTES_MAX || !is_templated(text) {
        return None;
    }
    let tokens = tokens(text, mode)?;
    let places = places(&tokens);
    if places.is_empty() || places.len() > CONSTANTS_MAX {
        return None;
    }
    let mut made = Template {
        text: String::with_capacity(text.len()),
        values: Vec::with_capacity(places.len()),
        types: Vec::with_capacity(places.len()),
    };
    let mut copied = 0;
    for at in places {
        let token = tokens.get(at)?;
        let (value, ty) = constant(text.get(token.from..token.to)?, token.kind, mode, collation)?;
        made.text.push_str(text.get(copied..token.from)?);
        made.text.push('?');
        made.values.push(value);
        made.types.push(ty);
        copied = token.to;
    }
    made.text.push_str(text.get(copied..)?);
    Some(made)
}

/// Whether the text begins with a statement that has templates.
fn is_templated(text: &str) -> bool {
    let word = text.trim_start().get(..6).unwrap_or_default();
    ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLAC"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// The text as tokens; `None` for comments, `?`, a second statement or an open quote.
fn tokens(text: &str, mode: SqlMode) -> Option<Vec<Token>> {
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

/// The part of a query that a token stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    /// Before anything else: only here does VALUES begin rows. Elsewhere it is a function, and
    /// VALUE may be a column.
    Start,
    Rows,
    Conditions,
    Other,
}

/// An open bracket, or the statement itself.
#[derive(Debug, Clone, Copy)]
struct Level {
    clause: Clause,
    /// The bracket is the list of an IN.
    is_list: bool,
    /// Words in it begin clauses: the statement, and queries in its conditions. Queries elsewhere
    /// keep all their constants, which may name a column.
    has_clauses: bool,
}

impl Level {
    /// The bracket that opens at `at` inside `self`.
    fn inner(self, tokens: &[Token], at: usize) -> Self {
        let is_query = after(tokens, at) == Some(Kind::Word(Word::Select));
        let has_clauses = is_query && self.clause == Clause::Conditions;
        // What a function is given may be part of an indexed expression, as written.
        let is_call = !is_query && before(tokens, at, 1) == Some(Kind::Word(Word::Name));
        let keeps_constants = has_clauses || (is_call && self.clause == Clause::Conditions);
        Self {
            clause: if keeps_constants {
                Clause::Other
            } else {
                self.clause
            },
            is_list: !is_query && before(tokens, at, 1) == Some(Kind::Word(Word::In)),
            has_clauses,
        }
    }
}

/// The tokens that may be taken out.
fn places(tokens: &[Token]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut level = Level {
        clause: Clause::Start,
        is_list: false,
        has_clauses: true,
    };
    let mut outer: Vec<Level> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => {
                outer.push(level);
                level = level.inner(tokens, at);
            }
            Kind::Close => level = outer.pop().unwrap_or(level),
            Kind::Word(word) if level.has_clauses => {
                level.clause = clause_after(level.clause, word);
            }
            Kind::Text | Kind::Number => {
                let may_go = match level.clause {
                    Clause::Rows => outer.len() == 1 && is_element(tokens, at),
                    Clause::Conditions if level.is_list => is_element(tokens, at),
                    Clause::Conditions => is_operand(tokens, at),
                    Clause::Start | Clause::Other => false,
                };
                if may_go {
                    places.push(at);
                }
            }
            _ => {}
        }
    }
    places
}

fn clause_after(clause: Clause, word: Word) -> Clause {
    match word {
        Word::Where | Word::Set => Clause::Conditions,
        Word::Values if clause == Clause::Start => Clause::Rows,
        Word::Clause | Word::Select => Clause::Other,
        _ => clause,
    }
}

fn before(tokens: &[Token], at: usize, steps: usize) -> Option<Kind> {
    let token = tokens.get(at.checked_sub(steps)?)?;
    Some(token.kind)
}

fn after(tokens: &[Token], at: usize) -> Option<Kind> {
    tokens.get(at + 1).map(|token| token.kind)
}

/// Whether the constant is, but for a sign, all there is between two commas or brackets.
fn is_element(tokens: &[Token], at: usize) -> bool {
    let first = match before(tokens, at, 1) {
        Some(Kind::Minus) => before(tokens, at, 2),
        other => other,
    };
    matches!(first, Some(Kind::Open | Kind::Comma))
        && matches!(after(tokens, at), Some(Kind::Close | Kind::Comma))
}

/// Whether the constant is a whole operand of a comparison or BETWEEN.
fn is_operand(tokens: &[Token], at: usize) -> bool {
    let ends = match after(tokens, at) {
        None | Some(Kind::Close | Kind::Comma) => true,
        Some(Kind::Word(word)) => {
            matches!(
                word,
                Word::And | Word::Junction | Word::Clause | Word::Where
            )
        }
        _ => false,
    };
    let back = |steps| before(tokens, at, steps);
    let is_compared = back(1) == Some(Kind::Compare)
        && matches!(back(2), Some(Kind::Word(Word::Name) | Kind::Close));
    let between = Some(Kind::Word(Word::Between));
    let is_lower = back(1) == between && after(tokens, at) == Some(Kind::Word(Word::And));
    let is_upper = back(1) == Some(Kind::Word(Word::And)) && back(3) == between;
    ends && (is_compared || is_lower || is_upper)
}

/// The value that parsing would find in `text`.
fn constant(
    text: &str,
    kind: Kind,
    mode: SqlMode,
    collation: Collation,
) -> Option<(Value, DataType)> {
    if kind == Kind::Text {
        let inner = text.get(1..text.len().checked_sub(1)?)?;
        let ty = DataType::Varchar {
            length: u32::try_from(TEXT_BYTES_MAX).ok()?,
            collation,
        };
        return Some((Value::Text(unescaped(inner, mode)?), ty));
    }
    if text.contains('.') {
        let ty = DataType::Decimal {
            precision: 65,
            scale: 30,
            unsigned: false,
        };
        let value = Decimal::from_str(text).ok()?;
        return Some((Value::Decimal(Box::new(value)), ty));
    }
    Some((Value::Int(text.parse().ok()?), DataType::BIGINT))
}

/// Text between single quotes with doubled quotes and escapes resolved.
fn unescaped(inner: &str, mode: SqlMode) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => out.push(chars.next()?),
            '\\' if !mode.no_backslash_escapes => match chars.next()? {
                '0' => out.push('\0'),
                'b' => out.push('\u{8}'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'Z' => out.push('\u{1a}'),
                // LIKE gives these two their meaning, so the escape stays.
                wildcard @ ('%' | '_') => out.extend(['\\', wildcard]),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Option<(String, String)> {
        let template = template(text, SqlMode::default(), Collation::default())?;
        let values: Vec<String> = template
            .values
            .iter()
            .map(|value| match value {
                Value::Text(text) => format!("{text:?}"),
                Value::Int(number) => number.to_string(),
                Value::Decimal(number) => number.to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(template.types.len(), values.len());
        Some((template.text, values.join(" ")))
    }

    #[track_caller]
    fn becomes(text: &str, template: &str, values: &str) {
        assert_eq!(made(text), Some((template.into(), values.into())));
    }

    #[test]
    fn rows_of_values_give_up_their_constants() {
        becomes(
            "INSERT INTO t (a, b) VALUES (1, 'x'),(-2.50, NOW()) ;",
            "INSERT INTO t (a, b) VALUES (?, ?),(-?, NOW()) ;",
            r#"1 "x" 2.50"#,
        );
        becomes(
            "insert into t values (0,'it''s\\n\\'\\%') on duplicate key update a = 5",
            "insert into t values (?,?) on duplicate key update a = 5",
            r#"0 "it's\n'\\%""#,
        );
    }

    #[test]
    fn operands_in_conditions_and_assignments_are_taken() {
        becomes(
            "SELECT a, 5 FROM t WHERE `a`=5 AND (t.b >= 'é' OR c BETWEEN 1 AND 2) AND d IN (3, 4) ORDER BY 1 LIMIT 6",
            "SELECT a, 5 FROM t WHERE `a`=? AND (t.b >= ? OR c BETWEEN ? AND ?) AND d IN (?, ?) ORDER BY 1 LIMIT 6",
            r#"5 "é" 1 2 3 4"#,
        );
        becomes(
            "UPDATE t SET a = 1, b = b + 2, c = 'z' WHERE id = 7",
            "UPDATE t SET a = ?, b = b + 2, c = ? WHERE id = ?",
            r#"1 "z" 7"#,
        );
        becomes(
            "DELETE FROM t WHERE LOWER(a) = 'x'",
            "DELETE FROM t WHERE LOWER(a) = ?",
            r#""x""#,
        );
    }

    #[test]
    fn a_constant_that_decides_more_than_a_value_stays() {
        for text in [
            "SELECT a = 5 FROM t",
            "SELECT (SELECT 1 FROM t WHERE a = 5)",
            "SELECT a FROM t WHERE a = 5 + 1",
            "SELECT a FROM t WHERE a = 'x' 'y'",
            "SELECT a FROM t WHERE a = 'x' COLLATE utf8mb4_bin",
            "SELECT a FROM t WHERE a = _latin1'x'",
            "SELECT a FROM t WHERE a = x'41' AND b = 0x41 AND c = 1e3 AND d = 5.",
            "SELECT a FROM t WHERE a = DATE '2020-01-01'",
            "SELECT a FROM t WHERE a LIKE 'x%'",
            "SELECT a FROM t WHERE j->'$.a' = 5",
            "SELECT a FROM t WHERE IF(a = 5, b, c) IS NULL",
            "SELECT a FROM t WHERE @x = 5",
            "SELECT a FROM t WHERE a := 5",
            "SELECT a FROM t WHERE a = \"x\"",
            "SELECT a FROM t WHERE a > 1234567890123456789",
            "SELECT a FROM t GROUP BY a HAVING a = 5",
            "SELECT a FROM t LIMIT 5",
            "SET a = 5",
            "SELECT value, ROUND(price, 2) FROM t",
            "UPDATE t SET value = NOW(3)",
            "INSERT INTO t SET value = ROUND(1.25, 1)",
            "SELECT a FROM t WHERE (a, b, c) IN (SELECT a, b, c FROM u GROUP BY 1, 2, 3)",
            "SELECT a FROM t WHERE a IN (SELECT b, 5, c FROM u)",
            "SELECT a FROM t WHERE a IN (SELECT a = 5, b FROM u GROUP BY a = 5, b)",
        ] {
            assert_eq!(made(text), None, "{text}");
        }
    }

    #[test]
    fn the_values_of_a_duplicate_row_begin_no_rows() {
        becomes(
            "INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a), at = NOW(3)",
            "INSERT INTO t VALUES (?, ?) ON DUPLICATE KEY UPDATE a = VALUES(a), at = NOW(3)",
            "1 2",
        );
    }

    #[test]
    fn a_query_in_a_condition_gives_up_the_constants_of_its_own_conditions() {
        becomes(
            "DELETE FROM t WHERE a IN (SELECT b FROM u WHERE c = 5 AND d IN (6, 7) ORDER BY 1, 2, 3) AND e = 8",
            "DELETE FROM t WHERE a IN (SELECT b FROM u WHERE c = ? AND d IN (?, ?) ORDER BY 1, 2, 3) AND e = ?",
            "5 6 7 8",
        );
    }

    #[test]
    fn a_backslash_in_a_quoted_name_escapes_nothing() {
        let mode = SqlMode {
            ansi_quotes: true,
            ..SqlMode::default()
        };
        let text = "SELECT \"a\\\" FROM t WHERE b = '\"' AND c = 5";
        let made = template(text, mode, Collation::default()).unwrap();
        assert_eq!(made.text, "SELECT \"a\\\" FROM t WHERE b = ? AND c = ?");
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for text in [
            "SELECT a FROM t WHERE a = 5 -- 6",
            "SELECT a FROM t WHERE /* 4 */ a = 5",
            "SELECT a FROM t WHERE a = 5 # 6",
            "SELECT a FROM t WHERE a = 5; DROP TABLE t",
            "SELECT a FROM t WHERE b = ? AND a = 5",
            "SELECT a FROM t WHERE a = 'open",
            "SELECT a FROM t WHERE a = 'open\\'",
            "",
        ] {
            assert_eq!(made(text), None, "{text}");
        }
    }

    #[test]
    fn backslashes_are_text_when_the_mode_says_so() {
        let mode = SqlMode {
            no_backslash_escapes: true,
            ..SqlMode::default()
        };
        let made = template(r"SELECT a FROM t WHERE a = '\'", mode, Collation::default());
        assert_eq!(made.unwrap().values, [Value::Text("\\".into())]);
    }

    /// The parser is the judge of what a constant's text means.
    #[test]
    fn constants_have_the_values_that_parsing_finds() {
        for inner in [
            "",
            "a",
            "''",
            "\\\\",
            "\\q",
            "\\Z\\0\\b\\t",
            "\\%\\_",
            "日本",
            "a\\\nb",
        ] {
            let text = format!("SELECT a FROM t WHERE a = '{inner}'");
            let template = template(&text, SqlMode::default(), Collation::default()).unwrap();
            let parsed = super::super::parse(&text, SqlMode::default()).unwrap();
            let shown = format!("{:?}", parsed[0].statement);
            let Value::Text(value) = &template.values[0] else {
                panic!("not text")
            };
            let wanted = format!("SingleQuotedString({value:?})");
            assert!(shown.contains(&wanted), "{wanted} is not in {shown}");
        }
    }
}
