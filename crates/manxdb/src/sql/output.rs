//! Result sets as text, written as they come: tables, one column a line, or tab-separated.

use std::io::{self, Write};

use crate::mysql_client::{Column, Row};

/// Rows that a table is measured by, at most.
const MEASURED_ROWS: usize = 1_000;
/// Bytes of values that a table is measured by, at most.
const MEASURED_BYTES: usize = 1 << 20;

/// How rows are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A frame around columns.
    Table,
    /// One column a line.
    Vertical,
    /// Tabs between values, a line of names first; tabs, newlines and backslashes escaped.
    Tabs,
}

/// Writes one result set. Only the first rows of a table are kept, to measure its columns by;
/// wider values that come later push its frame out.
pub struct Printer<W> {
    out: W,
    shape: Shape,
    columns: Vec<Column>,
    rows: u64,
    held: Vec<Vec<String>>,
    held_bytes: usize,
    /// Of a table's columns, once measured.
    widths: Option<Vec<usize>>,
}

impl<W: Write> Printer<W> {
    /// Nothing is written before the first row.
    pub fn new(out: W, shape: Shape, columns: Vec<Column>) -> Self {
        Self {
            out,
            shape,
            columns,
            rows: 0,
            held: Vec::new(),
            held_bytes: 0,
            widths: None,
        }
    }

    /// Writes one row, or keeps it to measure by.
    ///
    /// # Errors
    /// Those of the output.
    pub fn row(&mut self, row: Row) -> io::Result<()> {
        self.rows += 1;
        match self.shape {
            Shape::Table => self.table_row(row),
            Shape::Vertical => self.vertical_row(row),
            Shape::Tabs => self.tabs_row(row),
        }
    }

    /// Ends the result; says how many rows it had.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<u64> {
        if self.shape == Shape::Table && self.rows > 0 {
            self.write_held()?;
            let widths = self.widths.take().unwrap_or_default();
            self.out.write_all(frame(&widths).as_bytes())?;
        }
        self.out.flush()?;
        Ok(self.rows)
    }

    fn table_row(&mut self, row: Row) -> io::Result<()> {
        let cells: Vec<String> = row
            .into_iter()
            .map(|value| shown(value).replace('\n', "\\n"))
            .collect();
        if let Some(widths) = &self.widths {
            let line = line(&cells, widths, &self.columns);
            return self.out.write_all(line.as_bytes());
        }
        self.held_bytes += cells.iter().map(String::len).sum::<usize>();
        self.held.push(cells);
        if self.held.len() >= MEASURED_ROWS || self.held_bytes >= MEASURED_BYTES {
            self.write_held()?;
        }
        Ok(())
    }

    /// Measures the columns by the rows kept, and writes those; once.
    fn write_held(&mut self) -> io::Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        let widths: Vec<usize> = (0..names.len())
            .map(|column| {
                let cells = held
                    .iter()
                    .chain([&names])
                    .filter_map(|row| row.get(column));
                cells.map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let frame = frame(&widths);
        let mut text = format!("{frame}{}{frame}", line(&names, &widths, &[]));
        for row in &held {
            text += &line(row, &widths, &self.columns);
        }
        self.widths = Some(widths);
        self.out.write_all(text.as_bytes())
    }

    fn vertical_row(&mut self, row: Row) -> io::Result<()> {
        let names = self.columns.iter().map(|column| column.name.as_str());
        let widest = names.clone().map(width).max().unwrap_or(0);
        let stars = "*".repeat(27);
        writeln!(self.out, "{stars} {}. row {stars}", self.rows)?;
        for (name, value) in names.zip(row) {
            let padding = " ".repeat(widest.saturating_sub(width(name)));
            writeln!(self.out, "{padding}{name}: {}", shown(value))?;
        }
        Ok(())
    }

    fn tabs_row(&mut self, row: Row) -> io::Result<()> {
        if self.rows == 1 {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
            writeln!(self.out, "{}", names.join("\t"))?;
        }
        let cells: Vec<String> = row
            .into_iter()
            .map(|value| escaped(text_of(value)))
            .collect();
        writeln!(self.out, "{}", cells.join("\t"))
    }
}

