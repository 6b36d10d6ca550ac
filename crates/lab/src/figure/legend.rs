//! What the lines are, and what else a reader must know.

use plotters::element::Text;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{Canvas, GREY, INK, TEXT, draw_line, failed, fitting, style, width_of};
use super::{Figure, FigureError, Look};

/// Between two entries.
const ROW: i32 = 54;
const LEFT: i32 = 70;
const SAMPLE: i32 = 110;

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
    let (left, mut y) = (across.start + LEFT, down.start + 2 * ROW);
    let left_middle = Pos::new(HPos::Left, VPos::Center);
    for (name, look) in entries(figure) {
        let middle = left + SAMPLE / 2;
        draw_line(
            &area,
            &[(left, y), (middle, y), (left + SAMPLE, y)],
            &[],
            look,
        )?;
        let at = (left + SAMPLE + 26, y);
        let size = fitting(name, TEXT, across.end - at.0 - 10);
        let words = style(size, FontStyle::Normal, INK).pos(left_middle);
        area.draw(&Text::new(name, at, words)).map_err(failed)?;
        y += ROW;
    }
    y += ROW / 3;
    let size = TEXT * 0.8;
    for line in figure
        .notes
        .iter()
        .flat_map(|note| broken(note, across.end - left - 20, size))
    {
        let words = style(size, FontStyle::Normal, GREY).pos(left_middle);
        area.draw(&Text::new(line, (left, y), words))
            .map_err(failed)?;
        y += ROW * 3 / 4;
    }
    Ok(())
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
    fn notes_are_broken_between_words() {
        let lines = broken("one two three four", width_of("one two ", 20.0) + 1, 20.0);
        assert_eq!(lines, ["one two", "three", "four"]);
        assert!(broken("", 100, 20.0).is_empty());
    }
}
