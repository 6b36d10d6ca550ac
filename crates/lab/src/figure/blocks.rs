//! Bars and boxes: what lines with such looks are drawn as, side by side at each place across.

use plotters::element::{PathElement, Rectangle};
use plotters::style::{Color, RGBColor};

use super::draw::{Canvas, Pixel, failed};
use super::{FigureError, Line, Look, Panel, Point, Scale, Shape};

/// Of the room of a category, what its bars and boxes take together.
const SHARE: f64 = 0.8;
/// How wide each is where values lie across, in units.
const WIDTH: f64 = 34.0;
/// Between two, in units.
const GAP: i32 = 3;
/// Of the colour, in the light part of a bar and in a box.
const LIGHT: f64 = 0.35;

/// Rectangles of one bar or box, and the lines over them, in units of the figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    /// Corners, and whether the colour is whole.
    areas: Vec<([Pixel; 2], bool)>,
    strokes: Vec<[Pixel; 2]>,
}

impl Block {
    /// Lines that words should not lie on.
    pub fn edges(&self) -> impl Iterator<Item = [Pixel; 2]> + '_ {
        let sides = self
            .areas
            .iter()
            .flat_map(|([one, other], _)| [[*one, (one.0, other.1)], [(other.0, one.1), *other]]);
        sides.chain(self.strokes.iter().copied())
    }

    /// Draws it.
    pub fn draw(&self, root: &Canvas<'_>, look: Look) -> Result<(), FigureError> {
        let (red, green, blue) = look.colour;
        let colour = RGBColor(red, green, blue);
        for (corners, is_whole) in &self.areas {
            let colour = colour.mix(if *is_whole { 1.0 } else { LIGHT });
            root.draw(&Rectangle::new(*corners, colour.filled()))
                .map_err(failed)?;
        }
        for stroke in &self.strokes {
            let path = PathElement::new(stroke.to_vec(), colour.stroke_width(4));
            root.draw(&path).map_err(failed)?;
        }
        Ok(())
    }
}

/// What stands for a look in a legend, from one corner to the other.
pub(super) fn sample(look: Look, (left, top): Pixel, (right, bottom): Pixel) -> Block {
    let middle = i32::midpoint(left, right);
    let whole = look.shape == Shape::Bar;
    Block {
        areas: vec![
            ([(left, top), (middle, bottom)], whole),
            ([(middle, top), (right, bottom)], false),
        ],
        strokes: Vec::new(),
    }
}

/// The bars or boxes of each line of a panel that has such a look; bars begin at `base`.
pub(super) fn blocks<'a>(
    panel: &'a Panel,
    place: &dyn Fn((f64, f64)) -> Pixel,
    base: i32,
) -> Vec<(&'a Line, Vec<Block>)> {
    let lines: Vec<&Line> = panel
        .lines
        .iter()
        .filter(|line| line.look.shape.is_block())
        .collect();
    let count = lines.len();
    let width = width(panel, count, place);
    let of_line = |(number, line): (usize, &'a Line)| {
        let sides = |x: f64| {
            let left = place((x, ANY)).0 + offset(number, count, width);
            (left, left + width - GAP)
        };
        let blocks = if line.look.shape == Shape::Bar {
            bars(line, place, base, &sides)
        } else {
            boxes(line, place, &sides)
        };
        (line, blocks)
    };
    lines.into_iter().enumerate().map(of_line).collect()
}

/// A value that every axis that goes up has a place for.
const ANY: f64 = 1.0;

/// How wide a bar or box is.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // units of a figure
fn width(panel: &Panel, count: usize, place: &dyn Fn((f64, f64)) -> Pixel) -> i32 {
    let Scale::Categories(_) = panel.axes.x else {
        return WIDTH as i32;
    };
    let room = place((1.0, ANY)).0 - place((0.0, ANY)).0;
    (f64::from(room) * SHARE / count.max(1) as f64) as i32
}

/// Where the left side of the one of a number is, of so many that lie around a place.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // a few lines
fn offset(number: usize, count: usize, width: i32) -> i32 {
    let (number, count) = (number as i32, count as i32);
    (2 * number - count) * width / 2
}

