//! How often commands ran, failed and were refused, and how long they took: INFO commandstats,
//! errorstats and latencystats, LATENCY HISTOGRAM.
//!
//! A command is counted under its full name (`client|list`) when whoever has a clock says how long it
//! took ([`Server::took`]); where nobody does, it is counted with no time when the next one begins.

use std::collections::{BTreeMap, HashMap};

use super::forward::DataCall;
use super::state::Server;
use super::table;
use crate::resp::Reply;

/// Kinds of errors that are told apart: scripts can make up any number of them.
const KINDS_MAX: usize = 128;
/// Characters within which the first word of an error ends, as in Redis.
const KIND_BYTES_MAX: usize = 32;
/// Sub-buckets of each power of two, as a power of two: times are known to a sixteenth.
const SUB_BITS: u32 = 4;
/// Times of 2^30 microseconds (18 minutes) and more are one.
const TIME_BITS: u32 = 30;
/// Buckets: the exact ones below 2^SUB_BITS, and 2^SUB_BITS for each power of two above.
const BUCKETS: usize = ((TIME_BITS - SUB_BITS + 1) << SUB_BITS) as usize;

/// How long a command took, in microseconds, as counts of times that are about the same.
#[derive(Debug)]
pub(super) struct Times {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            total: 0,
        }
    }
}

impl Times {
    fn bucket(micros: u64) -> usize {
        let micros = micros.min((1 << TIME_BITS) - 1);
        let power = micros.checked_ilog2().unwrap_or(0);
        let Some(above) = power.checked_sub(SUB_BITS) else {
            return usize::try_from(micros).unwrap_or(0);
        };
        let sub = (micros >> above) & ((1 << SUB_BITS) - 1);
        let bucket = (u64::from(above + 1) << SUB_BITS) + sub;
        usize::try_from(bucket).unwrap_or(BUCKETS - 1)
    }

    /// The longest time of a bucket.
    fn most(bucket: usize) -> u64 {
        let (above, sub) = (bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1));
        match above.checked_sub(1) {
            None => sub as u64,
            Some(above) => ((sub as u64 + (1 << SUB_BITS) + 1) << above) - 1,
        }
    }

    fn add(&mut self, micros: u64) {
        let bucket = Self::bucket(micros);
        assert!(bucket < BUCKETS, "a time has a bucket");
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The time within which so many of a thousand commands ended.
    fn percentile(&self, per_thousand: u64) -> u64 {
        let wanted = (self.total * per_thousand).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, Self::most)
    }

    /// Powers of two in microseconds, and how many commands ended within; those that add nothing are left out.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut told: Vec<(u64, u64)> = Vec::new();
        for power in 0..=TIME_BITS {
            let until = 1 << power;
            let within = (0..BUCKETS).take_while(|bucket| Self::most(*bucket) <= until);
            let count = within.map(|bucket| self.counts[bucket]).sum();
            if count > told.last().map_or(0, |(_, before)| *before) {
                told.push((until, count));
            }
        }
        told
    }
}

/// What is known of one command.
#[derive(Debug, Default)]
pub(super) struct OfCommand {
    calls: u64,
    micros: u64,
    rejected: u64,
    failed: u64,
    pub times: Times,
}

/// What is known of all commands.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    commands: Vec<(&'static str, OfCommand)>,
    /// Where each name is.
    places: HashMap<&'static str, usize, foldhash::fast::RandomState>,
    /// Where the last one was: commands of a kind come together.
    last: usize,
    /// First words of errors.
    errors: BTreeMap<String, u64>,
}

