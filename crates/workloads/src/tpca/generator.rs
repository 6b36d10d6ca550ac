//! Which rows clients increment.

use std::sync::Arc;

use manxdb_txn::procedure::ShardId;

use super::procedure::{NAME, encode};
use crate::zipf::Zipf;
use crate::{Partition, Random, Reach, Request, Topology};

/// Rows of each table.
pub const KEYS: u32 = 1_000_000;

/// Where a row is, as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Home,
    SameRegion,
    OtherRegion,
}

use Place::{Home, OtherRegion, SameRegion};

/// Names the stream of random numbers.
const STREAM: u64 = 2;

/// The transactions of one client.
///
/// Three independent keys are drawn, under the condition that the transaction is local or not as
/// wanted and that a key is the home shard's. Drawing until one fits would take thousands of
/// draws (a home shard has about one key in a hundred); so the three places are drawn first, from the
/// distribution that the condition leaves, then a shard for each, then a key of that shard. The
/// result is the same.
#[derive(Debug, Clone)]
pub struct Generator {
    topology: Topology,
    zipf: Arc<Zipf>,
    home: ShardId,
    cross_region: f64,
    random: Random,
    local: Vec<([Place; 3], f64)>,
    crossing: Vec<([Place; 3], f64)>,
    /// Shards with the running sum of their weights.
    same_region: Vec<(u32, f64)>,
    other_regions: Vec<(u32, f64)>,
}

impl Generator {
    /// Client number `client` of a shard, `cross_region` of whose transactions leave the region
    /// (0.1 in DAST's experiment; none if there is one region). The distribution, of
    /// [`KEYS`] keys over the topology's shards, is shared by all clients.
    #[must_use]
    pub fn new(
        topology: Topology,
        zipf: Arc<Zipf>,
        cross_region: f64,
        client: u32,
        home: ShardId,
        seed: u64,
    ) -> Self {
        assert_eq!(
            zipf.shards(),
            topology.shards(),
            "one distribution for all shards"
        );
        let shards = || (0..topology.shards()).filter(|shard| *shard != home.0);
        let is_near = |shard: &u32| topology.region_of(ShardId(*shard)) == topology.region_of(home);
        let same_region = sums(&zipf, shards().filter(is_near));
        let other_regions = sums(&zipf, shards().filter(|shard| !is_near(shard)));
        let weight = |place| match place {
            Home => zipf.weight(home.0),
            SameRegion => total(&same_region),
            OtherRegion => total(&other_regions),
        };
        let random = Random::stream(seed, &[STREAM, client.into()]);
        Self {
            topology,
            home,
            cross_region,
            random,
            local: patterns(weight, |places| !places.contains(&OtherRegion)),
            crossing: patterns(weight, |places| places.contains(&OtherRegion)),
            same_region,
            other_regions,
            zipf,
        }
    }

    /// The next transaction.
    pub fn next_request(&mut self) -> Request {
        let crosses = !self.other_regions.is_empty() && self.random.unit() < self.cross_region;
        let patterns = if crosses { &self.crossing } else { &self.local };
        let places = draw(patterns, &mut self.random).unwrap_or([Home; 3]);
        let shards = places.map(|place| self.draw_shard(place));
        let targets = shards.map(|shard| {
            let key = self.zipf.draw(shard, &mut self.random);
            (Partition(shard), key)
        });
        let reach = self.topology.reach(shards.map(ShardId));
        debug_assert_eq!(reach == Reach::Regions, crosses);
        Request {
            procedure: NAME,
            args: encode(targets),
            reach,
            pieces: 3,
            waits_across_regions: false,
        }
    }

    fn draw_shard(&mut self, place: Place) -> u32 {
        let among = match place {
            Home => return self.home.0,
            SameRegion => &self.same_region,
            OtherRegion => &self.other_regions,
        };
        // A place without shards has no weight and is never drawn.
        draw(among, &mut self.random).unwrap_or(self.home.0)
    }
}

/// Things with the running sum of their weights.
fn sums(zipf: &Zipf, shards: impl Iterator<Item = u32>) -> Vec<(u32, f64)> {
    let mut sum = 0.0;
    let weighed = shards.map(|shard| {
        sum += zipf.weight(shard);
        (shard, sum)
    });
    weighed.collect()
}

fn total(sums: &[(u32, f64)]) -> f64 {
    sums.last().map_or(0.0, |(_, sum)| *sum)
}

