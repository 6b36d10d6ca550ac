//! Random numbers that are the same on every machine and in every version of ours.

/// A generator (SplitMix64): equal seeds, equal numbers. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Numbers of one purpose out of many under one seed: a draw more in one place leaves the
    /// numbers of all others as they were.
    pub fn stream(seed: u64, purpose: &[u64]) -> Self {
        let mut random = Self::new(seed);
        for part in purpose {
            random.state = random.next_bits() ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        Self::new(random.next_bits())
    }

    /// Any 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0. Its bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_bits()) * u128::from(bound);
        // The high half of a product of two 64-bit numbers has 64 bits.
        u64::try_from(wide >> 64).unwrap_or(u64::MAX)
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    pub fn unit(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the exponential distribution with this mean: the gap between two arrivals
    /// of a Poisson process.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let (mut one, mut other) = (Random::new(7), Random::new(7));
        let first: Vec<u64> = (0..100).map(|_| one.next_bits()).collect();
        let second: Vec<u64> = (0..100).map(|_| other.next_bits()).collect();
        assert_eq!(first, second);
        assert_ne!(first[0], Random::new(8).next_bits());
    }

    #[test]
    fn streams_of_different_purposes_share_no_numbers() {
        let mut seen = std::collections::BTreeSet::new();
        for node in 0..50 {
            for purpose in 0..20 {
                let mut random = Random::stream(7, &[node, purpose]);
                seen.extend((0..10).map(|_| random.next_bits()));
            }
        }
        assert_eq!(seen.len(), 50 * 20 * 10);
        let mut one = Random::stream(7, &[1, 2]);
        assert_eq!(one.next_bits(), Random::stream(7, &[1, 2]).next_bits());
        assert_ne!(one.next_bits(), Random::stream(7, &[2, 1]).next_bits());
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_it_and_not_more() {
        let mut random = Random::new(1);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(
            seen.iter().all(|count| (800..1200).contains(count)),
            "{seen:?}"
        );
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn exponential_gaps_have_the_mean_asked_for() {
        let mut random = Random::new(2);
        let sum: f64 = (0..100_000).map(|_| random.exponential(4.0)).sum();
        assert!((3.9..4.1).contains(&(sum / 100_000.0)), "{sum}");
    }
}
