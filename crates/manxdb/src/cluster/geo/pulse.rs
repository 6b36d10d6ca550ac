//! Whether a node's loop turns, for its admin listener, which has threads of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use manxdb_gateway::admin::HealthReport;

/// A loop that has not turned for so long stands still: it turns some hundred times a second.
const STILL: Duration = Duration::from_secs(5);

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It takes part.
    ItsWork,
    /// It is out and gets its rows from others.
    Joining,
}

/// The last turn of a loop, and what the node did then.
#[derive(Debug)]
pub struct Pulse {
    began: Instant,
    /// Milliseconds since it began, times two; the lowest bit: it is out. Nothing follows from it but what
    /// an operator reads, so that no order is needed.
    beat: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            beat: AtomicU64::new(1),
        }
    }
}

impl Pulse {
    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }

    /// The loop has turned.
    pub fn beat(&self, doing: Doing) {
        let is_out = u64::from(doing == Doing::Joining);
        self.beat
            .store(self.millis() << 1 | is_out, Ordering::Relaxed);
    }

    /// How the node is, for `/healthz` and `/readyz`.
    #[must_use]
    pub fn health(&self) -> HealthReport {
        let beat = self.beat.load(Ordering::Relaxed);
        let silent = Duration::from_millis(self.millis().saturating_sub(beat >> 1));
        if silent >= STILL {
            let what = format!("the node's loop stands still for {} s", silent.as_secs());
            return HealthReport::unavailable(what, "kill the process and start it again");
        }
        if beat & 1 == 1 {
            return HealthReport::unavailable("the node is out and gets its rows from others", "");
        }
        HealthReport::ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_works_is_out_or_stands_still() {
        let pulse = Pulse::default();
        assert!(
            pulse.health().to_string().contains("is out"),
            "until it has said otherwise"
        );
        pulse.beat(Doing::ItsWork);
        assert_eq!(pulse.health(), HealthReport::ok());
        pulse.beat(Doing::Joining);
        assert!(pulse.health().to_string().contains("is out"));
        let early = Pulse {
            began: Instant::now().checked_sub(STILL * 2).unwrap(),
            beat: AtomicU64::new(0),
        };
        assert!(early.health().to_string().contains("stands still for 10 s"));
        early.beat(Doing::ItsWork);
        assert_eq!(early.health(), HealthReport::ok());
    }
}
