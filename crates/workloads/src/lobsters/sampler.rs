//! Who is busy and what is popular: samplers over the site's own histograms.

use crate::Random;

/// How large the site is; 1 is Lobsters in March 2018: 5,797 users, 40,650 stories, 121,270
/// comments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(pub f64);

/// A histogram: (lower edge of a bin, how many people or things are in it).
type Bins = &'static [(u64, u64)];

// Published at https://lobste.rs/s/cqnzl5 (counts, no personal data).
#[rustfmt::skip]
const VOTES_PER_USER: Bins = &[
    (0, 4439), (100, 562), (200, 206), (300, 131), (400, 92), (500, 45), (600, 28), (700, 31),
    (800, 29), (900, 32), (1000, 14), (1100, 23), (1200, 18), (1300, 18), (1400, 13), (1500, 10),
    (1600, 3), (1700, 7), (1800, 8), (1900, 6), (2000, 3), (2100, 3), (2200, 4), (2300, 6),
    (2400, 4), (2500, 2), (2600, 3), (2700, 2), (2800, 2), (2900, 3), (3000, 2), (3100, 3),
    (3200, 2), (3300, 2), (3400, 1), (3600, 1), (3800, 1), (3900, 1), (4000, 1), (4100, 3),
    (4200, 1), (4300, 6), (4400, 1), (4500, 2), (4600, 1), (4800, 1), (5000, 1), (5100, 1),
    (5400, 1), (5500, 1), (5800, 2), (5900, 1), (6000, 1), (6400, 2), (6800, 1), (7100, 1),
    (7700, 1), (8400, 1), (8700, 1), (8900, 1), (10100, 1), (10900, 1), (13500, 1), (14500, 1),
    (15100, 1),
];
#[rustfmt::skip]
const VOTES_PER_STORY: Bins = &[
    (0, 16724), (10, 16393), (20, 4601), (30, 1707), (40, 680), (50, 281), (60, 128), (70, 60),
    (80, 35), (90, 16), (100, 4), (110, 4), (120, 10), (130, 1), (140, 2), (160, 1), (210, 1),
    (250, 1), (290, 1),
];
#[rustfmt::skip]
const VOTES_PER_COMMENT: Bins = &[
    (0, 89907), (10, 27614), (20, 2825), (30, 637), (40, 177), (50, 61), (60, 29), (70, 6),
    (80, 5), (90, 5), (100, 3), (150, 1),
];
#[rustfmt::skip]
const COMMENTS_PER_STORY: Bins = &[
    (0, 33974), (10, 4831), (20, 1029), (30, 401), (40, 193), (50, 103), (60, 50), (70, 24),
    (80, 18), (90, 10), (100, 5), (110, 1), (120, 5), (130, 2), (140, 1), (150, 2), (170, 1),
];
const USER_BIN_WIDTH: u64 = 100;
const BIN_WIDTH: u64 = 10;

/// Draws ids, each as often as its share of what the histogram counts.
#[derive(Debug, Clone)]
struct Popularity {
    /// For each bin: votes in it and in those before it, its first id, how many ids it has.
    bins: Vec<(u64, i64, u64)>,
    total: u64,
    ids: i64,
}

impl Popularity {
    /// Ids are given out bin by bin from 1; a bin keeps at least one.
    fn new(bins: Bins, width: u64, scale: Scale) -> Self {
        let mut made = Self {
            bins: Vec::with_capacity(bins.len()),
            total: 0,
            ids: 0,
        };
        for &(edge, count) in bins {
            let count = scaled(count, scale);
            // Twice the middle of the bin, so that it is whole.
            made.total += count * (2 * edge + width);
            made.bins.push((made.total, made.ids + 1, count));
            made.ids += i64::try_from(count).unwrap_or(0);
        }
        made
    }

    fn draw(&self, random: &mut Random) -> i64 {
        let at = random.below(self.total);
        let bin = self.bins.partition_point(|(until, ..)| *until <= at);
        let (_, first, count) = self.bins[bin.min(self.bins.len() - 1)];
        first + i64::try_from(random.below(count)).unwrap_or(0)
    }
}

/// A count at a scale, at least 1.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn scaled(count: u64, scale: Scale) -> u64 {
    ((count as f64 * scale.0).round() as u64).max(1)
}

