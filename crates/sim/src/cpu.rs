//! A node's CPU: one server with a line.
//!
//! Whatever arrives is taken in the order of arrival, so it is known on arrival when its turn
//! comes and when it is done: one event per message, none for leaving the line.

use manxdb_core::Nanos;

use crate::time::SimTime;

/// A single server, first come first served.
#[derive(Debug, Clone)]
pub struct Cpu {
    busy_until: SimTime,
    busy: Nanos,
    /// Until when it does nothing.
    paused_until: SimTime,
    /// How many times slower than a healthy node it is.
    slowness: u32,
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            busy_until: SimTime::ZERO,
            busy: Nanos::ZERO,
            paused_until: SimTime::ZERO,
            slowness: 1,
        }
    }
}

impl Cpu {
    /// When the turn of something that arrives now comes.
    pub fn turn(&self, arrival: SimTime) -> SimTime {
        arrival.max(self.busy_until)
    }

    /// Works from `turn` on; when it is done.
    pub fn work(&mut self, turn: SimTime, cost: Nanos) -> SimTime {
        let cost = cost * u64::from(self.slowness);
        self.busy += cost;
        self.busy_until = turn + cost;
        self.busy_until
    }

    /// Does nothing until a time; what arrives waits.
    pub fn pause(&mut self, until: SimTime) {
        self.busy_until = self.busy_until.max(until);
        self.paused_until = self.paused_until.max(until);
    }

    /// Until when it does nothing.
    pub fn paused_until(&self) -> SimTime {
        self.paused_until
    }

    /// Makes it this many times slower than it should be; 1 is healthy.
    pub fn set_slowness(&mut self, times: u32) {
        self.slowness = times.max(1);
    }

    /// CPU time spent so far.
    pub fn busy(&self) -> Nanos {
        self.busy
    }

    /// Forgets the line: the process ended at this time.
    pub fn stop(&mut self, at: SimTime) {
        let undone = self.busy_until.since(at.max(self.paused_until));
        self.busy = self.busy.saturating_sub(undone);
        self.busy_until = at;
        self.paused_until = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(micros: u64) -> SimTime {
        SimTime::from_micros(micros)
    }

    #[test]
    fn what_arrives_while_it_works_waits_in_line() {
        let mut cpu = Cpu::default();
        // Arrives, turn, cost, done: computed by hand.
        for (arrival, turn, cost, done) in [
            (10, 10, 5, 15),
            (11, 15, 5, 20),
            (12, 20, 1, 21),
            (30, 30, 2, 32),
            (31, 32, 0, 32),
        ] {
            assert_eq!(cpu.turn(micros(arrival)), micros(turn));
            assert_eq!(
                cpu.work(micros(turn), Nanos::from_micros(cost)),
                micros(done)
            );
        }
        assert_eq!(cpu.busy(), Nanos::from_micros(13));
    }

    #[test]
    fn a_gray_node_takes_longer() {
        let mut cpu = Cpu::default();
        cpu.set_slowness(10);
        assert_eq!(cpu.work(micros(1), Nanos::from_micros(3)), micros(31));
        cpu.set_slowness(0);
        assert_eq!(cpu.work(micros(31), Nanos::from_micros(3)), micros(34));
    }

    #[test]
    fn a_crash_empties_the_line() {
        let mut cpu = Cpu::default();
        cpu.work(micros(0), Nanos::from_micros(100));
        cpu.stop(micros(40));
        assert_eq!(cpu.turn(micros(50)), micros(50));
        assert_eq!(cpu.busy(), Nanos::from_micros(40));
        cpu.pause(micros(90));
        cpu.stop(micros(60));
        assert_eq!(cpu.turn(micros(60)), micros(60));
        assert_eq!(cpu.busy(), Nanos::from_micros(40));
    }
}
