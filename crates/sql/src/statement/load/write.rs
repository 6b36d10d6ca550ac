//! Rows as lines of a text file.

use crate::parser::LineFormat;
use crate::types::{DataType, Value, write_text};

/// Appends a row as one line. Without ends and quotes, fields are filled up to the widths of their
/// types, NULL too, unless one has no width.
pub(crate) fn put_line(out: &mut Vec<u8>, format: &LineFormat, types: &[DataType], row: &[Value]) {
    out.extend_from_slice(&format.line_start);
    let mut text = Vec::new();
    let widths: Option<Vec<usize>> = types.iter().map(DataType::file_width).collect();
    if let Some(widths) = widths.filter(|_| format.is_fixed()) {
        for ((value, ty), width) in row.iter().zip(types).zip(widths) {
            text.clear();
            write_text(value, ty, &mut text);
            text.truncate(width);
            put_escaped(out, format, &text, None);
            out.extend(std::iter::repeat_n(b' ', width - text.len()));
        }
        out.extend_from_slice(&format.line_end);
        return;
    }
    for (at, (value, ty)) in row.iter().zip(types).enumerate() {
        if at > 0 {
            out.extend_from_slice(&format.field_end);
        }
        if value.is_null() {
            put_null(out, format);
            continue;
        }
        text.clear();
        write_text(value, ty, &mut text);
        let is_text = ty.is_text() || ty.is_bytes() || ty.is_temporal();
        let quote = format.quote.filter(|_| is_text || !format.optionally);
        out.extend(quote);
        put_escaped(out, format, &text, quote);
        out.extend(quote);
    }
    out.extend_from_slice(&format.line_end);
}

/// `\N`, or the word where nothing escapes.
fn put_null(out: &mut Vec<u8>, format: &LineFormat) {
    match format.escape {
        Some(escape) => out.extend_from_slice(&[escape, b'N']),
        None => out.extend_from_slice(b"NULL"),
    }
}

/// Without an escape a quote inside quotes is doubled.
fn put_escaped(out: &mut Vec<u8>, format: &LineFormat, text: &[u8], quote: Option<u8>) {
    let ends = [format.field_end.first(), format.line_end.first()];
    for &byte in text {
        let is_end = ends.contains(&Some(&byte)) && quote.is_none();
        let line_end = format.line_end.first() == Some(&byte);
        match format.escape {
            Some(escape) if byte == 0 => out.extend_from_slice(&[escape, b'0']),
            Some(escape) if byte == escape || Some(byte) == format.quote || is_end || line_end => {
                out.extend_from_slice(&[escape, byte]);
            }
            None if quote == Some(byte) => out.extend_from_slice(&[byte, byte]),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::load::LineReader;

    fn line(format: &LineFormat, row: &[Value]) -> Vec<u8> {
        let types: Vec<DataType> = row
            .iter()
            .map(|value| match value {
                Value::Int(_) => DataType::BIGINT,
                _ => DataType::varchar(100),
            })
            .collect();
        let mut out = Vec::new();
        put_line(&mut out, format, &types, row);
        out
    }

    #[test]
    fn what_is_written_is_read_back() {
        let row = [
            Value::Int(-7),
            Value::Null,
            Value::Text("tab\there, \"quotes\", back\\slash\nline\0end".into()),
            Value::Text(String::new()),
        ];
        let quoted = LineFormat {
            field_end: b",".to_vec(),
            quote: Some(b'"'),
            optionally: true,
            ..LineFormat::default()
        };
        for format in [LineFormat::default(), quoted] {
            let written = line(&format, &row);
            let mut file = written.as_slice();
            let mut reader = LineReader::new(&mut file, &format, 1 << 20);
            let fields = reader.next_line().unwrap().unwrap();
            let back: Vec<Option<String>> = fields
                .into_iter()
                .map(|field| field.bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
                .collect();
            let Value::Text(text) = &row[2] else { panic!() };
            let wanted = [
                Some("-7".into()),
                None,
                Some(text.clone()),
                Some(String::new()),
            ];
            assert_eq!(back, wanted);
            assert_eq!(reader.next_line().unwrap(), None);
        }
    }

    #[test]
    fn without_ends_fields_have_the_widths_of_their_types() {
        let format = LineFormat {
            field_end: Vec::new(),
            ..LineFormat::default()
        };
        let types = [DataType::BIGINT, DataType::varchar(2), DataType::Date];
        let text = |text: &str| Value::Text(text.into());
        let mut out = Vec::new();
        for row in [
            [Value::Int(-7), text("a\n"), Value::Null],
            [Value::Null, text("\u{20ac}"), Value::Null],
        ] {
            put_line(&mut out, &format, &types, &row);
        }
        let wanted = format!(
            "{:<20}{:9}{:10}\n{:20}{:6}{:10}\n",
            -7, "a\\\n", "", "", "\u{20ac}", ""
        );
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn only_text_is_quoted_optionally() {
        let mut format = LineFormat {
            field_end: b",".to_vec(),
            quote: Some(b'"'),
            optionally: true,
            ..LineFormat::default()
        };
        let row = [Value::Int(1), Value::Text("a".into()), Value::Null];
        assert_eq!(line(&format, &row), b"1,\"a\",\\N\n");
        format.optionally = false;
        assert_eq!(line(&format, &row), b"\"1\",\"a\",\\N\n");
    }
}