/// How many of each there are, and which are drawn.
#[derive(Debug, Clone)]
pub struct Sampler {
    users: Popularity,
    stories_by_votes: Popularity,
    stories_by_comments: Popularity,
    comments: Popularity,
}

impl Sampler {
    /// The site at a scale.
    pub fn new(scale: Scale) -> Self {
        Self {
            users: Popularity::new(VOTES_PER_USER, USER_BIN_WIDTH, scale),
            stories_by_votes: Popularity::new(VOTES_PER_STORY, BIN_WIDTH, scale),
            stories_by_comments: Popularity::new(COMMENTS_PER_STORY, BIN_WIDTH, scale),
            comments: Popularity::new(VOTES_PER_COMMENT, BIN_WIDTH, scale),
        }
    }

    /// How many users; their ids are 1 to this.
    pub fn users(&self) -> i64 {
        self.users.ids
    }

    /// How many stories; the two histograms of stories may differ by rounding.
    pub fn stories(&self) -> i64 {
        self.stories_by_votes.ids.max(self.stories_by_comments.ids)
    }

    /// How many comments.
    pub fn comments(&self) -> i64 {
        self.comments.ids
    }

    /// A user: those who vote much are assumed to do everything else much, too.
    pub fn user(&self, random: &mut Random) -> i64 {
        self.users.draw(random)
    }

    /// A story to look at or vote on.
    pub fn story_for_vote(&self, random: &mut Random) -> i64 {
        self.spread(self.stories_by_votes.draw(random))
    }

    /// A story to comment on.
    pub fn story_for_comment(&self, random: &mut Random) -> i64 {
        self.spread(self.stories_by_comments.draw(random))
    }

    /// A comment to vote on.
    pub fn comment_for_vote(&self, random: &mut Random) -> i64 {
        self.comments.draw(random)
    }

    /// The story of a comment that is there from the start: they go round.
    pub fn story_of(&self, comment: i64) -> i64 {
        (comment - 1) % self.stories() + 1
    }

    /// Popular stories are of all ages: a fixed shuffle of the ids (both draws agree on it).
    fn spread(&self, rank: i64) -> i64 {
        let stories = self.stories();
        // A step that shares no factor with the number of stories visits each once.
        let mut step = stories / 2 + 1;
        while greatest_common_divisor(step, stories) != 1 {
            step += 1;
        }
        (rank * step) % stories + 1
    }
}

fn greatest_common_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_one_is_the_site_of_march_2018() {
        let sampler = Sampler::new(Scale(1.0));
        assert_eq!(sampler.users(), 5_797);
        assert_eq!(sampler.stories(), 40_650);
        assert_eq!(sampler.comments(), 121_270);
    }

    #[test]
    fn every_draw_is_an_id_that_exists() {
        for scale in [0.001, 0.1, 1.0, 2.59] {
            let sampler = Sampler::new(Scale(scale));
            let mut random = Random::new(3);
            for _ in 0..2_000 {
                assert!((1..=sampler.users()).contains(&sampler.user(&mut random)));
                assert!((1..=sampler.stories()).contains(&sampler.story_for_vote(&mut random)));
                assert!((1..=sampler.stories()).contains(&sampler.story_for_comment(&mut random)));
                assert!((1..=sampler.comments()).contains(&sampler.comment_for_vote(&mut random)));
            }
        }
    }

    #[test]
    fn the_busiest_tenth_of_users_does_most_of_the_work() {
        let sampler = Sampler::new(Scale(1.0));
        let mut random = Random::new(5);
        let tenth = sampler.users() * 9 / 10;
        let busy = (0..10_000)
            .filter(|_| sampler.user(&mut random) > tenth)
            .count();
        // From the histogram: (Σ of the bins above id 5,217) / (Σ of all bins) is about 0.56.
        assert!((5_000..7_500).contains(&busy), "{busy}");
    }

    #[test]
    fn spreading_visits_every_story() {
        let sampler = Sampler::new(Scale(0.01));
        let seen: std::collections::BTreeSet<i64> = (1..=sampler.stories())
            .map(|rank| sampler.spread(rank))
            .collect();
        assert_eq!(i64::try_from(seen.len()).unwrap(), sampler.stories());
    }
}
