//! Figures for readers: panels of lines on labelled axes, one legend, published values as
//! reference marks; as SVG, and as PNG made from that SVG.
//!
//! Equal figures give equal bytes on every machine: the text of a PNG is set in a font that is
//! part of the program, and the SVG names that font first.
//!
//! | question | answered in |
//! |---|---|
//! | how lines are told apart, in colour, in grey and by the colour-blind | [`Look`] |
//! | where axes, lines and marks go | `draw` |
//! | how bars and boxes are made of lines with such looks | `blocks` |
//! | where the words of a reference mark go: where they cover nothing, on a thread if need be | `place` |
//! | what stands in the legend | `legend` |
//! | how values lie along an axis | `scale` |
//! | how SVG becomes PNG and PDF | [`png`], [`pdf`] |
//!
//! ```
//! use manxdb_lab::figure::{Axes, Figure, Line, Look, Mark, Panel, Point, png};
//!
//! let points = [(1.0, 12.0), (2.0, 12.5), (4.0, 14.9)];
//! let line = Line {
//!     name: "DAST".into(),
//!     look: Look::of(0),
//!     points: points.iter().map(|(x, y)| Point::exact(*x, *y)).collect(),
//! };
//! let panel = Panel {
//!     title: "Local transactions, 99th percentile".into(),
//!     x_label: "clients per shard".into(),
//!     y_label: "latency (ms)".into(),
//!     axes: Axes::default(),
//!     lines: vec![line],
//!     marks: vec![Mark::level(20.0, "published: below 20 ms")],
//! };
//! let figure = Figure {
//!     title: "Latency of local transactions".into(),
//!     columns: 2,
//!     legend_cell: 1,
//!     panels: vec![panel],
//!     notes: vec!["message delays only".into()],
//! };
//! let svg = figure.svg()?;
//! assert!(svg.starts_with("<svg") && svg.contains("latency (ms)"));
//! assert!(png(&svg)?.starts_with(b"\x89PNG"));
//! # Ok::<(), manxdb_lab::figure::FigureError>(())
//! ```

mod blocks;
mod draw;
mod legend;
mod look;
mod parse;
mod pdf;
mod place;
mod png;
mod scale;

pub use self::look::{Look, Shape};
pub use self::pdf::pdf;
pub use self::png::png;

/// A figure cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    /// A number is infinite or not a number.
    #[error("panel '{panel}' has a point that is no finite number")]
    NotFinite {
        /// Title of the panel.
        panel: String,
    },
    /// A number has no logarithm.
    #[error("panel '{panel}' has a point at or below zero on a logarithmic axis")]
    NotPositive {
        /// Title of the panel.
        panel: String,
    },
    /// No panels, or no columns.
    #[error("a figure needs panels and columns")]
    Empty,
    /// The drawing library refuses.
    #[error("drawing: {0}")]
    Drawing(String),
    /// What was drawn cannot be read again.
    #[error("reading an SVG: {0}")]
    Unreadable(String),
    /// What was drawn cannot be made into a page.
    #[error("making a PDF: {0}")]
    Page(String),
    /// What was drawn cannot be made into pixels.
    #[error("making a PNG: {0}")]
    Pixels(String),
}

/// Panels in rows, and a legend in one of the cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Above everything.
    pub title: String,
    /// Cells in a row.
    pub columns: usize,
    /// The cell of the legend, row by row from 0; the panels fill the others in order.
    pub legend_cell: usize,
    /// The panels.
    pub panels: Vec<Panel>,
    /// What a reader must know, below the legend: a line each, broken where it is too long.
    pub notes: Vec<String>,
}

/// One pair of axes. Linear ones begin at zero, so that lengths can be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What goes across, and in which unit.
    pub x_label: String,
    /// What goes up, and in which unit.
    pub y_label: String,
    /// How values lie along both.
    pub axes: Axes,
    /// What was measured.
    pub lines: Vec<Line>,
    /// What it is compared with.
    pub marks: Vec<Mark>,
}