/// The places of three keys that satisfy `allows` with one of them at home, with running sums.
fn patterns(
    weight: impl Fn(Place) -> f64,
    allows: impl Fn(&[Place; 3]) -> bool,
) -> Vec<([Place; 3], f64)> {
    const PLACES: [Place; 3] = [Home, SameRegion, OtherRegion];
    let mut sum = 0.0;
    let mut found = Vec::new();
    for one in PLACES {
        for two in PLACES {
            for three in PLACES {
                let places = [one, two, three];
                let chance: f64 = places.map(&weight).iter().product();
                if places.contains(&Home) && allows(&places) && chance > 0.0 {
                    sum += chance;
                    found.push((places, sum));
                }
            }
        }
    }
    found
}

/// One of the things, by weight.
fn draw<T: Copy>(sums: &[(T, f64)], random: &mut Random) -> Option<T> {
    let (last, total) = sums.last()?;
    let point = random.unit() * total;
    let index = sums.partition_point(|(_, sum)| *sum <= point);
    Some(sums.get(index).map_or(*last, |(thing, _)| *thing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpca::procedure::Increment;
    use manxdb_txn::procedure::Procedure;

    const KEYS_FEW: u32 = 600;

    fn shards_of(request: &Request, topology: Topology) -> Vec<u32> {
        let pieces = Increment.plan(&request.args, &topology).unwrap();
        pieces.iter().map(|piece| piece.shard.0).collect()
    }

    #[test]
    fn a_tenth_crosses_regions_and_all_touch_the_home_shard() {
        let topology = Topology {
            regions: 10,
            shards_per_region: 10,
        };
        let zipf = Arc::new(Zipf::new(KEYS_FEW, 0.9, topology.shards()));
        let home = ShardId(57);
        let mut generator = Generator::new(topology, zipf, 0.1, 3, home, 1);
        let mut crossing = 0;
        for _ in 0..200_000 {
            let request = generator.next_request();
            let shards = shards_of(&request, topology);
            assert!(shards.contains(&57));
            let reach = topology.reach(shards.into_iter().map(ShardId));
            assert_eq!(reach, request.reach);
            crossing += u32::from(!reach.is_local());
        }
        assert!((19_500..20_500).contains(&crossing), "{crossing}");
    }

    #[test]
    fn one_region_has_no_crossing_transactions() {
        let topology = Topology {
            regions: 1,
            shards_per_region: 1,
        };
        let zipf = Arc::new(Zipf::new(KEYS_FEW, 1.0, 1));
        let mut generator = Generator::new(topology, zipf, 0.5, 0, ShardId(0), 1);
        for _ in 0..100 {
            assert_eq!(generator.next_request().reach, Reach::Shard);
        }
    }

    /// The shares of the patterns of shards, drawn our way and by drawing until it fits.
    #[test]
    fn places_come_as_often_as_by_drawing_until_it_fits() {
        const DRAWS: u32 = 100_000;
        let topology = Topology {
            regions: 2,
            shards_per_region: 2,
        };
        let home = ShardId(1);
        let zipf = Arc::new(Zipf::new(KEYS_FEW, 0.9, 4));
        let mut generator = Generator::new(topology, zipf.clone(), 0.3, 0, home, 1);
        let mut random = Random::new(99);
        let everything = sums(&zipf, 0..4);
        let mut counts = vec![[0_u32; 2]; 64];
        for _ in 0..DRAWS {
            let ours = shards_of(&generator.next_request(), topology);
            counts[ours
                .iter()
                .fold(0, |code, shard| code * 4 + *shard as usize)][0] += 1;
            let crosses = random.unit() < 0.3;
            let theirs = loop {
                let shards = [(); 3].map(|()| draw(&everything, &mut random).unwrap());
                let is_local = topology.reach(shards.map(ShardId)).is_local();
                if shards.contains(&home.0) && is_local != crosses {
                    break shards;
                }
            };
            counts[theirs
                .iter()
                .fold(0, |code, shard| code * 4 + *shard as usize)][1] += 1;
        }
        for (code, [ours, theirs]) in counts.into_iter().enumerate() {
            let spread = 5.0 * f64::from(ours + theirs).sqrt() + 1.0;
            let difference = f64::from(ours.abs_diff(theirs));
            assert!(difference < spread, "pattern {code}: {ours} and {theirs}");
        }
    }
}
