//! What the lines are, and what else a reader must know.

use plotters::element::Text;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{Canvas, GREY, INK, TEXT, draw_line, failed, fitting, style, width_of};
use super::{Figure, FigureError, Look, blocks};

/// Between two entries.
const ROW: i32 = 54;
const LEFT: i32 = 70;
const SAMPLE: i32 = 110;
/// Size of notes, and rows that one takes.
const NOTE: f64 = TEXT * 0.8;
const NOTE_ROWS: f64 = 0.75;

/// Each name once, in the order of the panels.
fn entries(figure: &Figure) -> Vec<(&str, Look)> {
    let mut found: Vec<(&str, Look)> = Vec::new();
    for line in figure.panels.iter().flat_map(|panel| &panel.lines) {
        if !found.iter().any(|(name, _)| *name == line.name) {
            found.push((&line.name, line.look));
        }
    }
    found
}

pub(super) fn draw(area: &Canvas<'_>, figure: &Figure) -> Result<(), FigureError> {
    let area = area.use_screen_coord();
    let (across, down) = area.get_pixel_range();
    let left = across.start + LEFT;
    let entries = entries(figure);
    let notes = figure.notes.iter();
    let notes = notes.flat_map(|note| broken(note, across.end - left - 20, NOTE));
    let notes: Vec<String> = notes.collect();
    let scale = scale(entries.len(), notes.len(), down.end - down.start);
    let row = |rows: f64| scaled(rows, scale);
    let mut y = down.start + row(2.0);
    let left_middle = Pos::new(HPos::Left, VPos::Center);
    for (name, look) in entries {
        let (middle, right) = (left + SAMPLE / 2, left + SAMPLE);
        if look.shape.is_block() {
            let half = row(0.25);
            blocks::sample(look, (left, y - half), (right, y + half)).draw(&area, look)?;
        } else {
            draw_line(&area, &[(left, y), (middle, y), (right, y)], &[], look)?;
        }
        let at = (left + SAMPLE + 26, y);
        let size = fitting(name, TEXT * scale, across.end - at.0 - 10);
        let words = style(size, FontStyle::Normal, INK).pos(left_middle);
        area.draw(&Text::new(name, at, words)).map_err(failed)?;
        y += row(1.0);
    }
    y += row(1.0 / 3.0);
    for line in notes {
        let words = style(NOTE * scale, FontStyle::Normal, GREY).pos(left_middle);
        area.draw(&Text::new(line, (left, y), words))
            .map_err(failed)?;
        y += row(NOTE_ROWS);
    }
    Ok(())
}

/// By how much everything is smaller than it should be, so that all of it has room.
fn scale(entries: usize, notes: usize, height: i32) -> f64 {
    #[allow(clippy::cast_precision_loss)] // lines of a figure
    let rows = 2.0 + entries as f64 + 1.0 / 3.0 + notes as f64 * NOTE_ROWS;
    (f64::from(height) / (rows * f64::from(ROW))).min(1.0)
}

#[allow(clippy::cast_possible_truncation)] // pixels of a figure
fn scaled(rows: f64, scale: f64) -> i32 {
    (f64::from(ROW) * rows * scale).floor() as i32
}

/// A note in lines that are not wider than `width`, broken between words.
fn broken(note: &str, width: i32, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in note.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line, size) + width_of(word, size) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_gets_smaller_and_what_fits_does_not() {
        assert!((scale(5, 6, 1_000) - 1.0).abs() < 1e-9);
        let small = scale(6, 14, 600);
        let height = scaled(2.0 + 6.0 + 1.0 / 3.0 + 14.0 * NOTE_ROWS, small);
        assert!(small < 1.0 && height <= 600, "{small} {height}");
    }

    #[test]
    fn notes_are_broken_between_words() {
        let lines = broken("one two three four", width_of("one two ", 20.0) + 1, 20.0);
        assert_eq!(lines, ["one two", "three", "four"]);
        assert!(broken("", 100, 20.0).is_empty());
    }
}
