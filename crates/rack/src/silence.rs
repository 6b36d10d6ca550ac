//! Which servers have been silent for too long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use manxdb_fabric::ServerId;

/// A look counts for this part of the patience at most: who stands still itself between two looks has
/// not heard what was said meanwhile.
const STEPS: u32 = 16;

/// Since when servers that are awaited have said nothing.
#[derive(Debug)]
pub struct Silence {
    patience: Duration,
    last: Option<Instant>,
    /// What each had answered, and how long it has answered no more than that.
    servers: BTreeMap<ServerId, (u64, Duration)>,
}

impl Silence {
    /// Nobody has been awaited yet; who is silent for so long is silent for too long.
    pub fn of(patience: Duration) -> Self {
        Self {
            patience,
            last: None,
            servers: BTreeMap::new(),
        }
    }

    /// Those of the servers that are awaited, each with a number that grows with its answers, who have
    /// been silent for too long.
    pub fn look(&mut self, awaited: &[(ServerId, u64)], now: Instant) -> Vec<ServerId> {
        let step = self.last.map_or(Duration::ZERO, |last| now - last);
        let step = step.min(self.patience / STEPS);
        assert!(
            step * STEPS <= self.patience,
            "one look does not use up all patience: {step:?}"
        );
        self.last = Some(now);
        let mut silent = Vec::new();
        let before = std::mem::take(&mut self.servers);
        for (server, answered) in awaited {
            assert!(
                before
                    .get(server)
                    .is_none_or(|(known, _)| known <= answered),
                "{server:?} does not take an answer back: {answered} after {before:?}"
            );
            let since = match before.get(server) {
                Some((known, since)) if known == answered => *since + step,
                _ => Duration::ZERO,
            };
            if since >= self.patience {
                silent.push(*server);
            }
            self.servers.insert(*server, (*answered, since));
        }
        assert_eq!(
            self.servers.len(),
            awaited.len(),
            "a server is awaited once, or its silence would count twice"
        );
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ServerId = ServerId(1);
    const TWO: ServerId = ServerId(2);

    /// Who is silent after looks, a second apart, at what two servers have answered.
    fn silent(answered: impl Iterator<Item = [u64; 2]>) -> Vec<ServerId> {
        let mut now = Instant::now();
        let mut silence = Silence::of(Duration::from_secs(100));
        let mut silent = Vec::new();
        for [one, two] in answered {
            now += Duration::from_secs(1);
            silent = silence.look(&[(ONE, one), (TWO, two)], now);
        }
        silent
    }

    #[test]
    fn who_answers_nothing_is_silent_and_who_answers_slowly_is_not() {
        assert_eq!(silent((0..101).map(|second| [7, second / 90])), [ONE]);
        assert_eq!(silent((0..100).map(|second| [7, second / 90])), []);
        assert_eq!(silent((0..1000).map(|second| [second / 90, 7])), [TWO]);
    }

    #[test]
    #[should_panic(expected = "does not take an answer back")]
    fn a_server_whose_answers_become_fewer_is_a_defect() {
        silent([[7, 2], [7, 1]].into_iter());
    }

    #[test]
    fn one_who_stood_still_itself_blames_nobody() {
        let mut now = Instant::now();
        let mut silence = Silence::of(Duration::from_secs(16));
        for _ in 0..16 {
            assert_eq!(silence.look(&[(ONE, 7)], now), []);
            now += Duration::from_secs(1_000);
        }
        assert_eq!(silence.look(&[(ONE, 7)], now), [ONE]);
    }

    #[test]
    fn one_who_is_asked_again_begins_anew() {
        let now = Instant::now();
        let mut silence = Silence::of(Duration::from_secs(1));
        for second in 0..100 {
            let now = now + Duration::from_millis(60) * second;
            let awaited: &[_] = if second % 10 == 0 { &[] } else { &[(ONE, 7)] };
            assert_eq!(silence.look(awaited, now), []);
        }
    }
}
