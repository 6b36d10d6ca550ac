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

/// Whatever happens to a leader, somebody leads after it: without this a panic in one session
/// would stop every later commit.
struct Lead<'a> {
    queue: &'a GroupQueue,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
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
        let lead = Lead { queue: self };
        let (intents, seats) = self.take_group();
        let verdicts = commit(intents);
        debug_assert_eq!(verdicts.len(), seats.len());
        let mut own = Err(TxnError::Unknown("the group left this intent out".into()));
        for (verdict, their_seat) in verdicts.into_iter().zip(seats) {
            if Arc::ptr_eq(&their_seat, &seat) {
                own = verdict;
            } else {
                their_seat.tell(Call::Done(verdict));
            }
        }
        drop(lead);
        own
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
    fn take_group(&self) -> (Vec<Intent>, Vec<Arc<Seat>>) {
        let mut line = self.line.lock();
        let (mut intents, mut seats, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < GROUP_BYTES_MAX {
            let Some(committer) = line.waiting.pop_front() else {
                break;
            };
            bytes += size_bytes(&committer.intent);
            intents.push(committer.intent);
            seats.push(committer.seat);
        }
        (intents, seats)
    }
}

fn size_bytes(intent: &Intent) -> usize {
    let value_bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
    let write_bytes = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| key.len() + value_bytes(value);
    intent.writes.iter().map(write_bytes).sum()
}
