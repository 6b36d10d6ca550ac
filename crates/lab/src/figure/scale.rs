//! How values lie along an axis.

use plotters::coord::ranged1d::{BoldPoints, Ranged as _};
use plotters::coord::types::RangedCoordf64;

use super::Scale;

/// An axis: how values lie along it, and where it begins and ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    /// In places, not in values.
    pub begin: f64,
    pub end: f64,
}

impl Axis {
    /// An axis on which all of some values are.
    #[allow(clippy::cast_precision_loss)] // some names
    pub fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let (least, largest) = values.map(|value| place(scale, value)).fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(least, largest), at| (least.min(at), largest.max(at)),
        );
        let (begin, end) = match scale {
            // A little beyond the largest value.
            Scale::Linear if largest > 0.0 => (0.0, largest * 1.12),
            // Half a place on both sides of the names.
            Scale::Categories(names) => (-0.5, names.len().max(1) as f64 - 0.5),
            Scale::Log if least.is_finite() => {
                (least.floor(), largest.max(least.floor() + 0.9) + 0.1)
            }
            _ => (0.0, 1.0),
        };
        Self { scale, begin, end }
    }

    /// Where a value is.
    pub fn place(self, value: f64) -> f64 {
        place(self.scale, value)
    }

    /// What stands at its ticks, of which there shall not be more than `most`.
    pub fn labels(self, most: usize) -> impl Iterator<Item = String> {
        let ticks = RangedCoordf64::from(self.begin..self.end).key_points(BoldPoints(most));
        ticks.into_iter().map(move |at| self.label(at))
    }

    /// What stands at a place.
    pub fn label(self, at: f64) -> String {
        match self.scale {
            Scale::Linear => number(at),
            // Names stand below their places, drawn for themselves.
            Scale::Categories(_) => String::new(),
            Scale::Log if (at - at.round()).abs() < 1e-6 => number(10_f64.powf(at.round())),
            // Over few powers of ten what lies between them is said too, to two digits.
            Scale::Log if self.end - self.begin < 2.5 => {
                let unit = 10_f64.powf(at.floor() - 1.0);
                number((10_f64.powf(at) / unit).round() * unit)
            }
            Scale::Log => String::new(),
        }
    }
}

fn place(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear | Scale::Categories(_) => value,
        Scale::Log => value.log10(),
    }
}

/// A number without zeros that say nothing.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = Axis::of(Scale::Linear, [3.0, 5.0].into_iter());
        assert!(axis.begin.abs() < 1e-9 && (axis.end - 5.6).abs() < 1e-9);
        assert_eq!(axis.label(2.5), "2.5");
        let none = Axis::of(Scale::Linear, [].into_iter());
        assert!((none.end - 1.0).abs() < 1e-9);
    }

    #[test]
    fn equal_ratios_are_alike_on_a_logarithmic_axis() {
        let axis = Axis::of(Scale::Log, [50.0, 2_000_000.0].into_iter());
        assert!((axis.begin - 1.0).abs() < 1e-9 && axis.end > 6.3 && axis.end < 6.5);
        let ratio = axis.place(200.0) - axis.place(20.0);
        assert!((axis.place(2e6) - axis.place(2e5) - ratio).abs() < 1e-9);
        assert_eq!(
            (axis.label(3.0), axis.label(3.5)),
            ("1000".into(), String::new())
        );
        let short = Axis::of(Scale::Log, [10.0, 300.0].into_iter());
        assert_eq!(
            (short.label(2.0), short.label(1.4), short.label(2.2)),
            ("100".into(), "25".into(), "160".into())
        );
    }
}
