//! Group commit: of the sessions that commit at the same time one leads and commits for all.
//!
//! Committers line up in a queue. One that finds the lead free takes everyone in line and stages
//! them as a group: validated, given versions, written. Then it gives the lead away and waits for
//! the disk. So the next groups are staged, and wait in turn, while the first one waits: between
//! two syncs nobody has to be woken up, which takes longer than half a sync. Who finishes tells
//! its group, and calls the head of the line when all who may lead did.

use std::collections::VecDeque;
use std::sync::Arc;

use manxdb_storage::Version;
use parking_lot::{Condvar, Mutex};

use crate::error::TxnError;

/// How a commit ended.
pub type Verdict = Result<Version, TxnError>;

/// Bytes of keys and values after which a group takes no further intents, so that a crowd of
/// large transactions becomes several batches.
const GROUP_BYTES_MAX: usize = 16 << 20;

/// Groups on their way at a time. More make smaller groups, each with a sync of its own; fewer
/// leave the disk idle while the next leader wakes up.
const GROUPS_MAX: usize = 4;
const _: () = assert!(
    GROUPS_MAX > 0 && GROUP_BYTES_MAX > 0,
    "somebody may lead, and takes somebody along"
);

/// What a committer stands in line with.
pub(super) trait Grouped {
    /// Bytes of keys and values.
    fn size_bytes(&self) -> usize;

    /// Whether it is a group by itself.
    fn stands_alone(&self) -> bool {
        false
    }
}

/// The line of committers.
pub(super) struct GroupQueue<I> {
    line: Mutex<Line<I>>,
}

impl<I> Default for GroupQueue<I> {
    fn default() -> Self {
        let line = Line {
            waiting: VecDeque::new(),
            is_led: false,
            groups: 0,
        };
        Self {
            line: Mutex::new(line),
        }
    }
}

struct Line<I> {
    waiting: VecDeque<Committer<I>>,
    /// Somebody has the lead: its group is not staged yet.
    is_led: bool,
    /// Groups that are not finished, the one being staged among them.
    groups: usize,
}

impl<I> Line<I> {
    /// Takes the lead if it is free, for whoever stands first.
    fn take_lead(&mut self) -> bool {
        let is_free = !self.is_led && self.groups < GROUPS_MAX;
        if is_free {
            self.is_led = true;
            self.groups += 1;
            assert!(
                self.groups <= GROUPS_MAX,
                "no more groups are under way than may"
            );
        }
        is_free
    }

    /// Gives a free lead to the head of the line, if there is one: who is to be told.
    fn call_next(&mut self) -> Option<Arc<Waiter>> {
        let next = Arc::clone(&self.waiting.front()?.waiter);
        self.take_lead().then_some(next)
    }
}

struct Committer<I> {
    intent: I,
    waiter: Arc<Waiter>,
}

/// Where a committer waits for its verdict or for the lead.
#[derive(Default)]
struct Waiter {
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

impl Waiter {
    fn tell(&self, call: Call) {
        let mut told = self.call.lock();
        // Else a verdict would be lost, or the lead.
        assert!(
            matches!(*told, Call::Wait),
            "a committer has heard one call before the next"
        );
        *told = call;
        drop(told);
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
struct Lead<'a, I> {
    queue: &'a GroupQueue<I>,
    stage: Stage,
    /// Those of the group that have no verdict yet.
    followers: VecDeque<Arc<Waiter>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Staging,
    Finishing,
    Over,
}

fn left_out() -> TxnError {
    TxnError::Unknown("the session that committed for this one failed".into())
}

impl<I> Lead<'_, I> {
    /// The next group may be staged.
    fn staged(&mut self) {
        assert!(self.stage == Stage::Staging, "a group is staged once");
        self.stage = Stage::Finishing;
        self.pass(|line| {
            assert!(line.is_led, "only the leader gives the lead away");
            line.is_led = false;
        });
    }

    /// This group takes no part any more.
    fn over(&mut self) {
        let was = std::mem::replace(&mut self.stage, Stage::Over);
        if was != Stage::Over {
            self.pass(|line| {
                line.is_led &= was != Stage::Staging;
                assert!(line.groups > 0, "a group that ends was under way");
                line.groups -= 1;
            });
        }
    }

    fn pass(&self, change: impl FnOnce(&mut Line<I>)) {
        let next = {
            let mut line = self.queue.line.lock();
            change(&mut line);
            line.call_next()
        };
        if let Some(next) = next {
            next.tell(Call::Lead);
        }
    }
}

impl<I> Drop for Lead<'_, I> {
    fn drop(&mut self) {
        self.over();
        for follower in self.followers.drain(..) {
            follower.tell(Call::Done(Err(left_out())));
        }
    }
}

