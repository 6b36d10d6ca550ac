//! Numbers of a Zipf distribution, from all of it or from one shard.

use crate::Random;

/// Rank `k` of `0..n` has a chance in proportion to 1 / (k + 1)^α; rank is key, and key `k` lives
/// on shard `k` mod the number of shards.
///
/// Sums are kept shard by shard, so a key of a given shard is drawn as fast as any key, and
/// exactly: as if one drew from all keys until one of that shard came. Eight bytes a key,
/// meant to be shared.
#[derive(Debug)]
pub struct Zipf {
    /// For each shard the running sums of its keys' weights, in key order.
    sums: Vec<Vec<f64>>,
}

impl Zipf {
    /// `keys` keys, at least one a shard, over `shards` shards; `alpha` is not negative.
    #[must_use]
    pub fn new(keys: u32, alpha: f64, shards: u32) -> Self {
        assert!(0 < shards && shards <= keys, "each shard has a key");
        let mut sums = vec![Vec::new(); shards as usize];
        for key in 0..keys {
            let weight = f64::from(key + 1).powf(-alpha);
            let sums: &mut Vec<f64> = &mut sums[(key % shards) as usize];
            let before = sums.last().copied().unwrap_or_default();
            sums.push(before + weight);
        }
        Self { sums }
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        u32::try_from(self.sums.len()).unwrap_or(u32::MAX)
    }

    /// The weight of all keys of a shard, in no particular unit.
    #[must_use]
    pub fn weight(&self, shard: u32) -> f64 {
        let sums = self.sums.get(shard as usize);
        sums.and_then(|sums| sums.last()).copied().unwrap_or(0.0)
    }

    /// A key of a shard, which there must be.
    pub fn draw(&self, shard: u32, random: &mut Random) -> u32 {
        let sums = &self.sums[shard as usize];
        let point = random.unit() * self.weight(shard);
        let index = sums.partition_point(|sum| *sum <= point);
        // Rounding may put the point on the last sum.
        let index = index.min(sums.len() - 1);
        #[allow(clippy::cast_possible_truncation)] // there are fewer than 2^32 keys
        let index = index as u32;
        index * self.shards() + shard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: u32 = 1_000;
    const SHARDS: u32 = 7;
    const DRAWS: u32 = 200_000;

    /// Draws from all keys: a shard by weight, then a key of it.
    fn draw(zipf: &Zipf, random: &mut Random) -> u32 {
        let total: f64 = (0..SHARDS).map(|shard| zipf.weight(shard)).sum();
        let mut point = random.unit() * total;
        for shard in 0..SHARDS {
            if point < zipf.weight(shard) {
                return zipf.draw(shard, random);
            }
            point -= zipf.weight(shard);
        }
        zipf.draw(SHARDS - 1, random)
    }

    #[test]
    fn keys_come_in_proportion_to_their_weight() {
        for alpha in [0.0, 0.5, 0.9, 1.0] {
            let zipf = Zipf::new(KEYS, alpha, SHARDS);
            let total: f64 = (1..=KEYS).map(|rank| f64::from(rank).powf(-alpha)).sum();
            let mut random = Random::new(5);
            let mut counts = vec![0_u32; KEYS as usize];
            for _ in 0..DRAWS {
                counts[draw(&zipf, &mut random) as usize] += 1;
            }
            // Pearson's χ² over 1,000 keys: mean 999, standard deviation 45.
            let chi2: f64 = (1..=KEYS)
                .zip(&counts)
                .map(|(rank, count)| {
                    let expected = f64::from(rank).powf(-alpha) / total * f64::from(DRAWS);
                    (f64::from(*count) - expected).powi(2) / expected
                })
                .sum();
            assert!((820.0..1_180.0).contains(&chi2), "alpha {alpha}: {chi2}");
        }
    }

    #[test]
    fn keys_are_of_the_shard_asked_for() {
        let zipf = Zipf::new(KEYS, 1.0, SHARDS);
        let mut random = Random::new(6);
        for shard in 0..SHARDS {
            for _ in 0..1_000 {
                let key = zipf.draw(shard, &mut random);
                assert!(key < KEYS && key % SHARDS == shard);
            }
        }
    }
}
