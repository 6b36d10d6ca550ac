//! The slowest calls of the last ten minutes: what an operator who sees a long tail asks for next.

use std::collections::VecDeque;

use manxdb_core::Nanos;

use super::measured::SlowCall;

/// Calls of a class kept for each minute.
const EACH: usize = 5;
/// Minutes kept.
const MINUTES: usize = 10;
/// The length of one.
const MINUTE: Nanos = Nanos::from_secs(60);

/// The slowest calls of one class.
#[derive(Debug, Default)]
pub struct Slowest {
    /// By minute, the newest last; of each the slowest first, with the time of its answer.
    minutes: VecDeque<(u64, Vec<(Nanos, SlowCall)>)>,
}

impl Slowest {
    /// Whether a call that took so long would be kept, if it were answered now.
    #[must_use]
    pub fn wants(&self, now: Nanos, micros: u64) -> bool {
        let newest = self
            .minutes
            .back()
            .filter(|(minute, _)| *minute == number(now));
        let Some((_, calls)) = newest else {
            return true;
        };
        calls.len() < EACH || calls.last().is_none_or(|(_, last)| micros > last.micros)
    }

    /// Takes a call that was answered now.
    pub fn add(&mut self, now: Nanos, call: SlowCall) {
        let number = number(now);
        if self
            .minutes
            .back()
            .is_none_or(|(minute, _)| *minute != number)
        {
            self.minutes
                .push_back((number, Vec::with_capacity(EACH + 1)));
        }
        while self.minutes.len() > MINUTES {
            self.minutes.pop_front();
        }
        if let Some((_, calls)) = self.minutes.back_mut() {
            let place = calls.partition_point(|(_, other)| other.micros >= call.micros);
            calls.insert(place, (now, call));
            calls.truncate(EACH);
        }
    }

    /// The slowest, in no order, as they are told at `now`.
    pub fn told(&self, now: Nanos) -> impl Iterator<Item = SlowCall> {
        let oldest = number(now).saturating_sub(MINUTES as u64 - 1);
        let minutes = self
            .minutes
            .iter()
            .filter(move |(minute, _)| *minute >= oldest);
        let mut calls: Vec<SlowCall> = minutes
            .flat_map(|(_, calls)| calls)
            .map(|(at, call)| SlowCall {
                ago_ms: now.saturating_sub(*at).as_micros() / 1_000,
                ..call.clone()
            })
            .collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.micros));
        calls.truncate(EACH);
        calls.into_iter()
    }
}

fn number(now: Nanos) -> u64 {
    now.0 / MINUTE.0
}

#[cfg(test)]
mod tests {
    use super::super::measured::{Class, Waits};
    use super::*;

    fn call(micros: u64) -> SlowCall {
        SlowCall {
            call: "7.1".to_owned(),
            procedure: "append".to_owned(),
            class: Class::Local,
            micros,
            ago_ms: 0,
            waits: Waits::new(),
        }
    }

    fn told(slowest: &Slowest, second: u64) -> Vec<u64> {
        let told = slowest.told(Nanos::from_secs(second));
        told.map(|call| call.micros).collect()
    }

    #[test]
    fn each_minute_keeps_its_slowest_and_ten_minutes_are_told() {
        let mut slowest = Slowest::default();
        for micros in 1..=20 {
            assert!(slowest.wants(Nanos::from_secs(1), micros * 100));
            slowest.add(Nanos::from_secs(1), call(micros * 100));
        }
        assert!(
            !slowest.wants(Nanos::from_secs(2), 1_600),
            "five are slower"
        );
        assert!(slowest.wants(Nanos::from_secs(61), 1), "another minute");
        assert_eq!(told(&slowest, 59), [2_000, 1_900, 1_800, 1_700, 1_600]);
        slowest.add(Nanos::from_secs(500), call(1_850));
        assert_eq!(told(&slowest, 599), [2_000, 1_900, 1_850, 1_800, 1_700]);
        assert_eq!(told(&slowest, 600), [1_850], "ten minutes have passed");
        let ago = slowest.told(Nanos::from_secs(503)).map(|call| call.ago_ms);
        assert_eq!(ago.max(), Some(502_000));
    }
}
