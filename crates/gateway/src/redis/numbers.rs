//! What other threads of the process see of the loop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_redis::server::{ClientId, NUMBERS, Number, SlowCommand};
use parking_lot::Mutex;

use super::event_loop::EventLoop;

/// What a Redis server tells of itself: the numbers of INFO, at the end of a round of this millisecond or before, and what was slow.
#[derive(Debug)]
pub struct RedisCounters {
    /// In the order of [`NUMBERS`].
    numbers: Vec<AtomicU64>,
    /// Commands that took long, the newest first.
    slow: Mutex<Vec<SlowCommand>>,
    slow_total: AtomicU64,
    /// Why writes are refused, when they are.
    refusal: Mutex<Option<String>>,
    /// Connections that wait for keys, by their commands.
    waits: Mutex<BTreeMap<&'static str, usize>>,
}

impl Default for RedisCounters {
    fn default() -> Self {
        Self {
            numbers: NUMBERS.iter().map(|_| AtomicU64::new(0)).collect(),
            slow: Mutex::default(),
            slow_total: AtomicU64::new(0),
            refusal: Mutex::default(),
            waits: Mutex::default(),
        }
    }
}

impl RedisCounters {
    /// The numbers of INFO.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static Number, u64)> + '_ {
        let values = self
            .numbers
            .iter()
            .map(|value| value.load(Ordering::Relaxed));
        NUMBERS.iter().zip(values)
    }

    /// Commands that took long, the newest first.
    #[must_use]
    pub fn slow(&self) -> Vec<SlowCommand> {
        self.slow.lock().clone()
    }

    /// Why writes are refused, when they are.
    #[must_use]
    pub fn write_refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    /// Connections that wait for keys, by their commands.
    #[must_use]
    pub fn waits(&self) -> BTreeMap<&'static str, usize> {
        self.waits.lock().clone()
    }
}

impl EventLoop {
    /// What other threads may see, after a round: at most once a millisecond, since telling it takes as long as a
    /// short command.
    pub(super) fn count(&mut self) {
        for (level, text) in self.server.take_script_log() {
            match level {
                0 | 1 => tracing::debug!(text, "redis.log of a script"),
                2 => tracing::info!(text, "redis.log of a script"),
                _ => tracing::warn!(text, "redis.log of a script"),
            }
        }
        if self.counted == self.now {
            return;
        }
        self.counted = self.now;
        // The others are paused.
        let loads = |id: &&ClientId| {
            let connection = self.sockets.connections.get(id);
            connection.is_some_and(|connection| connection.parked_since.is_some())
        };
        let loading = self.parked.iter().filter(loads).count() as u64;
        let outside = &mut self.server.outside;
        outside.log_appends = self.round;
        outside.held_clients = self.held.len() as u64;
        outside.loading_clients = loading;
        let numbers = &self.shared.counters.numbers;
        for ((_, value), counter) in self.server.numbers().zip(numbers) {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// What takes longer to tell, now and then.
    pub(super) fn publish(&mut self) {
        let counters = &self.shared.counters;
        *counters.waits.lock() = self.server.waiting_by_command();
        *counters.refusal.lock() = self.server.refusal().map(str::to_owned);
        let slow = self.server.slow();
        // SLOWLOG RESET leaves fewer, another command or the disk's time makes them others.
        if slow.entries().next().is_some() || counters.slow_total.load(Ordering::Relaxed) > 0 {
            let entries: Vec<SlowCommand> = slow.entries().cloned().collect();
            counters
                .slow_total
                .store(entries.len() as u64, Ordering::Relaxed);
            *counters.slow.lock() = entries;
        }
    }
}
