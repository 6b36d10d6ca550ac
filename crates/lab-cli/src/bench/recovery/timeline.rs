//! What came of a run, and what its timeline says about a kill.

use serde::{Deserialize, Serialize};

/// Of what was done before a kill, work is back when so much of it is done again; it was away where
/// less than so much was done.
const BACK: f64 = 0.9;
const AWAY: f64 = 0.5;
/// Intervals over which that is looked at.
const WINDOW: usize = 10;

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// An interval of the timeline.
    pub every_ms: f64,
    /// Checkouts that each client has committed in each interval since all were told to go.
    pub counts: Vec<Vec<u64>>,
    /// Tries of clients that lived to the end and had others in the way.
    pub aborted: u64,
    /// From when they were told to go until none of them bought any more.
    pub seconds: f64,
    /// CPU of clients that lived to the end.
    pub client_cpu: f64,
    /// CPU of servers that lived to the end.
    pub server_cpu: f64,
    /// The longest time of a client without a commit, of those that lived to the end.
    pub longest_ms: f64,
    /// The client that was killed.
    pub death: Option<Death>,
    /// The memory server that was killed.
    pub loss: Option<Loss>,
}

/// The end of a client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Death {
    /// Which.
    pub client: u16,
    /// Whether it looked after the others.
    pub led: bool,
    /// When it was dead.
    pub at_ms: f64,
    /// From then until somebody else had written all that it had locked.
    pub locks_ms: f64,
    /// From then until it was recovered and its place was free, as others saw it.
    #[serde(alias = "buried_ms")] // as measurements say that are kept
    pub reaped_ms: Option<f64>,
}

/// The end of a memory server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Which.
    pub server: u16,
    /// When it was dead.
    pub at_ms: f64,
    /// From then until the first of those who look after it was in the epoch behind it.
    pub agreed_ms: Option<f64>,
}