impl Statistics {
    fn of(&mut self, name: &'static str) -> &mut OfCommand {
        let is_last = |(last, _): &(&'static str, _)| std::ptr::eq(*last, name);
        if !self.commands.get(self.last).is_some_and(is_last) {
            let commands = &mut self.commands;
            self.last = *self.places.entry(name).or_insert_with(|| {
                commands.push((name, OfCommand::default()));
                commands.len() - 1
            });
        }
        &mut self.commands[self.last].1
    }

    /// A command ran.
    pub fn ran(&mut self, name: &'static str, has_failed: bool, micros: u64) {
        let command = self.of(name);
        command.calls += 1;
        command.micros += micros;
        command.failed += u64::from(has_failed);
        command.times.add(micros);
    }

    /// A command ended that had waited: how long it ran is not known.
    pub fn waited(&mut self, name: &'static str, has_failed: bool) {
        let command = self.of(name);
        command.calls += 1;
        command.failed += u64::from(has_failed);
    }

    /// A command was known and refused before it ran.
    pub fn rejected(&mut self, name: &'static str) {
        self.of(name).rejected += 1;
    }

    fn failed(&mut self, error: &str) {
        let head = &error.as_bytes()[..error.len().min(KIND_BYTES_MAX)];
        let end = head.iter().position(|byte| *byte == b' ');
        let kind = end.map_or("ERR", |end| error.get(..end).unwrap_or("ERR"));
        if let Some(count) = self.errors.get_mut(kind) {
            *count += 1;
        } else if self.errors.len() < KINDS_MAX {
            self.errors.insert(kind.to_owned(), 1);
        }
    }

    /// Counts the errors of a reply; how many there are.
    pub fn errors_of(&mut self, reply: &Reply) -> u64 {
        match reply {
            Reply::Error(error) => {
                self.failed(&error.0);
                1
            }
            Reply::Array(replies) | Reply::Set(replies) => {
                replies.iter().map(|reply| self.errors_of(reply)).sum()
            }
            Reply::Map(pairs) => {
                let replies = pairs.iter().flat_map(|(name, value)| [name, value]);
                replies.map(|reply| self.errors_of(reply)).sum()
            }
            _ => 0,
        }
    }

    /// Those that ran or were refused, by name.
    pub fn commands(&self) -> Vec<(&'static str, &OfCommand)> {
        let mut all: Vec<_> = self.commands.iter().map(|(name, of)| (*name, of)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// Those of [`Statistics::commands`] that were timed, with how often and how long.
    pub fn timed(&self) -> impl Iterator<Item = (&'static str, u64, &Times)> {
        let timed = self
            .commands()
            .into_iter()
            .filter(|(_, of)| of.times.total > 0);
        timed.map(|(name, of)| (name, of.times.total, &of.times))
    }

    /// The lines of INFO, section by section.
    pub fn sections(&self) -> [(&'static str, Vec<(String, String)>); 3] {
        let commands = self.commands().into_iter().map(|(name, of)| {
            // Hundredths, as Redis tells them.
            let each = (of.micros * 100).checked_div(of.calls).unwrap_or(0);
            let told = format!(
                "calls={},usec={},usec_per_call={}.{:02},rejected_calls={},failed_calls={}",
                of.calls,
                of.micros,
                each / 100,
                each % 100,
                of.rejected,
                of.failed
            );
            (format!("cmdstat_{name}"), told)
        });
        let errors = self.errors.iter();
        let errors =
            errors.map(|(kind, count)| (format!("errorstat_{kind}"), format!("count={count}")));
        let times = self.timed().map(|(name, _, times)| {
            let told = [("50", 500), ("99", 990), ("99.9", 999)].map(|(percent, per_thousand)| {
                format!("p{percent}={}.000", times.percentile(per_thousand))
            });
            (format!("latency_percentiles_usec_{name}"), told.join(","))
        });
        [
            ("Commandstats", commands.collect()),
            ("Errorstats", errors.collect()),
            ("Latencystats", times.collect()),
        ]
    }
}

/// A command that ran, until somebody says how long it took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub name: &'static str,
    pub has_failed: bool,
}

impl Server {
    /// Counts the errors of a reply to a command that ran; whether the command itself has failed. Errors of
    /// commands inside EXEC are those commands'.
    pub(super) fn count_errors(&mut self, name: &str, reply: &Reply) -> bool {
        let before = self.errors;
        self.errors += self.statistics.errors_of(reply);
        reply.is_error() || self.errors > before && name != "exec"
    }

    /// The command that ran last took so long.
    pub(super) fn count_last(&mut self, micros: u64) {
        if let Some(Ran { name, has_failed }) = self.ran.take() {
            self.statistics.ran(name, has_failed, micros);
        }
    }

    /// A command whose data is elsewhere was answered, after so long.
    pub fn answered(&mut self, call: &DataCall, has_failed: bool, micros: u64) {
        let first = call.commands.first().filter(|_| !call.is_transaction);
        let name = match first {
            None => "exec",
            Some(command) => match table::find(command.name()) {
                Some(spec) => table::full_name(spec, command),
                None => return,
            },
        };
        self.errors += u64::from(has_failed);
        self.statistics.ran(name, has_failed, micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_a_bucket_whose_longest_is_at_most_a_sixteenth_above() {
        for micros in (0..5000).chain([65_535, 65_536, 1_000_000, (1 << 30) - 1]) {
            let most = Times::most(Times::bucket(micros));
            assert!(
                most >= micros && most - micros <= micros / 16,
                "{micros} {most}"
            );
        }
        assert_eq!(Times::bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(Times::most(BUCKETS - 1), (1 << 30) - 1);
    }

    #[test]
    fn percentiles_and_powers_of_two_come_from_the_counts() {
        let mut times = Times::default();
        for micros in [0, 1, 2, 3, 4, 100, 100, 100, 100, 5000] {
            times.add(micros);
        }
        assert_eq!(times.percentile(500), 4);
        assert_eq!(times.percentile(900), 103);
        assert_eq!(times.percentile(999), 5119);
        let told = [(1, 2), (2, 3), (4, 5), (128, 9), (8192, 10)];
        assert_eq!(times.cumulative(), told);
        assert_eq!(Times::default().cumulative(), []);
    }

    #[test]
    fn kinds_of_errors_are_first_words_and_of_a_bounded_number() {
        let mut statistics = Statistics::default();
        let error = |text: &str| Reply::error(text.to_owned());
        let nested = Reply::Array(vec![Reply::OK, error("WRONGTYPE no"), error("ERR x")]);
        assert_eq!(statistics.errors_of(&nested), 2);
        assert_eq!(statistics.errors_of(&error("nowordthatends")), 1);
        for number in 0..1000 {
            statistics.errors_of(&error(&format!("MINE{number} x")));
        }
        assert_eq!(statistics.errors.len(), KINDS_MAX);
        assert_eq!(statistics.errors["ERR"], 2);
        assert_eq!(statistics.errors["WRONGTYPE"], 1);
    }
}
