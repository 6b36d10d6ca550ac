//! Axes, lines and marks.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{Cartesian2d, DrawingArea, IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, ShapeStyle, TextStyle};

use super::place::{Area, Place, Taken};
use super::scale::Axis;
use super::{Figure, FigureError, Line, Look, Mark, Panel, Point, Scale, Shape, blocks, legend};

pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
pub(super) type Pixel = (i32, i32);

/// The figure that resvg draws with comes first; the others look alike where it is missing.
const FAMILY: &str = "Noto Sans, DejaVu Sans, Verdana, Arial, sans-serif";
/// Units across a figure. It is meant to be shown 800 to 1,600 pixels wide.
const WIDTH: u32 = 2_400;
const PANEL_HEIGHT: u32 = 600;
const TITLE_HEIGHT: u32 = 90;
pub(super) const INK: RGBColor = RGBColor(30, 30, 30);
pub(super) const GREY: RGBColor = RGBColor(95, 95, 95);
const FAINT: RGBColor = RGBColor(222, 222, 222);
const WHITE: RGBColor = RGBColor(255, 255, 255);
pub(super) const TEXT: f64 = 33.0;
/// Of what stands at the ticks.
const NUMBERS: f64 = TEXT * 0.9;
/// Ticks of an axis that goes up, at most.
const TICKS_UP: usize = 7;
/// The same of one that goes across.
const TICKS_ACROSS: usize = 8;
const TICK: i32 = 8;
/// Left of an axis that goes up, at least: its name, and four digits.
const ASIDE: i32 = 128;
const MARKER: i32 = 9;

pub(super) fn failed(error: impl std::fmt::Display) -> FigureError {
    FigureError::Drawing(error.to_string())
}

pub(super) fn style(size: f64, weight: FontStyle, colour: RGBColor) -> TextStyle<'static> {
    // The library hands a size on after dividing it by this.
    FontDesc::new(FontFamily::Name(FAMILY), size * 1.24, weight).color(&colour)
}

/// The size at which words are not wider than `width`: as asked for, or less.
pub(super) fn fitting(text: &str, size: f64, width: i32) -> f64 {
    let wide = f64::from(width_of(text, size).max(1));
    size * (f64::from(width.max(1)) / wide).min(1.0)
}

/// About how wide words are in units.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // a few hundred characters
pub(super) fn width_of(text: &str, size: f64) -> i32 {
    (text.chars().count() as f64 * size * 0.56) as i32
}

/// How wide words are in units, a little more than they are in the first font of the family.
#[allow(clippy::cast_possible_truncation)] // a few hundred characters
fn span_of(text: &str, size: f64) -> i32 {
    let advance = |character| match character {
        ' ' | '.' | ',' | ':' | 'i' | 'j' | 'l' | 'I' => 0.27,
        '-' | 'f' | 'r' | 't' | '(' | ')' => 0.38,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' => 0.51,
        '%' | 'm' | 'w' | 'M' | 'W' => 0.9,
        'A'..='Z' => 0.7,
        _ => 0.61,
    };
    (text.chars().map(advance).sum::<f64>() * size * 1.03) as i32
}