/// What a kill did to those who live on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Checkouts a second before, the median of intervals.
    pub before: f64,
    /// The same afterwards, until the next kill or the end.
    pub after: f64,
    /// The longest time without a commit of any of them.
    pub silent_ms: f64,
    /// From the kill until 90 % of what was before is done again in a tenth of a second, after less than
    /// half was done for the last time; none: not before the next kill or the end.
    pub back_ms: Option<f64>,
    /// From the kill until each of them has committed again after its longest time without a commit;
    /// none: as above.
    pub all_ms: Option<f64>,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Outcome {
    /// Checkouts that are committed.
    pub fn committed(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Checkouts a second.
    pub fn rate(&self) -> f64 {
        self.committed() as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// CPU of a checkout, where all lived to the end.
    pub fn client_cpu_us(&self) -> f64 {
        self.client_cpu * 1e6 / self.committed().max(1) as f64
    }

    /// The same of servers.
    pub fn server_cpu_us(&self) -> f64 {
        self.server_cpu * 1e6 / self.committed().max(1) as f64
    }

    /// Of all.
    pub fn cpu_us(&self) -> f64 {
        self.client_cpu_us() + self.server_cpu_us()
    }

    /// The timelines of clients that lived to the end.
    fn survivors(&self) -> impl Iterator<Item = &[u64]> {
        let dead = self.death.map(|death| usize::from(death.client));
        let lives = move |(client, _): &(usize, &Vec<u64>)| Some(*client) != dead;
        let lines = self.counts.iter().enumerate().filter(lives);
        lines.map(|(_, counts)| counts.as_slice())
    }

    /// What those who lived to the end have done together in each interval.
    pub fn of_survivors(&self) -> Vec<u64> {
        let mut sums = Vec::new();
        for counts in self.survivors() {
            sums.resize(sums.len().max(counts.len()), 0);
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        sums
    }

    /// What the end of a client did to others.
    pub fn death_effect(&self) -> Option<Effect> {
        let until = self.loss.map(|loss| loss.at_ms);
        Some(self.effect(0.0, self.death?.at_ms, until))
    }

    /// What the end of a server did to clients.
    pub fn loss_effect(&self) -> Option<Effect> {
        let since = self.death.map_or(0.0, |death| death.at_ms + death.locks_ms);
        Some(self.effect(since, self.loss?.at_ms, None))
    }

    /// What a kill did, from a time since which all went well until one at which it did no more.
    fn effect(&self, since_ms: f64, at_ms: f64, until_ms: Option<f64>) -> Effect {
        let sums = self.of_survivors();
        let place = |ms: f64| place(ms, self.every_ms).min(sums.len());
        let [since, at] = [since_ms, at_ms].map(place);
        let until = until_ms.map_or(sums.len(), place);
        let part = |sums: &'_ [u64], from: usize| -> Vec<u64> {
            sums.get(from..until).unwrap_or_default().to_vec()
        };
        let before = sums.get(since..at).unwrap_or_default();
        let after = part(&sums, at);
        let each = |intervals: f64| intervals * 1e3 / self.every_ms.max(f64::MIN_POSITIVE);
        let ms = |intervals: usize| intervals as f64 * self.every_ms;
        let over = |counts: &[u64]| silence_over(&part(counts, at));
        let over: Option<Vec<usize>> = self.survivors().map(over).collect();
        Effect {
            before: each(median(before)),
            after: each(median(&after)),
            silent_ms: ms(longest_silence(&after)),
            back_ms: back(&after, median(before)).map(ms),
            all_ms: over.and_then(|over| over.into_iter().max()).map(ms),
        }
    }
}

/// The interval of a time.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a run is short
fn place(ms: f64, every_ms: f64) -> usize {
    (ms / every_ms.max(f64::MIN_POSITIVE)).max(0.0) as usize
}

/// 0 of none.
#[allow(clippy::cast_precision_loss)] // as above
fn median(counts: &[u64]) -> f64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let middle = |place: usize| sorted.get(place).map_or(0.0, |count| *count as f64);
    let count = sorted.len();
    f64::midpoint(middle(count.saturating_sub(1) / 2), middle(count / 2))
}

/// The most intervals one after the other in which nothing was done.
fn longest_silence(counts: &[u64]) -> usize {
    let runs = counts.split(|count| *count > 0);
    runs.map(<[u64]>::len).max().unwrap_or(0)
}

/// How many intervals pass until the longest time in which nothing was done is over; none: it is not.
fn silence_over(counts: &[u64]) -> Option<usize> {
    let (mut run, mut longest, mut over) = (0, 0, 0);
    for (place, count) in counts.iter().enumerate() {
        run = if *count > 0 { 0 } else { run + 1 };
        if run > longest {
            (longest, over) = (run, place + 1);
        }
    }
    (over < counts.len()).then_some(over)
}

/// How many intervals pass until as much is done as before, which was so much in each.
#[allow(clippy::cast_precision_loss)] // as above
fn back(counts: &[u64], before: f64) -> Option<usize> {
    let share = |window: &[u64]| window.iter().sum::<u64>() as f64 / (before * WINDOW as f64);
    let shares: Vec<f64> = counts.windows(WINDOW).map(share).collect();
    let away = shares.iter().rposition(|share| *share < AWAY).unwrap_or(0);
    let rest = shares.get(away..)?;
    let again = rest.iter().position(|share| *share >= BACK)?;
    Some(away + again)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of three clients: the last dies after 30 intervals, which stops the others for 15; after
    /// 80 a server dies, which stops one for 5 and the other for 8, and takes a fifth of what they do.
    fn run() -> Outcome {
        let line = |silent: [std::ops::Range<usize>; 2], dead: usize| -> Vec<u64> {
            let count = |at: usize| match at {
                at if at >= dead || silent.iter().any(|silent| silent.contains(&at)) => 0,
                at if at >= 80 => 8,
                _ => 10,
            };
            (0..140).map(count).collect()
        };
        Outcome {
            every_ms: 10.0,
            counts: vec![
                line([33..45, 81..85], 140),
                line([30..45, 80..88], 140),
                line([0..0, 0..0], 30),
            ],
            seconds: 1.4,
            client_cpu: 1.0,
            server_cpu: 0.5,
            death: Some(Death {
                client: 2,
                led: false,
                at_ms: 300.0,
                locks_ms: 150.0,
                reaped_ms: Some(149.0),
            }),
            loss: Some(Loss {
                server: 0,
                at_ms: 800.0,
                agreed_ms: Some(40.0),
            }),
            ..Outcome::default()
        }
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6
    }

    #[test]
    fn a_death_is_seen_in_what_others_do() {
        let effect = run().death_effect().unwrap();
        assert!(is_near(effect.before, 2_000.0) && is_near(effect.after, 2_000.0));
        assert!(is_near(effect.silent_ms, 120.0), "{effect:?}");
        // Nine tenths of 200 in ten intervals: one may be empty.
        assert!(is_near(effect.back_ms.unwrap(), 140.0), "{effect:?}");
        // What is done before others come to what the dead one has locked does not count.
        assert_eq!(
            back(&[[10; 20], [0; 20], [10; 20]].concat(), 10.0),
            Some(39)
        );
        assert_eq!(back(&[[10; 20], [7; 20]].concat(), 10.0), Some(0));
        // One of them had committed after the kill, and both waited until then.
        assert!(is_near(effect.all_ms.unwrap(), 150.0), "{effect:?}");
    }

    #[test]
    fn after_a_loss_less_may_be_done_than_before() {
        let effect = run().loss_effect().unwrap();
        assert!(is_near(effect.before, 2_000.0) && is_near(effect.after, 1_600.0));
        assert!(is_near(effect.silent_ms, 40.0), "{effect:?}");
        assert_eq!(effect.back_ms, None);
        assert!(is_near(effect.all_ms.unwrap(), 80.0), "{effect:?}");
        assert_eq!(silence_over(&[1, 0, 0]), None);
        assert_eq!(
            (silence_over(&[1, 0, 1]), silence_over(&[1])),
            (Some(2), Some(0))
        );
    }

    #[test]
    fn without_kills_there_are_no_effects() {
        let quiet = Outcome {
            death: None,
            loss: None,
            ..run()
        };
        assert_eq!((quiet.death_effect(), quiet.loss_effect()), (None, None));
        assert_eq!(quiet.committed(), quiet.of_survivors().iter().sum::<u64>());
        assert!(is_near(quiet.cpu_us() * quiet.rate(), 1.5e6 / 1.4));
    }

    #[test]
    fn a_timeline_that_ends_with_a_kill_says_nothing_of_what_came_after() {
        let mut cut = run();
        for counts in &mut cut.counts {
            counts.truncate(80);
        }
        let effect = cut.loss_effect().unwrap();
        assert_eq!((effect.back_ms, effect.all_ms), (None, None));
        assert!(is_near(effect.after, 0.0) && is_near(effect.silent_ms, 0.0));
        assert!(is_near(median(&[3, 1]), 2.0) && is_near(median(&[]), 0.0));
    }
}
