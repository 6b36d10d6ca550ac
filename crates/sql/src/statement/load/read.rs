//! Lines of a text file, field by field, in bounded memory.

use std::io::Read;

use crate::error::{SqlError, SqlResult};
use crate::parser::LineFormat;

/// Bytes asked of the file at a time.
const BLOCK: usize = 32 * 1024;

/// Bytes that a line without field ends has for a column without a width.
const WITHOUT_WIDTH: usize = 256;

/// One field of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its bytes, unescaped; `None` for NULL.
    pub bytes: Option<Vec<u8>>,
}

/// How a field ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Field,
    Line,
    File,
}

/// Reads the lines of a file.
pub(crate) struct LineReader<'a> {
    file: &'a mut dyn Read,
    format: &'a LineFormat,
    /// Longest line, bytes.
    line_max: usize,
    block: Vec<u8>,
    /// Unread bytes of the block begin here.
    at: usize,
    at_end: bool,
}

impl<'a> LineReader<'a> {
    /// Reads `file`; a line of more than `line_max` bytes is an error.
    pub(crate) fn new(file: &'a mut dyn Read, format: &'a LineFormat, line_max: usize) -> Self {
        Self {
            file,
            format,
            line_max,
            block: Vec::new(),
            at: 0,
            at_end: false,
        }
    }

    /// The next line's fields; `None` at the end of the file.
    ///
    /// # Errors
    /// The file's; 1153 for a line that is too long.
    pub(crate) fn next_line(&mut self) -> SqlResult<Option<Vec<Field>>> {
        if !self.find_start()? || self.peek(0)?.is_none() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        let mut length = 0;
        loop {
            let (field, ending) = self.field(&mut length)?;
            // A field end before the end of the file promises nothing more.
            let nothing = ending == Ending::File && field.bytes.as_deref() == Some(b"");
            if !(nothing && fields.is_empty()) {
                fields.push(field);
            }
            if ending != Ending::Field {
                return Ok(if fields.is_empty() {
                    None
                } else {
                    Some(fields)
                });
            }
        }
    }

    /// The next line's fields, which have `widths` bytes and nothing between them; the last may be
    /// shorter, and one without a width ends with its line. `None` at the end of the file.
    ///
    /// # Errors
    /// As [`LineReader::next_line`].
    pub(crate) fn next_fixed(&mut self, widths: &[Option<usize>]) -> SqlResult<Option<Vec<Field>>> {
        if !self.find_start()? || self.peek(0)?.is_none() {
            return Ok(None);
        }
        let line_bytes: usize = widths.iter().map(|it| it.unwrap_or(WITHOUT_WIDTH)).sum();
        let (line, mut is_surplus) = self.fixed_line(line_bytes)?;
        let mut rest = line.as_slice();
        let mut fields = Vec::with_capacity(widths.len() + 1);
        for width in widths {
            if rest.is_empty() {
                break;
            }
            let width = width.unwrap_or(rest.len()).min(rest.len());
            let (field, behind) = rest.split_at(width);
            let bytes = Some(field.to_vec());
            fields.push(Field { bytes });
            rest = behind;
        }
        is_surplus |= !rest.is_empty();
        if is_surplus {
            let bytes = Some(rest.to_vec());
            fields.push(Field { bytes });
        }
        Ok(Some(fields))
    }

    /// Up to `line_bytes` bytes of a line, and whether it has more. Its end is taken too.
    fn fixed_line(&mut self, line_bytes: usize) -> SqlResult<(Vec<u8>, bool)> {
        let mut line = Vec::new();
        let mut length = 0;
        while line.len() < line_bytes {
            if self.take(&self.format.line_end)? {
                return Ok((line, false));
            }
            let Some(byte) = self.next()? else {
                return Ok((line, false));
            };
            let escaped = if Some(byte) == self.format.escape {
                self.next()?.map(unescaped)
            } else {
                None
            };
            self.push(&mut line, escaped.unwrap_or(byte), &mut length)?;
        }
        if self.format.line_end.is_empty() || self.take(&self.format.line_end)? {
            return Ok((line, false));
        }
        let has_more = self.peek(0)?.is_some();
        self.skip_line()?;
        Ok((line, has_more))
    }

    /// Passes over one line, whatever its fields; false at the end of the file.
    ///
    /// # Errors
    /// The file's.
    pub(crate) fn skip_line(&mut self) -> SqlResult<bool> {
        let mut any = false;
        loop {
            if self.take(&self.format.line_end)? {
                return Ok(true);
            }
            if self.next()?.is_none() {
                return Ok(any);
            }
            any = true;
        }
    }

    /// Passes over everything up to and including LINES STARTING BY.
    fn find_start(&mut self) -> SqlResult<bool> {
        if self.format.line_start.is_empty() {
            return Ok(true);
        }
        loop {
            if self.take(&self.format.line_start)? {
                return Ok(true);
            }
            if self.next()?.is_none() {
                return Ok(false);
            }
        }
    }

