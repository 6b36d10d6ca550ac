//! How large a warehouse is, and the random numbers of TPC-C.

use crate::Random;

/// Size of a warehouse. Everything else follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// 1 to 255.
    pub districts: u8,
    /// At least 1.
    pub customers_per_district: u32,
    /// At least 1.
    pub items: u32,
    /// Orders of each district at the start; three in ten are not delivered yet.
    pub orders_per_district: u32,
}

impl Scale {
    /// TPC-C's.
    #[must_use]
    pub fn full() -> Self {
        Self {
            districts: 10,
            customers_per_district: 3_000,
            items: 100_000,
            orders_per_district: 3_000,
        }
    }

    /// For tests.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            districts: 3,
            customers_per_district: 12,
            items: 40,
            orders_per_district: 10,
        }
    }

    /// Last names in use: TPC-C has a thousand, and a small district knows only its first.
    #[must_use]
    pub fn last_names(self) -> u16 {
        u16::try_from(self.customers_per_district).map_or(1_000, |count| count.min(1_000))
    }

    /// Orders of a district that are delivered at the start.
    #[must_use]
    pub fn delivered(self) -> u32 {
        self.orders_per_district / 10 * 7
    }
}

/// Number of a last name at loading and later: the constants of NURand (clause 2.1.6.1).
pub(super) const NAME_AT_LOAD: u32 = 157;
pub(super) const NAME_AT_RUN: u32 = 223;
pub(super) const CUSTOMER: u32 = 259;
pub(super) const ITEM: u32 = 7_911;

/// A number from `low` to `high`, all alike.
pub(super) fn uniform(random: &mut Random, low: u32, high: u32) -> u32 {
    let more = random.below(u64::from(high - low) + 1);
    // Below a 32-bit number.
    low + u32::try_from(more).unwrap_or_default()
}

/// TPC-C's NURand(`a`, `low`, `high`) with constant `c`: some numbers far oftener than others.
pub(super) fn nurand(random: &mut Random, a: u32, c: u32, low: u32, high: u32) -> u32 {
    let mixed = uniform(random, 0, a) | uniform(random, low, high);
    let span = u64::from(high - low) + 1;
    let step = (u64::from(mixed) + u64::from(c)) % span;
    low + u32::try_from(step).unwrap_or_default()
}

/// A last name, of those in use.
pub(super) fn last_name(random: &mut Random, c: u32, scale: Scale) -> u16 {
    let number = nurand(random, 255, c, 0, 999);
    // A thousand fit.
    u16::try_from(number).unwrap_or_default() % scale.last_names()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nurand_keeps_its_bounds_and_prefers_some() {
        let mut random = Random::new(3);
        let mut counts = vec![0_u32; 1_001];
        for _ in 0..100_000 {
            counts[nurand(&mut random, 255, 99, 1, 1_000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        let most = counts.iter().max().unwrap();
        assert!((300..3_000).contains(most), "{most}");
    }

    #[test]
    fn uniform_reaches_both_ends() {
        let mut random = Random::new(3);
        let drawn: std::collections::BTreeSet<u32> =
            (0..1_000).map(|_| uniform(&mut random, 5, 15)).collect();
        assert!(drawn.into_iter().eq(5..=15));
    }
}