pub(super) fn figure(figure: &Figure) -> Result<String, FigureError> {
    let cells = (figure.panels.len() + 1).max(figure.legend_cell + 1);
    let rows = cells.div_ceil(figure.columns);
    let row_count = u32::try_from(rows).map_err(failed)?;
    let size = (WIDTH, TITLE_HEIGHT + PANEL_HEIGHT * row_count);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let centre = i32::try_from(WIDTH / 2).map_err(failed)?;
        let heading =
            style(TEXT * 1.25, FontStyle::Bold, INK).pos(Pos::new(HPos::Center, VPos::Center));
        root.draw(&Text::new(figure.title.as_str(), (centre, 48), heading))
            .map_err(failed)?;
        let (_, body) = root.split_vertically(TITLE_HEIGHT);
        let mut panels = figure.panels.iter();
        let label_size = label_size(figure)?;
        for (cell, area) in body.split_evenly((rows, figure.columns)).iter().enumerate() {
            if cell == figure.legend_cell {
                legend::draw(area, figure)?;
            } else if let Some(panel) = panels.next() {
                let aside = aside(figure, cell);
                draw_panel(&root, area, panel, (aside, label_size))?;
            }
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Panels with their cells.
fn in_cells(figure: &Figure) -> impl Iterator<Item = (usize, &Panel)> {
    let cells = (0..).filter(|cell| *cell != figure.legend_cell);
    cells.zip(&figure.panels)
}

/// The room left of the axes in a cell and in those above and below it, which are in line: the widest
/// number must not reach the name.
#[allow(clippy::cast_possible_truncation)] // a text is some dozens of units high
fn aside(figure: &Figure, cell: usize) -> i32 {
    let column = cell % figure.columns;
    let in_line = in_cells(figure).filter(|(cell, _)| cell % figure.columns == column);
    let numbers = in_line.flat_map(|(_, panel)| axes_of(panel).1.labels(TICKS_UP));
    let widest = numbers.map(|number| span_of(&number, NUMBERS)).max();
    let (name, gap) = (TEXT as i32, TICK / 2);
    ASIDE.max(name + gap + widest.unwrap_or(0) + 2 * TICK)
}

/// One size for the labels of all axes: the longest must fit below its panel.
fn label_size(figure: &Figure) -> Result<f64, FigureError> {
    let wide =
        i32::try_from(WIDTH).map_err(failed)? / i32::try_from(figure.columns).map_err(failed)?;
    let sizes = in_cells(figure).map(|(cell, panel)| {
        let beside = aside(figure, cell) - ASIDE;
        fitting(&panel.x_label, TEXT, wide - 100 - beside)
    });
    Ok(sizes.fold(TEXT, f64::min))
}

/// Across and up.
fn axes_of(panel: &Panel) -> (Axis, Axis) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let marks = panel.marks.iter().flat_map(|mark| &mark.points);
    let curves = panel.marks.iter().filter(|mark| !mark.is_level());
    let curves = curves.flat_map(|mark| &mark.points).map(|at| at.0);
    let across = points().map(|point| point.x).chain(curves);
    let up = points().flat_map(|point| [point.low, point.high]);
    let up = up.chain(marks.map(|at| at.1));
    (Axis::of(panel.axes.x, across), Axis::of(panel.axes.y, up))
}

fn draw_panel<'a>(
    root: &Canvas<'a>,
    area: &Canvas<'a>,
    panel: &Panel,
    (aside, label_size): (i32, f64),
) -> Result<(), FigureError> {
    let (x, y) = axes_of(panel);
    let mut chart = ChartBuilder::on(area)
        .margin_left(14)
        .margin_right(34)
        .margin_bottom(14)
        .margin_top(72)
        .x_label_area_size(96)
        .y_label_area_size(aside)
        .build_cartesian_2d(x.begin..x.end, y.begin..y.end)
        .map_err(failed)?;
    axes(&mut chart, panel, (x, y), label_size)?;
    let corner = |at: (f64, f64)| chart.plotting_area().map_coordinate(&at);
    let ((left, bottom), (right, top)) = (corner((x.begin, y.begin)), corner((x.end, y.end)));
    let place = |at: (f64, f64)| corner((x.place(at.0), y.place(at.1)));
    let inside = Area {
        left,
        top,
        right,
        bottom,
    };
    heading(root, &inside, &panel.title)?;
    let corners = |line: &Line| -> Vec<Pixel> {
        let points = line.points.iter();
        points.map(|point| place((point.x, point.y))).collect()
    };
    names(root, &inside, panel, &place)?;
    let blocks = blocks::blocks(panel, &place, bottom);
    let lines = || {
        let all = panel.lines.iter();
        all.filter(|line| !line.look.shape.is_block())
    };
    let mut taken = Taken::default();
    for block in blocks.iter().flat_map(|(_, blocks)| blocks) {
        block.edges().for_each(|edge| taken.line(&edge));
    }
    for line in lines() {
        taken.line(&corners(line));
        for bar in line.points.iter().map(|point| spread(place, point)) {
            taken.line(&bar);
        }
    }
    let placed = |mark: &Mark| -> Vec<Pixel> {
        let points = mark.points.iter();
        if mark.is_level() {
            points.map(|at| corner((x.begin, y.place(at.1)))).collect()
        } else {
            points.copied().map(place).collect()
        }
    };
    let placed: Vec<_> = panel.marks.iter().map(placed).collect();
    draw_marks(root, &inside, panel, placed, &mut taken)?;
    for (line, blocks) in &blocks {
        blocks
            .iter()
            .try_for_each(|block| block.draw(root, line.look))?;
    }
    for line in lines() {
        let spreads = line.points.iter().map(|point| spread(place, point));
        let spreads: Vec<[Pixel; 2]> = spreads.collect();
        draw_line(root, &corners(line), &spreads, line.look)?;
    }
    Ok(())
}

