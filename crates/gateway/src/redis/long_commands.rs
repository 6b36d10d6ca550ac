//! How long commands take, and where the time of slow ones went.

use std::time::Instant;

use manxdb_redis::server::{ClientId, LatencyEvent, Server, Split};
use manxdb_redis::{Command, Stamp};

/// Rounds on their way to the disk whose time is measured; those beyond are not.
const ROUNDS_MAX: usize = 1024;

/// Microseconds since a time.
pub fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// A round that is in the log and not on disk, with those of its commands that were slow.
struct OnItsWay {
    round: u64,
    since: Instant,
    append: u64,
    slow: Vec<u64>,
}

/// What is known of commands that took long.
#[derive(Default)]
pub struct LongCommands {
    /// When the command before ended: one look at the clock a command.
    last: Option<Instant>,
    /// Slow commands of this round that wrote.
    slow: Vec<u64>,
    on_their_way: std::collections::VecDeque<OnItsWay>,
}

impl LongCommands {
    /// The next command begins now.
    pub fn look_at_clock(&mut self) {
        self.last = Some(Instant::now());
    }

    /// A command has run, which may have waited for values before.
    pub fn ran(
        &mut self,
        server: &mut Server,
        (id, command): (ClientId, &Command),
        parked: Option<Instant>,
        has_written: bool,
        stamp: Stamp,
    ) {
        let now = Instant::now();
        let began = self.last.replace(now).unwrap_or(now);
        let micros =
            |from: Instant, to: Instant| u64::try_from((to - from).as_micros()).unwrap_or(u64::MAX);
        let split = Split {
            load: parked.map_or(0, |since| micros(since, began)),
            run: micros(began, now),
            ..Split::default()
        };
        if split.load > 0 {
            server.lasted(LatencyEvent::Load, split.load, stamp);
        }
        let slow = server.took(id, command, split, stamp);
        self.slow.extend(slow.filter(|_| has_written));
    }

    /// The round's rows are in the log; with `round`, replies wait until the disk has it.
    pub fn appended(&mut self, server: &mut Server, round: Option<u64>, append: u64) {
        let slow = std::mem::take(&mut self.slow);
        for number in &slow {
            server.log_took(*number, append, 0);
        }
        if let Some(round) = round
            && self.on_their_way.len() < ROUNDS_MAX
        {
            self.on_their_way.push_back(OnItsWay {
                round,
                since: Instant::now(),
                append,
                slow,
            });
        }
    }

    /// Whether rounds are on their way to the disk.
    pub fn waits(&self) -> bool {
        !self.on_their_way.is_empty()
    }

    /// The disk has all rounds up to `synced`.
    pub fn synced(&mut self, server: &mut Server, synced: u64, stamp: Stamp) {
        while let Some(first) = self.on_their_way.front()
            && first.round <= synced
        {
            let Some(done) = self.on_their_way.pop_front() else {
                return;
            };
            let sync = micros_since(done.since);
            server.lasted(LatencyEvent::Sync, sync, stamp);
            for number in done.slow {
                server.log_took(number, done.append, sync);
            }
        }
    }
}
