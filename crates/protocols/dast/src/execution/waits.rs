//! Why transactions of a shard have not run, for the split of their latencies.

use manxdb_core::Wait;
use manxdb_txn::procedure::Touch;

use super::{Execution, Running};
use crate::call::{CallId, PieceOfCall};
use crate::timestamp::Timestamp;
use crate::waits::{INPUT, ROW, wait, wait_on};

impl Execution {
    /// Transactions at their final places whose turn has not come, in order.
    pub(crate) fn settled(&self) -> impl Iterator<Item = (Timestamp, CallId)> + '_ {
        let settled = self.known.iter().filter(|(_, known)| known.settled);
        settled.map(|(at, known)| (*at, known.planned.id()))
    }

    /// Transactions whose turn has come and that have pieces left, and what those wait for.
    pub(crate) fn deferred_waits(&self) -> Vec<(CallId, Wait)> {
        let mut ahead: Vec<(CallId, Vec<Touch>)> = Vec::new();
        let mut waits = Vec::new();
        for running in self.running.values() {
            let id = running.planned.id();
            let mut touches = Vec::new();
            self.touches_left(running, &mut touches);
            let in_the_way = ahead.iter().find(|(_, theirs)| {
                let clashes = |own: &Touch| theirs.iter().any(|other| own.clashes(other));
                touches.iter().any(clashes)
            });
            let wait = match in_the_way {
                _ if running.lacks_input() => wait(INPUT),
                Some((other, _)) => wait_on(ROW, *other),
                None => wait(INPUT),
            };
            waits.push((id, wait));
            ahead.push((id, touches));
        }
        waits
    }
}

impl Running {
    fn lacks_input(&self) -> bool {
        let left = self.left.iter();
        let pieces = left.filter_map(|place| self.planned.pieces.get(*place));
        let mut needed = pieces.flat_map(PieceOfCall::needs);
        needed.any(|slot| !self.values.contains_key(&slot.0))
    }
}