/// Where the lowest and the highest of a point's values lie.
fn spread(place: impl Fn((f64, f64)) -> Pixel, point: &Point) -> [Pixel; 2] {
    [point.low, point.high].map(|y| place((point.x, y)))
}

fn heading(root: &Canvas<'_>, inside: &Area, title: &str) -> Result<(), FigureError> {
    let size = fitting(title, TEXT * 1.05, inside.right - inside.left);
    let words = style(size, FontStyle::Bold, INK).pos(Pos::new(HPos::Center, VPos::Center));
    let above = (i32::midpoint(inside.left, inside.right), inside.top - 36);
    root.draw(&Text::new(title, above, words)).map_err(failed)
}

/// Names of categories, below their places.
fn names(
    root: &Canvas<'_>,
    inside: &Area,
    panel: &Panel,
    place: &dyn Fn((f64, f64)) -> Pixel,
) -> Result<(), FigureError> {
    let Scale::Categories(names) = panel.axes.x else {
        return Ok(());
    };
    let count = i32::try_from(names.len().max(1)).map_err(failed)?;
    let room = (inside.right - inside.left) / count - 10;
    let sizes = names.iter().map(|name| fitting(name, NUMBERS, room));
    let size = sizes.fold(NUMBERS, f64::min);
    let mut at = 0.0;
    for name in names {
        let words = style(size, FontStyle::Normal, INK).pos(Pos::new(HPos::Center, VPos::Center));
        let (across, _) = place((at, 1.0));
        let below = (across, inside.bottom + 26);
        root.draw(&Text::new(*name, below, words)).map_err(failed)?;
        at += 1.0;
    }
    Ok(())
}

/// Marks and their words, below all lines.
fn draw_marks(
    root: &Canvas<'_>,
    inside: &Area,
    panel: &Panel,
    mut placed: Vec<Vec<Pixel>>,
    taken: &mut Taken,
) -> Result<(), FigureError> {
    for corners in &mut placed {
        if let [only] = corners[..] {
            *corners = vec![(inside.left, only.1), (inside.right, only.1)];
        }
        dashes(root, corners, GREY.stroke_width(3), (7, 9))?;
        taken.mark(corners);
    }
    let size = TEXT * 0.84;
    let spoken = |(_, mark): &(&Vec<Pixel>, &Mark)| !mark.text.is_empty();
    for (corners, mark) in placed.iter().zip(&panel.marks).filter(spoken) {
        #[allow(clippy::cast_possible_truncation)] // a text is some dozens of units high
        let room = (span_of(&mark.text, size), (size * 1.1) as i32);
        let Place { area: at, thread } = taken.words(corners, room, inside);
        if let Some(thread) = thread {
            let path = PathElement::new(thread.to_vec(), GREY.stroke_width(2));
            root.draw(&path).map_err(failed)?;
        }
        // So that no line of the grid runs through them.
        let paper = [(at.left, at.top), (at.right, at.bottom)];
        root.draw(&Rectangle::new(paper, WHITE.filled()))
            .map_err(failed)?;
        let words = style(size, FontStyle::Normal, GREY).pos(Pos::new(HPos::Right, VPos::Center));
        let middle = (at.right, i32::midpoint(at.top, at.bottom));
        root.draw(&Text::new(mark.text.as_str(), middle, words))
            .map_err(failed)?;
    }
    Ok(())
}

