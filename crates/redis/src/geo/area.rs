//! An area, and ranges of scores outside of which none of its members are.
//!
//! The area's bounding box is covered by cells: a cell of the whole projection is cut into four as
//! long as it reaches out of the box and is not small beside it. The cells of one size are numbered
//! along the curve that scores follow, so each is a range of scores.

use super::place::{EARTH_METRES, GeoPlace, LATITUDE_MAX, LONGITUDE_MAX, STEPS};

/// Degrees added to a bounding box on every side, for rounding.
const MARGIN: f64 = 1e-6;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeoShape {
    /// All within a distance, in metres.
    Circle(f64),
    /// A box of a width and a height, in metres.
    Box(f64, f64),
}

/// A shape around its middle.
#[derive(Debug, Clone, Copy)]
pub struct GeoArea {
    /// The middle.
    pub middle: GeoPlace,
    /// The shape.
    pub shape: GeoShape,
}

/// Degrees from west to east and south to north.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl GeoArea {
    /// Metres from the middle to a place that is inside.
    #[must_use]
    pub fn metres_inside(&self, place: GeoPlace) -> Option<f64> {
        let metres = self.middle.metres_to(place);
        let is_inside = match self.shape {
            GeoShape::Circle(radius) => metres <= radius,
            GeoShape::Box(width, height) => {
                let below = GeoPlace {
                    latitude: self.middle.latitude,
                    ..place
                };
                let beside = GeoPlace {
                    longitude: self.middle.longitude,
                    ..place
                };
                place.metres_to(below) <= height / 2.0 && place.metres_to(beside) <= width / 2.0
            }
        };
        is_inside.then_some(metres)
    }

    /// Half of the bounding box's sides, in degrees.
    fn half_sides(&self) -> (f64, f64) {
        let whole = (2.0 * LONGITUDE_MAX, 180.0);
        let middle = self.middle.latitude.to_radians();
        let (height, sine) = match self.shape {
            GeoShape::Circle(radius) => {
                let angle = radius / EARTH_METRES;
                if angle + middle.abs() >= std::f64::consts::FRAC_PI_2 {
                    return (whole.0, angle.to_degrees().min(whole.1));
                }
                (angle, angle.sin() / middle.cos())
            }
            GeoShape::Box(width, height) => {
                let half = height / 2.0 / EARTH_METRES;
                let (farthest, turn) = (half + middle.abs(), width / 4.0 / EARTH_METRES);
                let limit = std::f64::consts::FRAC_PI_2;
                if farthest >= limit || turn >= limit || turn.sin() >= farthest.cos() {
                    return (whole.0, half.to_degrees().min(whole.1));
                }
                let half_turn = (turn.sin() / farthest.cos()).asin();
                return ((2.0 * half_turn).to_degrees(), half.to_degrees());
            }
        };
        (sine.min(1.0).asin().to_degrees(), height.to_degrees())
    }

    /// Boxes that hold the area: two where it reaches over the date line.
    fn bounds(&self) -> Vec<Bounds> {
        let (across, along) = self.half_sides();
        let (south, north) = (
            self.middle.latitude - along - MARGIN,
            self.middle.latitude + along + MARGIN,
        );
        let (west, east) = (
            self.middle.longitude - across - MARGIN,
            self.middle.longitude + across + MARGIN,
        );
        let part = |west: f64, east: f64| Bounds {
            west,
            east,
            south,
            north,
        };
        let turn = 2.0 * LONGITUDE_MAX;
        match () {
            () if east - west >= turn => vec![part(-LONGITUDE_MAX, LONGITUDE_MAX)],
            () if west < -LONGITUDE_MAX => {
                vec![part(-LONGITUDE_MAX, east), part(west + turn, LONGITUDE_MAX)]
            }
            () if east > LONGITUDE_MAX => {
                vec![part(west, LONGITUDE_MAX), part(-LONGITUDE_MAX, east - turn)]
            }
            () => vec![part(west, east)],
        }
    }

    /// Ranges of scores, the end outside, in order and apart.
    #[must_use]
    pub fn scores(&self) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for bounds in self.bounds() {
            cover(&bounds, bounds.steps(), 0, 0, &mut found);
            if bounds.east >= LONGITUDE_MAX || bounds.north >= LATITUDE_MAX {
                // The very end of a coordinate has a bit more than all cells.
                found.push((1 << (2 * STEPS), 1 << (2 * STEPS + 2)));
            }
        }
        found.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(found.len());
        for (start, end) in found {
            assert!(start < end, "a cell has scores");
            match ranges.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => ranges.push((start, end)),
            }
        }
        ranges
    }
}