/// A bar for each point: whole up to its value, light from there to its highest.
fn bars(
    line: &Line,
    place: &dyn Fn((f64, f64)) -> Pixel,
    base: i32,
    sides: &dyn Fn(f64) -> (i32, i32),
) -> Vec<Block> {
    let bar = |point: &Point| {
        let (from, to) = sides(point.x);
        let [middle, top] = [point.y, point.high].map(|y| place((point.x, y)).1);
        Block {
            areas: vec![
                ([(from, top), (to, middle)], false),
                ([(from, middle), (to, base)], true),
            ],
            strokes: Vec::new(),
        }
    };
    line.points.iter().map(bar).collect()
}

/// A box for each place that there are points at.
fn boxes(
    line: &Line,
    place: &dyn Fn((f64, f64)) -> Pixel,
    sides: &dyn Fn(f64) -> (i32, i32),
) -> Vec<Block> {
    let mut places: Vec<f64> = line.points.iter().map(|point| point.x).collect();
    places.dedup();
    let drawn = |x: f64| {
        let here = line
            .points
            .iter()
            .filter(|point| point.x.total_cmp(&x).is_eq());
        let quarters = quarters(here.map(|point| point.y).collect());
        let [least, low, median, high, most] = quarters.map(|value| place((x, value)).1);
        let (from, to) = sides(x);
        let middle = i32::midpoint(from, to);
        Block {
            areas: vec![([(from, high), (to, low)], false)],
            strokes: vec![
                [(middle, least), (middle, low)],
                [(middle, high), (middle, most)],
                [(from, median), (to, median)],
                [(from, least), (to, least)],
                [(from, most), (to, most)],
            ],
        }
    };
    places.into_iter().map(drawn).collect()
}

/// The least, the three quartiles and the most of some values, of which there is at least one.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // a few values
fn quarters(mut values: Vec<f64>) -> [f64; 5] {
    assert!(!values.is_empty(), "a box is of the points at its place");
    values.sort_by(f64::total_cmp);
    let last = (values.len() - 1) as f64;
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
        let at = last * share;
        let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
        below + (above - below) * at.fract()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axes;

    const KINDS: [&str; 2] = ["one", "other"];

    /// A thousand units a category, one unit down a value.
    #[allow(clippy::cast_possible_truncation)]
    fn place((x, y): (f64, f64)) -> Pixel {
        ((x * 1_000.0) as i32, 500 - y as i32)
    }

    fn panel(shape: Shape, points: &[Point], lines: usize) -> Panel {
        let line = |number| Line {
            name: format!("line {number}"),
            look: Look::of(number).shaped(shape),
            points: points.to_vec(),
        };
        Panel {
            title: "panel".into(),
            x_label: String::new(),
            y_label: "time (ms)".into(),
            axes: Axes {
                x: Scale::Categories(&KINDS),
                y: Scale::Linear,
            },
            lines: (0..lines).map(line).collect(),
            marks: Vec::new(),
        }
    }

    #[test]
    fn bars_of_a_category_stand_side_by_side_around_its_place() {
        let point = Point {
            x: 1.0,
            y: 100.0,
            low: 100.0,
            high: 300.0,
        };
        let panel = panel(Shape::Bar, &[point], 4);
        let found = blocks(&panel, &place, 500);
        let sides: Vec<(i32, i32)> = found
            .iter()
            .map(|(_, blocks)| {
                let ([from, to], is_whole) = blocks[0].areas[0];
                assert!(
                    !is_whole && from.1 == 200 && to.1 == 400,
                    "light: 100 to 300"
                );
                let ([from, to], is_whole) = blocks[0].areas[1];
                assert!(is_whole && from.1 == 400 && to.1 == 500, "whole: up to 100");
                (from.0, to.0)
            })
            .collect();
        assert_eq!(sides, [(600, 797), (800, 997), (1000, 1197), (1200, 1397)]);
    }

    #[test]
    fn a_box_is_of_all_points_at_its_place() {
        let points: Vec<Point> = (0..=8).map(|n| Point::exact(0.0, f64::from(n))).collect();
        let panel = panel(Shape::Box, &points, 1);
        let found = blocks(&panel, &place, 500);
        assert_eq!(found[0].1.len(), 1);
        let block = &found[0].1[0];
        assert_eq!(block.areas, [([(-400, 494), (397, 498)], false)]);
        let heights: Vec<i32> = block.strokes.iter().map(|stroke| stroke[1].1).collect();
        assert_eq!(heights, [498, 492, 496, 500, 492]);
        let shown = quarters(vec![1.0, 2.0]).map(|value| value.to_string());
        assert_eq!(shown, ["1", "1.25", "1.5", "1.75", "2"]);
    }
}