impl<I: Grouped> GroupQueue<I> {
    /// Commits `intent` in a group. `stage` gets the intents of a group in commit order and never
    /// runs twice at a time; `finish` gets what it made, beside other groups' `finish` and the
    /// next group's `stage`, and answers as many verdicts in the same order.
    pub(super) fn submit<Staged>(
        &self,
        intent: I,
        stage: impl FnOnce(Vec<I>) -> Staged,
        finish: impl FnOnce(Staged) -> Vec<Verdict>,
    ) -> Verdict {
        let waiter = Arc::new(Waiter::default());
        let leads = self.line_up(intent, &waiter);
        if !leads && let Some(verdict) = waiter.listen() {
            return verdict;
        }
        let mut lead = Lead {
            queue: self,
            stage: Stage::Staging,
            followers: VecDeque::new(),
        };
        let intents = self.take_group(&mut lead.followers);
        let members = intents.len();
        // The leader itself stands first in its group.
        let leader = lead.followers.pop_front();
        let is_leader = |first: &Arc<Waiter>| Arc::ptr_eq(first, &waiter);
        assert!(
            leader.as_ref().is_some_and(is_leader),
            "a leader leads its own group"
        );
        let staged = stage(intents);
        lead.staged();
        let verdicts = finish(staged);
        // A verdict too few or too many would give a session the outcome of another one.
        assert_eq!(
            verdicts.len(),
            members,
            "a group has as many verdicts as intents"
        );
        // Before the followers: the disk has less to do than they.
        lead.over();
        let mut verdicts = verdicts.into_iter();
        let own = verdicts.next();
        for verdict in verdicts {
            if let Some(follower) = lead.followers.pop_front() {
                follower.tell(Call::Done(verdict));
            }
        }
        assert!(
            lead.followers.is_empty(),
            "every member of a group has its verdict"
        );
        own.unwrap_or_else(|| Err(left_out()))
    }

    /// Joins the line; whether the lead is the newcomer's, which then stands first.
    fn line_up(&self, intent: I, waiter: &Arc<Waiter>) -> bool {
        let mut line = self.line.lock();
        // Nobody stands in line while the lead is free: whoever freed it called the first.
        let leads = line.take_lead();
        assert!(!leads || line.waiting.is_empty(), "a lead passed someone");
        line.waiting.push_back(Committer {
            intent,
            waiter: Arc::clone(waiter),
        });
        leads
    }

    /// The head of the line, which is the leader itself, and whoever fits behind it.
    fn take_group(&self, waiters: &mut VecDeque<Arc<Waiter>>) -> Vec<I> {
        let mut line = self.line.lock();
        let (mut intents, mut bytes) = (Vec::<I>::new(), 0);
        while bytes < GROUP_BYTES_MAX {
            let is_apart = |next: &Committer<I>| {
                next.intent.stands_alone() || intents.first().is_some_and(I::stands_alone)
            };
            if !intents.is_empty() && line.waiting.front().is_some_and(is_apart) {
                break;
            }
            let Some(committer) = line.waiting.pop_front() else {
                break;
            };
            bytes += committer.intent.size_bytes();
            intents.push(committer.intent);
            waiters.push_back(committer.waiter);
        }
        assert!(
            intents.len() == 1 || !intents.iter().any(I::stands_alone),
            "who is a group by itself shares none"
        );
        assert!(!intents.is_empty(), "whoever has the lead stands in line");
        assert_eq!(
            intents.len(),
            waiters.len(),
            "each intent has somebody who waits for it"
        );
        intents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Intent, IsolationLevel, ReadSet, TxnId};
    use manxdb_storage::Durability;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn intent(txn: u64) -> Intent {
        Intent {
            txn: TxnId(txn),
            isolation: IsolationLevel::Serializable,
            reads: ReadSet::default(),
            writes: Vec::new(),
            durability: Durability::Sync,
            locks: Vec::new(),
        }
    }

    /// A leader whose staging waits until `followers` have lined up, and then does `stage`.
    fn lead(
        queue: &GroupQueue<Intent>,
        leading: &AtomicBool,
        followers: usize,
        stage: impl FnOnce(Vec<Intent>) -> Vec<Verdict>,
    ) -> Verdict {
        lead_with(queue, leading, followers, stage, as_they_are)
    }

    fn lead_with(
        queue: &GroupQueue<Intent>,
        leading: &AtomicBool,
        followers: usize,
        stage: impl FnOnce(Vec<Intent>) -> Vec<Verdict>,
        finish: impl FnOnce(Vec<Verdict>) -> Vec<Verdict>,
    ) -> Verdict {
        let wait_and_stage = |own| {
            leading.store(true, Ordering::Release);
            wait_for_line(queue, followers);
            stage(own)
        };
        queue.submit(intent(0), wait_and_stage, finish)
    }

