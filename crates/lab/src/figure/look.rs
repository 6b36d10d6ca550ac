//! How lines are told apart.

/// Colours that the colour-blind can tell apart (Okabe and Ito), dark enough for thin lines, from
/// dark to light: in grey the shapes of the markers tell the rest.
const COLOURS: [(u8, u8, u8); 5] = [
    (0, 90, 160),
    (196, 78, 0),
    (0, 130, 95),
    (170, 75, 135),
    (70, 70, 70),
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

const SHAPES: [Shape; 5] = [
    Shape::Circle,
    Shape::Square,
    Shape::Triangle,
    Shape::Diamond,
    Shape::Nabla,
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
    /// The look of the first, second, … of several things. Five differ.
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

    #[test]
    fn no_two_looks_share_colour_or_shape() {
        for one in 0..5 {
            for other in 0..one {
                assert_ne!(Look::of(one).colour, Look::of(other).colour);
                assert_ne!(Look::of(one).shape, Look::of(other).shape);
            }
        }
    }
}
