//! How long a master's lease lasts, for those who look at a clock.
//!
//! The core of a master knows its lease by timers. A thread that serves reads cannot wait for them: it
//! may run before a timer of a process that stood still. So the time until which the lease lasts for
//! certain is computed here, from when heartbeats were sent, and compared with a clock that only goes
//! forward. A heartbeat is sent in some round of the loop; it was not sent before the last look at the
//! core. Its lease is taken to begin there, and ends too early rather than too late.

use std::collections::VecDeque;

use manxdb_core::Nanos;

/// Heartbeats whose leases may still be granted.
const HEARTBEATS_MAX: usize = 64;

/// Follows the leases of a server. Times are of one clock that only goes forward.
#[derive(Debug)]
pub struct LeaseTracker {
    length: Nanos,
    /// Heartbeats, and the time before which each was not sent.
    sent: VecDeque<(u64, Nanos)>,
    looked: Nanos,
}

impl LeaseTracker {
    /// With the length of a lease.
    #[must_use]
    pub fn new(length: Nanos) -> Self {
        Self {
            length,
            sent: VecDeque::new(),
            looked: Nanos::ZERO,
        }
    }

    /// Looks at what [`Server::leases`](manxdb_curp::server::Server::leases) says; until when nobody else
    /// may be master.
    pub fn look(&mut self, now: Nanos, (sent, granted): (u64, u64)) -> Nanos {
        assert!(now >= self.looked, "the clock only goes forward");
        assert!(
            granted <= sent,
            "only a lease that was asked for is granted"
        );
        let known = self.sent.back().map_or(0, |(number, _)| *number);
        if sent < known {
            self.sent.clear(); // another life of the server
        }
        if sent != known {
            self.sent.push_back((sent, self.looked));
        }
        while self.sent.len() > HEARTBEATS_MAX {
            self.sent.pop_front();
        }
        self.looked = now;
        let of_granted = self
            .sent
            .iter()
            .rev()
            .find(|(number, _)| *number <= granted);
        let until = of_granted.map_or(Nanos::ZERO, |(_, at)| *at + self.length);
        assert!(until <= now + self.length, "no lease begins in the future");
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_begins_before_its_heartbeat_was_sent() {
        let mut leases = LeaseTracker::new(Nanos(100));
        assert_eq!(leases.look(Nanos(10), (1, 0)), Nanos::ZERO, "not granted");
        assert_eq!(leases.look(Nanos(25), (1, 1)), Nanos(100));
        // The second heartbeat was sent after 25, and the third after 40.
        assert_eq!(leases.look(Nanos(40), (2, 1)), Nanos(100));
        assert_eq!(leases.look(Nanos(60), (3, 2)), Nanos(125));
        assert_eq!(leases.look(Nanos(61), (3, 3)), Nanos(140));
        // One that stood still has a lease that is over.
        assert_eq!(leases.look(Nanos(900), (3, 3)), Nanos(140));
    }

    #[test]
    fn heartbeats_that_were_missed_do_not_lengthen_a_lease() {
        let mut leases = LeaseTracker::new(Nanos(100));
        leases.look(Nanos(10), (1, 0));
        // The fifth was sent after 10; of those before it nothing is known.
        assert_eq!(leases.look(Nanos(50), (5, 4)), Nanos(100));
        assert_eq!(leases.look(Nanos(51), (5, 5)), Nanos(110));
        for number in 6..200 {
            leases.look(Nanos(51 + number), (number, 5));
        }
        assert_eq!(
            leases.look(Nanos(300), (199, 5)),
            Nanos::ZERO,
            "too old to know"
        );
    }
}