    /// Until the leader has taken its group: who comes now lines up behind it.
    fn wait_for(leading: &AtomicBool) {
        while !leading.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn wait_for_line(queue: &GroupQueue<Intent>, length: usize) {
        while queue.line.lock().waiting.len() < length {
            std::thread::yield_now();
        }
    }

    fn versions(intents: Vec<Intent>) -> Vec<Verdict> {
        let ids = intents.into_iter().map(|intent| intent.txn.0);
        ids.map(|id| Ok(Version(id))).collect()
    }

    fn as_they_are(verdicts: Vec<Verdict>) -> Vec<Verdict> {
        verdicts
    }

    fn assert_idle(queue: &GroupQueue<Intent>) {
        let line = queue.line.lock();
        assert!(!line.is_led && line.groups == 0 && line.waiting.is_empty());
    }

    #[test]
    fn those_who_line_up_are_one_group_and_each_hears_its_own_verdict() {
        let queue = GroupQueue::default();
        let leading = AtomicBool::new(false);
        let groups = Mutex::new(Vec::new());
        let stage = |intents: Vec<Intent>| {
            groups.lock().push(intents.len());
            versions(intents)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| lead(&queue, &leading, 5, stage).unwrap());
            wait_for(&leading);
            for id in 1..=5 {
                let (queue, stage) = (&queue, &stage);
                scope.spawn(move || {
                    let verdict = queue.submit(intent(id), stage, as_they_are).unwrap();
                    assert_eq!(verdict, Version(id));
                });
            }
        });
        assert_eq!(*groups.lock(), [1, 5]);
        assert_idle(&queue);
    }

    #[test]
    fn the_next_group_is_staged_while_one_finishes_and_no_more_than_allowed() {
        let queue = GroupQueue::default();
        let is_synced = AtomicBool::new(false);
        let groups = Mutex::new(Vec::new());
        let stage = |intents: Vec<Intent>| {
            groups.lock().push(intents.len());
            versions(intents)
        };
        let finish = |verdicts: Vec<Verdict>| {
            wait_for(&is_synced);
            verdicts
        };
        std::thread::scope(|scope| {
            let (queue, stage, finish) = (&queue, &stage, &finish);
            for id in 1..=GROUPS_MAX {
                scope.spawn(move || queue.submit(intent(id as u64), stage, finish).unwrap());
                while groups.lock().len() < id {
                    std::thread::yield_now();
                }
            }
            // Whom nobody may stage yet.
            for id in [8, 9] {
                scope.spawn(move || queue.submit(intent(id), stage, as_they_are).unwrap());
            }
            wait_for_line(queue, 2);
            assert_eq!(*groups.lock(), [1; GROUPS_MAX]);
            is_synced.store(true, Ordering::Release);
        });
        assert_eq!(groups.lock().iter().sum::<usize>(), GROUPS_MAX + 2);
        assert_idle(&queue);
    }

    #[test]
    fn a_leader_that_panics_leaves_the_lead_to_the_next() {
        for in_finish in [false, true] {
            let queue = GroupQueue::default();
            let leading = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let leader = scope.spawn(|| {
                    let stage = |own| {
                        assert!(in_finish, "planted");
                        versions(own)
                    };
                    let panics = |_| panic!("planted");
                    lead_with(&queue, &leading, 1, stage, panics)
                });
                wait_for(&leading);
                let next = queue.submit(intent(7), versions, as_they_are).unwrap();
                assert_eq!(next, Version(7));
                assert!(leader.join().is_err());
            });
            let after = queue.submit(intent(8), versions, as_they_are).unwrap();
            assert_eq!(after, Version(8));
            assert_idle(&queue);
        }
    }

    #[test]
    #[should_panic(expected = "a group has as many verdicts as intents")]
    fn a_group_with_fewer_verdicts_than_intents_is_no_success() {
        let queue = GroupQueue::default();
        let _ = queue.submit(intent(0), versions, |_| Vec::new());
    }

    #[test]
    #[should_panic(expected = "a group has as many verdicts as intents")]
    fn a_group_with_more_verdicts_than_intents_is_no_success() {
        let queue = GroupQueue::default();
        let twice = |verdicts: Vec<Verdict>| {
            let more = [Ok(Version(9))];
            verdicts.into_iter().chain(more).collect::<Vec<Verdict>>()
        };
        let _ = queue.submit(intent(0), versions, twice);
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
            let panics = |_: Vec<Verdict>| -> Vec<Verdict> { panic!("planted") };
            let both =
                [1, 2].map(|id| scope.spawn(move || queue.submit(intent(id), versions, panics)));
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
        assert_idle(&queue);
    }
}
