//! A driver that notes what it sees.

use manxdb_core::{NodeId, RequestId};
use manxdb_sim::system::ReplyOf;
use manxdb_sim::{Driver, Outside, SimTime, System};

/// Notes replies.
pub struct Seen<S: System> {
    pub replies: Vec<(SimTime, RequestId, ReplyOf<S>)>,
    pub changes: Vec<(SimTime, NodeId, bool)>,
}

impl<S: System> Default for Seen<S> {
    fn default() -> Self {
        Self {
            replies: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl<S: System> Driver<S> for Seen<S> {
    fn reply(&mut self, outside: &mut Outside<'_, S>, _: NodeId, id: RequestId, body: ReplyOf<S>) {
        self.replies.push((outside.now(), id, body));
    }

    fn crashed(&mut self, outside: &mut Outside<'_, S>, node: NodeId) {
        self.changes.push((outside.now(), node, false));
    }

    fn restarted(&mut self, outside: &mut Outside<'_, S>, node: NodeId) {
        self.changes.push((outside.now(), node, true));
    }
}
