//! `LOAD DATA`, and how the lines of text files look: to it and to `SELECT … INTO OUTFILE`.

use sqlparser::ast::{Assignment, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::tree::Special;
use super::words::{expect, peek_is, take, take_all, take_any};

/// `LOAD DATA [LOCAL] INFILE`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadData {
    /// The client has the file.
    pub local: bool,
    /// The file's name as written.
    pub file: String,
    /// REPLACE.
    pub replace: bool,
    /// IGNORE.
    pub ignore: bool,
    /// The table.
    pub table: ObjectName,
    /// CHARACTER SET.
    pub charset: Option<String>,
    /// FIELDS and LINES.
    pub format: LineFormat,
    /// `IGNORE n LINES`.
    pub skipped_lines: u64,
    /// Where the fields of a line go; empty for the table's columns in their order.
    pub targets: Vec<LoadTarget>,
    /// SET.
    pub assignments: Vec<Assignment>,
}

/// Where a field goes.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadTarget {
    /// A column.
    Column(ObjectName),
    /// A user variable, without `@`.
    Variable(String),
}

/// FIELDS and LINES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFormat {
    /// FIELDS TERMINATED BY.
    pub field_end: Vec<u8>,
    /// ENCLOSED BY.
    pub quote: Option<u8>,
    /// OPTIONALLY: only text is enclosed when written.
    pub optionally: bool,
    /// ESCAPED BY.
    pub escape: Option<u8>,
    /// LINES STARTING BY.
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_end: Vec<u8>,
}

impl LineFormat {
    /// Whether fields have the widths of their columns, and nothing between them.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.field_end.is_empty() && self.quote.is_none()
    }
}