    fn field(&mut self, length: &mut usize) -> SqlResult<(Field, Ending)> {
        let quote = self.format.quote;
        if quote.is_some() && self.peek(0)? == quote {
            self.at += 1;
            return self.quoted(length);
        }
        let mut bytes = Vec::new();
        let mut null = false;
        let ending = loop {
            if let Some(ending) = self.ending()? {
                break ending;
            }
            let Some(byte) = self.next()? else {
                break Ending::File;
            };
            if Some(byte) == self.format.escape {
                let Some(escaped) = self.next()? else {
                    bytes.push(byte);
                    break Ending::File;
                };
                null = bytes.is_empty() && escaped == b'N';
                self.push(&mut bytes, unescaped(escaped), length)?;
            } else {
                self.push(&mut bytes, byte, length)?;
            }
        };
        let word = quote.is_some() && bytes == b"NULL";
        null = word || null && bytes == b"N";
        let bytes = (!null).then_some(bytes);
        Ok((Field { bytes }, ending))
    }

    /// A field behind its opening quote. A quote inside is doubled or escaped, or is one that no
    /// end follows.
    fn quoted(&mut self, length: &mut usize) -> SqlResult<(Field, Ending)> {
        let mut bytes = Vec::new();
        let ending = loop {
            let Some(byte) = self.next()? else {
                break Ending::File; // the closing quote is missing
            };
            if Some(byte) == self.format.quote {
                if self.peek(0)? == Some(byte) {
                    self.at += 1;
                } else if let Some(ending) = self.ending()? {
                    break ending;
                } else if self.peek(0)?.is_none() {
                    break Ending::File;
                }
                self.push(&mut bytes, byte, length)?;
            } else if Some(byte) == self.format.escape {
                let Some(escaped) = self.next()? else {
                    break Ending::File;
                };
                self.push(&mut bytes, unescaped(escaped), length)?;
            } else {
                self.push(&mut bytes, byte, length)?;
            }
        };
        Ok((Field { bytes: Some(bytes) }, ending))
    }

    /// Takes the end of a field or line when it comes next.
    fn ending(&mut self) -> SqlResult<Option<Ending>> {
        if self.take(&self.format.line_end)? {
            return Ok(Some(Ending::Line));
        }
        Ok(self.take(&self.format.field_end)?.then_some(Ending::Field))
    }

    fn push(&self, bytes: &mut Vec<u8>, byte: u8, length: &mut usize) -> SqlResult<()> {
        *length += 1;
        if *length > self.line_max {
            return Err(SqlError::new(
                1153,
                "08S01",
                format!(
                    "Got a packet bigger than 'max_allowed_packet' bytes: a line of the file has more than {} bytes",
                    self.line_max
                ),
            ));
        }
        bytes.push(byte);
        Ok(())
    }

    /// Takes `wanted`, which is nothing when empty, if it comes next.
    fn take(&mut self, wanted: &[u8]) -> SqlResult<bool> {
        for (ahead, byte) in wanted.iter().enumerate() {
            if self.peek(ahead)? != Some(*byte) {
                return Ok(false);
            }
        }
        self.at += wanted.len();
        Ok(!wanted.is_empty())
    }

    fn next(&mut self) -> SqlResult<Option<u8>> {
        let byte = self.peek(0)?;
        self.at += usize::from(byte.is_some());
        Ok(byte)
    }

    /// The byte `ahead` of the next one.
    fn peek(&mut self, ahead: usize) -> SqlResult<Option<u8>> {
        while self.at + ahead >= self.block.len() {
            if !self.read()? {
                return Ok(None);
            }
        }
        Ok(self.block.get(self.at + ahead).copied())
    }

    /// Reads more behind what is unread; false at the end of the file.
    fn read(&mut self) -> SqlResult<bool> {
        if self.at_end {
            return Ok(false);
        }
        self.block.drain(..self.at);
        self.at = 0;
        let unread = self.block.len();
        self.block.resize(unread + BLOCK, 0);
        let into = self.block.get_mut(unread..).unwrap_or_default();
        let count = self.file.read(into).map_err(|error| read_failed(&error));
        self.block
            .truncate(unread + count.as_ref().map_or(0, |count| *count));
        self.at_end = count? == 0;
        Ok(!self.at_end)
    }
}

fn read_failed(error: &std::io::Error) -> SqlError {
    SqlError::new(1024, "HY000", format!("Error reading file: {error}"))
}

