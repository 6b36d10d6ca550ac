//! FLOAT(m, d) and DOUBLE(m, d): numbers that are rounded to d digits behind the point when they
//! are stored, and are shown with as many. What is computed from them keeps the digits that are
//! fixed for all operands, in its look only.

use super::data_type::{DataType, Sign};

/// Digits behind the point that a type can have; more are as many as there are.
const DIGITS_MAX: u8 = 30;
/// Up to here a DOUBLE holds every integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Characters of a computed number before those behind the point.
const COMPUTED_WIDTH: u8 = 17;

impl DataType {
    /// Characters in all and digits behind the point that a FLOAT or DOUBLE is declared with and shows.
    #[must_use]
    pub fn shown_digits(&self) -> Option<(u8, u8)> {
        match self {
            DataType::Float { sign } | DataType::Double { sign } => sign.digits(),
            _ => None,
        }
    }

    /// Digits behind the point that all values of a type of numbers show; `None` for what shows as
    /// many as a value has.
    #[must_use]
    pub fn fraction_digits(&self) -> Option<u8> {
        match self {
            DataType::Int { .. } | DataType::Year | DataType::Bit { .. } => Some(0),
            DataType::Decimal { scale, .. } => Some(*scale),
            _ => self.shown_digits().map(|(_, digits)| digits),
        }
    }

    /// DOUBLE as a computation gives it, shown with `digits` behind the point.
    #[must_use]
    pub fn double_with(digits: Option<u8>) -> DataType {
        match digits {
            Some(digits) if digits <= DIGITS_MAX => DataType::Double {
                sign: Sign::Digits {
                    unsigned: false,
                    width: COMPUTED_WIDTH + digits,
                    digits,
                },
            },
            _ => DataType::DOUBLE,
        }
    }

    /// The common type of two types of which at least one is a FLOAT or DOUBLE.
    pub(super) fn common_float(a: &DataType, b: &DataType) -> DataType {
        let single = matches!(a, DataType::Float { .. }) && matches!(b, DataType::Float { .. });
        let (Some(left), Some(right)) = (a.fraction_digits(), b.fraction_digits()) else {
            return if single {
                DataType::FLOAT
            } else {
                DataType::DOUBLE
            };
        };
        let digits = left.max(right);
        let (Some((a_width, _)), Some((b_width, _)), true) =
            (a.shown_digits(), b.shown_digits(), single)
        else {
            return DataType::double_with(Some(digits));
        };
        let whole = a_width
            .saturating_sub(left)
            .max(b_width.saturating_sub(right));
        DataType::Float {
            sign: Sign::Digits {
                unsigned: a.is_unsigned() && b.is_unsigned(),
                width: whole.saturating_add(digits),
                digits,
            },
        }
    }
}

/// `number` as FLOAT(m, d) or DOUBLE(m, d) holds it, and whether it was too great for m characters.
/// Halves go to the even digit.
pub(super) fn rounded_to(number: f64, sign: Sign) -> (f64, bool) {
    let Some((width, digits)) = sign.digits() else {
        return (number, false);
    };
    let unit = 10_f64.powi(i32::from(digits));
    let whole = 10_f64.powi(i32::from(width.saturating_sub(digits)));
    let greatest = whole - unit.recip();
    let below = number.floor();
    let behind = ((number - below) * unit).round_ties_even();
    let units = below * unit + behind;
    let rounded = if units.abs() < EXACT_MAX {
        units / unit
    } else if number.is_finite() {
        below + behind / unit
    } else {
        number
    };
    if rounded > greatest {
        (greatest, true)
    } else if rounded < -greatest {
        (-greatest, true)
    } else {
        (rounded, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_declared_digits_and_cut_at_the_width() {
        let sign = |width, digits| Sign::Digits {
            unsigned: false,
            width,
            digits,
        };
        assert_eq!(rounded_to(1.2346, sign(10, 3)), (1.235, false));
        assert_eq!(rounded_to(1e200, sign(255, 0)), (1e200, false));
        assert_eq!(rounded_to(-1.2346, sign(10, 3)), (-1.235, false));
        assert_eq!(rounded_to(2.5, sign(5, 0)), (2.0, false));
        assert_eq!(rounded_to(999.994, sign(5, 2)), (999.99, false));
        assert_eq!(rounded_to(999.995, sign(5, 2)), (999.99, true));
        assert_eq!(rounded_to(-1e300, sign(5, 2)), (-999.99, true));
        assert!(rounded_to(f64::INFINITY, sign(255, 0)).1);
        assert_eq!(rounded_to(7.0, Sign::Signed), (7.0, false));
    }
}
