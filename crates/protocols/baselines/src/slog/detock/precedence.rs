//! Detock: who comes behind whom in one region's log, as its leader has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_common::{CallId, Conflicts, Planned};
use manxdb_core::Work;
use manxdb_core::check::ensure;
use manxdb_txn::procedure::Touch;

use crate::janus::{Parent, Parents};

/// A transaction of the log that is not over.
#[derive(Debug)]
struct Known {
    planned: Arc<Planned>,
    /// The nearest cross-region transactions that it comes behind.
    behind: Parents,
}

/// The transactions of one region's log that are not over, and what they touch in the region.
///
/// Local transactions are looked through: what comes behind one comes behind the cross-region ones
/// that it is behind. So regions tell each other of cross-region transactions alone.
#[derive(Debug, Default)]
pub struct Precedence {
    known: BTreeMap<CallId, Known>,
    met: Conflicts<CallId>,
}

impl Precedence {
    /// The next transaction of the log, with what it touches in the region: the nearest cross-region
    /// ones that it comes behind.
    pub fn place(
        &mut self,
        planned: &Arc<Planned>,
        touches: Vec<Touch>,
        work: &mut Work,
    ) -> Parents {
        let id = planned.id();
        let mut behind = BTreeSet::new();
        for other in self.met.clashing(&touches) {
            work.edges += 1;
            let Some(other) = self.known.get(&other) else {
                continue;
            };
            if other.planned.crosses_regions {
                let (id, shards) = (other.planned.id(), other.planned.shards.as_slice().into());
                behind.insert(Parent { id, shards });
            } else {
                behind.extend(other.behind.iter().cloned());
            }
        }
        work.keys += u32::try_from(touches.len()).unwrap_or(u32::MAX);
        let behind: Parents = behind.into_iter().collect();
        let known = Known {
            planned: Arc::clone(planned),
            behind: Arc::clone(&behind),
        };
        let before = self.known.insert(id, known);
        assert!(before.is_none(), "L14: a transaction is in a log once");
        self.met.add(id, touches);
        behind
    }

    /// A transaction has run everywhere. What comes later comes behind it anyway: its place and those
    /// of its ancestors are decided.
    pub fn is_over(&mut self, id: CallId) {
        self.known.remove(&id);
        self.met.remove(id);
    }

    pub fn check(&self) -> Result<(), String> {
        ensure(self.known.keys().copied().eq(self.met.names()), || {
            "L15: what is not over is not what is in the index".into()
        })
    }
}