/// What a byte behind the escape stands for.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte a read.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(into.len()).min(1);
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn lines(text: &str, format: &LineFormat) -> Vec<Vec<Option<String>>> {
        let mut file = Drops(text.as_bytes());
        let mut reader = LineReader::new(&mut file, format, 1 << 20);
        let mut lines = Vec::new();
        while let Some(fields) = reader.next_line().unwrap() {
            let text = |field: Field| field.bytes.map(|b| String::from_utf8(b).unwrap());
            lines.push(fields.into_iter().map(text).collect());
        }
        lines
    }

    fn some(fields: &[&str]) -> Vec<Option<String>> {
        fields
            .iter()
            .map(|field| Some((*field).to_string()))
            .collect()
    }

    fn csv() -> LineFormat {
        LineFormat {
            field_end: b",".to_vec(),
            quote: Some(b'"'),
            optionally: true,
            line_end: b"\r\n".to_vec(),
            ..LineFormat::default()
        }
    }

    #[test]
    fn tabs_and_newlines_unless_told_otherwise() {
        let read = lines("1\tone\n2\ta\\tb\\\\\n3\t\n", &LineFormat::default());
        assert_eq!(
            read,
            [
                some(&["1", "one"]),
                some(&["2", "a\tb\\"]),
                some(&["3", ""])
            ]
        );
    }

    #[test]
    fn the_last_line_needs_no_end_and_an_empty_line_is_a_line() {
        let read = lines("1\n\n2", &LineFormat::default());
        assert_eq!(read, [some(&["1"]), some(&[""]), some(&["2"])]);
        assert!(lines("", &LineFormat::default()).is_empty());
    }

    #[test]
    fn null_is_backslash_n_alone_or_the_word_where_there_are_quotes() {
        let read = lines("\\N\tN\t\\Nx\tNULL\n", &LineFormat::default());
        let text = |text: &str| Some(text.to_string());
        assert_eq!(read, [[None, text("N"), text("Nx"), text("NULL")]]);
        let read = lines("NULL,\"NULL\",\\N\r\n", &csv());
        assert_eq!(read, [[None, text("NULL"), None]]);
    }

    #[test]
    fn quotes_hold_ends_and_doubled_quotes() {
        let text = "\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",plain\r\n\"x\"y\",z\r\n";
        assert_eq!(
            lines(text, &csv()),
            [
                some(&["a,b", "say \"hi\"", "two\r\nlines", "plain"]),
                some(&["x\"y", "z"])
            ]
        );
    }

    #[test]
    fn lines_begin_behind_their_start() {
        let format = LineFormat {
            line_start: b"xxx".to_vec(),
            ..csv()
        };
        let read = lines("junk xxx1,2\r\nnothing\r\nmore xxx3,4\r\n", &format);
        assert_eq!(read, [some(&["1", "2"]), some(&["3", "4"])]);
    }

    #[test]
    fn without_an_escape_a_backslash_is_itself() {
        let format = LineFormat {
            escape: None,
            ..csv()
        };
        assert_eq!(lines("c:\\n,\\N\r\n", &format), [some(&["c:\\n", "\\N"])]);
    }

    #[test]
    fn fields_of_a_width_need_no_ends() {
        let fixed = |line_end: &[u8]| LineFormat {
            field_end: Vec::new(),
            line_end: line_end.to_vec(),
            ..LineFormat::default()
        };
        let read = |text: &str, line_end: &[u8], widths: &[Option<usize>]| {
            let format = fixed(line_end);
            let mut file = Drops(text.as_bytes());
            let mut reader = LineReader::new(&mut file, &format, 100);
            let mut lines = Vec::new();
            while let Some(fields) = reader.next_fixed(widths).unwrap() {
                let texts = fields.into_iter();
                let texts = texts.map(|field| String::from_utf8(field.bytes.unwrap()).unwrap());
                lines.push(texts.collect::<Vec<_>>());
            }
            lines
        };
        let widths = [Some(2), Some(3)];
        assert_eq!(
            read("1 abc\n22d\n3\n\n4 \\\\\\tx!\n", b"\n", &widths),
            [
                vec!["1 ", "abc"],
                vec!["22", "d"],
                vec!["3"],
                vec![],
                vec!["4 ", "\\\tx", ""],
            ]
        );
        assert_eq!(read("1 abc2 def3", b"", &widths).len(), 3);
        let text = read("1 all of it\n", b"\n", &[Some(2), None]);
        assert_eq!(text, [["1 ", "all of it"]]);
    }

    #[test]
    fn lines_are_skipped_whole() {
        let format = LineFormat::default();
        let mut file = Drops(b"a\tb\n1\n");
        let mut reader = LineReader::new(&mut file, &format, 100);
        assert!(reader.skip_line().unwrap());
        assert_eq!(reader.next_line().unwrap().unwrap().len(), 1);
        assert!(!reader.skip_line().unwrap());
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_than_its_limit() {
        let format = LineFormat::default();
        let mut file = std::io::repeat(b'x');
        let mut reader = LineReader::new(&mut file, &format, 1 << 16);
        assert_eq!(reader.next_line().unwrap_err().code, 1153);
        assert!(reader.block.capacity() <= 4 * BLOCK);
    }
}