impl Default for LineFormat {
    fn default() -> Self {
        Self {
            field_end: b"\t".to_vec(),
            quote: None,
            optionally: false,
            escape: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

/// `SELECT … INTO OUTFILE` and `INTO DUMPFILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntoFile {
    /// The file's name as written.
    pub file: String,
    /// How rows are written; `None` for DUMPFILE: one row, its values as they are.
    pub format: Option<LineFormat>,
}

fn error<T>(text: impl Into<String>) -> Result<T, ParserError> {
    Err(ParserError::ParserError(text.into()))
}

/// Everything from LOAD on.
pub(super) fn load(parser: &mut Parser) -> Result<Special, ParserError> {
    expect(parser, "LOAD")?;
    if !take(parser, "DATA") {
        return error("unsupported: LOAD of something else than DATA");
    }
    let _ = take_any(parser, &["LOW_PRIORITY", "CONCURRENT"]);
    let local = take(parser, "LOCAL");
    expect(parser, "INFILE")?;
    let file = text(parser)?;
    let replace = take(parser, "REPLACE");
    let ignore = !replace && take(parser, "IGNORE");
    expect(parser, "INTO")?;
    expect(parser, "TABLE")?;
    let table = parser.parse_object_name(false)?;
    let charset = charset(parser)?;
    let format = line_format(parser)?;
    let skipped_lines = skipped(parser)?;
    let targets = if parser.consume_token(&Token::LParen) {
        let targets = if parser.peek_token_ref().token == Token::RParen {
            Vec::new()
        } else {
            parser.parse_comma_separated(target)?
        };
        parser.expect_token(&Token::RParen)?;
        targets
    } else {
        Vec::new()
    };
    let assignments = if take(parser, "SET") {
        parser.parse_comma_separated(Parser::parse_assignment)?
    } else {
        Vec::new()
    };
    Ok(Special::LoadData(Box::new(LoadData {
        local,
        file,
        replace,
        ignore,
        table,
        charset,
        format,
        skipped_lines,
        targets,
        assignments,
    })))
}

/// What stands behind INTO OUTFILE and INTO DUMPFILE.
pub(super) fn into_file(parser: &mut Parser) -> Result<IntoFile, ParserError> {
    if take(parser, "DUMPFILE") {
        let file = text(parser)?;
        return Ok(IntoFile { file, format: None });
    }
    expect(parser, "OUTFILE")?;
    let file = text(parser)?;
    // Text is UTF-8 and goes out so.
    if let Some(name) = charset(parser)?
        && !["utf8mb4", "utf8", "utf8mb3", "binary"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    {
        return error(format!("unsupported: INTO OUTFILE CHARACTER SET {name}"));
    }
    let format = line_format(parser)?;
    Ok(IntoFile {
        file,
        format: Some(format),
    })
}

fn charset(parser: &mut Parser) -> Result<Option<String>, ParserError> {
    if !take_all(parser, &["CHARACTER", "SET"]) && !take(parser, "CHARSET") {
        return Ok(None);
    }
    match parser.next_token().token {
        Token::Word(word) => Ok(Some(word.value)),
        Token::SingleQuotedString(name) | Token::DoubleQuotedString(name) => Ok(Some(name)),
        other => error(format!("Expected: a character set, found: {other}")),
    }
}

fn target(parser: &mut Parser) -> Result<LoadTarget, ParserError> {
    if let Token::Word(word) = &parser.peek_token_ref().token
        && let Some(name) = word.value.strip_prefix('@')
        && word.quote_style.is_none()
    {
        let name = name.to_string();
        parser.advance_token();
        return Ok(LoadTarget::Variable(name));
    }
    parser.parse_object_name(false).map(LoadTarget::Column)
}

fn skipped(parser: &mut Parser) -> Result<u64, ParserError> {
    if !take(parser, "IGNORE") {
        return Ok(0);
    }
    let lines = parser.parse_literal_uint()?;
    if take_any(parser, &["LINES", "ROWS"]).is_none() {
        expect(parser, "LINES")?;
    }
    Ok(lines)
}

/// FIELDS and LINES, each or none.
fn line_format(parser: &mut Parser) -> Result<LineFormat, ParserError> {
    let mut format = LineFormat::default();
    if take_any(parser, &["FIELDS", "COLUMNS"]).is_some() {
        fields(parser, &mut format)?;
    }
    if take(parser, "LINES") {
        loop {
            if take_all(parser, &["TERMINATED", "BY"]) {
                format.line_end = bytes(parser)?;
            } else if take_all(parser, &["STARTING", "BY"]) {
                format.line_start = bytes(parser)?;
            } else {
                break;
            }
        }
    }
    Ok(format)
}

fn fields(parser: &mut Parser, format: &mut LineFormat) -> Result<(), ParserError> {
    loop {
        if take_all(parser, &["TERMINATED", "BY"]) {
            format.field_end = bytes(parser)?;
        } else if peek_is(parser, "OPTIONALLY") || peek_is(parser, "ENCLOSED") {
            format.optionally = take(parser, "OPTIONALLY");
            expect(parser, "ENCLOSED")?;
            expect(parser, "BY")?;
            format.quote = one_byte(parser)?;
        } else if take_all(parser, &["ESCAPED", "BY"]) {
            format.escape = one_byte(parser)?;
        } else {
            return Ok(());
        }
    }
}

/// One byte or none; 1083 in MySQL for more.
fn one_byte(parser: &mut Parser) -> Result<Option<u8>, ParserError> {
    match bytes(parser)?.as_slice() {
        [] => Ok(None),
        [byte] => Ok(Some(*byte)),
        _ => error("unsupported: ENCLOSED BY or ESCAPED BY with more than one character"),
    }
}

fn text(parser: &mut Parser) -> Result<String, ParserError> {
    match parser.next_token().token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Ok(text),
        other => error(format!("Expected: a text literal, found: {other}")),
    }
}

fn bytes(parser: &mut Parser) -> Result<Vec<u8>, ParserError> {
    match parser.next_token().token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Ok(text.into_bytes()),
        Token::HexStringLiteral(digits) => {
            hex::decode(digits).or_else(|_| error("Expected: pairs of hexadecimal digits"))
        }
        other => error(format!("Expected: a text literal, found: {other}")),
    }
}