/// How values lie along the axes of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Axes {
    /// Across.
    pub x: Scale,
    /// Up.
    pub y: Scale,
}

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// From zero on, equal differences alike.
    #[default]
    Linear,
    /// Equal ratios alike; values must be above zero.
    Log,
    /// Across alone: names, at 0, 1, 2 and so on.
    Categories(&'static [&'static str]),
}

/// Points that belong together: a line, bars or boxes, as its look says.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// In the legend, once for all lines of this name.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// By rising x.
    pub points: Vec<Point>,
}

/// A value and how far repetitions of the measurement spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Point {
    /// A value that does not spread.
    #[must_use]
    pub fn exact(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: y,
            high: y,
        }
    }
}

/// A reference: dashed, grey, with its words beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// From left to right; one point: a level over the whole width.
    pub points: Vec<(f64, f64)>,
    /// What it is; nothing, if that is said elsewhere.
    pub text: String,
}

impl Mark {
    /// A level over the whole width.
    #[must_use]
    pub fn level(y: f64, text: impl Into<String>) -> Self {
        Self {
            points: vec![(0.0, y)],
            text: text.into(),
        }
    }

    /// Whether it is a level: where it begins means nothing.
    fn is_level(&self) -> bool {
        self.points.len() == 1
    }

    /// A curve.
    #[must_use]
    pub fn curve(points: Vec<(f64, f64)>, text: impl Into<String>) -> Self {
        Self {
            points,
            text: text.into(),
        }
    }
}

impl Figure {
    /// The figure as SVG.
    ///
    /// # Errors
    /// [`FigureError`]: it has no panel, a number is not finite, or the library refuses.
    pub fn svg(&self) -> Result<String, FigureError> {
        if self.panels.is_empty() || self.columns == 0 {
            return Err(FigureError::Empty);
        }
        for panel in &self.panels {
            if !panel.numbers().all(f64::is_finite) {
                let panel = panel.title.clone();
                return Err(FigureError::NotFinite { panel });
            }
            if !panel.fits_axes() {
                let panel = panel.title.clone();
                return Err(FigureError::NotPositive { panel });
            }
        }
        draw::figure(self)
    }
}

impl Panel {
    /// Whether every number has a place on its axis.
    fn fits_axes(&self) -> bool {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let places = points.flat_map(|point| [(point.x, point.low), (point.x, point.high)]);
        let fits = |scale, value: f64| scale != Scale::Log || value > 0.0;
        let fit = |(x, y)| fits(self.axes.x, x) && fits(self.axes.y, y);
        let mark_fits = |mark: &Mark| {
            let mut points = mark.points.iter();
            points.all(|(x, y)| fits(self.axes.y, *y) && (mark.is_level() || fits(self.axes.x, *x)))
        };
        places.into_iter().all(fit) && self.marks.iter().all(mark_fits)
    }

    fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let points = points.flat_map(|point| [point.x, point.y, point.low, point.high]);
        let marks = self.marks.iter().flat_map(|mark| &mark.points);
        points.chain(marks.flat_map(|(x, y)| [*x, *y]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Figure {
        let line = |name: &str, number: usize| Line {
            name: name.into(),
            look: Look::of(number),
            points: vec![Point::exact(1.0, 2.0), Point::exact(3.0, 5.0)],
        };
        let panel = Panel {
            title: "a < b".into(),
            x_label: "clients".into(),
            y_label: "time (ms)".into(),
            axes: Axes::default(),
            lines: vec![line("one", 0), line("two", 1)],
            marks: vec![Mark::level(4.0, "published: 4 ms")],
        };
        Figure {
            title: "Title".into(),
            columns: 2,
            legend_cell: 2,
            panels: vec![panel.clone(), panel],
            notes: Vec::new(),
        }
    }

    #[test]
    fn each_name_stands_in_the_legend_once_and_each_mark_at_its_panel() {
        let svg = small().svg().unwrap();
        // Text stands on lines of its own.
        let count = |text: &str| svg.lines().filter(|line| line.trim() == text).count();
        assert_eq!((count("one"), count("two")), (1, 1));
        assert_eq!(count("published: 4 ms"), 2);
        assert_eq!(count("time (ms)"), 2);
        assert_eq!(count("a &lt; b"), 2);
        assert_eq!(svg, small().svg().unwrap());
    }

    /// Where a text is, across, if it stands in a figure once.
    fn place_of(svg: &str, text: &str) -> f64 {
        let lines: Vec<&str> = svg.lines().map(str::trim).collect();
        let found: Vec<_> = lines.windows(2).filter(|pair| pair[1] == text).collect();
        assert_eq!(found.len(), 1, "{text}");
        let (_, behind) = found[0][0].split_once("x=\"").unwrap();
        behind.split_once('"').unwrap().0.parse().unwrap()
    }

    #[test]
    fn the_name_of_an_axis_stands_left_of_the_widest_number() {
        let with = |most: f64| {
            let mut figure = small();
            figure.panels[0].marks.clear();
            figure.panels[1].marks.clear();
            figure.panels[1].y_label = "share".into();
            figure.panels[1].title = "beside".into();
            figure.panels[0].lines[0].points[1] = Point::exact(3.0, most);
            figure.svg().unwrap()
        };
        for (most, widest, digits) in [
            (6e3, "6000", 4.0),
            (6e5, "600000", 6.0),
            (6e8, "600000000", 9.0),
        ] {
            let svg = with(most);
            let name = place_of(&svg, "time (ms)"); // its left end, as it is turned
            let number = place_of(&svg, widest); // its right end
            // A digit is 0.572 of its height wide.
            let left = number - digits * 0.572 * 0.9 * 33.0;
            assert!(left > name + 33.0, "{widest}: {left}, {name}");
        }
        let axes = [6e3, 6e8].map(|most| place_of(&with(most), "beside"));
        assert!((axes[0] - axes[1]).abs() < 1e-9, "other columns stay");
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_by_name() {
        let mut figure = small();
        figure.panels[1].title = "second".into();
        figure.panels[1].lines[0].points[0].high = f64::NAN;
        let panel = "second".to_string();
        assert_eq!(figure.svg(), Err(FigureError::NotFinite { panel }));
        let mut figure = small();
        figure.panels[0].axes.y = Scale::Log;
        assert!(figure.svg().is_ok());
        figure.panels[0].lines[0].points[0].low = 0.0;
        let panel = figure.panels[0].title.clone();
        assert_eq!(figure.svg(), Err(FigureError::NotPositive { panel }));
        figure.panels.clear();
        assert_eq!(figure.svg(), Err(FigureError::Empty));
        assert!(matches!(png("nothing"), Err(FigureError::Unreadable(_))));
    }

    #[test]
    fn a_panel_without_points_is_drawn_empty() {
        let mut figure = small();
        for panel in &mut figure.panels {
            panel.lines.clear();
            panel.marks.clear();
        }
        assert!(figure.svg().unwrap().contains("time (ms)"));
    }

    #[test]
    fn the_text_of_a_png_is_in_it_on_a_machine_without_fonts() {
        let with = small();
        let mut without = small();
        without.panels[0].x_label = String::new();
        let pixels = |figure: &Figure| png(&figure.svg().unwrap()).unwrap();
        assert_ne!(pixels(&with), pixels(&without));
        assert_eq!(pixels(&with), pixels(&with));
    }

    #[test]
    fn a_pdf_is_one_page_of_the_figures_shape_and_the_same_each_time() {
        let svg = small().svg().unwrap();
        let page = pdf(&svg).unwrap();
        let text = String::from_utf8_lossy(&page);
        assert!(text.starts_with("%PDF-"), "{text}");
        assert_eq!(
            text.matches("/Type/Page/").count() + text.matches("/Type /Page\n").count(),
            1
        );
        assert_eq!(page, pdf(&svg).unwrap());
        assert!(matches!(pdf("nothing"), Err(FigureError::Unreadable(_))));
    }
}
