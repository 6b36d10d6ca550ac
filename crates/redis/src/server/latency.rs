//! LATENCY: what took longer than a threshold, by what it was, as in Redis.

use std::collections::{BTreeMap, VecDeque};

use super::call::Call;
use super::latency_report;
use super::state::Server;
use crate::Stamp;
use crate::command::Command;
use crate::error::CommandError;
use crate::resp::Reply;

/// Times of an event that are kept, as in Redis.
const KEPT: usize = 160;

/// What may take long. Names are Redis's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LatencyEvent {
    /// A command of those that may take long.
    Command,
    /// A command that should not.
    FastCommand,
    /// Appending to the commit log.
    Append,
    /// Until the disk had what was appended.
    Sync,
    /// Values that commands waited for.
    Load,
    /// Removing keys whose time was over.
    Expire,
}

impl LatencyEvent {
    fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FastCommand => "fast-command",
            Self::Append => "aof-write",
            Self::Sync => "aof-fsync-always",
            Self::Load => "value-load",
            Self::Expire => "expire-cycle",
        }
    }
}

/// Times of one event.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Second since 1970 and milliseconds, the latest last.
    times: VecDeque<(u64, u64)>,
    most: u64,
}

impl History {
    /// The latest times, the newest last: seconds since 1970 and milliseconds.
    pub fn times(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.times.iter().copied()
    }

    /// The longest of all, those that are forgotten included.
    pub fn most(&self) -> u64 {
        self.most
    }

    fn add(&mut self, second: u64, millis: u64) {
        self.most = self.most.max(millis);
        match self.times.back_mut() {
            // The longest of each second is enough.
            Some((last, before)) if *last == second => *before = millis.max(*before),
            _ => self.times.push_back((second, millis)),
        }
        if self.times.len() > KEPT {
            self.times.pop_front();
        }
    }
}

/// All events that took long.
#[derive(Debug, Default)]
pub(super) struct Latency {
    events: BTreeMap<LatencyEvent, History>,
}

impl Latency {
    /// Events that took long, by name.
    pub fn histories(&self) -> impl Iterator<Item = (&'static str, &History)> {
        let events = self.events.iter();
        events.map(|(event, history)| (event.name(), history))
    }
}

impl Server {
    /// Says how long something took; it is kept when `latency-monitor-threshold` says so.
    pub fn lasted(&mut self, event: LatencyEvent, micros: u64, stamp: Stamp) {
        if self.keeps(micros) {
            let history = self.latency.events.entry(event).or_default();
            history.add(stamp.now_millis / 1000, micros / 1000);
        }
    }

    /// Whether a time is long enough to be kept.
    pub(super) fn keeps(&self, micros: u64) -> bool {
        let threshold = self.settings.latency_threshold_millis;
        threshold > 0 && micros / 1000 >= threshold
    }
}

/// LATENCY HISTOGRAM: of the named commands, a container being all its parts, or of all.
fn histograms(server: &Server, command: &Command) -> Reply {
    let is_wanted = |name: &str| {
        let container = name.split('|').next().unwrap_or(name);
        let mut words = command.args_from(2);
        command.len() == 2
            || words.any(|word| {
                word.eq_ignore_ascii_case(name.as_bytes())
                    || word.eq_ignore_ascii_case(container.as_bytes())
            })
    };
    let timed = server.statistics.timed();
    let told = timed
        .filter(|(name, ..)| is_wanted(name))
        .map(|(name, calls, times)| {
            let counts = times.cumulative().into_iter();
            let counts = counts.map(|(within, count)| (Reply::wide(within), Reply::wide(count)));
            let histogram = Reply::Map(vec![
                (Reply::bulk("calls"), Reply::wide(calls)),
                (Reply::bulk("histogram_usec"), Reply::Map(counts.collect())),
            ]);
            (Reply::bulk(name), histogram)
        });
    Reply::Map(told.collect())
}

/// LATENCY LATEST, HISTORY, GRAPH, DOCTOR, RESET and HISTOGRAM.
pub fn latency(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    if command.is_word(1, "HISTOGRAM") {
        return Ok(histograms(call.server, command));
    }
    if command.is_word(1, "DOCTOR") {
        return Ok(Reply::Verbatim(latency_report::doctor(call.server)));
    }
    let latency = &mut call.server.latency;
    if command.is_word(1, "LATEST") && command.len() == 2 {
        let latest = latency.events.iter().filter_map(|(event, history)| {
            let (second, millis) = history.times.back()?;
            Some(Reply::Array(vec![
                Reply::bulk(event.name()),
                Reply::wide(*second),
                Reply::wide(*millis),
                Reply::wide(history.most),
            ]))
        });
        return Ok(Reply::Array(latest.collect()));
    }
    let is_named = |event: &LatencyEvent| {
        let mut words = command.args_from(2);
        words.any(|word| word.eq_ignore_ascii_case(event.name().as_bytes()))
    };
    if command.is_word(1, "GRAPH") {
        let found = latency.events.iter().find(|(event, _)| is_named(event));
        let Some((event, history)) = found else {
            let name = String::from_utf8_lossy(command.arg(2)).into_owned();
            return Err(CommandError::new(format!(
                "ERR No samples available for event '{name}'"
            )));
        };
        let graph = latency_report::graph(event.name(), history);
        return Ok(Reply::Verbatim(graph));
    }
    if command.is_word(1, "HISTORY") && command.len() == 3 {
        let found = latency.events.iter().find(|(event, _)| is_named(event));
        let times = found.into_iter().flat_map(|(_, history)| &history.times);
        let pair = |(second, millis): &(u64, u64)| {
            Reply::Array(vec![Reply::wide(*second), Reply::wide(*millis)])
        };
        return Ok(Reply::Array(times.map(pair).collect()));
    }
    if command.is_word(1, "RESET") {
        let before = latency.events.len();
        let all = command.len() == 2;
        latency.events.retain(|event, _| !all && !is_named(event));
        return Ok(Reply::count(before - latency.events.len()));
    }
    Err(super::info::unknown(command))
}