/// A value as text; bytes that are none in hexadecimal.
fn text_of(value: Option<Vec<u8>>) -> String {
    let Some(bytes) = value else {
        return "NULL".to_owned();
    };
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let hex = error.as_bytes().iter().map(|b| format!("{b:02X}"));
        format!("0x{}", hex.collect::<String>())
    })
}

fn escaped(text: String) -> String {
    if !text.contains(['\\', '\t', '\n', '\0']) {
        return text;
    }
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\0', "\\0")
}

/// A value as a cell; control characters would break the table.
fn shown(value: Option<Vec<u8>>) -> String {
    let visible = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{FFFD}'
        } else {
            c
        }
    };
    text_of(value).chars().map(visible).collect()
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

fn frame(widths: &[usize]) -> String {
    let bars: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    format!("+{}+\n", bars.join("+"))
}

fn line(cells: &[String], widths: &[usize], columns: &[Column]) -> String {
    let mut out = String::new();
    for (column, (cell, full)) in cells.iter().zip(widths).enumerate() {
        let padding = " ".repeat(full.saturating_sub(width(cell)));
        let right = columns.get(column).is_some_and(|column| column.numeric);
        out += &if right {
            format!("| {padding}{cell} ")
        } else {
            format!("| {cell}{padding} ")
        };
    }
    out + "|\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(shape: Shape, columns: &[(&str, bool)], rows: &[&[Option<&str>]]) -> String {
        let columns = columns.iter().map(|(name, numeric)| Column {
            name: (*name).to_owned(),
            numeric: *numeric,
        });
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, shape, columns.collect());
        for row in rows {
            let row = row
                .iter()
                .map(|value| value.map(|text| text.as_bytes().to_vec()));
            printer.row(row.collect()).unwrap();
        }
        assert_eq!(printer.finish().unwrap(), rows.len() as u64);
        String::from_utf8(out).unwrap()
    }

    const PEOPLE: [(&str, bool); 2] = [("id", true), ("name", false)];
    const ROWS: [&[Option<&str>]; 2] = [&[Some("1"), Some("Ann")], &[Some("10"), None]];

    #[test]
    fn numbers_stand_right_and_text_left() {
        assert_eq!(
            printed(Shape::Table, &PEOPLE, &ROWS),
            "+----+------+\n| id | name |\n+----+------+\n|  1 | Ann  |\n| 10 | NULL |\n+----+------+\n"
        );
    }

    #[test]
    fn wide_characters_keep_the_frame_straight() {
        assert_eq!(
            printed(
                Shape::Table,
                &[("a", false)],
                &[&[Some("猫")], &[Some("é\t")]]
            ),
            "+----+\n| a  |\n+----+\n| 猫 |\n| é\u{FFFD} |\n+----+\n"
        );
    }

    #[test]
    fn vertical_output_aligns_the_names() {
        let text = printed(Shape::Vertical, &PEOPLE, &ROWS);
        assert!(text.contains("2. row"));
        assert!(text.contains("\n  id: 10\nname: NULL\n"));
    }

    #[test]
    fn tabs_in_values_are_escaped() {
        let columns = [("a", false), ("b", false)];
        let text = printed(Shape::Tabs, &columns, &[&[Some("x\ty\nz\\"), None]]);
        assert_eq!(text, "a\tb\nx\\ty\\nz\\\\\tNULL\n");
    }

    #[test]
    fn no_rows_print_nothing() {
        for shape in [Shape::Table, Shape::Vertical, Shape::Tabs] {
            assert_eq!(printed(shape, &PEOPLE, &[]), "");
        }
    }

    #[test]
    fn a_long_table_is_not_kept_and_stays_a_table() {
        let column = Column {
            name: "n".to_owned(),
            numeric: true,
        };
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, Shape::Table, vec![column]);
        for number in 0..5_000_u32 {
            printer
                .row(vec![Some(number.to_string().into_bytes())])
                .unwrap();
            assert!(printer.held.len() <= MEASURED_ROWS);
        }
        assert!(printer.held.is_empty());
        printer.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 5_004);
        // Measured by 0 to 999: 4,999 is one wider.
        assert!(text.ends_with("| 4999 |\n+-----+\n"));
    }
}