impl Bounds {
    /// How often the projection is cut until a cell is about as large as the box.
    fn steps(&self) -> u32 {
        let is_larger = |steps: u32| {
            let cells = f64::from(1_u32 << steps);
            2.0 * LONGITUDE_MAX / cells >= (self.east - self.west) / 2.0
                && 2.0 * LATITUDE_MAX / cells >= (self.north - self.south) / 2.0
        };
        (0..=STEPS)
            .take_while(|steps| is_larger(*steps))
            .last()
            .unwrap_or(0)
    }

    fn touches(&self, other: &Self) -> bool {
        self.west <= other.east
            && other.west <= self.east
            && self.south <= other.north
            && other.south <= self.north
    }

    fn holds(&self, other: &Self) -> bool {
        self.west <= other.west
            && self.east >= other.east
            && self.south <= other.south
            && self.north >= other.north
    }
}

/// The cell with this number among those cut `step` times.
fn cell_bounds(number: u64, step: u32) -> Bounds {
    let (mut column, mut row) = (0.0, 0.0);
    for bit in (0..step).rev() {
        row = row * 2.0 + f64::from(u8::from((number >> (2 * bit)) & 1 == 1));
        column = column * 2.0 + f64::from(u8::from((number >> (2 * bit + 1)) & 1 == 1));
    }
    let cells = f64::from(1_u32 << step);
    let (width, height) = (2.0 * LONGITUDE_MAX / cells, 2.0 * LATITUDE_MAX / cells);
    let (west, south) = (column * width - LONGITUDE_MAX, row * height - LATITUDE_MAX);
    Bounds {
        west,
        east: west + width,
        south,
        north: south + height,
    }
}

fn cover(bounds: &Bounds, steps: u32, number: u64, step: u32, out: &mut Vec<(u64, u64)>) {
    let cell = cell_bounds(number, step);
    if !bounds.touches(&cell) {
        return;
    }
    if step == steps || bounds.holds(&cell) {
        let shift = 2 * (STEPS - step);
        out.push((number << shift, (number + 1) << shift));
        return;
    }
    for quarter in 0..4 {
        cover(bounds, steps, number << 2 | quarter, step + 1, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places() -> impl Strategy<Value = GeoPlace> {
        let longitude = prop_oneof![-180.0..180.0_f64, Just(179.99), Just(-179.99), Just(10.0)];
        let latitude = prop_oneof![-85.0..85.0_f64, Just(84.9), Just(-84.9), Just(20.0)];
        (longitude, latitude).prop_map(|(longitude, latitude)| GeoPlace {
            longitude,
            latitude,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_place_inside_has_a_score_outside(
            middle in places(),
            place in places(),
            sizes in prop_oneof![(1.0..2e4_f64, 1.0..2e4_f64), (1.0..2.1e7_f64, 1.0..2.1e7_f64)],
            is_box: bool,
            near in (-0.05..0.05_f64, -0.05..0.05_f64),
            is_near: bool,
        ) {
            let shape = if is_box { GeoShape::Box(sizes.0, sizes.1) } else { GeoShape::Circle(sizes.0) };
            let beside = GeoPlace {
                longitude: (middle.longitude + near.0).clamp(-180.0, 180.0),
                latitude: middle.latitude + near.1,
            };
            let place = if is_near { beside } else { place };
            #[allow(clippy::cast_precision_loss)] // 52 bits
            let kept = GeoPlace::of_score(place.bits() as f64);
            let area = GeoArea { middle, shape };
            let ranges = area.scores();
            prop_assert!(ranges.len() <= 64, "{} ranges", ranges.len());
            if area.metres_inside(kept).is_some() {
                let score = place.bits();
                prop_assert!(ranges.iter().any(|(start, end)| (*start..*end).contains(&score)));
            }
        }
    }
}