fn axes(
    chart: &mut Chart<'_>,
    panel: &Panel,
    (x, y): (Axis, Axis),
    label_size: f64,
) -> Result<(), FigureError> {
    let labels = style(NUMBERS, FontStyle::Normal, INK);
    let ticks = match panel.axes.x {
        Scale::Categories(_) => 0,
        Scale::Linear | Scale::Log => TICKS_ACROSS,
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(FAINT.stroke_width(2))
        .axis_style(INK.stroke_width(3))
        .set_all_tick_mark_size(TICK)
        .x_labels(ticks)
        .y_labels(TICKS_UP)
        .x_label_formatter(&|at| x.label(*at))
        .y_label_formatter(&|at| y.label(*at))
        .label_style(labels)
        .axis_desc_style(style(label_size, FontStyle::Normal, INK))
        .x_desc(panel.x_label.as_str())
        .y_desc(panel.y_label.as_str())
        .draw()
        .map_err(failed)
}

fn dashes(
    root: &Canvas<'_>,
    corners: &[Pixel],
    stroke: ShapeStyle,
    (dash, gap): (i32, i32),
) -> Result<(), FigureError> {
    let path = DashedPathElement::new(corners.to_vec(), dash, gap, stroke);
    root.draw(&path).map_err(failed)
}

/// A line with its markers and how far its values spread.
pub(super) fn draw_line(
    root: &Canvas<'_>,
    corners: &[Pixel],
    spreads: &[[Pixel; 2]],
    look: Look,
) -> Result<(), FigureError> {
    let (red, green, blue) = look.colour;
    let colour = RGBColor(red, green, blue);
    if look.is_secondary {
        dashes(root, corners, colour.stroke_width(3), (16, 10))?;
    } else {
        let path = PathElement::new(corners.to_vec(), colour.stroke_width(5));
        root.draw(&path).map_err(failed)?;
    }
    for [low, high] in spreads {
        // Below that the marker hides it.
        if low.1 - high.1 <= 2 * MARKER {
            continue;
        }
        for (from, to) in [
            (*low, *high),
            ((low.0 - 8, low.1), (low.0 + 8, low.1)),
            ((high.0 - 8, high.1), (high.0 + 8, high.1)),
        ] {
            let bar = PathElement::new(vec![from, to], colour.stroke_width(2));
            root.draw(&bar).map_err(failed)?;
        }
    }
    for corner in corners {
        marker(root, *corner, look.shape, colour, look.is_secondary)?;
    }
    Ok(())
}

/// Corners of ✚ about its middle.
const CROSS: [Pixel; 12] = [
    (-5, -13),
    (5, -13),
    (5, -5),
    (13, -5),
    (13, 5),
    (5, 5),
    (5, 13),
    (-5, 13),
    (-5, 5),
    (-13, 5),
    (-13, -5),
    (-5, -5),
];

/// Corners of ★ about its middle.
const STAR: [Pixel; 10] = [
    (0, -16),
    (4, -5),
    (15, -5),
    (6, 2),
    (9, 13),
    (0, 6),
    (-9, 13),
    (-6, 2),
    (-15, -5),
    (-4, -5),
];

fn marker(
    root: &Canvas<'_>,
    (x, y): Pixel,
    shape: Shape,
    colour: RGBColor,
    is_hollow: bool,
) -> Result<(), FigureError> {
    let inside = if is_hollow { WHITE } else { colour };
    if shape == Shape::Circle {
        root.draw(&Circle::new((x, y), MARKER, inside.filled()))
            .map_err(failed)?;
        let outline = Circle::new((x, y), MARKER, colour.stroke_width(3));
        return root.draw(&outline).map_err(failed);
    }
    let outline: &[Pixel] = match shape {
        Shape::Circle | Shape::None | Shape::Bar | Shape::Box => &[],
        Shape::Square => &[(-9, -9), (9, -9), (9, 9), (-9, 9)],
        Shape::Triangle => &[(0, -12), (11, 8), (-11, 8)],
        Shape::Diamond => &[(0, -13), (13, 0), (0, 13), (-13, 0)],
        Shape::Nabla => &[(0, 12), (11, -8), (-11, -8)],
        Shape::Cross => &CROSS,
        Shape::Star => &STAR,
    };
    if outline.is_empty() {
        return Ok(());
    }
    let mut corners: Vec<Pixel> = outline.iter().map(|by| (x + by.0, y + by.1)).collect();
    root.draw(&Polygon::new(corners.clone(), inside.filled()))
        .map_err(failed)?;
    corners.extend_from_within(..2);
    root.draw(&PathElement::new(corners, colour.stroke_width(3)))
        .map_err(failed)
}
