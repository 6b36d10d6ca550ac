//! What is shown of the streams between this region and others.

use crate::manager::Manager;
use crate::manager::shown::{Pair, ahead_by};
use crate::manager::stream::Incoming;
use crate::timestamp::Timestamp;

impl Manager {
    /// How this region and each other one are ordered ahead, while `reading` is the region's time and
    /// `tick` the number of the manager's last tick.
    pub(in crate::manager) fn pairs(&self, reading: u64, tick: u64) -> Vec<Pair> {
        let Some(ahead) = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref()) else {
            return Vec::new();
        };
        let known = |at: Timestamp| (at > Timestamp::ZERO).then(|| ahead_by(at, reading));
        let pairs = ahead.outgoing.iter().map(|(region, stream)| {
            assert!(*region != self.region, "no region streams to itself");
            let incoming = ahead.incoming.get(region);
            Pair {
                region: *region,
                lead: ahead_by(Timestamp::at(stream.ahead_of(reading), 0), reading),
                told: known(stream.told()),
                heard: incoming.and_then(|stream| known(stream.mark())),
                delay: incoming.and_then(Incoming::delay),
                silent: self.shared.options.manager_tick * stream.silent_ticks(tick),
            }
        });
        pairs.collect()
    }
}
