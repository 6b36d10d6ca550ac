//! Group commit: of the sessions that commit at the same time one leads and commits for all.
//!
//! Committers line up in a queue. The first to find nobody leading takes everyone in line,
//! commits them as one group and then passes the lead to whoever lined up meanwhile, so
//! that no session works for others longer than one group.

use std::collections::VecDeque;
use std::sync::Arc;

use manxdb_storage::Version;
use parking_lot::{Condvar, Mutex};

use crate::path::{Intent, TxnError};

/// How a commit ended.
pub(super) type Verdict = Result<Version, TxnError>;

/// Bytes of keys and values after which a group takes no further intents, so that a crowd of
/// large transactions becomes several batches.
const GROUP_BYTES_MAX: usize = 16 << 20;

/// The line of committers.
#[derive(Default)]
pub(super) struct GroupQueue {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Committer>,
    led: bool,
}

struct Committer {
    intent: Intent,
    seat: Arc<Seat>,
}

/// Where a committer waits.
#[derive(Default)]
struct Seat {
    call: Mutex<Call>,
    called: Condvar,
}

#[derive(Default)]
enum Call {
    #[default]
    Wait,
    Lead,
    Done(Verdict),
}

impl Seat {
    fn tell(&self, call: Call) {
        *self.call.lock() = call;
        self.called.notify_one();
    }

    /// Waits for the verdict, or for the lead (`None`).
    fn listen(&self) -> Option<Verdict> {
        let mut call = self.call.lock();
        loop {
            match std::mem::take(&mut *call) {
                Call::Wait => self.called.wait(&mut call),
                Call::Lead => return None,
                Call::Done(verdict) => return Some(verdict),
            }
        }
    }
}

/// Whatever happens to a leader, its followers hear of it and somebody leads after it: without
/// this a panic in one session would stop every later commit.
struct Lead<'a> {
    queue: &'a GroupQueue,
    /// Those of the group that have no verdict yet.
    followers: VecDeque<Arc<Seat>>,
}

fn left_out() -> TxnError {
    TxnError::Unknown("the session that committed for this one failed".into())
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        for follower in self.followers.drain(..) {
            follower.tell(Call::Done(Err(left_out())));
        }
        let mut line = self.queue.line.lock();
        match line.waiting.front() {
            Some(next) => next.seat.tell(Call::Lead),
            None => line.led = false,
        }
    }
}

impl GroupQueue {
    /// Commits `intent` in a group. `commit` gets the intents of a group in commit order, never
    /// runs twice at a time, and answers as many verdicts in the same order.
    pub(super) fn submit(
        &self,
        intent: Intent,
        commit: impl FnOnce(Vec<Intent>) -> Vec<Verdict>,
    ) -> Verdict {
        let seat = Arc::new(Seat::default());
        let is_led = self.line_up(intent, &seat);
        if is_led && let Some(verdict) = seat.listen() {
            return verdict;
        }
        let mut lead = Lead {
            queue: self,
            followers: VecDeque::new(),
        };
        let intents = self.take_group(&mut lead.followers);
        // The leader itself stands first in its group.
        lead.followers.pop_front();
        let mut verdicts = commit(intents).into_iter();
        let own = verdicts.next();
        for verdict in verdicts {
            if let Some(follower) = lead.followers.pop_front() {
                follower.tell(Call::Done(verdict));
            }
        }
        own.unwrap_or_else(|| Err(left_out()))
    }

    /// Joins the line; whether somebody leads already.
    fn line_up(&self, intent: Intent, seat: &Arc<Seat>) -> bool {
        let mut line = self.line.lock();
        line.waiting.push_back(Committer {
            intent,
            seat: Arc::clone(seat),
        });
        std::mem::replace(&mut line.led, true)
    }

    /// The head of the line, which is the leader itself, and whoever fits behind it.
    fn take_group(&self, seats: &mut VecDeque<Arc<Seat>>) -> Vec<Intent> {
        let mut line = self.line.lock();
        let (mut intents, mut bytes) = (Vec::new(), 0);
        while bytes < GROUP_BYTES_MAX {
            let Some(committer) = line.waiting.pop_front() else {
                break;
            };
            bytes += size_bytes(&committer.intent);
            intents.push(committer.intent);
            seats.push_back(committer.seat);
        }
        intents
    }
}

fn size_bytes(intent: &Intent) -> usize {
    let value_bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
    let write_bytes = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| key.len() + value_bytes(value);
    intent.writes.iter().map(write_bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{IsolationLevel, ReadSet, TxnId};
    use manxdb_storage::Durability;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn intent(txn: u64) -> Intent {
        Intent {
            txn: TxnId(txn),
            isolation: IsolationLevel::Serializable,
            reads: ReadSet::default(),
            writes: Vec::new(),
            durability: Durability::Sync,
        }
    }

    /// A leader whose commit waits until `followers` have lined up, and then does `finish`.
    fn lead(
        queue: &GroupQueue,
        leading: &AtomicBool,
        followers: usize,
        finish: impl FnOnce(Vec<Intent>) -> Vec<Verdict>,
    ) -> Verdict {
        queue.submit(intent(0), |own| {
            leading.store(true, Ordering::Release);
            while queue.line.lock().waiting.len() < followers {
                std::thread::yield_now();
            }
            finish(own)
        })
    }

    /// Until the leader has taken its group: who comes now lines up behind it.
    fn wait_for(leading: &AtomicBool) {
        while !leading.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn versions(intents: Vec<Intent>) -> Vec<Verdict> {
        let ids = intents.into_iter().map(|intent| intent.txn.0);
        ids.map(|id| Ok(Version(id))).collect()
    }

    #[test]
    fn those_who_line_up_are_one_group_and_each_hears_its_own_verdict() {
        let queue = GroupQueue::default();
        let leading = AtomicBool::new(false);
        let groups = Mutex::new(Vec::new());
        let commit = |intents: Vec<Intent>| {
            groups.lock().push(intents.len());
            versions(intents)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| lead(&queue, &leading, 5, commit).unwrap());
            wait_for(&leading);
            for id in 1..=5 {
                let (queue, commit) = (&queue, &commit);
                scope.spawn(move || {
                    let verdict = queue.submit(intent(id), commit).unwrap();
                    assert_eq!(verdict, Version(id));
                });
            }
        });
        assert_eq!(*groups.lock(), [1, 5]);
        assert!(!queue.line.lock().led);
    }

    #[test]
    fn a_leader_that_panics_leaves_the_lead_to_the_next() {
        let queue = GroupQueue::default();
        let leading = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let leader = scope.spawn(|| lead(&queue, &leading, 1, |_| panic!("planted")));
            wait_for(&leading);
            let next = queue.submit(intent(7), versions).unwrap();
            assert_eq!(next, Version(7));
            assert!(leader.join().is_err());
        });
        assert_eq!(queue.submit(intent(8), versions).unwrap(), Version(8));
    }

    #[test]
    fn followers_of_a_leader_that_panics_are_told() {
        let queue = GroupQueue::default();
        let leading = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| lead(&queue, &leading, 2, versions).unwrap());
            wait_for(&leading);
            // The two form the second group, whose leader panics: the other hears of it.
            let queue = &queue;
            let panics = |_| panic!("planted");
            let both = [1, 2].map(|id| scope.spawn(move || queue.submit(intent(id), panics)));
            let mut ends: Vec<bool> = both
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(Err(TxnError::Unknown(_))) => true,
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => false,
                })
                .collect();
            ends.sort_unstable();
            assert_eq!(ends, [false, true]);
        });
    }
}
