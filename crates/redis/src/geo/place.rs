//! A place, its 52 bits, and how far it is from another one.

use crate::error::CommandError;
use crate::number;

/// Bits of each coordinate in a score.
pub const STEPS: u32 = 26;
/// The earth's radius in metres, as Redis has it.
pub const EARTH_METRES: f64 = 6_372_797.560_856;
/// The greatest latitude of the projection; the greatest longitude is 180.
pub const LATITUDE_MAX: f64 = 85.051_128_78;
/// The greatest longitude.
pub const LONGITUDE_MAX: f64 = 180.0;

const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// A point, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoPlace {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// Puts the bits of `one` at even places and those of `other` at odd ones.
fn interleaved(one: u32, other: u32) -> u64 {
    let spread = |bits: u32| {
        (0..32).fold(0_u64, |sum, at| {
            sum | (u64::from(bits >> at) & 1) << (2 * at)
        })
    };
    spread(one) | spread(other) << 1
}

/// The bits at even places.
fn gathered(bits: u64) -> u32 {
    (0..32).fold(0, |sum, at| {
        sum | u32::from((bits >> (2 * at)) & 1 == 1) << at
    })
}

/// A coordinate's cell among 2^26 from `-max` to `max`.
fn cell(value: f64, max: f64) -> u32 {
    let share = (value + max) / (2.0 * max) * f64::from(1_u32 << STEPS);
    // The coordinate is inside, and the cast takes the last cell for its end.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let cell = share as u32;
    cell
}

impl GeoPlace {
    /// The place that two arguments tell.
    ///
    /// # Errors
    /// Redis's texts for what is no number, or no place of the projection.
    pub fn parse(longitude: &[u8], latitude: &[u8]) -> Result<Self, CommandError> {
        let longitude = number::float(longitude).ok_or(CommandError::NOT_FLOAT)?;
        let latitude = number::float(latitude).ok_or(CommandError::NOT_FLOAT)?;
        if longitude.abs() > LONGITUDE_MAX || latitude.abs() > LATITUDE_MAX {
            return Err(CommandError::new(format!(
                "ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
            )));
        }
        Ok(Self {
            longitude,
            latitude,
        })
    }

    /// The 52 bits: longitude and latitude in turn, from the highest.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.bits_within(LATITUDE_MAX)
    }

    fn bits_within(self, latitude_max: f64) -> u64 {
        let latitude = cell(self.latitude, latitude_max);
        interleaved(latitude, cell(self.longitude, LONGITUDE_MAX))
    }

    /// The middle of the cell of a score.
    #[must_use]
    pub fn of_score(score: f64) -> Self {
        // What is no place of this projection becomes the nearest one.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bits = score as u64;
        let middle = |cell: u32, max: f64| {
            let cells = f64::from(1_u32 << STEPS);
            let start = -max + f64::from(cell) / cells * (2.0 * max);
            let end = -max + (f64::from(cell) + 1.0) / cells * (2.0 * max);
            f64::midpoint(start, end).clamp(-max, max)
        };
        Self {
            longitude: middle(gathered(bits >> 1), LONGITUDE_MAX),
            latitude: middle(gathered(bits), LATITUDE_MAX),
        }
    }

    /// The eleven letters of its geohash, whose latitudes go to the poles.
    #[must_use]
    pub fn letters(self) -> Vec<u8> {
        let bits = self.bits_within(90.0);
        let letter = |at: u32| match at {
            // 52 bits are ten letters and two bits more.
            10 => LETTERS[0],
            _ => LETTERS[usize::try_from((bits >> (52 - (at + 1) * 5)) & 31).unwrap_or(0)],
        };
        (0..11).map(letter).collect()
    }

    /// Metres along the surface to another place.
    #[must_use]
    pub fn metres_to(self, other: Self) -> f64 {
        let across = ((other.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        let (one, two) = (self.latitude.to_radians(), other.latitude.to_radians());
        if across == 0.0 {
            return EARTH_METRES * (two - one).abs();
        }
        let along = ((two - one) / 2.0).sin();
        let square = along * along + one.cos() * two.cos() * across * across;
        2.0 * EARTH_METRES * square.sqrt().min(1.0).asin()
    }
}

/// Metres of a unit of length.
///
/// # Errors
/// Redis's text for an unknown unit.
pub fn metres_of(unit: &[u8]) -> Result<f64, CommandError> {
    match unit.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(CommandError::text(
            "ERR unsupported unit provided. please use M, KM, FT, MI",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_score_is_a_place_within_a_metre(
            longitude in -180.0..180.0_f64,
            latitude in -85.0..85.0_f64,
        ) {
            let place = GeoPlace { longitude, latitude };
            #[allow(clippy::cast_precision_loss)] // 52 bits
            let again = GeoPlace::of_score(place.bits() as f64);
            prop_assert!(place.metres_to(again) < 1.0);
            prop_assert_eq!(again.bits(), place.bits());
        }
    }

    #[test]
    fn distances_and_letters_are_redis_own() {
        let score = |longitude: &[u8], latitude: &[u8]| {
            let bits = GeoPlace::parse(longitude, latitude).unwrap().bits();
            #[allow(clippy::cast_precision_loss)] // 52 bits
            GeoPlace::of_score(bits as f64)
        };
        let palermo = score(b"13.361389", b"38.115556");
        let catania = score(b"15.087269", b"37.502669");
        assert_eq!(format!("{:.4}", palermo.metres_to(catania)), "166274.1516");
        assert_eq!(palermo.letters(), b"sqc8b49rny0");
    }
}
