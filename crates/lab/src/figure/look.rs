//! How lines are told apart.

/// How many looks differ.
const LOOKS: usize = 7;

/// Colours that the colour-blind can tell apart, dark enough for thin lines: five after Okabe and
/// Ito, a dark red and a violet. In grey the shapes of the markers tell the rest.
const COLOURS: [(u8, u8, u8); LOOKS] = [
    (0, 90, 160),
    (196, 78, 0),
    (0, 130, 95),
    (170, 75, 135),
    (70, 70, 70),
    (120, 0, 30),
    (80, 40, 200),
];

/// Outline of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
    /// ▼
    Nabla,
    /// ✚
    Cross,
    /// ★
    Star,
    /// Nothing: points are too many for markers.
    None,
    /// No line: from zero a bar up to each value, light from there to the highest.
    Bar,
    /// No line: of all points at one place, a box between the quartiles with whiskers to the ends.
    Box,
}

impl Shape {
    /// Whether points are drawn side by side with those of other lines, without a line.
    #[must_use]
    pub fn is_block(self) -> bool {
        matches!(self, Self::Bar | Self::Box)
    }
}

const SHAPES: [Shape; LOOKS] = [
    Shape::Circle,
    Shape::Square,
    Shape::Triangle,
    Shape::Diamond,
    Shape::Nabla,
    Shape::Cross,
    Shape::Star,
];

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Red, green, blue.
    pub colour: (u8, u8, u8),
    /// Of its markers.
    pub shape: Shape,
    /// A companion: a thinner line of dashes with hollow markers.
    pub is_secondary: bool,
}

impl Look {
    /// The look of the first, second, … of several things. Seven differ.
    #[must_use]
    pub fn of(number: usize) -> Self {
        Self {
            colour: COLOURS[number % COLOURS.len()],
            shape: SHAPES[number % SHAPES.len()],
            is_secondary: false,
        }
    }

    /// The same in a darker shade of its colour, where more than five things are compared.
    #[must_use]
    pub fn darker(self) -> Self {
        let (red, green, blue) = self.colour;
        Self {
            colour: (red / 2, green / 2, blue / 2),
            ..self
        }
    }

    /// The same without markers.
    #[must_use]
    pub fn plain(self) -> Self {
        Self {
            shape: Shape::None,
            ..self
        }
    }

    /// The same with another shape.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// The look of its companion.
    #[must_use]
    pub fn secondary(self) -> Self {
        Self {
            is_secondary: true,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How bright a colour is to people, from 0 to 1 (the weights of Rec. 709, linear light).
    fn brightness((red, green, blue): (u8, u8, u8)) -> f64 {
        let linear = |part: u8| (f64::from(part) / 255.0).powf(2.2);
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn every_colour_stands_out_from_white_paper() {
        for colour in COLOURS {
            // The contrast that thin lines and text need (WCAG 2, 4.5 to 1).
            let contrast = 1.05 / (brightness(colour) + 0.05);
            assert!(contrast > 4.5, "{colour:?}: {contrast}");
        }
    }

    /// What people see of a colour whose red cones (`of_red`) or green ones do not work: linear light,
    /// by the matrices of Machado, Oliveira and Fernandes, "A Physiologically-based Model for
    /// Simulation of Color Vision Deficiency" (2009), at full severity.
    fn without_cones((red, green, blue): (u8, u8, u8), of_red: bool) -> [f64; 3] {
        let linear = [red, green, blue].map(|part| (f64::from(part) / 255.0).powf(2.2));
        let matrix = if of_red {
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ]
        } else {
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ]
        };
        matrix.map(|row| {
            let all = row.iter().zip(linear);
            all.map(|(by, part)| by * part).sum::<f64>().clamp(0.0, 1.0)
        })
    }

    /// How far apart two colours look: the distance in CIELAB.
    fn apart(one: [f64; 3], other: [f64; 3]) -> f64 {
        let lab = |[red, green, blue]: [f64; 3]| {
            let curve = |part: f64| {
                if part > 0.008_856 {
                    part.cbrt()
                } else {
                    7.787 * part + 16.0 / 116.0
                }
            };
            let x = curve((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505);
            let y = curve(0.2126 * red + 0.7152 * green + 0.0722 * blue);
            let z = curve((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089);
            [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
        };
        let (one, other) = (lab(one), lab(other));
        let squares = one
            .iter()
            .zip(other)
            .map(|(one, other)| (one - other).powi(2));
        squares.sum::<f64>().sqrt()
    }

    #[test]
    fn the_colour_blind_can_tell_any_two_colours_apart() {
        for one in 0..LOOKS {
            for other in 0..one {
                for of_red in [true, false] {
                    let [first, second] =
                        [one, other].map(|place| without_cones(COLOURS[place], of_red));
                    // A difference of 2 is just seen side by side.
                    let far = apart(first, second);
                    assert!(far > 15.0, "{one} and {other}: {far:.1}");
                }
            }
        }
    }

    #[test]
    fn no_two_looks_share_colour_or_shape() {
        for one in 0..LOOKS {
            for other in 0..one {
                assert_ne!(Look::of(one).colour, Look::of(other).colour);
                assert_ne!(Look::of(one).shape, Look::of(other).shape);
            }
        }
    }
}
