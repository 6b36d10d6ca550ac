//! Result sets as text: tables, one column a line, or tab-separated.

use std::fmt::Write as _;

/// A result set as text, column by column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// Column names.
    pub names: Vec<String>,
    /// Whether a column holds numbers, which stand at the right.
    pub numeric: Vec<bool>,
    /// Values; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Cells wide enough to be seen; control characters would break the table.
fn shown(value: Option<&String>) -> String {
    let Some(value) = value else {
        return "NULL".to_owned();
    };
    value
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{FFFD}'
            } else {
                c
            }
        })
        .collect()
}

/// Columns a terminal needs for the text, near enough: wide for CJK and emoji.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match u32::from(c) {
            0x300..=0x36F | 0x200B..=0x200D | 0xFE00..=0xFE0F => 0,
            0x1100..=0x115F
            | 0x2E80..=0xA4CF
            | 0xAC00..=0xD7A3
            | 0xF900..=0xFAFF
            | 0xFE30..=0xFE6F
            | 0xFF00..=0xFF60
            | 0xFFE0..=0xFFE6
            | 0x1F300..=0x1FAFF
            | 0x20000..=0x3FFFD => 2,
            _ => 1,
        })
        .sum()
}

/// A framed table.
pub fn table(result: &ResultSet) -> String {
    let cells: Vec<Vec<String>> = result
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|v| shown(v.as_ref()).replace('\n', "\\n"))
                .collect()
        })
        .collect();
    let widths: Vec<usize> = result
        .names
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let cells = cells.iter().filter_map(|row| row.get(column));
            cells.map(|c| width(c)).max().unwrap_or(0).max(width(name))
        })
        .collect();
    let mut out = String::new();
    let bars: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    let frame = format!("+{}+\n", bars.join("+"));
    out += &frame;
    line(&mut out, &result.names, &widths, &[]);
    out += &frame;
    for row in &cells {
        line(&mut out, row, &widths, &result.numeric);
    }
    out += &frame;
    out
}

fn line(out: &mut String, cells: &[String], widths: &[usize], numeric: &[bool]) {
    for (column, (cell, full)) in cells.iter().zip(widths).enumerate() {
        let padding = " ".repeat(full.saturating_sub(width(cell)));
        let right = numeric.get(column).copied().unwrap_or(false);
        // Writing to a String cannot fail.
        let _ = if right {
            write!(out, "| {padding}{cell} ")
        } else {
            write!(out, "| {cell}{padding} ")
        };
    }
    out.push_str("|\n");
}

/// One column a line.
pub fn vertical(result: &ResultSet) -> String {
    let mut out = String::new();
    let widest = result.names.iter().map(|n| width(n)).max().unwrap_or(0);
    for (number, row) in result.rows.iter().enumerate() {
        let stars = "*".repeat(27);
        let _ = writeln!(out, "{stars} {}. row {stars}", number + 1);
        for (name, value) in result.names.iter().zip(row) {
            let padding = " ".repeat(widest.saturating_sub(width(name)));
            let _ = writeln!(out, "{padding}{name}: {}", shown(value.as_ref()));
        }
    }
    out
}

/// Tab-separated, with a line of names; tabs, newlines and backslashes escaped.
pub fn tabs(result: &ResultSet) -> String {
    let mut out = String::new();
    if !result.names.is_empty() {
        out.push_str(&result.names.join("\t"));
        out.push('\n');
    }
    for row in &result.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|value| match value {
                None => "NULL".to_owned(),
                Some(text) => text
                    .replace('\\', "\\\\")
                    .replace('\t', "\\t")
                    .replace('\n', "\\n")
                    .replace('\0', "\\0"),
            })
            .collect();
        out.push_str(&cells.join("\t"));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> ResultSet {
        ResultSet {
            names: vec!["id".into(), "name".into()],
            numeric: vec![true, false],
            rows: vec![
                vec![Some("1".into()), Some("Ann".into())],
                vec![Some("10".into()), None],
            ],
        }
    }

    #[test]
    fn numbers_stand_right_and_text_left() {
        assert_eq!(
            table(&people()),
            "+----+------+\n| id | name |\n+----+------+\n|  1 | Ann  |\n| 10 | NULL |\n+----+------+\n"
        );
    }

    #[test]
    fn wide_characters_keep_the_frame_straight() {
        let rows = ResultSet {
            names: vec!["a".into()],
            numeric: vec![false],
            rows: vec![vec![Some("猫".into())], vec![Some("é\t".into())]],
        };
        assert_eq!(
            table(&rows),
            "+----+\n| a  |\n+----+\n| 猫 |\n| é\u{FFFD} |\n+----+\n"
        );
    }

    #[test]
    fn vertical_output_aligns_the_names() {
        let text = vertical(&people());
        assert!(text.contains("1. row"));
        assert!(text.contains("\n  id: 10\nname: NULL\n"));
    }

    #[test]
    fn tabs_in_values_are_escaped() {
        let rows = ResultSet {
            names: vec!["a".into(), "b".into()],
            numeric: vec![false, false],
            rows: vec![vec![Some("x\ty\nz\\".into()), None]],
        };
        assert_eq!(tabs(&rows), "a\tb\nx\\ty\\nz\\\\\tNULL\n");
    }
}
